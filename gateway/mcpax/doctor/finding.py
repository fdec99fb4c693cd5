"""What a check found: fine, worth knowing, or wrong, and what to do about it. Plain data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    """What was looked at, in a word or two."""
    level: Level
    message: str
    hint: str = ""
    """What to do; empty if nothing."""


def ok(check: str, message: str) -> Finding:
    return Finding(check, Level.OK, message)


def warn(check: str, message: str, hint: str) -> Finding:
    return Finding(check, Level.WARN, message, hint)


def fail(check: str, message: str, hint: str) -> Finding:
    return Finding(check, Level.FAIL, message, hint)
