"""Names within a map: each a valid segment, and no two alike, not even once C has turned '-' into '_'.

Knows nothing of what the names stand for.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcpax.documents.faults import KeyPath, Report, shown
from mcpax.documents.structure import Tidy
from mcpax.names import InvalidName, check_segment


def check_names(named: Iterable[tuple[KeyPath, str]], report: Report, what: str = "name") -> None:
    """Names that must differ from each other, each with the path that it stands at."""
    taken: dict[str, str] = {}
    for path, name in named:
        try:
            check_segment(name)
        except InvalidName as error:
            problem, _, hint = str(error).partition(": ")
            report.add(path, f"bad {what}: {problem}", hint)
        in_c = name.replace("-", "_")
        first = taken.get(in_c)
        taken[in_c] = name
        if first == name:
            report.add(path, f"{what} {shown(name)} is used twice", "every one needs its own")
        elif first is not None:
            report.add(path, f"{what} {shown(name)} is {shown(first)} in C", "'-' becomes '_' there: choose another")


def names_in(tables: Iterable[Tidy], path: KeyPath) -> Iterable[tuple[KeyPath, str]]:
    """The names of an array of tables; a table without one is somebody else's concern."""
    return (((*path, index, "name"), table["name"]) for index, table in enumerate(tables) if "name" in table)
