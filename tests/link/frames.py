"""Frames as a peer might write them, right and wrong, and a wire that delivers them without a socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from mcpax.link.messages import Direction, Message, decode
from mcpax.link.wire import WireClosed

SCRIPT_ENDS = "the script is over"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=8,
)
methods = st.sampled_from(
    [
        "mcpax/register",
        "mcpax/heartbeat",
        "mcpax/deregister",
        "mcpax/identity",
        "tools/list",
        "tools/call",
        "ping",
        "mcpax/parent",
        "mcpax/status",
        "notifications/cancelled",
        "notifications/progress",
        "notifications/tools/list_changed",
    ]
)
small_ids = st.integers(0, 5)
meant_params = st.fixed_dictionaries(
    {},
    optional={
        "session_id": json_values,
        "x-mcpax-subtree-ids": json_values,
        "requestId": small_ids | json_values,
        "progressToken": small_ids | json_values,
        "progress": json_values,
        "name": json_values,
        "arguments": json_values,
        "cursor": json_values,
        "_meta": json_values,
        "segment": json_values,
        "subserver_id": json_values,
        "version": json_values,
        "transport_class": json_values,
        "x-mcpax-source": json_values,
        "ask_s": json_values,
    },
)
meant_messages = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0")},
    optional={
        "id": small_ids | st.integers(),
        "method": methods | st.text(max_size=20),
        "params": meant_params | json_values,
        "result": json_values,
        "error": st.fixed_dictionaries({"code": st.integers(), "message": st.text(max_size=20)}, optional={"data": json_values}),
    },
)
"""Well enough formed to get past the first look."""


def framed(direction: str, message: Any) -> str:
    return direction + json.dumps(message)


meant_frames = st.builds(framed, st.sampled_from(list(Direction)), meant_messages)
frames = st.text(max_size=40) | st.builds(framed, st.sampled_from(["U", "D", "X", ""]), json_values | meant_messages) | meant_frames


def nested(depth: int) -> str:
    """JSON arrays in each other."""
    return "[" * depth + "]" * depth


class ScriptedWire:
    """Delivers what it was given, then ends; keeps what it was told to send. Time to answer passes between the messages."""

    def __init__(self, script: Iterable[str]) -> None:
        self._script = list(script)
        self.sent: list[str] = []
        self.closed_because: str | None = None

    async def send(self, text: str) -> None:
        self.sent.append(text)

    async def receive(self) -> str:
        for _ in range(3):
            await asyncio.sleep(0)
        if not self._script:
            raise WireClosed(SCRIPT_ENDS)
        return self._script.pop(0)

    async def close(self, reason: str) -> None:
        self.closed_because = reason


def parsed(text: str) -> dict[str, Any]:
    """One frame, its direction as "direction"."""
    message: dict[str, Any] = json.loads(text[1:])
    return {"direction": text[0], **message}


def message(direction: Direction, **members: Any) -> Message:
    """As it arrives."""
    return decode(framed(direction, {"jsonrpc": "2.0", **members}))[1]
