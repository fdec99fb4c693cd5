"""Profile A messages: TYPE, TOOL_ID, SEQ, PAYLOAD."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpax.bridge.wire import profile_a
from mcpax.bridge.wire.messages import CallRequest, Event, Heartbeat, HeartbeatRequest, Message, Response, WireError

byte = st.integers(0, 255)


@pytest.mark.req("AX-B.1-1")
@given(byte, byte, st.binary(max_size=20))
def test_a_call_is_type_tool_sequence_payload_and_nothing_else(seq: int, tool: int, payload: bytes) -> None:
    message = profile_a.encode_call(seq, tool, payload)
    assert message == bytes((0x01, tool, seq)) + payload
    assert profile_a.decode_request(message) == CallRequest(seq, tool, payload)


@given(byte, st.integers(0, 0xFFFF))
def test_a_heartbeat_says_which_boot_is_believed_in(seq: int, boot_id: int) -> None:
    message = profile_a.encode_heartbeat(seq, boot_id)
    assert message == bytes((0x04, 0x00, seq, boot_id >> 8, boot_id & 0xFF))
    assert profile_a.decode_request(message) == HeartbeatRequest(seq, boot_id)


@pytest.mark.req("AX-B.1-1", "AX-B.1-3")
@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("02 07 2a 00", Response(42, 0, b"", 7)),
        ("02 07 2a 00 0102", Response(42, 0, b"\x01\x02", 7)),
        ("02 07 ff 40", Response(255, 64, None, 7)),
        ("02 07 2a 04 0102", Response(42, 4, None, 7)),
        ("04 00 05 1234 01 01", Heartbeat(5, 0x1234, True, 1, None)),
        ("04 00 05 0001 fe 40 00000000", Heartbeat(5, 1, False, 64, 0)),
        ("04 00 05 ffff ff 08 deadbeef", Heartbeat(5, 0xFFFF, True, 8, 0xDEADBEEF)),
        ("05 02 ff", Event(2, 255, b"")),
        ("05 02 00 0a0b", Event(2, 0, b"\x0a\x0b")),
    ],
)
def test_what_a_stub_says(message: str, expected: Message) -> None:
    assert profile_a.decode(bytes.fromhex(message)) == expected


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("", "message of 0 bytes"),
        ("02 07", "message of 2 bytes"),
        ("02 07 2a", "without a status byte"),
        ("04 00 05 1234 01", "heartbeat of 3 bytes"),
        ("04 00 05 1234 01 01 00", "heartbeat of 5 bytes"),
        ("04 00 05 1234 01 01 0000000000", "heartbeat of 9 bytes"),
        ("04 00 05 0000 01 01", "boot id 0"),
        ("04 00 05 1234 01 00", "window 0"),
        ("04 00 05 1234 01 41", "window 65"),
        ("01 07 2a", "type 1 is not one a Profile A stub sends"),
        ("03 00 00", "type 3"),
        ("00 00 00", "type 0"),
        ("ff 00 00", "type 255"),
    ],
)
def test_what_a_stub_never_says(message: str, words: str) -> None:
    with pytest.raises(WireError, match=words):
        profile_a.decode(bytes.fromhex(message))


@pytest.mark.parametrize("message", ["", "0100", "02 07 2a 00", "03 00 00", "04 00 05 00", "04 00 05 000000"])
def test_what_a_gateway_never_says(message: str) -> None:
    with pytest.raises(WireError):
        profile_a.decode_request(bytes.fromhex(message))
