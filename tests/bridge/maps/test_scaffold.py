"""A draft passes the check as it stands, and is cautious."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpax.bridge.maps.load import check_text, load_text
from mcpax.bridge.maps.model import MAX_FIELDS, FieldType, Profile
from mcpax.bridge.maps.scaffold import parse_fields, scaffold
from mcpax.bridge.wire.messages import AnnouncedEvent, AnnouncedTool, Registration

names = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,9}", fullmatch=True)


def unique(name: str) -> str:
    return name.replace("-", "_")


fields = st.lists(st.tuples(names, st.sampled_from(FieldType)), max_size=MAX_FIELDS, unique_by=lambda field: unique(field[0])).map(tuple)


@st.composite
def registrations(draw: st.DrawFn) -> Registration:
    tools = draw(st.lists(names, min_size=1, max_size=3, unique_by=unique))
    events = draw(st.lists(names, max_size=2, unique_by=unique))
    return Registration(
        map_hash=draw(st.integers(0, 0xFFFF_FFFF)),
        device=draw(names),
        tools=tuple(AnnouncedTool(number, name, draw(fields), draw(fields)) for number, name in enumerate(tools, 1)),
        events=tuple(AnnouncedEvent(number, name, draw(fields)) for number, name in enumerate(events, 1)),
    )


@given(registrations(), st.sampled_from(Profile))
def test_draft_passes_the_check_and_says_what_was_announced(announced: Registration, profile: Profile) -> None:
    device = load_text(scaffold(announced, profile), "draft")
    assert (device.name, device.profile) == (announced.device, profile)
    described = tuple(
        AnnouncedTool(tool.id, tool.name, tuple((f.name, f.type) for f in tool.args), tuple((f.name, f.type) for f in tool.results))
        for tool in device.tools
    )
    assert described == announced.tools
    assert tuple((event.id, event.name) for event in device.events) == tuple((event.id, event.name) for event in announced.events)


@given(registrations())
def test_draft_holds_every_tool_for_irreversible(announced: Registration) -> None:
    text = scaffold(announced)
    assert "unannotated means mutable and irreversible" in text
    assert all(tool.capability.irreversible_mutable for tool in load_text(text, "draft").tools)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_a_boards_odd_name_makes_a_fault_and_not_other_toml(name: str) -> None:
    faults = check_text(scaffold(Registration(1, name, (AnnouncedTool(1, "t", (), ()),))), "draft")
    assert all(fault.where == "device" for fault in faults)


def test_port_is_named_by_its_lasting_name() -> None:
    text = scaffold(Registration(0, "d", (AnnouncedTool(1, "t", (), ()),)), by_id="usb-x", baud=9600)
    port = load_text(text, "draft").port
    assert port.match is not None
    assert (port.match.by_id, port.baud) == ("usb-x", 9600)


def test_fields_are_read_from_words() -> None:
    assert parse_fields("relay:u8, on:bool") == (("relay", FieldType.U8), ("on", FieldType.BOOL))
    with pytest.raises(ValueError, match="'on:int' is not name:type"):
        parse_fields("on:int")
