"""How a known key is described: its kind, bounds and meaning. Knows no key itself."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    TEXT = "text"
    TEXTS = "array of texts"
    INTEGER = "integer"
    NUMBER = "number"
    FLAG = "true or false"
    SCALAR = "text, number, true or false"
    TABLE = "table"
    TABLES = "array of tables"
    LABELS = "table of label = integer"


@dataclass(frozen=True, slots=True)
class Key:
    name: str
    kind: Kind
    help: str
    required: bool = False
    choices: tuple[str, ...] = ()
    low: int | None = None
    high: int | None = None
    """Of a number its largest value, of an array of tables their number."""
    table: Table | None = None
    profile: str | None = None
    """Set: the key has a meaning in documents of this profile only."""
    whole: bool = False
    """The table is taken as it is: somebody else judges it."""
    default: Any = None


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    """As the docs write it: `[port]`, `[[tool.arg]]`."""
    help: str
    keys: tuple[Key, ...]

    def get(self, name: str) -> Key | None:
        return next((key for key in self.keys if key.name == name), None)

    @property
    def names(self) -> list[str]:
        return [key.name for key in self.keys]
