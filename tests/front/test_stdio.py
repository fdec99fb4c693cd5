"""Over stdin and stdout in a real process: served directly, and relayed to a gateway over HTTP."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.subscriptions import ToolsListChanged
from mcp.shared.exceptions import MCPError

from mcpax.front.guard import Access
from mcpax.front.http import build_app
from tests.front.bench import Gateway
from tests.front.conftest import PATIENCE_S, Traffic, held, serving
from tests.front.test_changes import Inbox
from tests.front.test_raw_http import request

RELAY = "import asyncio, sys; from mcpax.front.relay import relay_stdio; asyncio.run(relay_stdio(*sys.argv[1:]))"

HELLO: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}


def program(*args: str) -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=list(args), cwd=".")


def sdk_mode(mode: str) -> str:
    return "legacy" if mode == "legacy" else "auto"


@pytest.mark.req("AX-1.1-a")
@pytest.mark.parametrize(("style", "name"), [(None, "edge__bench__echo"), ("dotted", "edge.bench.echo")])
async def test_a_client_lists_and_calls(mode: str, style: str | None, name: str) -> None:
    server = program("-m", "tests.front.bench", "stdio", *(["--style", style] if style else []))
    async with Client(stdio_client(server), mode=sdk_mode(mode), read_timeout_seconds=PATIENCE_S) as client:
        assert client.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
        assert name in [tool.name for tool in (await client.list_tools()).tools]
        assert (await client.call_tool("edge.bench.count", {})).structured_content == {"n": 1}
        with pytest.raises(MCPError) as caught:
            await client.call_tool("nope", {})
        assert caught.value.error.code == -32601


async def start(*args: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(sys.executable, *args, stdin=pipe, stdout=pipe, stderr=pipe)


async def run(*args: str) -> tuple[int | None, bytes, bytes]:
    """Start it and close its stdin."""
    process = await start(*args)
    out, err = await asyncio.wait_for(process.communicate(b""), PATIENCE_S)
    return process.returncode, out, err


async def test_stdout_carries_nothing_but_the_protocol() -> None:
    """Though the program logs, and a tool prints."""
    server = await start("-m", "tests.front.bench", "stdio")
    assert server.stdin is not None
    assert server.stdout is not None
    assert server.stderr is not None
    calls: list[tuple[str, dict[str, Any]]] = [("initialize", HELLO), ("tools/call", {"name": "edge.bench.burn"})]
    for number, (method, params) in enumerate(calls):
        server.stdin.write(json.dumps(request(method, params, id=number)).encode() + b"\n")
        assert json.loads(await asyncio.wait_for(server.stdout.readline(), PATIENCE_S))["id"] == number
    server.stdin.close()
    assert await asyncio.wait_for(server.stdout.read(), PATIENCE_S) == b""
    logged = await server.stderr.read()
    assert b"registered" in logged
    assert b"a stray print" in logged
    assert await server.wait() == 0


@pytest.fixture
async def relayed(base_url: str, mode: str, inbox: Inbox, gateway: Gateway) -> AsyncIterator[Client]:
    transport = stdio_client(program("-c", RELAY, f"{base_url}/mcp"))
    async with held(Client(transport, mode=sdk_mode(mode), message_handler=inbox, read_timeout_seconds=PATIENCE_S)) as client:
        if mode == "legacy":
            await inbox.settled(gateway)
        yield client


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


async def test_the_relay_changes_nothing(relayed: Client, base_url: str, mode: str, gateway: Gateway) -> None:
    async with Client(f"{base_url}/mcp", mode=sdk_mode(mode)) as direct:
        assert relayed.protocol_version == direct.protocol_version
        assert relayed.instructions == direct.instructions
        assert await relayed.list_tools() == await direct.list_tools()
    assert (await relayed.call_tool("edge__bench__count", {})).structured_content == {"n": 1}
    assert gateway.bench.counted == 1
    with pytest.raises(MCPError) as caught:
        await relayed.call_tool("nope", {})
    assert caught.value.error.code == -32601


async def test_the_relay_states_the_revision_in_every_request(relayed: Client, mode: str, traffic: Traffic) -> None:
    await relayed.list_tools()
    await relayed.call_tool("edge.bench.count", {})
    first, *others = [headers.get("mcp-protocol-version") for headers in traffic.posted]
    assert first == (None if mode == "legacy" else "2026-07-28")  # the handshake has yet to agree on one
    assert set(others) == {relayed.protocol_version}


async def test_the_relay_carries_progress_and_cancellation(relayed: Client, gateway: Gateway) -> None:
    last = asyncio.Event()

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001
        if progress == total:
            last.set()

    call = asyncio.create_task(relayed.call_tool("edge__bench__slow", {}, progress_callback=on_progress))
    await asyncio.wait_for(last.wait(), PATIENCE_S)
    call.cancel()
    await asyncio.wait_for(gateway.bench.cancelled.wait(), PATIENCE_S)


@pytest.mark.parametrize("mode", ["legacy"], indirect=True)
async def test_the_relay_carries_notifications_to_a_session(relayed: Client, inbox: Inbox, gateway: Gateway) -> None:
    await gateway.add_tools("fresh")
    assert type(await inbox.next()).__name__ == "ToolListChangedNotification"
    assert relayed.protocol_version == "2025-11-25"


@pytest.mark.parametrize("mode", ["2026-07-28"], indirect=True)
async def test_the_relay_carries_notifications_to_a_listener(relayed: Client, gateway: Gateway) -> None:
    async with relayed.listen(tools_list_changed=True) as changes:
        await gateway.add_tools("fresh")
        assert await asyncio.wait_for(anext(changes), PATIENCE_S) == ToolsListChanged()


async def test_the_relay_ends_with_its_stdin(base_url: str) -> None:
    assert await run("-c", RELAY, f"{base_url}/mcp") == (0, b"", b"")


async def test_the_relay_says_why_it_cannot_start(gateway: Gateway) -> None:
    status, out, err = await run("-c", RELAY, "http://127.0.0.1:9/mcp")
    assert (status, out) == (1, b"")
    assert b"No gateway answers at http://127.0.0.1:9/mcp" in err
    assert b"Check that it runs (mcpax serve --config" in err
    async with serving(build_app(gateway.aggregator, access=Access(token="secret"))) as url:
        status, _, err = await run("-c", RELAY, f"{url}/mcp", "wrong")
        assert status == 1
        assert b"Set MCPAX_TOKEN" in err
        assert b"--token-file" in err
        assert await run("-c", RELAY, f"{url}/mcp", "secret") == (0, b"", b"")


async def test_the_relay_ends_when_the_gateway_goes_away(gateway: Gateway) -> None:
    """Though its stdin stays open: a client can start it again, but can do nothing with a relay to nowhere."""
    async with serving(build_app(gateway.aggregator)) as url:
        relay = await start("-c", RELAY, f"{url}/mcp")
        assert relay.stdin is not None
        assert relay.stdout is not None
        assert relay.stderr is not None
        relay.stdin.write(json.dumps(request("initialize", HELLO)).encode() + b"\n")
        assert b'"protocolVersion":"2025-11-25"' in await asyncio.wait_for(relay.stdout.readline(), PATIENCE_S)
    relay.stdin.write(json.dumps(request("tools/list", id=2)).encode() + b"\n")
    assert b"No gateway answers at" in await asyncio.wait_for(relay.stderr.read(), PATIENCE_S)
    assert await asyncio.wait_for(relay.wait(), PATIENCE_S) == 1
