"""Reading a link: a bad frame ends it with a reason, and no frame at all ends anything else."""

from __future__ import annotations

import asyncio
import contextlib
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from mcpax.capability import AuthScope
from mcpax.core.aggregator import Aggregator
from mcpax.core.principal import Principal
from mcpax.link.child import ChildEnd
from mcpax.link.connection import read
from mcpax.link.introduction import Introduction, LinkRefused, Parentage
from mcpax.link.messages import Direction, Message
from mcpax.link.parent import ParentEnd
from tests.link.frames import SCRIPT_ENDS, ScriptedWire, frames, meant_frames


class Sink:
    def __init__(self) -> None:
        self.got: list[Message] = []

    def receive(self, message: Message) -> None:
        self.got.append(message)


@pytest.mark.parametrize("frame", ["", "hello", "U{", "D[]", '{"jsonrpc":"2.0"}'])
async def test_a_bad_frame_ends_the_link_with_a_reason_and_a_log_line(frame: str) -> None:
    wire = ScriptedWire([frame, 'U{"jsonrpc":"2.0","method":"never read"}'])
    up, down = Sink(), Sink()
    with capture_logs() as logs:
        reason = await read(wire, {Direction.UP: up, Direction.DOWN: down})
    assert reason.startswith("it sent a bad message: ")
    assert wire.closed_because == "bad message"
    assert [log["event"] for log in logs] == ["bad_message"]
    assert not up.got
    assert not down.got


async def test_each_direction_gets_its_own_messages() -> None:
    up, down = Sink(), Sink()
    wire = ScriptedWire(['U{"jsonrpc":"2.0","id":1}', 'D{"jsonrpc":"2.0","id":2}', 'U{"jsonrpc":"2.0","id":3}'])
    assert await read(wire, {Direction.UP: up, Direction.DOWN: down}) == SCRIPT_ENDS
    assert [message.id for message in up.got] == [1, 3]
    assert [message.id for message in down.got] == [2]


async def run_quietly(running: asyncio.Future[str]) -> str:
    """And fail if anything went wrong where nobody looks."""
    stray: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: stray.append(context))
    with capture_logs() as logs:
        reason = await running
        for _ in range(5):
            await asyncio.sleep(0)
    assert not stray
    assert "request_failed" not in [log["event"] for log in logs]
    return reason


@given(st.lists(meant_frames | frames, max_size=12))
@settings(max_examples=60)
async def test_no_frames_of_a_child_do_more_than_end_its_link(script: list[str]) -> None:
    aggregator = Aggregator("root", str(uuid.uuid4()))
    end = ParentEnd(aggregator, ScriptedWire(script), Principal("child", AuthScope.ADMIN), asyncio.get_running_loop().time)
    assert await run_quietly(asyncio.ensure_future(end.run()))
    assert not list(aggregator.registry)


@given(st.lists(meant_frames | frames, max_size=12))
@settings(max_examples=60)
async def test_no_frames_of_a_parent_do_more_than_end_its_link(script: list[str]) -> None:
    aggregator = Aggregator("leaf", str(uuid.uuid4()))
    end = ChildEnd(aggregator, ScriptedWire(script), Introduction(aggregator.id, "leaf", 0.2), Parentage())
    with contextlib.suppress(LinkRefused):
        assert await run_quietly(asyncio.ensure_future(end.run()))
