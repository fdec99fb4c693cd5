"""A device's way of speaking: what the C stub sent in the shared vectors is understood, what the gateway sends is what it ran."""

from pathlib import Path

import cbor2
import pytest

from mcpax.bridge.maps.load import load_map
from mcpax.bridge.maps.model import DeviceMap, Encoding, Profile
from mcpax.bridge.wire.dialect import ENVELOPE_BYTES, REGISTRATION_BYTES, dialect_for
from mcpax.bridge.wire.framing import CobsFraming, SofFraming
from mcpax.bridge.wire.messages import CallRequest, Event, Heartbeat, HeartbeatRequest, Registration, Response, Status, WireError
from tests.vectors.read import Vector, unhex, vectors

MAPS = Path(__file__).resolve().parents[2] / "firmware" / "maps"
DEVICES: dict[str, DeviceMap] = {name: load_map(MAPS / f"vector-{name}.toml") for name in ("a", "a8", "a51", "b")}
EVENTS = {1: [513], 2: ["oh", -2]}


def device_of(vector: Vector) -> DeviceMap:
    return DEVICES[vector.fields[0].split("/")[0]]


def frames(device: DeviceMap, line: bytes) -> list[bytes]:
    dialect = dialect_for(device)
    return dialect.framing.decoder(dialect.max_message).feed(line)


@pytest.mark.req("AX-B.1-3", "AX-B.2-2")
@pytest.mark.parametrize("vector", vectors("boot", "in", "event"), ids=str)
def test_everything_the_stub_sent_is_whole_frames_that_keep_to_the_map(vector: Vector) -> None:
    device, sent = device_of(vector), unhex(vector.fields[3])
    dialect, tools = dialect_for(device), {tool.id: tool for tool in device.tools}
    asked = (
        {r.seq: r.tool for m in frames(device, unhex(vector.fields[2])) if (r := call_in(device, m)) and vector.fields[4] != "0"}
        if vector.kind == "in"
        else {}
    )
    messages = frames(device, sent)
    assert b"".join(map(dialect.framing.encode, messages)) == sent
    for said in map(dialect.decode, messages):
        match said:
            case Response(seq, Status.OK, payload, tool_id):
                tool = tools.get(tool_id or asked.get(seq, 0))
                if tool is None:  # given again from memory: Profile B does not say of which tool
                    assert isinstance(payload, dict)
                else:
                    assert len(dialect.result(tool, payload)) == len(tool.results)
            case Response(_, status, payload):
                assert status in {1, 2, 3, 4, 5, 6, 7, *range(64, 256)}
                assert payload is None
            case Heartbeat():
                assert said.map_hash == device.hash
            case Registration():
                assert dialect.announces
                assert (said.map_hash, said.device, [t.id for t in said.tools]) == (device.hash, device.name, list(tools))
            case Event(event_id, _, payload):
                event = next(event for event in device.events if event.id == event_id)
                assert dialect.event(event, payload) == EVENTS[event_id]


def call_in(device: DeviceMap, message: bytes) -> CallRequest | None:
    try:
        request = dialect_for(device).decode_request(message)
    except WireError:
        return None
    return request if isinstance(request, CallRequest) else None


@pytest.mark.req("AX-B.1-3")
@pytest.mark.parametrize("vector", [v for v in vectors("in") if v.fields[4] == "1" and not v.fields[0].startswith("b/")], ids=str)
def test_what_the_gateway_sends_for_the_same_values_is_what_the_stub_ran(vector: Vector) -> None:
    device = device_of(vector)
    dialect = dialect_for(device)
    for message in frames(device, unhex(vector.fields[2])):
        request = call_in(device, message)
        tool = next((tool for tool in device.tools if request and tool.id == request.tool), None)
        if request and tool and tool.encoding is not Encoding.TLV:  # whose fields may come in any order
            assert dialect.call(tool, request.seq, dialect.args(tool, request.payload)) == message


@pytest.mark.req("AX-8.2-1")
def test_profile_b_sends_numbers_for_names_and_the_arguments_alone() -> None:
    device = DEVICES["b"]
    dialect = dialect_for(device)
    for tool in device.tools:
        message = dialect.call(tool, 9, [0] * len(tool.args))
        assert cbor2.loads(message) == {0: 2, 1: 1, 2: 9, 3: tool.id, 4: dict.fromkeys(range(len(tool.args)), 0)}
        assert tool.name.encode() not in message
        assert dialect.args(tool, cbor2.loads(message)[4]) == [0] * len(tool.args)


@pytest.mark.parametrize("name", DEVICES)
def test_a_heartbeat_reads_back(name: str) -> None:
    dialect = dialect_for(DEVICES[name])
    assert dialect.decode_request(dialect.heartbeat(7, 0x1234)) == HeartbeatRequest(7, 0x1234)


def test_a_profile_a_board_cannot_be_asked_to_describe_itself() -> None:
    dialect = dialect_for(DEVICES["a"])
    assert not dialect.announces
    with pytest.raises(NotImplementedError):
        dialect.announce_request()
    assert dialect_for(DEVICES["b"]).announce_request().hex() == "a200020103"


def test_framing_and_limits_follow_the_map() -> None:
    a, a8, b = (dialect_for(DEVICES[name]) for name in ("a", "a8", "b"))
    assert a.framing == SofFraming(DEVICES["a"].frame.crc)
    assert a8.framing == SofFraming(DEVICES["a8"].frame.crc)
    assert a.framing != a8.framing
    assert b.framing == CobsFraming()
    assert (a.max_message, a8.max_message) == (3 + 1 + 256, 3 + 1 + 512)
    assert b.max_message == max(512 + ENVELOPE_BYTES, REGISTRATION_BYTES)
    assert dialect_for(DeviceMap("x", Profile.A, "1.0.0")).max_message >= len(bytes.fromhex("04000012340101deadbeef"))
