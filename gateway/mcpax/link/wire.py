"""Texts over one WebSocket, whichever side opened it. Knows nothing of what the texts say.

Dialled connections are `websockets`' own; accepted ones come through the HTTP server. Both keep themselves alive with pings, refuse
messages that are too long, and end with a reason.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping
from typing import Protocol

from starlette.types import Receive, Send
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidMessage, InvalidStatus

from mcpax.errors import Outcome
from mcpax.link.caller import link_lost
from mcpax.link.messages import MAX_MESSAGE_BYTES

SUBPROTOCOL = "mcpax.v1"
OPEN_S = 10.0
PING_S = 5.0
"""How often a link is asked for a sign of life, and how long that may take. Heartbeats are per registration; this is for the socket."""
CLOSE_S = 2.0
REFUSED_STATUS = (401, 403, 404, 421)


class WireClosed(Exception):
    """It has ended; says why."""


class CannotDial(Exception):
    """No connection came about; says why and what to do."""


class Wire(Protocol):
    async def send(self, text: str) -> None:
        """Raises `Fault` LINK_LOST when it has ended."""
        ...

    async def receive(self) -> str:
        """Raises `WireClosed`."""
        ...

    async def close(self, reason: str) -> None: ...


class AcceptedWire:
    """Speaks with the HTTP server directly: every call passes here, and needs none of what a web framework would add."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._closed = False

    async def send(self, text: str) -> None:
        try:
            await self._send({"type": "websocket.send", "text": text})
        except (RuntimeError, OSError):  # RuntimeError: the server's word for a socket that we have closed
            raise link_lost("the connection was closed", Outcome.UNKNOWN) from None

    async def receive(self) -> str:
        message = await self._receive()
        if message["type"] != "websocket.receive":
            self._closed = True
            raise WireClosed(message.get("reason") or f"closed with code {message.get('code', 1006)}")
        text: str | None = message.get("text")
        if text is None:
            raise WireClosed("a binary message, and links speak text")
        return text

    async def close(self, reason: str) -> None:
        if not self._closed:
            self._closed = True
            with contextlib.suppress(RuntimeError, OSError):
                await self._send({"type": "websocket.close", "code": 1000, "reason": reason[:120]})


class DialledWire:
    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    async def send(self, text: str) -> None:
        try:
            await self._connection.send(text)
        except ConnectionClosed as error:
            raise link_lost(_reason(error), Outcome.UNKNOWN) from None

    async def receive(self) -> str:
        try:
            text = await self._connection.recv()
        except ConnectionClosed as error:
            raise WireClosed(_reason(error)) from None
        if not isinstance(text, str):
            raise WireClosed("a binary message, and links speak text")
        return text

    async def close(self, reason: str) -> None:
        await self._connection.close(1000, reason[:120])


@contextlib.asynccontextmanager
async def dial(url: str, headers: Mapping[str, str], tls: ssl.SSLContext | None) -> AsyncIterator[DialledWire]:
    """Connect, or raise `CannotDial`."""
    try:
        connection = await connect(
            url,
            additional_headers=headers,
            subprotocols=[SUBPROTOCOL],  # type: ignore[list-item]  # a NewType of str
            compression=None,
            open_timeout=OPEN_S,
            ping_interval=PING_S,
            ping_timeout=PING_S,
            close_timeout=CLOSE_S,
            max_size=MAX_MESSAGE_BYTES,
            ssl=tls,
            proxy=None,
        )
    except InvalidStatus as error:
        raise CannotDial(_refusal(url, error.response.status_code)) from None
    except InvalidMessage:  # with TLS 1.3 a client certificate is refused only after our side of the handshake is through
        remedy = "is it wss:// there?" if tls is None else "does it trust the certificate that we show? Its log tells (tls_refused)."
        raise CannotDial(f"{url} hangs up without an answer: {remedy}") from None
    except (OSError, TimeoutError, InvalidHandshake, ssl.SSLError) as error:
        raise CannotDial(f"{url} cannot be reached: {str(error) or type(error).__name__}") from None
    try:
        yield DialledWire(connection)
    finally:
        await connection.close()


def _refusal(url: str, status: int) -> str:
    if status in REFUSED_STATUS:
        return f"{url} refuses us (HTTP {status}): are token, certificate and address those that it expects?"
    return f"{url} answered HTTP {status}"


def _reason(error: ConnectionClosed) -> str:
    if error.rcvd is not None:
        return error.rcvd.reason or f"closed with code {error.rcvd.code}"
    if error.sent is not None and error.sent.reason:
        return error.sent.reason
    return "the connection broke"
