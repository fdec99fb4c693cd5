"""Bytes that no well-behaved client sends, and every revision by hand."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

ACCEPT = {"Accept": "application/json, text/event-stream"}
JSON = {**ACCEPT, "Content-Type": "application/json"}
MODERN = {**JSON, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"}
MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def request(method: str, params: dict[str, Any] | None = None, id: int = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}


def answer_of(response: httpx.Response) -> dict[str, Any]:
    """The last message of a JSON or event-stream response."""
    if response.headers["content-type"].startswith("application/json"):
        return dict(response.json())
    data = [line.removeprefix("data:") for line in response.text.splitlines() if line.startswith("data:") and line != "data:"]
    return dict(json.loads(data[-1]))


async def shake_hands(http: httpx.AsyncClient, version: str) -> tuple[dict[str, str], dict[str, Any]]:
    hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    response = await http.post("/mcp", headers=JSON, json=request("initialize", hello))
    headers = {**JSON, "Mcp-Session-Id": response.headers["mcp-session-id"], "MCP-Protocol-Version": version}
    accepted = await http.post("/mcp", headers=headers, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert accepted.status_code == 202
    return headers, answer_of(response)["result"]


@pytest.mark.req("AX-1.1-a")
@pytest.mark.parametrize("version", HANDSHAKE_PROTOCOL_VERSIONS)
async def test_every_revision_with_sessions_is_served(http: httpx.AsyncClient, version: str) -> None:
    headers, hello = await shake_hands(http, version)
    assert hello["protocolVersion"] == version
    assert hello["capabilities"]["tools"] == {"listChanged": True}
    tools = answer_of(await http.post("/mcp", headers=headers, json=request("tools/list")))["result"]["tools"]
    assert "edge__bench__echo" in [tool["name"] for tool in tools]
    call = request("tools/call", {"name": "edge.bench.echo", "arguments": {"text": "hi"}})
    result = answer_of(await http.post("/mcp", headers=headers, json=call))["result"]
    assert result["content"] == [{"type": "text", "text": "hi"}]
    assert "resultType" not in result


async def test_the_revisions_are_the_ones_we_name() -> None:
    assert HANDSHAKE_PROTOCOL_VERSIONS == ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")


async def test_a_list_without_session_is_complete_ordered_and_not_to_be_shared(http: httpx.AsyncClient) -> None:
    body = request("tools/list", {"_meta": MODERN_META})
    first, second = [answer_of(await http.post("/mcp", headers=MODERN, json=body))["result"] for _ in range(2)]
    assert first == second
    assert (first["resultType"], first["ttlMs"], first["cacheScope"]) == ("complete", 0, "private")
    names = [tool["name"] for tool in first["tools"]]
    assert names == sorted(names)


BAD_BODIES = [
    b"",
    b"{",
    b"nonsense",
    b"\xff\xfe",
    b"null",
    b"[]",
    b"42",
    b'{"jsonrpc": "1.0", "id": 1, "method": "tools/list"}',
    b'{"jsonrpc": "2.0", "id": {}, "method": "tools/list"}',
    b'{"jsonrpc": "2.0", "id": 1, "method": 7}',
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    b"9" * 10_000,
]


@pytest.mark.parametrize("headers", [JSON, MODERN], ids=["legacy", "2026-07-28"])
async def test_a_malformed_body_is_answered_as_json_rpc_and_hurts_nobody(http: httpx.AsyncClient, headers: dict[str, str]) -> None:
    for body in BAD_BODIES:
        response = await http.post("/mcp", headers=headers, content=body)
        assert response.status_code == 400, body[:60]
        assert response.json()["error"]["code"] in (-32700, -32600, -32602), body[:60]
    assert (await http.get("/healthz")).status_code == 200


@pytest.mark.parametrize("headers", [JSON, MODERN], ids=["legacy", "2026-07-28"])
async def test_a_batch_is_refused(http: httpx.AsyncClient, headers: dict[str, str]) -> None:
    response = await http.post("/mcp", headers=headers, json=[request("tools/list"), request("tools/list", id=2)])
    assert response.status_code == 400
    assert "error" in response.json()


@pytest.mark.parametrize("headers", [JSON, MODERN], ids=["legacy", "2026-07-28"])
async def test_only_json_is_taken(http: httpx.AsyncClient, headers: dict[str, str]) -> None:
    """A web page may send the other types to anybody without asking first."""
    for content_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        response = await http.post("/mcp", headers={**headers, "Content-Type": content_type}, content=json.dumps(request("tools/list")))
        assert response.status_code in (400, 415), content_type


async def test_a_client_must_accept_both_kinds_of_answer(http: httpx.AsyncClient) -> None:
    response = await http.post("/mcp", headers={**JSON, "Accept": "text/html"}, json=request("initialize"))
    assert response.status_code == 406


@pytest.mark.parametrize("headers", [JSON, MODERN], ids=["legacy", "2026-07-28"])
async def test_a_body_has_a_limit(http: httpx.AsyncClient, headers: dict[str, str]) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(17):
            yield b" " * 65536

    assert (await http.post("/mcp", headers=headers, content=b" " * (1 << 20))).status_code == 400
    assert (await http.post("/mcp", headers=headers, content=b" " * ((1 << 20) + 1))).status_code == 413
    assert (await http.post("/mcp", headers=headers, content=chunks())).status_code == 413


async def test_an_unknown_session_is_not_found(http: httpx.AsyncClient) -> None:
    response = await http.post("/mcp", headers={**JSON, "Mcp-Session-Id": "0" * 32}, json=request("tools/list"))
    assert response.status_code == 404


async def test_headers_must_agree_with_the_body(http: httpx.AsyncClient) -> None:
    body = request("tools/call", {"name": "edge.bench.count", "arguments": {}, "_meta": MODERN_META})
    response = await http.post("/mcp", headers={**MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "edge.bench.echo"}, json=body)
    assert response.status_code == 400
    assert response.json()["error"]["code"] == -32020


async def test_elsewhere_the_way_is_shown(http: httpx.AsyncClient) -> None:
    for path in ("/", "/mcp/other", "/admin", "/admin/../mcpx"):
        response = await http.get(path)
        assert response.status_code == 404
        assert "/mcp/dotted" in response.json()["hint"]
