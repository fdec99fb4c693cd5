"""One live link: reads the wire and gives each message to the end that it is for. Knows nothing of parents and children."""

from __future__ import annotations

from typing import Protocol

import structlog

from mcpax.link.messages import BadMessage, Direction, Message, decode
from mcpax.link.wire import Wire, WireClosed

log = structlog.get_logger("mcpax.link")


class End(Protocol):
    def receive(self, message: Message) -> None:
        """May raise `BadMessage`."""
        ...


async def read(wire: Wire, ends: dict[Direction, End]) -> str:
    """Until the wire ends, or says something that is no message; returns why."""
    while True:
        try:
            direction, message = decode(await wire.receive())
            ends[direction].receive(message)
        except WireClosed as closed:
            return str(closed)
        except BadMessage as bad:
            log.warning("bad_message", problem=str(bad)[:300])
            await wire.close("bad message")
            return f"it sent a bad message: {str(bad)[:300]}"
