"""Names within a map: each a valid segment, and no two alike, not even once C has turned '-' into '_'.

Knows nothing of what the names stand for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcpax.bridge.maps.faults import KeyPath, Report, shown
from mcpax.names import InvalidName, check_segment


def check_name(table: Mapping[str, Any], path: KeyPath, report: Report, what: str = "name") -> None:
    """`path` is the table's; a table without a name is not judged here."""
    try:
        check_segment(table.get("name", "absent"))
    except InvalidName as error:
        problem, _, hint = str(error).partition(": ")
        report.add((*path, "name"), f"bad {what}: {problem}", hint)


def check_unique(tables: Sequence[Mapping[str, Any]], path: KeyPath, report: Report, what: str = "name") -> None:
    """`path` is that of the array of tables."""
    seen: dict[str, str] = {}
    for index, table in enumerate(tables):
        name = table.get("name")
        if name is None:
            continue
        in_c = name.replace("-", "_")
        if in_c not in seen:
            seen[in_c] = name
        elif seen[in_c] == name:
            report.add((*path, index, "name"), f"{what} {shown(name)} is used twice", "every one needs its own")
        else:
            report.add((*path, index, "name"), f"{what} {shown(name)} is {shown(seen[in_c])} in C", "'-' becomes '_' there: choose another")
