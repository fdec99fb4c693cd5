"""Profile B messages: one CBOR map each. What the gateway sends is in the shortest form; what a stub sends is believed in nothing."""

import contextlib
from typing import Any

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpax.bridge.maps.model import DeviceMap, EventMap, Field, FieldType, Profile, ToolMap
from mcpax.bridge.wire import profile_b
from mcpax.bridge.wire.messages import (
    AnnouncedEvent,
    AnnouncedTool,
    AnnounceRequest,
    CallRequest,
    Event,
    Heartbeat,
    HeartbeatRequest,
    Message,
    Registration,
    Response,
    WireError,
)
from mcpax.capability import Capability

byte = st.integers(0, 255)
HUGE = 1 << 16_000
"""More digits than Python prints."""
FIELDS = (Field("n", FieldType.I32), Field("on", FieldType.BOOL), Field("part", FieldType.F32), Field("name", FieldType.TEXT, max_len=8))
DEVICE = DeviceMap(
    "box",
    Profile.B,
    "1.0.0",
    tools=(ToolMap(1, "add", "Adds.", Capability(), FIELDS[:2], FIELDS[2:]), ToolMap(200, "stop", "Stops.", Capability())),
    events=(EventMap(9, "bell", fields=FIELDS[:1]),),
)


# --- what the gateway says


@pytest.mark.req("AX-8.2-1")
@given(byte, st.integers(1, 255), st.integers(-(2**31), 2**31 - 1), st.booleans(), st.text(max_size=8))
def test_a_call_has_jsonrpc_method_and_id_under_0_1_2_and_the_tools_number_for_its_name(
    seq: int, tool: int, number: int, on: bool, name: str
) -> None:
    message = profile_b.encode_call(seq, tool, profile_b.pack(FIELDS, [number, on, 0.5, name]))
    assert cbor2.loads(message) == {0: 2, 1: 1, 2: seq, 3: tool, 4: {0: number, 1: on, 2: 0.5, 3: name}}
    assert cbor2.dumps(cbor2.loads(message), canonical=True).hex().replace("f93800", "fa3f000000") == message.hex()
    request = profile_b.decode_request(message)
    assert request == CallRequest(seq, tool, {0: number, 1: on, 2: 0.5, 3: name})


def test_a_float_goes_out_as_binary32_whatever_its_value() -> None:
    for value in (0.0, 1.0, 1.5, 1e10, -0.1):
        encoded = profile_b.encode_call(1, 1, profile_b.pack([Field("x", FieldType.F32)], [value]))
        assert encoded[-5] == 0xFA


@pytest.mark.req("AX-8.2-1")
@given(byte, st.integers(0, 0xFFFF))
def test_a_heartbeat(seq: int, boot_id: int) -> None:
    message = profile_b.encode_heartbeat(seq, boot_id)
    assert cbor2.loads(message) == {0: 2, 1: 4, 2: seq, 8: boot_id}
    assert profile_b.decode_request(message) == HeartbeatRequest(seq, boot_id)


def test_announce_yourself() -> None:
    assert profile_b.encode_announce_request().hex() == "a200020103"
    assert profile_b.decode_request(bytes.fromhex("a200020103")) == AnnounceRequest()


def test_a_registration_says_numbers_names_and_types() -> None:
    encoded = profile_b.encode_registration(DEVICE)
    assert cbor2.loads(encoded) == {
        0: 2,
        1: 3,
        7: DEVICE.hash,
        10: [[1, "add", [["n", 6], ["on", 0]], [["part", 7], ["name", 8]]], [200, "stop", [], []]],
        11: "box",
        14: [[9, "bell", [["n", 6]]]],
    }
    assert profile_b.decode(encoded) == Registration(
        DEVICE.hash,
        "box",
        (
            AnnouncedTool(1, "add", (("n", FieldType.I32), ("on", FieldType.BOOL)), (("part", FieldType.F32), ("name", FieldType.TEXT))),
            AnnouncedTool(200, "stop", (), ()),
        ),
        (AnnouncedEvent(9, "bell", (("n", FieldType.I32),)),),
    )


def test_a_registration_without_events_leaves_them_out() -> None:
    encoded = profile_b.encode_registration(DeviceMap("bare", Profile.B, "1.0.0"))
    assert 14 not in cbor2.loads(encoded)
    assert profile_b.decode(encoded) == Registration(DeviceMap("bare", Profile.B, "1.0.0").hash, "bare", ())


# --- what a stub says


