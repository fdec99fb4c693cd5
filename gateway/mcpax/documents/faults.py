"""What is wrong in a document: where it stands, what it is, and how to mend it.

A `Report` gathers faults by key path, so that the rules need know nothing of files and lines. Knows no rule itself.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

KeyPath = tuple[str | int, ...]
"""Way from the top of the document to a value: keys, and indexes into arrays."""


@dataclass(frozen=True, slots=True)
class DocumentFault:
    file: str
    line: int
    where: str
    """In words: `tool "read_climate" result 2 "humidity"`."""
    message: str
    hint: str

    def __str__(self) -> str:
        return ": ".join(part for part in (f"{self.file}:{self.line}", self.where, self.message) if part)


class DocumentError(ValueError):
    """A document that cannot be used; carries every fault, not only the first."""

    def __init__(self, faults: list[DocumentFault]) -> None:
        super().__init__("\n".join(f"{fault}\n    {fault.hint}" for fault in faults))
        self.faults = faults


class Report:
    """Gathers the faults of one document."""

    def __init__(self, file: str, document: Mapping[str, Any], lines: Mapping[KeyPath, int]) -> None:
        self.faults: list[DocumentFault] = []
        self._paths: set[KeyPath] = set()
        self._file = file
        self._document = document
        self._lines = lines

    def add(self, path: KeyPath, message: str, hint: str) -> None:
        """`path` ends in the key that is at fault; a key that is not there is told by the line of its table."""
        self._paths.add(path)
        self.faults.append(DocumentFault(self._file, self._line(path), self._where(path[:-1]), message, hint))

    def clean(self, path: KeyPath) -> bool:
        """Whether no fault was found at this path or below, so that a rule may rely on what stands there."""
        return not any(fault[: len(path)] == path for fault in self._paths)

    def ordered(self) -> list[DocumentFault]:
        """Those of other documents first, since this one builds on them; then in the order of the file, which is how people mend it."""
        return sorted(self.faults, key=lambda fault: (fault.file == self._file, fault.file, fault.line))

    def _line(self, path: KeyPath) -> int:
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path, 1)

    def _where(self, tables: KeyPath) -> str:
        words: list[str] = []
        here: Any = self._document
        for depth, step in enumerate(tables):
            here = here[step]
            if isinstance(step, str):
                words.append(step)
                continue
            name = here.get("name") if isinstance(here, dict) else None
            quoted = f'"{name}"' if isinstance(name, str) else ""
            # A tool is known by its name; a field by its place too, because that is what goes over the wire.
            words.append(quoted or str(step + 1) if depth == 1 else f"{step + 1} {quoted}".rstrip())
        return " ".join(words)


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint for a word that is not among the known ones."""
    known = list(known)
    folded = {name.lower(): name for name in known}
    near = get_close_matches(word.lower(), folded, n=1)
    if near:
        return f'did you mean "{folded[near[0]]}"?'
    return f"known here: {', '.join(known)}" if known else "nothing is known here"


def shown(value: object) -> str:
    """A value as its author wrote it, in TOML or JSON, cut short: a fault is one line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= 40 else f'"{value[:37]}…"'
    if isinstance(value, int) and value.bit_length() > 64:
        return f"an integer of {value.bit_length()} bits"  # Python refuses to print very long ones
    return _SHORT.repr(value)


_SHORT = reprlib.Repr()
_SHORT.maxother = 40
_SHORT.maxlevel = 2
