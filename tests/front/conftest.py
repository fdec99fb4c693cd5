"""A gateway on a real socket, and clients to it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TypeVar

import httpx
import pytest
from mcp import Client
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcpax.front.http import build_app, open_listener, serve_http
from tests.front.bench import Gateway, build_gateway

T = TypeVar("T")

PATIENCE_S = 20.0
"""Nothing waits this long unless it is broken."""


@dataclass
class Traffic:
    """What passed on the wire."""

    posted: list[Headers] = field(default_factory=list)
    stream_opened: asyncio.Event = field(default_factory=asyncio.Event)
    """A client has opened its GET stream. The SDK may need a moment more before it delivers there."""


class TrafficWatch:
    """ASGI wrapper that fills in a `Traffic`."""

    def __init__(self, app: ASGIApp, traffic: Traffic) -> None:
        self._app = app
        self._traffic = traffic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def watched(message: Message) -> None:
            await send(message)
            if message["type"] == "http.response.start" and scope["method"] == "GET" and message["status"] == 200:
                self._traffic.stream_opened.set()

        if scope["type"] == "http" and scope["method"] == "POST":
            self._traffic.posted.append(Headers(scope=scope))
        await self._app(scope, receive, watched if scope["type"] == "http" else send)


@contextlib.asynccontextmanager
async def serving(app: Starlette) -> AsyncIterator[str]:
    bound: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve_http(app, open_listener("127.0.0.1", 0), bound.set_result))
    try:
        yield f"http://127.0.0.1:{await asyncio.wait_for(bound, PATIENCE_S)}"
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@contextlib.asynccontextmanager
async def held(context: contextlib.AbstractAsyncContextManager[T]) -> AsyncIterator[T]:
    """Enter and leave in one task: a fixture is set up and torn down in two, which the SDK's task groups do not allow."""
    entered: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    done = asyncio.Event()

    async def hold() -> None:
        try:
            async with context as value:
                entered.set_result(value)
                await done.wait()
        except BaseException as error:
            if entered.done():
                raise
            entered.set_exception(error)

    task = asyncio.create_task(hold())
    try:
        yield await entered
    finally:
        done.set()
        await task


@pytest.fixture
async def gateway() -> Gateway:
    return await build_gateway()


@pytest.fixture
def traffic() -> Traffic:
    return Traffic()


@pytest.fixture
async def base_url(gateway: Gateway, traffic: Traffic) -> AsyncIterator[str]:
    app = build_app(gateway.aggregator)
    app.add_middleware(TrafficWatch, traffic=traffic)
    async with serving(app) as url:
        yield url


@pytest.fixture(params=["legacy", "2026-07-28"])
def mode(request: pytest.FixtureRequest) -> str:
    """With sessions (2025-11-25), and without (2026-07-28)."""
    return str(request.param)


@pytest.fixture
async def client(base_url: str, mode: str) -> AsyncIterator[Client]:
    async with held(Client(f"{base_url}/mcp", mode="legacy" if mode == "legacy" else "auto", read_timeout_seconds=PATIENCE_S)) as client:
        yield client


@pytest.fixture
async def http(base_url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=base_url, timeout=PATIENCE_S) as http:
        yield http