@pytest.mark.req("AX-8.2-1", "AX-B.2-2")
@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({0: 2, 2: 7, 5: {0: 1}}, Response(7, 0, {0: 1})),
        ({0: 2, 2: 255, 5: {}}, Response(255, 0, {})),
        ({0: 2, 2: 7, 6: 64}, Response(7, 64, None)),
        ({0: 2, 2: 7, 6: 4, 5: {0: 1}}, Response(7, 4, None)),
        ({0: 2, 1: 4, 2: 9, 7: 0xFFFFFFFF, 8: 1, 9: 1, 12: 64}, Heartbeat(9, 1, True, 64, 0xFFFFFFFF)),
        ({0: 2, 1: 4, 2: 9, 7: 0, 8: 0xFFFF, 9: 0xFE, 12: 1}, Heartbeat(9, 0xFFFF, False, 1, 0)),
        ({0: 2, 1: 5, 3: 1, 13: 255, 5: {0: 2}}, Event(1, 255, {0: 2})),
        ({0: 2, 1: 5, 3: 255, 13: 0}, Event(255, 0, {})),
        ({0: 2, 1: 3, 7: 0, 10: [], 11: "x"}, Registration(0, "x", ())),
    ],
)
def test_what_a_stub_says(said: dict[int, Any], expected: Message) -> None:
    assert profile_b.decode(cbor2.dumps(said)) == expected
    assert profile_b.decode(b"\xbf" + b"".join(cbor2.dumps(k) + cbor2.dumps(v) for k, v in said.items()) + b"\xff") == expected


TOOL, EVENT = [1, "a", [], []], [1, "a", []]


def registration(**changed: Any) -> dict[int, Any]:
    return {
        0: 2,
        1: 3,
        7: changed.get("hash", 0),
        10: changed.get("tools", []),
        11: changed.get("device", "x"),
        14: changed.get("events", []),
    }


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ([], "expected a CBOR map, got list"),
        (7, "expected a CBOR map, got int"),
        ({}, r"key 0 \(jsonrpc\)"),
        ({0: 1, 2: 7, 5: {}}, r"key 0 \(jsonrpc\)"),
        ({0: 2.0, 2: 7, 5: {}}, r"key 0 \(jsonrpc\)"),
        ({0: "2.0", 2: 7, 5: {}}, r"key 0 \(jsonrpc\)"),
        ({0: 2}, r"key 2 \(id\) .* 0 to 255, got None"),
        ({0: 2, 2: 256, 5: {}}, "got 256"),
        ({0: 2, 2: -1, 5: {}}, "got -1"),
        ({0: 2, 2: True, 5: {}}, "got True"),
        ({0: 2, 2: HUGE, 5: {}}, "got a int too long to print"),
        ({0: 2, 2: 7}, "neither a result nor an error"),
        ({0: 2, 2: 7, 6: 0}, r"key 6 \(error\) .* 1 to 255, got 0"),
        ({0: 2, 2: 7, 6: 256}, "got 256"),
        ({0: 2, 1: 1, 2: 7, 3: 1, 4: {}}, "method 1 is not one a stub sends"),
        ({0: 2, 1: 2, 2: 7, 5: {}}, "method 2 is not"),
        ({0: 2, 1: "tools/call", 2: 7}, r"key 1 \(method\)"),
        ({0: 2, 1: None, 2: 7, 5: {}}, r"key 1 \(method\)"),
        ({0: 2, 1: HUGE, 2: 7}, r"key 1 \(method\)"),
        ({0: 2, 1: 4, 2: 9, 7: 0, 8: 0, 9: 1, 12: 1}, r"key 8 \(boot_id\)"),
        ({0: 2, 1: 4, 2: 9, 7: 0, 8: 65536, 9: 1, 12: 1}, r"key 8 \(boot_id\)"),
        ({0: 2, 1: 4, 2: 9, 7: 0, 8: 1, 9: 1, 12: 0}, r"key 12 \(window\)"),
        ({0: 2, 1: 4, 2: 9, 7: 0, 8: 1, 9: 1, 12: 65}, r"key 12 \(window\)"),
        ({0: 2, 1: 4, 2: 9, 7: 0, 8: 1, 12: 1}, r"key 9 \(flags\)"),
        ({0: 2, 1: 4, 2: 9, 7: 1 << 32, 8: 1, 9: 1, 12: 1}, r"key 7 \(map_hash\)"),
        ({0: 2, 1: 4, 2: 9, 8: 1, 9: 1, 12: 1}, r"key 7 \(map_hash\)"),
        ({0: 2, 1: 5, 3: 0, 13: 0}, r"key 3 \(tool\)"),
        ({0: 2, 1: 5, 3: 1}, r"key 13 \(count\)"),
        (registration(tools={}), "must be arrays"),
        (registration(tools=None), "must be arrays"),
        (registration(events={}), "must be arrays"),
        (registration(hash=None), r"key 7 \(map_hash\)"),
        (registration(device=""), "device name is not a text of 1 to 63"),
        (registration(device="x" * 64), "device name"),
        (registration(device=b"x"), "device name"),
        (registration(tools=[1]), "not an array of 4: 1"),
        (registration(tools=[[1, "a", []]]), "not an array of 4"),
        (registration(tools=[[HUGE]]), "not an array of 4"),
        (registration(tools=[[0, "a", [], []]]), "id 0 is not from 1 to 255"),
        (registration(tools=[[256, "a", [], []]]), "id 256 is not"),
        (registration(tools=[[True, "a", [], []]]), "id True is not"),
        (registration(tools=[[HUGE, "a", [], []]]), "id a int too long"),
        (registration(tools=[[1, "", [], []]]), "name of 1 is not a text"),
        (registration(tools=[TOOL, [1, "b", [], []]]), "a tool id is announced twice"),
        (registration(events=[EVENT, [1, "b", []]]), "an? event id is announced twice"),
        (registration(events=[[1, "a", [], []]]), "not an array of 3"),
        (registration(events=[[HUGE, "a", []]]), "id a int too long"),
        (registration(tools=[[1, "a", {}, []]]), "fields must be an array"),
        (registration(tools=[[1, "a", [], None]]), "fields must be an array"),
        (registration(tools=[[1, "a", ["x"], []]]), "a field is not"),
        (registration(tools=[[1, "a", [["x"]], []]]), "a field is not"),
        (registration(tools=[[1, "a", [["x", 10]], []]]), "a field is not"),
        (registration(tools=[[1, "a", [["x", -1]], []]]), "a field is not"),
        (registration(tools=[[1, "a", [["x", True]], []]]), "a field is not"),
        (registration(tools=[[1, "a", [["x", HUGE]], []]]), "a field is not"),
        (registration(tools=[[1, "a", [[1, 1]], []]]), "field name is not a text"),
    ],
)
def test_what_a_stub_never_says(said: Any, words: str) -> None:
    with pytest.raises(WireError, match=words):
        profile_b.decode(cbor2.dumps(said))


