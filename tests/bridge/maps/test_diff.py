"""What differs between map and firmware is named, one sentence each."""

from dataclasses import replace
from pathlib import Path

import pytest

from mcpax.bridge.maps.diff import explain_difference
from mcpax.bridge.maps.load import load_map
from mcpax.bridge.maps.model import FieldType
from mcpax.bridge.wire.messages import AnnouncedTool, Registration
from mcpax.bridge.wire.profile_b import decode, encode_registration

SENSOR = load_map(Path(__file__).parents[3] / "device-maps" / "env-sensor.toml")


@pytest.fixture
def heard() -> Registration:
    """What a board says that was built from the very map."""
    registration = decode(encode_registration(SENSOR))
    assert isinstance(registration, Registration)
    return registration


def with_tool(heard: Registration, tool: AnnouncedTool) -> Registration:
    return replace(heard, map_hash=1, tools=tuple(tool if tool.id == other.id else other for other in heard.tools))


def test_nothing_differs_from_the_firmware_made_from_the_map(heard: Registration) -> None:
    assert explain_difference(SENSOR, heard) == []


def test_another_device(heard: Registration) -> None:
    [word] = explain_difference(SENSOR, replace(heard, device="relay-board", map_hash=1))
    assert word == 'the board says it is "relay-board", the map is for "env-sensor"'


def test_a_tool_is_missing_on_the_board(heard: Registration) -> None:
    [word] = explain_difference(SENSOR, replace(heard, tools=heard.tools[:-1], map_hash=1))
    assert word == 'tool 4 "read_info" is in the map and not on the board'


def test_a_tool_is_missing_in_the_map(heard: Registration) -> None:
    extra = AnnouncedTool(7, "reboot", (), ())
    [word] = explain_difference(SENSOR, replace(heard, tools=(*heard.tools, extra), map_hash=1))
    assert word == 'tool 7 "reboot" is on the board and not in the map'


def test_a_tool_is_renamed_or_renumbered(heard: Registration) -> None:
    [renamed] = explain_difference(SENSOR, with_tool(heard, replace(heard.tools[3], name="info")))
    assert renamed == 'tool 4 is "read_info" in the map and "info" on the board'
    moved = replace(heard, tools=(*heard.tools[:3], replace(heard.tools[3], id=9)), map_hash=1)
    assert explain_difference(SENSOR, moved) == ['tool "read_info" is number 4 in the map and 9 on the board']


def test_another_order(heard: Registration) -> None:
    [word] = explain_difference(SENSOR, replace(heard, tools=heard.tools[::-1], map_hash=1))
    assert word.startswith("the tools are in another order: [1, 2, 3, 4]")


def test_types_and_names_of_fields(heard: Registration) -> None:
    changed = replace(heard.tools[0], results=(("temp", FieldType.I32),))
    assert explain_difference(SENSOR, with_tool(heard, changed)) == [
        'tool 1 "read_climate": result 1 is "temperature" in the map and "temp" on the board',
        'tool 1 "read_climate": result 1 "temperature" is i16 in the map and i32 on the board',
        'tool 1 "read_climate": result 2 "humidity" is in the map and not on the board',
    ]
    longer = replace(heard.tools[3], args=(("page", FieldType.U8),))
    assert explain_difference(SENSOR, with_tool(heard, longer)) == [
        'tool 4 "read_info": argument 1 "page" is on the board and not in the map'
    ]


def test_events_are_compared_too(heard: Registration) -> None:
    [missing] = explain_difference(SENSOR, replace(heard, events=(), map_hash=1))
    assert missing == 'event 1 "overheat" is in the map and not on the board'
    other = replace(heard.events[0], fields=(("temperature", FieldType.F32),))
    [changed] = explain_difference(SENSOR, replace(heard, events=(other,), map_hash=1))
    assert changed == 'event 1 "overheat": field 1 "temperature" is i16 in the map and f32 on the board'


def test_what_a_registration_does_not_show(heard: Registration) -> None:
    [word] = explain_difference(SENSOR, replace(heard, map_hash=1))
    assert "0x00000001" in word
    assert "limits, scales, enum labels or max_len" in word
