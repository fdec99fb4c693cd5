"""What every part of the configuration reads alike: paths, secrets, segments. Faults are reported, never raised.

Knows no key.
"""

from __future__ import annotations

import re
from pathlib import Path

from mcpax.documents.faults import KeyPath, Report, shown
from mcpax.names import InvalidName, check_segment

MAX_TOKEN_CHARS = 4096
MIN_TOKEN_CHARS = 16
MAKE_TOKEN = r"head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"
_TOKEN = re.compile(rf"[!-~]{{{MIN_TOKEN_CHARS},{MAX_TOKEN_CHARS}}}")
INVALID_SEGMENT = "?"
"""Stands for one that was reported, so that the rest can be looked at too."""


class Reading:
    """Reads one document; paths in it are relative to the file."""

    def __init__(self, base: Path, report: Report) -> None:
        self.base = base
        self.report = report

    def path(self, text: str, where: KeyPath) -> Path | None:
        try:
            if "\0" not in text:
                return self.base / Path(text).expanduser()
        except RuntimeError:  # ~name, and nobody is called so
            pass
        self.report.add(where, f"{shown(text)} is not a path", "relative to this file, absolute, or below ~")
        return None

    def segment(self, text: str, where: KeyPath) -> str:
        try:
            return check_segment(text)
        except InvalidName as error:
            self.report.add(where, str(error), "like edge or line-3")
            return INVALID_SEGMENT

    def token(self, file: str | None, where: KeyPath) -> str | None:
        if file is None:
            return None
        path = self.path(file, where)
        if path is None:
            return None
        try:
            token = path.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            self.report.add(where, f"{file} cannot be read: {error}", "the gateway's user must be able to read it")
            return None
        if not _TOKEN.fullmatch(token):
            hint = f"one line of {MIN_TOKEN_CHARS} to {MAX_TOKEN_CHARS} characters, as made by: {MAKE_TOKEN} FILE"
            self.report.add(where, f"{file} does not hold a usable token", hint)
            return None
        return token
