"""How many connections there may be, and how long one may say nothing: before any request is read, so before any token is asked for.

Without this, whoever reaches the port could take every file descriptor, and with them the serial ports. Knows nothing of requests.
"""

from __future__ import annotations

import asyncio
from typing import Any

import structlog
from uvicorn.protocols.http.h11_impl import H11Protocol

log = structlog.get_logger("mcpax.connections")

MAX_CONNECTIONS = 512
"""Half of the usual 1024 descriptors; the rest is for boards, files and whatever libraries open."""
FIRST_REQUEST_S = 10.0
"""From connecting to the end of the first request's headers."""


class BoundedProtocol(H11Protocol):
    """uvicorn's HTTP protocol, which takes any number of connections and waits on each for ever."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            log.warning("too_many_connections", most=MAX_CONNECTIONS, peer=self.client)
            transport.abort()
            return
        self._first_request: asyncio.TimerHandle | None = self.loop.call_later(FIRST_REQUEST_S, self._said_nothing)

    def connection_lost(self, exc: Exception | None) -> None:
        timer: Any = getattr(self, "_first_request", None)
        if timer is not None:
            timer.cancel()
        super().connection_lost(exc)

    def _said_nothing(self) -> None:
        if self.cycle is None:
            self.transport.close()
