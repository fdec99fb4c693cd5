"""Holds a TOML document against the known keys: unknown, missing, of the wrong kind, out of bounds, in the wrong profile.

What passes comes back as a tidy copy in which everything that is there is well formed, so that the rules between keys may
look at whatever is left. Knows no rule that spans two keys, but for a key's profile.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from mcpax.documents.faults import KeyPath, Report, nearest, shown
from mcpax.documents.keys import Key, Kind, Table

Tidy = dict[str, Any]


def tidy_table(given: Mapping[str, Any], table: Table, path: KeyPath, profile: str | None, report: Report) -> Tidy:
    """The well-formed part of a table; everything else is reported."""
    tidy: Tidy = {}
    for name, value in given.items():
        key = table.get(name)
        here = (*path, name)
        if key is None:
            report.add(here, f"unknown key {shown(name)}", nearest(name, table.names))
        elif profile is not None and key.profile not in (None, profile):
            report.add(here, f"{name} belongs to profile {key.profile} only", f"remove it: in profile {profile} it means nothing")
        else:
            kept = _tidy_value(value, key, here, profile, report)
            if kept is not None:
                tidy[name] = kept
    for key in table.keys:
        if key.required and key.name not in given:
            report.add((*path, key.name), f"{key.name} is missing", f"add it. {_expected(key)}")
    return tidy


def _tidy_value(value: Any, key: Key, path: KeyPath, profile: str | None, report: Report) -> Any:
    """The value, or None if it is of the wrong kind, or not one of those allowed."""
    if not _is_kind(value, key.kind):
        report.add(path, f"{key.name} must be {_article(key.kind)}, not {shown(value)}", _expected(key))
        return None
    if key.whole:
        return dict(value)
    if key.kind is Kind.TABLE and key.table is not None:
        return tidy_table(value, key.table, path, profile, report)
    if key.kind is Kind.TABLES and key.table is not None:
        if key.high is not None and len(value) > key.high:
            report.add(path, f"{len(value)} of {key.name}, at most {key.high} allowed", "split it into two")
        return [_tidy_item(item, key.table, (*path, index), profile, report) for index, item in enumerate(value)]
    if key.choices and value not in key.choices:
        report.add(path, f"{key.name} {shown(value)} is not known", nearest(value, key.choices))
        return None
    if key.kind is Kind.TEXT and key.required and not value.strip():
        report.add(path, f"{key.name} is empty", _expected(key))
        return None
    if (key.low is not None and value < key.low) or (key.high is not None and value > key.high):
        report.add(path, f"{key.name} {shown(value)} is out of bounds", _expected(key))
        return None
    return value


def _tidy_item(item: Any, table: Table, path: KeyPath, profile: str | None, report: Report) -> Tidy:
    if isinstance(item, dict):
        return tidy_table(item, table, path, profile, report)
    report.add((*path, ""), f"must be a table, not {shown(item)}", f"write it as {table.name} followed by key = value lines")
    return {}


def _is_kind(value: Any, kind: Kind) -> bool:
    match kind:
        case Kind.TEXT:
            return isinstance(value, str)
        case Kind.TEXTS:
            return isinstance(value, list) and all(isinstance(item, str) for item in value)
        case Kind.INTEGER:
            return isinstance(value, int) and not isinstance(value, bool) and value.bit_length() < 64
        case Kind.NUMBER:
            return _is_kind(value, Kind.INTEGER) or (isinstance(value, float) and math.isfinite(value))
        case Kind.FLAG:
            return isinstance(value, bool)
        case Kind.SCALAR:
            return isinstance(value, str | int | float | bool)
        case Kind.TABLE | Kind.LABELS:
            return isinstance(value, dict)
        case Kind.TABLES:
            return isinstance(value, list)


def _article(kind: Kind) -> str:
    return {Kind.INTEGER: "an integer", Kind.TABLES: "an array of tables", Kind.TABLE: "a table", Kind.NUMBER: "a number"}.get(
        kind, str(kind)
    )


def _expected(key: Key) -> str:
    """What belongs there, as a hint."""
    if key.choices:
        return f"one of {', '.join(key.choices)}"
    if key.kind is Kind.TABLES and key.table is not None:
        return f"write each as {key.table.name} followed by key = value lines"
    if key.low is not None and key.high is not None:
        return f"{key.low} to {key.high}: {key.help[0].lower()}{key.help[1:]}"
    return key.help
