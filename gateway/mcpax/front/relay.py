"""For clients that speak only stdio: passes messages between stdin/stdout and a running gateway's HTTP endpoint, untouched.

Knows just enough of MCP to set the HTTP headers that each revision wants. Knows nothing of tools, and keeps nothing.
"""

from __future__ import annotations

from ssl import SSLContext
from urllib.parse import urlsplit

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
)
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import PROTOCOL_VERSION_META_KEY, JSONRPCRequest, JSONRPCResponse

from mcpax.front.guard import is_loopback
from mcpax.front.stdio import Incoming, Outgoing, open_stdio
from mcpax.words import HOW_TO_START

CONNECT_S = 10.0
SILENCE_S = 60.0
"""A waiting gateway sends a sign of life every 15 s; one that is silent for this long is gone."""
MAX_EVENT_BYTES = 16 << 20


class GatewayUnreachable(Exception):
    """The message is for people: what, where, what to do."""


async def relay_stdio(url: str, token: str | None = None, tls: SSLContext | None = None) -> None:
    """Relay until stdin closes. Raises `GatewayUnreachable` when the gateway cannot be reached or goes away.

    `tls`: what to judge its certificate by, if not as usual.
    """
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    timeout = httpx2.Timeout(CONNECT_S, read=SILENCE_S)
    # A proxy that the environment names is not meant for this very machine, though few say so in no_proxy.
    by_proxy = not is_loopback(urlsplit(url).hostname or "")
    async with httpx2.AsyncClient(headers=headers, timeout=timeout, trust_env=by_proxy, verify=tls or True) as http:
        await _check(http, url)
        try:
            async with (
                open_stdio() as (from_client, to_client),
                to_client,
                streamable_http_client(url, http_client=http, max_sse_event_size=MAX_EVENT_BYTES) as (from_gateway, to_gateway),
                anyio.create_task_group() as tasks,
            ):
                headers_of = _Headers()
                tasks.start_soon(_down, from_gateway, to_client, headers_of)
                await _up(from_client, to_gateway, headers_of)
                tasks.cancel_scope.cancel()
        except* httpx2.TransportError as group:
            raise _unreachable(url, group.exceptions[0]) from None


async def _check(http: httpx2.AsyncClient, url: str) -> None:
    """Ask once before anything else: a client's own message about a failed start helps nobody."""
    try:
        answer = await http.get(url)
    except (httpx2.TransportError, httpx2.InvalidURL) as error:
        raise _unreachable(url, error) from None
    if answer.status_code == httpx2.codes.UNAUTHORIZED:
        raise GatewayUnreachable(
            f"The gateway at {url} needs a token and got none or a wrong one. "
            "Set MCPAX_TOKEN to the gateway's token, or name its file with --token-file."
        )


def _unreachable(url: str, error: BaseException) -> GatewayUnreachable:
    return GatewayUnreachable(
        f"No gateway answers at {url} ({str(error) or type(error).__name__}). "
        f"Check that it runs ({HOW_TO_START}) and that address and port are right."
    )


async def _up(from_client: Incoming, to_gateway: Outgoing, headers_of: _Headers) -> None:
    async for item in from_client:
        if isinstance(item, SessionMessage):  # else a line that is no JSON-RPC, which has no id to answer to
            await to_gateway.send(SessionMessage(item.message, ClientMessageMetadata(headers=headers_of.sent(item))))


async def _down(from_gateway: Incoming, to_client: Outgoing, headers_of: _Headers) -> None:
    async for item in from_gateway:
        if isinstance(item, SessionMessage):
            headers_of.received(item)
            await to_client.send(SessionMessage(item.message))


class _Headers:
    """What HTTP repeats of a message: its revision, and from 2026-07-28 on also its method and name."""

    def __init__(self) -> None:
        self._initialize_id: str | int | None = None
        self._agreed: dict[str, str] = {}

    def sent(self, item: SessionMessage) -> dict[str, str]:
        message = item.message
        if not isinstance(message, JSONRPCRequest):
            return self._agreed
        if message.method == "initialize":
            self._initialize_id = message.id
            return {}
        params = message.params or {}
        version = (params.get("_meta") or {}).get(PROTOCOL_VERSION_META_KEY)
        if version is None:
            return self._agreed
        headers = {MCP_PROTOCOL_VERSION_HEADER: str(version), MCP_METHOD_HEADER: message.method}
        if message.method in NAME_BEARING_METHODS:
            headers[MCP_NAME_HEADER] = encode_header_value(str(params.get(NAME_BEARING_METHODS[message.method])))
        return headers

    def received(self, item: SessionMessage) -> None:
        message = item.message
        if isinstance(message, JSONRPCResponse) and message.id == self._initialize_id and "protocolVersion" in message.result:
            self._agreed = {MCP_PROTOCOL_VERSION_HEADER: str(message.result["protocolVersion"])}
