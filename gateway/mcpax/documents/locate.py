"""On which line each key of a TOML document stands; `tomllib` does not tell.

Reads text that `tomllib` has already accepted, so it looks only for what moves the place: keys, brackets, strings and
comments. It judges nothing and keeps no values.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right

from mcpax.documents.faults import KeyPath

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_KEY_PART = re.compile(r"""[ \t]*([A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')[ \t]*""")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}(?!")'  # up to two quotes may stand before the closing three
    r"|'''.*?'{3,5}(?!')"
    r'|"(?:[^"\\]|\\.)*"'
    r"|'[^']*'",
    re.DOTALL,
)
_SCALAR = re.compile(r"[^,\]}#\n]+")


def locate(text: str) -> dict[KeyPath, int]:
    """The line, counted from 1, of every table, key and array element of a valid document."""
    return _Locator(text).run()


class _Locator:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._lines: dict[KeyPath, int] = {}
        self._table_counts: dict[KeyPath, int] = {}  # how many tables each array of tables has so far

    def run(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        while not self._finished():
            if self._text.startswith("[", self._at):
                table = self._header()
            else:
                self._pair(table)
        return self._lines

    def _finished(self) -> bool:
        self._skip_blank()
        return self._at >= len(self._text)

    def _skip_blank(self) -> None:
        match = _BLANK.match(self._text, self._at)
        self._at = match.end() if match else self._at

    def _note(self, path: KeyPath) -> None:
        self._lines.setdefault(path, bisect_right(self._line_starts, self._at))

    def _key(self) -> list[str]:
        parts: list[str] = []
        while match := _KEY_PART.match(self._text, self._at):
            part = match[1]
            # Quoted keys may hold escapes; who knows TOML's escapes is tomllib.
            parts.append(next(iter(tomllib.loads(f"{part} = 0"))) if part[0] in "\"'" else part)
            self._at = match.end()
            if not self._text.startswith(".", self._at):
                break
            self._at += 1
        return parts

    def _header(self) -> KeyPath:
        start = self._at
        array = self._text.startswith("[[", start)
        self._at = start + (2 if array else 1)
        parts = self._key()
        end, self._at = self._at, start
        path: KeyPath = ()
        for depth, part in enumerate(parts, 1):
            path = (*path, part)
            self._note(path)
            if array and depth == len(parts):
                self._table_counts[path] = self._table_counts.get(path, 0) + 1
            if path in self._table_counts:
                path = (*path, self._table_counts[path] - 1)
                self._note(path)
        self._at = end + (2 if array else 1)
        return path

    def _pair(self, table: KeyPath) -> None:
        start = self._at
        parts = self._key()
        end, self._at = self._at, start
        path = table
        for part in parts:
            path = (*path, part)
            self._note(path)
        self._at = end + 1  # the equals sign
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        self._skip_blank()
        opening = self._text[self._at]
        if opening == "[":
            self._items(path, "]")
        elif opening == "{":
            self._items(path, "}")
        else:
            match = (_STRING if opening in "\"'" else _SCALAR).match(self._text, self._at)
            self._at = match.end() if match else self._at + 1

    def _items(self, path: KeyPath, closing: str) -> None:
        """The elements of an array or the pairs of an inline table."""
        self._at += 1
        index = 0
        while not self._finished() and self._text[self._at] != closing:
            if self._text[self._at] == ",":
                self._at += 1
                continue
            if closing == "}":
                self._pair(path)
            else:
                self._note((*path, index))
                self._value((*path, index))
                index += 1
        self._at += 1
