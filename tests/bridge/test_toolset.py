"""A device's tools as MCP sees them: arguments judged before a byte is sent, answers before a word is passed on."""

from typing import Any

import msgspec
import pytest

from mcpax.bridge.maps.model import DeviceMap, EventMap, Field, FieldType, Profile, ToolMap
from mcpax.bridge.toolset import CompiledTool, Toolset, arguments_to_raw, response_to_result
from mcpax.bridge.wire.dialect import dialect_for
from mcpax.bridge.wire.messages import AnnouncedTool, Response, Status
from mcpax.capability import Capability, TransportClass
from mcpax.core.admission import check_tools
from mcpax.core.registration import RegistrationRequest
from mcpax.errors import ErrorKind, Fault, Outcome

RELAY = Field("relay", FieldType.U8, min=1, max=4)
TEMPERATURE = Field("temperature", FieldType.I16, scale=0.01, min=-40, max=85)
READ = ToolMap(1, "read", "Reads.", Capability(mutable=False), (RELAY,), (TEMPERATURE,), title="Read it")
STOP = ToolMap(2, "stop", "Stops.", Capability())


def device(profile: Profile = Profile.B) -> DeviceMap:
    return DeviceMap("box", profile, "1.0.0", tools=(READ, STOP), events=(EventMap(9, "bell", fields=(RELAY,)),))


def compiled(name: str, profile: Profile = Profile.B) -> CompiledTool:
    found = Toolset(device(profile)).get(name)
    assert found is not None
    return found


def test_tools_are_listed_as_the_map_describes_them() -> None:
    toolset = Toolset(device())
    read, stop = toolset.tools()
    assert (read.path, read.title, read.description, read.capability) == (("read",), "Read it", "Reads.", READ.capability)
    assert read.input_schema["required"] == ["relay"]
    assert read.output_schema is not None
    assert set(read.output_schema["properties"]) == {"temperature"}
    assert (stop.output_schema, stop.quarantined) == (None, "")


def test_tools_and_events_are_found_by_number_and_name() -> None:
    toolset = Toolset(device())
    assert (toolset.by_id(2), toolset.by_id(3), toolset.get("nothing"), toolset.event(1)) == (STOP, None, None, None)
    found = toolset.event(9)
    assert found is not None
    assert found[0].name == "bell"
    assert found[1].from_raw([3]) == {"relay": 3}


@pytest.mark.parametrize(("profile", "transport"), [(Profile.A, TransportClass.UART_BYTES), (Profile.B, TransportClass.UART_CBOR)])
def test_the_transport_follows_from_the_profile(profile: Profile, transport: TransportClass) -> None:
    assert Toolset(device(profile)).transport is transport


# --- quarantine


def quarantined(*announced: tuple[int, str]) -> list[str]:
    tools = Toolset(device()).quarantined([AnnouncedTool(number, name, (), ()) for number, name in announced])
    assert all(tool.quarantined and tool.capability.irreversible_mutable for tool in tools)
    assert all(tool.capability.transport is TransportClass.UART_CBOR for tool in tools)
    everything = [*Toolset(device()).tools(), *tools]
    check_tools(everything, RegistrationRequest("id", "box", "uart_cbor"), "edge")  # whatever a board says, it can be registered
    return [tool.path[0] for tool in tools]


def test_what_no_map_describes_is_listed_and_closed() -> None:
    assert quarantined((1, "read"), (2, "stop"), (7, "fire")) == ["fire"]


@pytest.mark.parametrize("name", ["Fire", "fire now", "fire.now", "é", "\0", "fi/re"])
def test_a_name_that_is_no_segment_is_known_by_its_number(name: str) -> None:
    assert quarantined((7, name)) == ["tool-7"]


def test_names_that_are_taken_or_come_twice_are_known_by_their_numbers() -> None:
    assert quarantined((7, "read"), (8, "twice"), (9, "twice"), (10, "once")) == ["tool-7", "tool-8", "tool-9", "once"]


