"""A WebSocket whose messages nobody takes is read no further, and read again once they are taken."""

from __future__ import annotations

import asyncio
from unittest.mock import Mock

import pytest
from uvicorn.config import Config
from uvicorn.server import ServerState
from websockets.frames import Frame, Opcode

from mcpax.front.connections import SHORT_MESSAGE_BYTES, WAITING_MESSAGES, BoundedSocket


@pytest.fixture
async def socket() -> BoundedSocket:
    made = BoundedSocket(Config(Mock(), log_config=None), ServerState(), {}, asyncio.get_running_loop())
    made.transport = Mock(spec=asyncio.Transport)
    return made


def told(socket: BoundedSocket) -> tuple[int, int]:
    """How often reading was stopped and taken up."""
    transport = socket.transport
    assert isinstance(transport, Mock)
    return transport.pause_reading.call_count, transport.resume_reading.call_count


async def test_messages_that_are_taken_as_they_come_stop_nothing(socket: BoundedSocket) -> None:
    for _ in range(3 * WAITING_MESSAGES):
        socket.handle_text(Frame(Opcode.TEXT, b"short"))
        assert await socket.receive() == {"type": "websocket.receive", "text": "short"}
    assert told(socket) == (0, 0)


async def test_only_so_many_wait(socket: BoundedSocket) -> None:
    for _ in range(WAITING_MESSAGES):
        assert told(socket) == (0, 0)
        socket.handle_text(Frame(Opcode.TEXT, b"short"))
    assert told(socket) == (1, 0)
    for _ in range(WAITING_MESSAGES):
        assert told(socket) == (1, 0)
        await socket.receive()
    assert told(socket) == (1, 1)


async def test_one_long_message_is_enough(socket: BoundedSocket) -> None:
    socket.handle_text(Frame(Opcode.TEXT, b"x" * SHORT_MESSAGE_BYTES, fin=False))
    socket.handle_cont(Frame(Opcode.CONT, b"x"))
    assert told(socket) == (1, 0)
    await socket.receive()
    assert told(socket) == (1, 1)
