"""How many connections there may be, and how long one may say nothing: before any request is read, so before any token is asked for.

Without this, whoever reaches the port could take every file descriptor, and with them the serial ports. Also the place where a client's
certificate is noted, as only a connection knows it. Knows nothing of requests.
"""

from __future__ import annotations

import asyncio
import resource

import h11
import structlog
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

log = structlog.get_logger("mcpax.connections")

MAX_CONNECTIONS = 512
"""Half of the usual 1024 descriptors, or of what there are; the rest is for boards, files and whatever libraries open."""
REQUEST_S = 10.0
"""How long a connection may be without a request at work; then it is closed, however much of one it has sent."""


def most_connections() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(MAX_CONNECTIONS, soft // 2)


class BoundedProtocol(H11Protocol):
    """uvicorn's HTTP protocol, which takes any number of connections and waits on each for ever."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._last_cycle = self.cycle
        self._watch: asyncio.TimerHandle | None = None
        if len(self.connections) > most_connections():
            log.warning("too_many_connections", most=most_connections(), peer=self.client)
            transport.abort()
            return
        self._watch = self.loop.call_later(REQUEST_S, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._watch is not None:
            self._watch.cancel()
        super().connection_lost(exc)

    def timeout_keep_alive_handler(self) -> None:
        """Look at what has come before closing. A process that stood still wakes to its timers first, and would reset requests unread."""
        self.timeout_keep_alive_task = self.loop.call_later(0, super().timeout_keep_alive_handler)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """From here on the socket's own pings watch it."""
        if self._watch is not None:
            self._watch.cancel()
        super().handle_websocket_upgrade(event)

    def _look(self) -> None:
        idle = self.cycle is None or self.cycle.response_complete
        if idle and self.cycle is self._last_cycle:
            self.transport.close()
            return
        self._last_cycle = self.cycle
        self._watch = self.loop.call_later(REQUEST_S, self._look)


WAITING_MESSAGES = 16
SHORT_MESSAGE_BYTES = 1 << 16
"""What a WebSocket may have waiting before it is read no further: this many messages, or one that is longer than this."""
PEER_CERTIFICATE = "mcpax.peer_certificate"
"""Where the state of a WebSocket's connection has the client's certificate, as DER bytes, if it showed one that was verified."""


class BoundedSocket(WebSocketsSansIOProtocol):
    def send_receive_event_to_app(self) -> None:
        """uvicorn stops reading at every message until it has been taken, for two system calls each. A few short ones may wait instead."""
        long = sum(map(len, self.frames)) > SHORT_MESSAGE_BYTES
        paused, self.read_paused = self.read_paused, True  # so that it believes to have stopped
        super().send_receive_event_to_app()
        self.read_paused = paused
        if not paused and (long or self.queue.qsize() >= WAITING_MESSAGES):
            self.read_paused = True
            self.transport.pause_reading()

    def keepalive_timeout(self) -> None:
        """Whoever answers no ping may not read either: closing would wait for ever to send what it does not take."""
        super().keepalive_timeout()
        self.transport.abort()

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        tls = self.transport.get_extra_info("ssl_object")
        certificate = None if tls is None else tls.getpeercert(binary_form=True)
        if certificate is not None:
            self.scope["state"][PEER_CERTIFICATE] = certificate  # the application has not run yet: it is a task of its own