def test_a_tool_whose_number_the_map_knows_is_the_maps() -> None:
    assert quarantined((1, "anything")) == []


# --- arguments


def test_arguments_become_raw_values_in_the_maps_order() -> None:
    assert arguments_to_raw(compiled("read"), {"relay": 3}) == [3]


@pytest.mark.req("AX-8.2-3")
def test_arguments_that_do_not_fit_are_refused_by_field_before_anything_is_sent() -> None:
    with pytest.raises(Fault) as caught:
        arguments_to_raw(compiled("read"), {"relay": 5, "colour": 1})
    fault = caught.value
    assert (fault.kind, fault.outcome) == (ErrorKind.INVALID_TOOL_ARGS, Outcome.NOT_EXECUTED)
    assert [problem["field"] for problem in fault.data()["problems"]] == ["relay", "colour"]
    assert "Arguments of read: relay: 5 is out of range" in fault.message


# --- answers


@pytest.mark.parametrize(("profile", "payload"), [(Profile.A, b"\xc4\x09"), (Profile.B, {0: 2500})])
def test_an_answer_becomes_values_that_people_read(profile: Profile, payload: Any) -> None:
    result = response_to_result(compiled("read", profile), dialect_for(device(profile)), Response(1, 0, payload))
    assert result["structuredContent"] == {"temperature": 25.0}
    assert msgspec.json.decode(result["content"][0]["text"]) == {"temperature": 25.0}
    assert result["isError"] is False


def test_a_tool_without_results_says_that_it_is_done() -> None:
    result = response_to_result(compiled("stop"), dialect_for(device()), Response(1, 0, {}))
    assert result == {"content": [{"type": "text", "text": "done"}], "isError": False}


@pytest.mark.parametrize(
    ("profile", "payload"),
    [
        (Profile.A, b""),
        (Profile.A, b"\xc4\x09\x00"),
        (Profile.A, b"\xff\x7f"),
        (Profile.B, None),
        (Profile.B, {}),
        (Profile.B, {0: 2500, 1: 1}),
        (Profile.B, {0: 8501}),
        (Profile.B, {0: "25"}),
        (Profile.B, {0: 1 << 16_000}),
    ],
)
def test_an_answer_that_does_not_keep_to_the_map_is_withheld(profile: Profile, payload: Any) -> None:
    with pytest.raises(Fault) as caught:
        response_to_result(compiled("read", profile), dialect_for(device(profile)), Response(1, 0, payload))
    assert (caught.value.kind, caught.value.outcome) == (ErrorKind.DEVICE_LIED, Outcome.EXECUTED)


@pytest.mark.parametrize(
    ("status", "kind", "outcome", "words"),
    [
        (Status.UNKNOWN_TOOL, ErrorKind.DEVICE_ERROR, Outcome.NOT_EXECUTED, "unknown_tool"),
        (Status.OUT_OF_RANGE, ErrorKind.DEVICE_ERROR, Outcome.NOT_EXECUTED, "out_of_range"),
        (Status.BUSY, ErrorKind.DEVICE_BUSY, Outcome.NOT_EXECUTED, "busy"),
        (Status.RESPONSE_LOST, ErrorKind.DEVICE_ERROR, Outcome.EXECUTED, "response_lost"),
        (33, ErrorKind.DEVICE_ERROR, Outcome.UNKNOWN, "reserved status 33"),
        (64, ErrorKind.DEVICE_ERROR, Outcome.EXECUTED, "device error 64"),
    ],
)
def test_a_refusal_says_whether_the_call_ran(status: int, kind: ErrorKind, outcome: Outcome, words: str) -> None:
    with pytest.raises(Fault, match=f"The board refused read: {words}") as caught:
        response_to_result(compiled("read"), dialect_for(device()), Response(1, status, None))
    fault = caught.value
    assert (fault.kind, fault.outcome, fault.data()["status"]) == (kind, outcome, status)
    assert fault.retry_after_ms == (200 if kind is ErrorKind.DEVICE_BUSY else None)
