"""A frame within a frame: bytes that a caller may choose could run as a call of their own on a damaged line, so they are never sent."""

from __future__ import annotations

import base64
import os
import select
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mcpax.bridge.wire.dialect import dialect_for
from mcpax.bridge.wire.messages import Heartbeat, Response
from mcpax.bridge.wire.profile_a import encode_call
from mcpax.core.aggregator import Aggregator
from mcpax.errors import ErrorKind, Fault, Outcome
from tests.virtual import VirtualBoard, running_gateway

ECHO, PULSE = 5, 2
PULSE_RELAY_1 = bytes((1, 100, 0))
NEXT_SEQUENCE = 40
"""Ahead of all that a gateway gives out in this test, and near enough to be new to the board."""
PATIENCE_S = 2.0
REFUSED_CALLS = 100
"""More than a session lets go unconfirmed before it starts over."""


class Line:
    """The board's port without a gateway."""

    def __init__(self, board: VirtualBoard) -> None:
        self._dialect = dialect_for(board.map)
        self._port = os.open(board.link, os.O_RDWR | os.O_NOCTTY)
        tty.setraw(self._port)
        self._decoder = self._dialect.framing.decoder(self._dialect.max_message)

    def close(self) -> None:
        os.close(self._port)

    def framed(self, message: bytes) -> bytes:
        return self._dialect.framing.encode(message)

    def say(self, data: bytes) -> list[object]:
        """What the board answers until it is silent."""
        os.write(self._port, data)
        heard: list[object] = []
        deadline = time.monotonic() + PATIENCE_S
        while select.select([self._port], [], [], 0.2 if heard else max(0.0, deadline - time.monotonic()))[0]:
            heard += map(self._dialect.decode, self._decoder.feed(os.read(self._port, 4096)))
        return heard

    def synchronise(self) -> None:
        beat = next(said for said in self.say(self.framed(self._dialect.heartbeat(0, 0))) if isinstance(said, Heartbeat))
        self.say(self.framed(self._dialect.heartbeat(0, beat.boot_id)))


@contextmanager
def line_to(board: VirtualBoard) -> Iterator[Line]:
    line = Line(board)
    try:
        yield line
    finally:
        line.close()


def as_argument(data: bytes) -> str:
    return base64.b64encode(data).decode()


async def pulses(aggregator: Aggregator) -> int:
    result = await aggregator.call_tool("edge.relay-board.read_relays", {})
    count: int = result["structuredContent"]["pulses"]
    return count


def test_a_damaged_frame_lets_the_one_within_it_loose(tmp_path: Path) -> None:
    """What the gateway guards against is real: one flipped bit, and the board runs what was but an argument."""
    with VirtualBoard("relay-board", tmp_path) as board, line_to(board) as line:
        line.synchronise()
        hidden = line.framed(encode_call(2, PULSE, PULSE_RELAY_1))
        outer = bytearray(line.framed(encode_call(1, ECHO, hidden)))
        outer[-1] ^= 1
        assert [(said.seq, said.tool, said.status) for said in line.say(bytes(outer)) if isinstance(said, Response)] == [(2, PULSE, 0)]


async def test_the_gateway_never_sends_it(tmp_path: Path) -> None:
    with VirtualBoard("relay-board", tmp_path) as board:
        framing = dialect_for(board.map).framing
        async with running_gateway([board]) as running:
            aggregator = running.gateway.aggregator
            hidden = framing.encode(encode_call(NEXT_SEQUENCE, PULSE, PULSE_RELAY_1))
            sent = running.gateway.bridge.devices()[0]["counters"]["sent"]
            for padding in range(REFUSED_CALLS):
                data = bytes(padding % 10) + hidden
                with pytest.raises(Fault) as refused:
                    await aggregator.call_tool("edge.relay-board.echo", {"data": as_argument(data)})
                assert refused.value.kind is ErrorKind.INVALID_TOOL_ARGS
                assert refused.value.outcome is Outcome.NOT_EXECUTED
                assert "frame" in refused.value.message
            device = running.gateway.bridge.devices()[0]
            assert device["counters"]["sent"] == sent, "not a byte of them"
            assert await pulses(aggregator) == 0
            assert running.gateway.bridge.devices()[0]["boot_id"] == device["boot_id"], "the same session: nothing had to start over"
            # One byte of it changed, and it is an argument like any other.
            harmless = as_argument(hidden[:-1] + bytes((hidden[-1] ^ 1,)))
            result = await aggregator.call_tool("edge.relay-board.echo", {"data": harmless})
            assert result["structuredContent"] == {"data": harmless}
            assert await pulses(aggregator) == 0
