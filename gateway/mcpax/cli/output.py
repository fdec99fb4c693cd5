"""How every command prints: tables for people, JSON for programs, faults to stderr.

Exit codes: 0 fine, 1 something is at fault, 2 the command was used wrongly (click's own). Knows no command.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import IO, Any, TypeVar

import click

FAULT_EXIT = 1

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
    """Columns as wide as their widest cell; the last one runs free."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headers, *cells, strict=True)]
    click.secho(_aligned([header.upper() for header in headers], widths), bold=True)
    for row in cells:
        click.echo(_aligned(row, widths))


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
