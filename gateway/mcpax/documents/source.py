"""From text to a TOML document with line numbers, or to every syntax fault in it.

Knows TOML and the mistakes people make in it; knows nothing of what a document may say.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcpax.documents.faults import DocumentError, DocumentFault, KeyPath
from mcpax.documents.locate import locate

_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_MOST_SYNTAX_FAULTS = 20

_HINTS = {
    "Invalid value": 'text stands in quotes: key = "text"; true and false are lower case',
    "Cannot overwrite a value": "the key was already given in this table; is a [[tool]] or [[tool.arg]] header missing above it?",
    "Cannot declare": "the table is there already; an array of tables has double brackets, as in [[tool]]",
    "Unclosed": "a bracket or brace is opened here and not closed",
    "Unterminated string": "a string is opened here and not closed",
    "Illegal character": "a string ends on its own line, or needs three quotes at both ends",
    "Expected '=' after a key": "a line is key = value, a [table] header or a # comment",
    "Unescaped '\\'": "write \\\\ for a backslash, or use single quotes",
}


@dataclass(frozen=True, slots=True)
class Source:
    document: Mapping[str, Any]
    lines: Mapping[KeyPath, int]


def read(path: Path) -> str:
    """The text of a file, or `DocumentError` saying why there is none."""
    data = b""
    try:
        data = path.read_bytes()
        return data.decode("utf-8")
    except OSError as error:
        fault = DocumentFault(str(path), 1, "", f"cannot be read: {error.strerror or error}", "check the path and its permissions")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        fault = DocumentFault(str(path), line, "", "not UTF-8 text", "save the file as UTF-8")
    raise DocumentError([fault])


def parse(text: str, file: str) -> Source:
    """Read TOML, or raise `DocumentError` with all its syntax faults."""
    try:
        return Source(tomllib.loads(text), locate(text))
    except RecursionError:
        raise DocumentError([DocumentFault(file, 1, "", "nested too deeply", "four levels are enough for anything here")]) from None
    except ValueError:
        raise DocumentError(_syntax_faults(text, file)) from None


def _syntax_faults(text: str, file: str) -> list[DocumentFault]:
    """tomllib stops at the first fault: note it, take its line out, and look for the next."""
    rows = text.replace("\r\n", "\n").split("\n")
    faults: list[DocumentFault] = []
    while len(faults) < _MOST_SYNTAX_FAULTS and (message := _fault(rows)):
        place = _PLACE.search(message)
        found = int(place[1]) if place and place[1] else len(rows)
        # If the lines before make sense by themselves, the fault is this line's own. Otherwise something is still open there:
        # its first line is the one to mend, and whatever else would be found is only its echo.
        line = next(line for line in range(found, 0, -1) if not _fault(rows[: line - 1]))
        message = _PLACE.sub("", message)
        faults.append(DocumentFault(file, line, "", f"not TOML: {message[0].lower()}{message[1:]}", _hint(message, rows[line - 1])))
        if line < found:
            break
        # A header is replaced rather than dropped, or its keys would clash with those of the table before.
        rows[line - 1] = "[[mended]]" if rows[line - 1].lstrip().startswith("[") else ""
    return faults


def _fault(rows: list[str]) -> str:
    """tomllib's complaint, if any."""
    try:
        tomllib.loads("\n".join(rows))
    except ValueError as error:
        return str(error)
    except RecursionError:
        return "nested too deeply"
    return ""


def _hint(message: str, row: str) -> str:
    if row.startswith("\ufeff"):
        return "the file starts with a byte order mark: save it as UTF-8 without one"
    hints = (hint for start, hint in _HINTS.items() if message.startswith(start))
    return next(hints, f"the line reads: {row.strip()[:60]}")
