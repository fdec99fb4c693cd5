"""In plain words, what differs between a device map and what its board announces.

Used when the map hashes differ, so there is always something to say. Compares what a registration shows: names, numbers and
types; it cannot see limits, scales and labels, and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from mcpax.bridge.maps.debug import other_build
from mcpax.bridge.maps.model import DeviceMap, Field, FieldType
from mcpax.bridge.wire.messages import Registration

_T = TypeVar("_T")
_Announced = Sequence[tuple[str, FieldType]]


class _Entry(Protocol):
    @property
    def id(self) -> int: ...
    @property
    def name(self) -> str: ...


def explain_difference(device: DeviceMap, announced: Registration) -> list[str]:
    """One sentence per difference; none only if the hashes agree."""
    if device.name != announced.device:
        # Another kind of board: listing everything that differs would bury this.
        return [f'the board says it is "{announced.device}", the map is for "{device.name}"']
    if build := _other_build(device, announced.map_hash):
        return [build]
    words = _entries("tool", device.tools, announced.tools)
    tools = {tool.id: tool for tool in announced.tools}
    for tool in device.tools:
        if other := tools.get(tool.id):
            what = f'tool {tool.id} "{tool.name}"'
            words += _fields(f"{what}: argument", tool.args, other.args) + _fields(f"{what}: result", tool.results, other.results)
    words += _entries("event", device.events, announced.events)
    events = {event.id: event for event in announced.events}
    for event in device.events:
        if heard := events.get(event.id):
            words += _fields(f'event {event.id} "{event.name}": field', event.fields, heard.fields)
    if not words and device.hash != announced.map_hash:
        words.append(
            f"names and types agree, but the map's hash is {device.hash:#010x} and the firmware's {announced.map_hash:#010x}:"
            " limits, scales, enum labels or max_len were changed on one side"
        )
    return words


def explain_hash(device: DeviceMap, stated: int) -> str:
    """What can be said of a board that has told nothing but another hash than the map's."""
    return _other_build(device, stated) or f"its map hash is {stated:08x}, this map's is {device.hash:08x}"


def _other_build(device: DeviceMap, stated: int) -> str:
    """Nothing, unless the firmware is the map's other build."""
    other = other_build(device)
    if other is None or other.hash != stated:
        return ""
    if device.debug:
        return "the board runs the release build, and the map says debug = true: remove that from the map, or flash the debug build"
    return "the board runs a debug build: put debug = true under [device] in the map, or flash the release build"


def _entries(kind: str, mapped: Sequence[_Entry], announced: Sequence[_Entry]) -> list[str]:
    """Missing, renamed, moved to another number, or unknown to the map."""
    ours = {entry.id: entry.name for entry in mapped}
    theirs = {entry.id: entry.name for entry in announced}
    numbers = {name: number for number, name in theirs.items()}
    words = []
    for number, name in ours.items():
        if number in theirs:
            if theirs[number] != name:
                words.append(f'{kind} {number} is "{name}" in the map and "{theirs[number]}" on the board')
        elif name in numbers:
            words.append(f'{kind} "{name}" is number {number} in the map and {numbers[name]} on the board')
        else:
            words.append(f'{kind} {number} "{name}" is in the map and not on the board')
    known = set(ours.values())
    words += [
        f'{kind} {number} "{name}" is on the board and not in the map'
        for number, name in theirs.items()
        if number not in ours and name not in known
    ]
    if not words and list(ours) != list(theirs):
        words.append(f"the {kind}s are in another order: {list(ours)} in the map, {list(theirs)} on the board")
    return words


def _fields(what: str, mapped: Sequence[Field], announced: _Announced) -> list[str]:
    words = []
    for place, (ours, (name, kind)) in enumerate(zip(mapped, announced, strict=False), 1):
        if ours.name != name:
            words.append(f'{what} {place} is "{ours.name}" in the map and "{name}" on the board')
        if ours.type is not kind:
            words.append(f'{what} {place} "{ours.name}" is {ours.type} in the map and {kind} on the board')
    words += [f'{what} {place} "{ours.name}" is in the map and not on the board' for place, ours in _beyond(mapped, announced)]
    words += [f'{what} {place} "{name}" is on the board and not in the map' for place, (name, _) in _beyond(announced, mapped)]
    return words


def _beyond(longer: Sequence[_T], shorter: Sequence[object]) -> list[tuple[int, _T]]:
    return list(enumerate(longer[len(shorter) :], len(shorter) + 1))
