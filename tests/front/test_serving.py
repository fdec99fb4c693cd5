"""The process side: health, readiness, the port, and stopping."""

from __future__ import annotations

import asyncio
import socket
from urllib.parse import urlsplit

import httpx
import pytest
from mcp import Client

from mcpax.front import connections
from mcpax.front.http import SHUTDOWN_S, build_app, open_listener, serve_http
from tests.front.bench import Gateway
from tests.front.conftest import PATIENCE_S, serving


async def test_alive_is_not_the_same_as_ready(gateway: Gateway) -> None:
    state = (False, "waiting for the store")
    async with serving(build_app(gateway.aggregator, ready=lambda: state)) as url, httpx.AsyncClient(base_url=url) as http:
        assert (await http.get("/healthz")).status_code == 200
        answer = await http.get("/readyz")
        assert (answer.status_code, answer.json()) == (503, {"ready": False, "reason": "waiting for the store"})
        state = (True, "")
        assert (await http.get("/readyz")).status_code == 200


async def test_a_taken_port_is_an_error_for_the_caller(gateway: Gateway) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        await serve_http(build_app(gateway.aggregator), open_listener("127.0.0.1", taken.getsockname()[1]), lambda _: None)


async def test_ipv6_loopback_is_served(gateway: Gateway) -> None:
    bound: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve_http(build_app(gateway.aggregator), open_listener("::1", 0), bound.set_result))
    try:
        async with httpx.AsyncClient() as http:
            assert (await http.get(f"http://[::1]:{await bound}/healthz")).status_code == 200
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_stopping_ends_open_streams_at_once_and_with_a_word(gateway: Gateway) -> None:
    """A client that listens must neither hold the process up nor be left wondering."""
    bound: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve_http(build_app(gateway.aggregator), open_listener("127.0.0.1", 0), bound.set_result))
    url = f"http://127.0.0.1:{await bound}/mcp"
    async with Client(url, mode="legacy") as one, Client(url, mode="auto") as other:
        await one.list_tools()
        async with other.listen(tools_list_changed=True) as changes:
            started = asyncio.get_running_loop().time()
            task.cancel()
            await asyncio.wait_for(asyncio.gather(task, return_exceptions=True), PATIENCE_S)
            assert asyncio.get_running_loop().time() - started < SHUTDOWN_S
            assert [change async for change in changes] == []


async def test_connections_that_say_nothing_are_bounded_in_number_and_time(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 3)
    monkeypatch.setattr(connections, "REQUEST_S", 0.2)
    async with serving(build_app(gateway.aggregator)) as url:
        parts = urlsplit(url)
        opened = [await asyncio.open_connection(parts.hostname, parts.port) for _ in range(5)]
        # The ones over the limit are cut off at once, the silent ones after their time; either way the server is free again.
        ends = await asyncio.wait_for(asyncio.gather(*(reader.read() for reader, _ in opened), return_exceptions=True), PATIENCE_S)
        assert len(ends) == 5
        for _, writer in opened:
            writer.close()
        async with httpx.AsyncClient() as http:
            assert (await http.get(f"{url}/healthz")).status_code == 200


async def test_more_connections_than_allowed_are_cut_off(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 2)
    async with serving(build_app(gateway.aggregator)) as url:
        parts = urlsplit(url)
        held = [await asyncio.open_connection(parts.hostname, parts.port) for _ in range(2)]
        with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
            async with httpx.AsyncClient() as http:
                await http.get(f"{url}/healthz")
        for _, writer in held:
            writer.close()
