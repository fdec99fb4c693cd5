"""The short way for the most common request: a plain `tools/call` of revision 2026-07-28, without the SDK's machinery per call.

Stands in front of an MCP endpoint and takes a request only when nothing about it is unusual; everything else, and everything it
is not sure of, goes on untouched to the SDK's way, which is the reference (a test holds both to the same answers). Knows nothing
of what a tool does.
"""

from __future__ import annotations

import asyncio

import msgspec
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    MCP_PARAM_HEADER_PREFIX,
    InboundModernRoute,
    classify_inbound_request,
    find_duplicated_routing_header,
)
from mcp_types import SERVER_INFO_META_KEY
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import mcpax
from mcpax.capability import LatencyClass
from mcpax.core.aggregator import Aggregator
from mcpax.core.results import with_meta
from mcpax.core.subserver import Json
from mcpax.front.mcp_server import COMPLETE, SERVER_NAME, call_tool

REVISION = "2026-07-28"
QUICK = frozenset({LatencyClass.REALTIME, LatencyClass.FAST})
"""Calls that end before a proxy would want a sign of life; the SDK's way sends those."""
_SERVER_INFO = {"name": SERVER_NAME, "version": mcpax.__version__}
_PARAMS = frozenset({"name", "arguments", "_meta"})
_JSON_HEADERS = (b"content-type", b"application/json")
_PARAM_PREFIX = MCP_PARAM_HEADER_PREFIX.lower()


class LeanCalls:
    """Wraps the ASGI app of one MCP endpoint."""

    def __init__(self, app: ASGIApp, aggregator: Aggregator, max_body_bytes: int) -> None:
        self._app = app
        self._aggregator = aggregator
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if scope["type"] != "http" or not self._looks_plain(scope["method"], headers):
            await self._app(scope, receive, send)
            return
        body = await _read(receive)
        if body is None:
            return  # the client hung up before it had asked
        request = self._plain_call(body, headers)
        if request is None:
            await self._app(scope, _replay(body, receive), send)
            return
        await self._answer(request, receive, send)

    def _looks_plain(self, method: str, headers: Headers) -> bool:
        """By its headers alone: a call of the revision without sessions, of known and modest size."""
        length = headers.get("content-length", "")
        return (
            method == "POST"
            and headers.get("mcp-method") == "tools/call"
            and headers.get("mcp-protocol-version") == REVISION
            and headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"
            and _accepts_both(headers.get("accept", ""))
            and length.isdigit()
            and int(length) <= self._max_body_bytes
            and find_duplicated_routing_header(headers.items()) is None
            and not any(name.startswith(_PARAM_PREFIX) for name in headers)
        )

    def _plain_call(self, body: bytes, headers: Headers) -> Json | None:
        """The request, if its body is as ordinary as its headers: a quick tool, no progress, no input to a held call."""
        try:
            request = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        if not isinstance(request, dict) or request.keys() != {"jsonrpc", "id", "method", "params"} or request["jsonrpc"] != "2.0":
            return None
        identifier, params = request["id"], request["params"]
        if not isinstance(identifier, str) and type(identifier) is not int:
            return None
        if not isinstance(classify_inbound_request(request, headers=headers), InboundModernRoute) or not params.keys() <= _PARAMS:
            return None
        if "progressToken" in params["_meta"] or not isinstance(params.get("arguments", {}), dict):
            return None
        route = self._aggregator.catalog.resolve(params["name"])
        return request if route is not None and route.capability.latency_class in QUICK else None

    async def _answer(self, request: Json, receive: Receive, send: Send) -> None:
        params = request["params"]
        call = asyncio.ensure_future(call_tool(self._aggregator, params["name"], params.get("arguments", {}), params["_meta"]))
        gone = asyncio.ensure_future(receive())  # nothing but a disconnect can come now, and it cancels the call
        try:
            await asyncio.wait((call, gone), return_when=asyncio.FIRST_COMPLETED)
            if not call.done():
                return
            status, answer = _as_response(request["id"], call)
            await send({"type": "http.response.start", "status": status, "headers": [_JSON_HEADERS, _length(answer)]})
            await send({"type": "http.response.body", "body": answer})
        finally:
            gone.cancel()
            if not call.done():
                call.cancel()
                await asyncio.gather(call, return_exceptions=True)


def _as_response(identifier: str | int, call: asyncio.Future[Json]) -> tuple[int, bytes]:
    try:
        result = call.result()
    except MCPError as error:
        details = {
            key: value for key, value in (("code", error.code), ("message", error.message), ("data", error.data)) if value is not None
        }
        status = ERROR_CODE_HTTP_STATUS.get(error.code, 200)
        return status, msgspec.json.encode({"jsonrpc": "2.0", "id": identifier, "error": details})
    result = {**COMPLETE, **with_meta(result, {SERVER_INFO_META_KEY: _SERVER_INFO})}
    return 200, msgspec.json.encode({"jsonrpc": "2.0", "id": identifier, "result": result})


def _accepts_both(accept: str) -> bool:
    return "application/json" in accept and "text/event-stream" in accept


def _length(answer: bytes) -> tuple[bytes, bytes]:
    return b"content-length", str(len(answer)).encode()


async def _read(receive: Receive) -> bytes | None:
    """The whole body; None if the client hung up within it."""
    body: bytes = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if not message.get("more_body"):
            return body


def _replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that begins with what has been read already."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return waiting.pop(0) if waiting else await receive()

    return replayed
