"""How every command prints: tables for people, JSON for programs, faults to stderr.

Exit codes: 0 fine, 1 something is at fault, 2 the command was used wrongly (click's own). Knows no command.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import IO, Any, TypeVar

import click

FAULT_EXIT = 1
GAP = "  "
NARROWEST = 6
"""No column is cut below this: less tells nothing."""

_Command = TypeVar("_Command", bound=Callable[..., Any])


def json_option(command: _Command) -> _Command:
    """The same `--json` for every command; arrives as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")(command)


class Failure(click.ClickException):
    """Ends the command: what went wrong, what to do about it, exit code 1."""

    exit_code = FAULT_EXIT

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"{click.style('error:', fg='red')} {self.message}", file=file, err=file is None)
        if self.hint:
            click.echo(f"    {self.hint}", file=file, err=file is None)


def print_json(data: Any) -> None:
    click.echo(json.dumps(data, indent=2, ensure_ascii=False))


def print_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns as wide as their widest cell; on a terminal cut to its width, elsewhere never."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headers, *cells, strict=True)]
    if sys.stdout.isatty():
        widths = fitted(widths, shutil.get_terminal_size().columns)
    click.secho(_aligned([header.upper() for header in headers], widths), bold=True)
    for row in cells:
        click.echo(_aligned(row, widths))


def fitted(widths: Sequence[int], room: int) -> list[int]:
    """Widths that fit into a line: the widest column gives first, and again and again."""
    widths = list(widths)
    while sum(widths) + len(GAP) * (len(widths) - 1) > room and max(widths) > NARROWEST:
        widths[widths.index(max(widths))] -= 1
    return widths


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    return GAP.join(_cut(cell, width).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
