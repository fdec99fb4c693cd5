"""Raw argument values made from a device map's limits: valid ones at their edges, and ones that a board must refuse.

Works for any map, so the tests need know no application. Deals in raw values, as they go over the wire.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mcpax.bridge.maps.limits import to_f32, value_range
from mcpax.bridge.maps.model import Field, FieldType, Profile, ToolMap
from mcpax.bridge.wire.messages import Status

EDGES = ("lowest", "highest")


def valid(tool: ToolMap, edge: str) -> list[Any]:
    """All arguments at one edge of what the map allows."""
    return [_edge(field, EDGES.index(edge)) for field in tool.args]


def _edge(field: Field, which: int) -> Any:
    if field.raw_range is not None:
        # Between two labels of an enum there may be numbers that stand for nothing.
        return field.raw_range[which] if field.enum is None else sorted(field.enum.values())[-which]
    if field.type is FieldType.BOOL:
        return bool(which)
    if field.type is FieldType.F32:
        return to_f32(value_range(field)[which])
    length = (field.max_len or 0) if which or field.exact_len else 0
    return "x" * length if field.type is FieldType.TEXT else b"\xa5" * length


@dataclass(frozen=True, slots=True)
class Refused:
    """Arguments that must not run, and the status that says why."""

    what: str
    raw: list[Any]
    status: Status


def out_of_range(tool: ToolMap, profile: Profile) -> Iterator[Refused]:
    """Each argument in turn outside its limits, all others valid.

    Profile A: one step outside, as far as the field's type can carry that. CBOR carries any number: in Profile B also those that would be
    right again if a chip cut them to 16 bits, or lost their sign.
    """
    for number, field in enumerate(tool.args):
        if field.raw_range is None or field.type.integer_range is None:
            continue
        (low, high), (type_low, type_high) = field.raw_range, field.type.integer_range
        values = {value for value in (low - 1, high + 1) if type_low <= value <= type_high}
        if profile is Profile.B:
            values |= {low - 1, high + 1, low + 2**16, low + 2**32 - 2**16, -1, -1 - low}
        for value in sorted(value for value in values if not low <= value <= high and -(2**32) <= value < 2**32):
            yield Refused(f"{tool.name} with {field.name} = {value}", _with(tool, number, value), Status.OUT_OF_RANGE)


def wrong_type(tool: ToolMap) -> Iterator[Refused]:
    """Each argument in turn as something else than the map says. Profile B only: Profile A's values have no types."""
    for number, field in enumerate(tool.args):
        other: Any = b"1" if field.type is FieldType.TEXT else "1"
        yield Refused(f"{tool.name} with {field.name} as {type(other).__name__}", _with(tool, number, other), Status.BAD_ARGUMENTS)


def _with(tool: ToolMap, number: int, value: Any) -> list[Any]:
    raw = valid(tool, "lowest")
    raw[number] = value
    return raw