GOOD = cbor2.dumps({0: 2, 2: 7, 5: {}})


@pytest.mark.parametrize(
    ("message", "words"),
    [
        pytest.param(b"", "not CBOR", id="empty"),
        pytest.param(GOOD[:-1], "not CBOR", id="cut off"),
        pytest.param(GOOD + b"\0", "1 bytes behind", id="more behind"),
        pytest.param(GOOD + GOOD, "7 bytes behind", id="two in one"),
        pytest.param(bytes.fromhex("a400020207020805a0"), "not CBOR", id="a key twice"),
        pytest.param(bytes.fromhex("a3000202070581") + b"\x81" * 2000 + b"\0", "not CBOR", id="deep"),
        pytest.param(bytes.fromhex("a300020207059bffffffffffffffff"), "not CBOR", id="an array without end"),
        pytest.param(bytes.fromhex("a300020207055bffffffffffffffff"), "not CBOR", id="a string without end"),
        pytest.param(bytes.fromhex("a30002020705d81ca0"), "tag", id="shareable"),
        pytest.param(bytes.fromhex("a30002020705d81d00"), "tag", id="shared"),
        pytest.param(bytes.fromhex("a30002020705d823612a"), "tag", id="regular expression"),
        pytest.param(bytes.fromhex("a30002020705d8246178"), "tag", id="MIME"),
        pytest.param(bytes.fromhex("a3000202070561ff"), "not CBOR", id="not UTF-8"),
    ],
)
def test_what_is_not_one_cbor_map(message: bytes, words: str) -> None:
    with pytest.raises(WireError, match=words):
        profile_b.decode(message)


simple: st.SearchStrategy[Any] = st.one_of(
    st.integers(-300, 300),
    st.integers(),
    st.just(16_000).map(lambda bits: 1 << bits),
    st.floats(),
    st.booleans(),
    st.none(),
    st.text(max_size=4),
    st.binary(max_size=4),
)
anything = st.recursive(
    simple, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.integers(-2, 16) | st.text(max_size=2), inner, max_size=4)
)
near_misses = st.dictionaries(st.integers(0, 14), st.one_of(st.integers(0, 5), anything), max_size=10).map(lambda said: {0: 2, **said})


@given(st.one_of(st.binary(max_size=64), st.builds(cbor2.dumps, anything), st.builds(cbor2.dumps, near_misses)))
def test_any_bytes_are_a_message_or_a_wire_error(message: bytes) -> None:
    for decode in (profile_b.decode, profile_b.decode_request):
        with contextlib.suppress(WireError):
            decode(message)


# --- values


@given(st.lists(st.sampled_from(FIELDS), max_size=4), st.data())
def test_values_go_by_field_number(fields: list[Field], draw: st.DataObject) -> None:
    raw = [draw.draw(st.integers(0, 100)) for _ in fields]
    assert profile_b.unpack(fields, profile_b.pack(fields, raw)) == raw


@pytest.mark.req("AX-B.2-2")
@pytest.mark.parametrize(
    ("payload", "words"),
    [
        (None, "expected a map of 2 fields, got NoneType"),
        ([1, 2], "got list"),
        (1, "got int"),
        ({}, r"expected fields \[0, 1\], got $"),
        ({0: 1}, "got 0"),
        ({0: 1, 1: 2, 2: 3}, "got 0, 1, 2"),
        ({0: 1, "1": 2}, "got '1', 0"),
        ({0: 1, HUGE: 2}, "too long to print"),
    ],
)
def test_a_payload_is_a_map_of_exactly_the_fields(payload: Any, words: str) -> None:
    with pytest.raises(WireError, match=words):
        profile_b.unpack(FIELDS[:2], payload)
