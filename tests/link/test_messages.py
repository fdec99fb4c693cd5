"""Messages of a link: what is written is read back, and nothing that a peer can write does more than raise `BadMessage`."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpax.errors import ErrorKind, Fault, Outcome, RelayedFault
from mcpax.link import messages
from mcpax.link.messages import BadMessage, Direction, decode
from tests.link.frames import framed, frames, json_values, nested, parsed

directions = st.sampled_from(list(Direction))


@given(directions, st.integers(0, 2**53), st.text(max_size=30), st.dictionaries(st.text(max_size=5), json_values, max_size=3))
def test_a_request_is_read_back_as_it_was_written(direction: Direction, identifier: int, method: str, params: dict[str, object]) -> None:
    read_direction, message = decode(messages.request(direction, identifier, method, params))
    assert (read_direction, message.id, message.method) == (direction, identifier, method)
    assert json.loads(bytes(message.params)) == params  # type: ignore[arg-type]


@given(frames)
def test_whatever_is_written_is_a_message_or_a_bad_message(text: str) -> None:
    try:
        direction, message = decode(text)
    except BadMessage:
        return
    assert direction in Direction
    assert message.jsonrpc == "2.0"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "U or D"),
        ("X{}", "U or D"),
        ("u" + '{"jsonrpc":"2.0"}', "U or D"),
        ("U", "JSON-RPC"),
        ("U[]", "JSON-RPC"),
        ("U{}", "jsonrpc"),
        ('U{"jsonrpc":"1.0"}', "jsonrpc"),
        ('U{"jsonrpc":"2.0","id":"a"}', "id"),
        ('U{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":""}}', "code"),
        ('U{"jsonrpc":"2.0","id":1,"error":{"code":1e400,"message":""}}', "JSON-RPC"),
        ('U{"jsonrpc":"2.0"} ', None),
        ('U{"jsonrpc":"2.0"}{}', "JSON-RPC"),
        ("U" + '{"jsonrpc":"2.0","id":1,"result":' + nested(100_000) + "}", "recursion"),
    ],
)
def test_a_bad_message_is_told_apart_and_named(text: str, problem: str | None) -> None:
    if problem is None:
        decode(text)
        return
    with pytest.raises(BadMessage, match=problem):
        decode(text)


def test_an_error_code_that_no_client_could_read_is_refused() -> None:
    """JSON-RPC libraries hold codes in machine integers; one beyond them would break whoever is told."""
    with pytest.raises(BadMessage, match="code"):
        decode(framed("D", {"jsonrpc": "2.0", "id": 1, "error": {"code": 10**30, "message": ""}}))


@pytest.mark.parametrize("raw", ["1.50", "1e400", "1" * 400, '"\\u00e9\\/"', '{"b":1, "a":2,  "b":3}', "null", "[ ]"])
def test_a_result_stays_the_bytes_it_came_in(raw: str) -> None:
    _, message = decode(f'D{{"jsonrpc":"2.0","id":7,"result":{raw}}}')
    assert bytes(message.result) == raw.encode()  # type: ignore[arg-type]
    assert raw in messages.result(Direction.DOWN, 7, message.result)


@given(directions, st.sampled_from(ErrorKind), st.text(max_size=40), st.dictionaries(st.text(max_size=5), json_values, max_size=3))
def test_an_error_arrives_with_code_message_and_data(direction: Direction, kind: ErrorKind, text: str, details: dict[str, object]) -> None:
    fault = Fault(kind, text, outcome=Outcome.NOT_EXECUTED, details=details)
    told = parsed(messages.error(direction, 3, fault))
    assert told["error"] == {"code": kind.value.code, "message": text, "data": fault.data()}


def test_an_error_too_long_for_a_link_arrives_without_its_data() -> None:
    """Numbers may take more room when they are written again, and the one who is told must not lose the link for it."""
    data = {"n": [1e15] * 1_000_000}
    text = messages.error(Direction.UP, 3, RelayedFault(-32002, "tool_degraded", data))
    assert len(text) < 10_000
    told = parsed(text)["error"]
    assert (told["code"], told["message"]) == (-32002, "tool_degraded")
    assert "bytes" in told["data"]["withheld"]


def test_an_error_that_cannot_be_written_arrives_without_its_data() -> None:
    told = parsed(messages.error(Direction.UP, 3, RelayedFault(-32002, "tool_degraded", {"name": "\ud800"})))["error"]
    assert told["code"] == -32002
    assert told["data"]["withheld"]
