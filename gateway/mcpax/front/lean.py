"""The short way for the most common requests: plain `tools/call` and `tools/list` of revision 2026-07-28, without the SDK's machinery.

Stands in front of an MCP endpoint and takes a request only when nothing about it is unusual; everything else, and everything it
is not sure of, goes on untouched to the SDK's way, which is the reference (a test holds both to the same answers). Knows nothing
of what a tool does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

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
from mcpax.front.mcp_server import COMPLETE, LIST_CACHE, SERVER_NAME, SESSIONLESS_STYLE, call_tool, list_tools, next_cursor
from mcpax.name_codec import NameStyle

REVISION = "2026-07-28"
QUICK = frozenset({LatencyClass.REALTIME, LatencyClass.FAST})
"""Calls that end before a proxy would want a sign of life; the SDK's way sends those."""
_SERVER_INFO = {"name": SERVER_NAME, "version": mcpax.__version__}
_META: Json = {SERVER_INFO_META_KEY: _SERVER_INFO}
CALL, LIST = "tools/call", "tools/list"
_PARAMS = {CALL: frozenset({"name", "arguments", "_meta"}), LIST: frozenset({"cursor", "_meta"})}
_JSON_HEADERS = (b"content-type", b"application/json")
_PARAM_PREFIX = MCP_PARAM_HEADER_PREFIX.lower()


class LeanPath:
    """Wraps the ASGI app of one MCP endpoint."""

    def __init__(self, app: ASGIApp, aggregator: Aggregator, style: NameStyle | None, max_body_bytes: int) -> None:
        """`style`: how names are printed there; None: chosen by client, and here there are only those without sessions."""
        self._app = app
        self._aggregator = aggregator
        self._style = style or SESSIONLESS_STYLE
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if scope["type"] != "http" or not self._looks_plain(scope["method"], headers):
            await self._app(scope, receive, send)
            return
        body = await _read(receive)
        if body is None:
            return  # the client hung up before it had asked
        request = _plain_request(body, headers)
        answering = None if request is None else self._answering(request["method"], request["params"])
        if request is None or answering is None:
            await self._app(scope, _replay(body, receive), send)
            return
        await _answer(request["id"], answering, receive, send)

    def _looks_plain(self, method: str, headers: Headers) -> bool:
        """By its headers alone: a request of the revision without sessions, of known and modest size."""
        length = headers.get("content-length", "")
        return (
            method == "POST"
            and headers.get("mcp-method") in _PARAMS
            and headers.get("mcp-protocol-version") == REVISION
            and headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"
            and _accepts_both(headers.get("accept", ""))
            and length.isdigit()
            and int(length) <= self._max_body_bytes
            and find_duplicated_routing_header(headers.items()) is None
            and not any(name.startswith(_PARAM_PREFIX) for name in headers)
        )

    def _answering(self, method: str, params: Json) -> Coroutine[Any, Any, Json] | None:
        """What answers it, if its parameters are as ordinary as the rest: a quick tool, no progress, no input to a held call."""
        if not params.keys() <= _PARAMS.get(method, frozenset()) or "progressToken" in params["_meta"]:
            return None
        if method == LIST:
            cursor = params.get("cursor")
            return self._list(cursor) if cursor is None or isinstance(cursor, str) else None
        if not isinstance(params.get("arguments", {}), dict):
            return None
        route = self._aggregator.catalog.resolve(params["name"])
        return self._call(params) if route is not None and route.capability.latency_class in QUICK else None

    async def _list(self, cursor: str | None) -> Json:
        page = await list_tools(self._aggregator, self._style, cursor)
        cache = {"ttlMs": LIST_CACHE.ttl_ms, "cacheScope": LIST_CACHE.scope}
        return {**COMPLETE, "tools": page.encoded, **next_cursor(page), **cache, "_meta": _META}

    async def _call(self, params: Json) -> Json:
        result = await call_tool(self._aggregator, params["name"], params.get("arguments", {}), params["_meta"])
        return {**COMPLETE, **with_meta(result, _META)}


def _plain_request(body: bytes, headers: Headers) -> Json | None:
    """The request, if its body is as ordinary as its headers."""
    try:
        request = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(request, dict) or request.keys() != {"jsonrpc", "id", "method", "params"} or request["jsonrpc"] != "2.0":
        return None
    if not isinstance(request["id"], str) and type(request["id"]) is not int:
        return None
    return request if isinstance(classify_inbound_request(request, headers=headers), InboundModernRoute) else None


async def _answer(identifier: str | int, answering: Coroutine[Any, Any, Json], receive: Receive, send: Send) -> None:
    work = asyncio.ensure_future(answering)
    gone = asyncio.ensure_future(receive())  # nothing but a disconnect can come now, and it cancels the work
    try:
        await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            return
        status, answer = _as_response(identifier, work)
        await send({"type": "http.response.start", "status": status, "headers": [_JSON_HEADERS, _length(answer)]})
        await send({"type": "http.response.body", "body": answer})
    finally:
        gone.cancel()
        if not work.done():
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)


def _as_response(identifier: str | int, work: asyncio.Future[Json]) -> tuple[int, bytes]:
    try:
        result = work.result()
    except MCPError as error:
        details = {
            key: value for key, value in (("code", error.code), ("message", error.message), ("data", error.data)) if value is not None
        }
        status = ERROR_CODE_HTTP_STATUS.get(error.code, 200)
        return status, msgspec.json.encode({"jsonrpc": "2.0", "id": identifier, "error": details})
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
