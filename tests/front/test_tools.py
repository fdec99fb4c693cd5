"""Listing and calling, over HTTP with the SDK's own client, with and without sessions."""

from __future__ import annotations

import asyncio

import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from tests.front.bench import ECHO_META, NUMBER_RESULT, Gateway


async def all_tools(client: Client) -> list[types.Tool]:
    tools: list[types.Tool] = []
    cursor = None
    while True:
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            return tools


@pytest.mark.req("AX-1.1-a")
async def test_an_unmodified_client_connects(client: Client, mode: str) -> None:
    assert client.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
    assert client.server_info is not None
    assert client.server_info.name == "mcpax"
    assert client.server_capabilities.tools is not None
    assert client.server_capabilities.tools.list_changed
    assert client.instructions is not None
    for word in ("__", "destructiveHint", "not_executed", "unknown", "degraded"):
        assert word in client.instructions


@pytest.mark.req("AX-1.1-a", "AX-5.2-1")
async def test_a_call_reaches_its_device_and_the_answer_returns(client: Client, gateway: Gateway) -> None:
    await client.list_tools()
    result = await client.call_tool("edge__bench__count", {})
    assert result.structured_content == {"n": 1}
    assert gateway.bench.counted == 1


@pytest.mark.req("AX-1.1-d")
async def test_every_tool_carries_its_capability_unmodified(client: Client, gateway: Gateway) -> None:
    tools = {tool.name: tool for tool in await all_tools(client)}
    assert len(tools) == len(gateway.bench.tools)
    for tool in gateway.bench.tools:
        listed = tools[f"edge__bench__{tool.path[0]}"]
        assert listed.meta is not None
        assert listed.meta["x-mcpax-capability"] == tool.capability.to_json()
        assert listed.meta["x-mcpax-hops"] == 1
    echo = tools["edge__bench__echo"]
    assert echo.title == "Echo"
    assert echo.annotations is not None
    assert echo.annotations.read_only_hint is True
    assert echo.annotations.destructive_hint is False
    assert tools["edge__bench__count"].output_schema == NUMBER_RESULT


@pytest.mark.req("AX-11.2-1")
async def test_irreversible_tools_are_flagged_and_only_those(client: Client, gateway: Gateway) -> None:
    flagged = {tool.name for tool in await all_tools(client) if (tool.meta or {}).get("x-mcpax-safety") == "irreversible_mutable"}
    assert flagged == {f"edge__bench__{tool.path[0]}" for tool in gateway.bench.tools if tool.capability.irreversible_mutable}
    assert "edge__bench__burn" in flagged
    assert "edge__bench__count" not in flagged


@pytest.mark.req("AX-7.2-2")
async def test_a_result_comes_back_as_the_device_gave_it(client: Client) -> None:
    result = await client.call_tool("edge__bench__echo", {"text": "ä\u2028\x7f"})
    assert [block.text for block in result.content if isinstance(block, types.TextContent)] == ["ä\u2028\x7f"]
    assert result.structured_content is None
    assert result.meta is not None
    assert {key: result.meta[key] for key in ECHO_META} == ECHO_META
    assert result.meta["x-mcpax-latency-ms"] >= 0


@pytest.mark.req("AX-5.2-2")
async def test_an_unknown_tool_is_refused_with_a_hint(client: Client) -> None:
    with pytest.raises(MCPError) as caught:
        await client.call_tool("edge__bench__ecko", {})
    assert caught.value.error.code == -32601
    assert caught.value.error.data["hint"] == "Did you mean edge__bench__echo?"
    assert caught.value.error.data["outcome"] == "not_executed"


@pytest.mark.req("AX-13.2-1")
async def test_a_degraded_tool_stays_listed_and_says_since_when(client: Client, gateway: Gateway) -> None:
    gateway.aggregator.registry.degrade(gateway.session_id, "heartbeat_timeout")
    session = gateway.aggregator.registry.get(gateway.session_id)
    assert session is not None
    assert session.degraded_since is not None

    for tool in await all_tools(client):
        assert (tool.meta or {})["x-mcpax-capability"]["availability"] == "degraded"
    with pytest.raises(MCPError) as caught:
        await client.call_tool("edge__bench__count", {})
    error = caught.value.error
    assert (error.code, error.message) == (-32002, "tool_degraded")
    assert {key: error.data[key] for key in ("reason", "since", "retry_after_ms")} == {
        "reason": "subserver_unreachable",
        "since": session.degraded_since.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "retry_after_ms": 5000,
    }
    assert gateway.bench.counted == 0


async def test_a_failure_on_the_device_is_a_result_the_model_reads(client: Client) -> None:
    await client.list_tools()  # so that the client knows the output schema, and could hold the error against it
    result = await client.call_tool("edge__bench__lost", {})
    assert result.is_error
    assert result.structured_content is None
    [block] = result.content
    assert isinstance(block, types.TextContent)
    assert block.text == "The board went away during the call. Outcome: unknown. Read its state."
    assert result.meta is not None
    error = result.meta["x-mcpax-error"]
    assert (error["code"], error["error"], error["outcome"]) == (5002, "device_lost", "unknown")


async def test_a_bug_below_is_told_without_its_details(client: Client) -> None:
    with pytest.raises(MCPError) as caught:
        await client.call_tool("edge__bench__crash", {})
    assert caught.value.error.code == -32603
    assert caught.value.error.data["outcome"] == "unknown"
    assert "secret" not in str(caught.value.error)


async def test_long_lists_come_in_pages(client: Client, gateway: Gateway) -> None:
    await gateway.add_tools(*(f"t{number:03}" for number in range(450)))
    first = await client.list_tools()
    assert first.next_cursor is not None
    assert len(first.tools) < 450
    names = [tool.name for tool in await all_tools(client)]
    assert len(names) == len(set(names)) == len(gateway.bench.tools)


async def test_a_call_does_not_walk_the_list(client: Client, gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK would, to check headers, and with hundreds of tools that costs far more than the call. Not quick, so not the lean way."""
    await client.list_tools()
    walked: list[object] = []
    monkeypatch.setattr(gateway.aggregator, "list_tools", lambda *asked: walked.append(asked))
    assert not (await client.call_tool("edge__bench__burn", {"hard": True})).is_error
    assert walked == []


async def test_a_strange_cursor_is_refused(client: Client) -> None:
    with pytest.raises(MCPError) as caught:
        await client.list_tools(cursor="not one of ours")
    assert caught.value.error.code == -32602


async def test_progress_reaches_who_asked(client: Client, gateway: Gateway) -> None:
    seen: list[tuple[float, float | None, str | None]] = []
    last = asyncio.Event()

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))
        if progress == total:
            last.set()
            gateway.bench.release.set()

    result = await client.call_tool("edge__bench__slow", {}, progress_callback=on_progress)
    assert last.is_set()
    assert seen == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]
    assert not result.is_error


async def test_cancelling_a_call_cancels_it_on_the_device(client: Client, gateway: Gateway) -> None:
    call = asyncio.create_task(client.call_tool("edge__bench__slow", {}))
    await asyncio.wait_for(gateway.bench.started.wait(), 5)
    call.cancel()
    await asyncio.wait_for(gateway.bench.cancelled.wait(), 5)
    assert (await client.call_tool("edge__bench__echo", {"text": "alive"})).content
