"""Who gets in: token, Host and Origin, on a real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from httpx2 import AsyncClient
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from mcpax.front.guard import Access, InsecureListen, check_listen
from mcpax.front.http import MCP_PATHS, build_app
from tests.front.bench import Gateway
from tests.front.conftest import serving

TOKEN = "correct horse battery staple"
PATHS = [*MCP_PATHS, "/admin/routes", "/admin/devices", "/admin/status", "/admin/frames", "/nowhere"]


@pytest.fixture
async def guarded(gateway: Gateway) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(build_app(gateway.aggregator, access=Access(token=TOKEN))) as url, httpx.AsyncClient(base_url=url) as http:
        yield http


async def test_without_the_token_nothing_is_served(guarded: httpx.AsyncClient) -> None:
    for path in PATHS:
        for header in (None, "", "Bearer", f"Bearer {TOKEN}x", "Bearer correct", f"Basic {TOKEN}", "Bearer ✓"):
            answer = await guarded.get(path, headers={} if header is None else {b"Authorization": header.encode()})
            assert answer.status_code == 401, (path, header)
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert "Authorization: Bearer" in answer.json()["hint"]


async def test_with_the_token_a_client_works(guarded: httpx.AsyncClient, mode: str) -> None:
    async with AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        transport = streamable_http_client(f"{guarded.base_url}/mcp", http_client=http)
        async with Client(transport, mode="legacy" if mode == "legacy" else "auto") as client:
            assert (await client.list_tools()).tools


async def test_health_needs_no_token(guarded: httpx.AsyncClient) -> None:
    for path in ("/healthz", "/readyz"):
        assert (await guarded.get(path)).status_code == 200


async def test_a_rebound_host_is_refused(http: httpx.AsyncClient) -> None:
    for host in (
        "evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "",
        "[::1",
        "a@b",
        "evil.example@127.0.0.1",
        "127.0.0.1/evil",
    ):
        for path in ("/mcp", "/admin/status", "/healthz"):
            answer = await http.get(path, headers={"Host": host})
            assert answer.status_code == 421, (host, path)
            assert answer.json()["error"] == "host_not_allowed"


async def test_loopback_hosts_are_served(http: httpx.AsyncClient) -> None:
    for host in ("localhost", "localhost:1", "127.0.0.1", "127.0.0.5:80", "[::1]:80", "LOCALHOST"):
        assert (await http.get("/healthz", headers={"Host": host})).status_code == 200, host


async def test_other_peoples_pages_are_refused(http: httpx.AsyncClient) -> None:
    for origin in (
        "http://evil.example",
        "null",
        "http://127.0.0.1.evil.example",
        "https://localhost.evil.example:443",
        "",
        "http://e@localhost",
    ):
        for path in ("/mcp", "/admin/status"):
            answer = await http.post(path, headers={"Origin": origin}, json={})
            assert answer.status_code == 403, (origin, path)
            assert answer.json()["error"] == "origin_not_allowed"


async def test_loopback_pages_are_served(http: httpx.AsyncClient) -> None:
    for origin in ("http://localhost:6274", "http://127.0.0.1", "https://[::1]:8080"):
        assert (await http.get("/admin/status", headers={"Origin": origin})).status_code == 200, origin


async def test_configured_hosts_and_origins_come_in_and_others_do_not(gateway: Gateway) -> None:
    access = Access(token=TOKEN, hosts=frozenset({"pi.example"}), origins=frozenset({"https://console.example"}))
    async with serving(build_app(gateway.aggregator, access=access)) as url, httpx.AsyncClient(base_url=url) as http:
        http.headers["Authorization"] = f"Bearer {TOKEN}"

        async def status(**headers: str) -> int:
            return (await http.get("/admin/status", headers=headers)).status_code

        assert await status(Host="pi.example:8765") == 200
        assert await status(Host="pi.example:8765", Origin="http://pi.example:8765") == 200
        assert await status(Host="pi.example:8765", Origin="https://console.example") == 200
        assert await status(Host="pi.example:8765", Origin="https://other.example") == 403
        assert await status(Host="other.example") == 421


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "pi.example", ""])
def test_an_open_network_needs_a_token(host: str) -> None:
    with pytest.raises(InsecureListen, match=r"without a token.*token_file.*docs/configuration\.md.*or listen on 127\.0\.0\.1"):
        check_listen(host, None)
    with pytest.raises(InsecureListen):
        check_listen(host, "")
    check_listen(host, TOKEN)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.3.2.1"])
def test_loopback_needs_none(host: str) -> None:
    check_listen(host, None)
