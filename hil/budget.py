"""Footprints next to the draft's budget: which images are over it and by how much, and the table for people, JSON and the README.

Deals in numbers that others have measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Budget:
    """Bytes; each must be less than this."""

    code: int
    schema: int
    ram: int


DRAFT = Budget(code=2048, schema=512, ram=256)
"""Profile B on AVR, Cortex-M0+ and MSP430. The draft has none for Profile A, nor for other chips."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """Of one application on one board, in bytes; None where it cannot be known."""

    board: str
    chip: str
    app: str
    profile: str
    code: int
    schema: int | None
    static_ram: int
    stack: int | None
    """The deepest that was seen."""
    budget: Budget | None = None

    @property
    def name(self) -> str:
        return f"{self.board}-{self.app}"

    @property
    def ram(self) -> int | None:
        return None if self.stack is None else self.static_ram + self.stack

    def over(self) -> list[str]:
        """One sentence for each part that is not within the budget."""
        if self.budget is None:
            return []
        used = {"code": self.code, "schema": self.schema, "ram": self.ram}
        return [
            f"{self.name}: {part} takes {bytes_used} bytes, {bytes_used - limit + 1} too many: the budget is less than {limit}"
            for part, limit in asdict(self.budget).items()
            if (bytes_used := used[part]) is not None and bytes_used >= limit
        ]

    def to_json(self) -> Json:
        """What is not known is left out, so that a column of numbers stays one."""
        flat = {**asdict(self), "ram": self.ram, "budget": self.budget and asdict(self.budget)}
        order = ("board", "chip", "app", "profile", "code", "schema", "static_ram", "stack", "ram", "budget")
        return {key: flat[key] for key in order if flat[key] is not None}


COLUMNS = ("board", "application", "profile", "code", "schema", "static RAM", "stack", "RAM", "budget")
NUMBERS = range(3, 8)
"""Columns that are aligned to the right."""


def table(rows: Sequence[Footprint]) -> str:
    """For a terminal."""
    cells = [COLUMNS, *map(_cells, rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(COLUMNS))]
    return "".join("  ".join(_aligned(row, widths)).rstrip() + "\n" for row in cells)


def markdown(rows: Sequence[Footprint]) -> str:
    """For the README."""
    rule = ("---:" if column in NUMBERS else "---" for column in range(len(COLUMNS)))
    return "".join(f"| {' | '.join(row)} |\n" for row in (COLUMNS, tuple(rule), *map(_cells, rows)))


def _cells(row: Footprint) -> tuple[str, ...]:
    numbers = (row.code, row.schema, row.static_ram, row.stack, row.ram)
    return (row.board, row.app, row.profile, *("–" if number is None else str(number) for number in numbers), _verdict(row))


def _verdict(row: Footprint) -> str:
    if row.budget is None:
        return "none"
    limits = f"< {row.budget.code} / {row.budget.schema} / {row.budget.ram}"
    return f"{limits}: OVER" if row.over() else limits


def _aligned(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [
        cell.rjust(width) if column in NUMBERS else cell.ljust(width) for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
