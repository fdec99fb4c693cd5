"""The table of footprints that scripts/footprint leaves, for the report. Shows what is there; knows no budget and measures nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Json = dict[str, Any]


def load_footprint(path: Path) -> list[Json]:
    """Rows, or none if there is no such file or it is something else: a report without them is still a report."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    rows = found if isinstance(found, list) else found.get("rows", []) if isinstance(found, dict) else []
    return [flattened(row) for row in rows if isinstance(row, dict)]


def columns(rows: list[Json]) -> list[str]:
    """Every key of any row, in the order in which they are first met."""
    return list(dict.fromkeys(key for row in rows for key in row))


def flattened(row: Json, prefix: str = "") -> Json:
    """`{"budget": {"code": 2048}}` is `{"budget code": 2048}`: a table has one level."""
    flat: Json = {}
    for key, value in row.items():
        name = f"{prefix}{key}".replace("_", " ")
        flat |= flattened(value, f"{name} ") if isinstance(value, dict) else {name: value}
    return flat
