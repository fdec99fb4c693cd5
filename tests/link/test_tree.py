"""Trees of aggregators: what is registered below is listed and called above, through every hop."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from mcp.shared.exceptions import MCPError
from msgspec import Raw

from mcpax.capability import Availability, Capability, LatencyClass
from mcpax.core.registration import Budget
from mcpax.core.subserver import Call, Json
from mcpax.errors import ErrorKind, Fault
from mcpax.link.remote import HOP_COST_S
from tests.core.rig import READ_ONLY, Board, refused, tool
from tests.link.clients import ERAS, client_of, listed
from tests.link.nodes import CLIENT_TOKEN, PATIENCE_S, Node, chain, eventually, node
from tests.link.raw import RawChild, RawText, raw_child, raw_tool
from tests.link.raw_parent import RawParent, raw_parent
from tests.link.relay import Relay, relayed


@dataclass
class Three:
    """root, mid and leaf, with somebody who listens on both links."""

    root: Node
    mid: Node
    leaf: Node
    upper: Relay
    lower: Relay

    @property
    def relays(self) -> tuple[Relay, Relay]:
        return self.upper, self.lower


@contextlib.asynccontextmanager
async def three(**leaf: Any) -> AsyncIterator[Three]:
    async with (
        node("root") as top,
        relayed(top) as upper,
        node("mid") as mid,
        relayed(mid) as lower,
        node("leaf", **leaf) as bottom,
    ):
        mid.join(upper.url)
        bottom.join(lower.url)
        yield Three(top, mid, bottom, upper, lower)


async def reaches(top: Node, *names: str) -> None:
    await eventually(lambda: set(names) <= set(top.names()))


async def failure_of(call: Awaitable[Any]) -> Fault:
    with pytest.raises(Fault) as caught:
        await call
    return caught.value


# --- depth


@pytest.mark.req("AX-1.1-b", "AX-5.3-1")
async def test_a_call_passes_ten_levels_and_its_answer_comes_back() -> None:
    segments = [f"n{level}" for level in range(10)]
    async with chain(*segments) as nodes:
        board = Board(tool("read"))
        board.result = {"content": [{"type": "text", "text": "hello"}], "structuredContent": {"n": 1.50}}
        await nodes[-1].add("env", board)
        name = ".".join([*segments, "env", "read"])
        await reaches(nodes[0], name)
        result = await nodes[0].aggregator.call_tool(name, {"a": [1, None]})
        assert result["content"]
        assert board.calls[0].arguments == {"a": [1, None]}
        assert board.calls[0].route == (*segments, "env", "read")
        assert board.calls[0].cursor == 10
        for era in ERAS:
            async with client_of(nodes[0], era) as client:
                printed = "__".join([*segments, "env", "read"])
                found = (await listed(client))[printed]
                assert found.meta is not None
                assert found.meta["x-mcpax-hops"] == 10
                assert found.meta["x-mcpax-capability"] == READ_ONLY.to_json()
                told = await client.call_tool(printed, {"era": era})
                assert told.structured_content == {"n": 1.5}
                assert board.calls[-1].arguments == {"era": era}


# --- results (§7.2)

WEIRD = (
    '{"content":[{"type":"text","text":"\\u00e9\\/\\ud83d\\ude00 \\u0000"}],'
    '"structuredContent":{"z":1.50,"a":1e5,"big":123456789012345678901234567890,"neg":-0.0,"b":{"k":1,"k":2},"e":"\\t\\u2028"},'
    '"x-vendor":[1.0, 2 ,  {"Z":null,"A":true}],'
    '"huge":1e400,'
    '"isError":false}'
)
MEMBERS = {
    "content": '[{"type":"text","text":"\\u00e9\\/\\ud83d\\ude00 \\u0000"}]',
    "structuredContent": '{"z":1.50,"a":1e5,"big":123456789012345678901234567890,"neg":-0.0,"b":{"k":1,"k":2},"e":"\\t\\u2028"}',
    "x-vendor": '[1.0, 2 ,  {"Z":null,"A":true}]',
    "huge": "1e400",
    "isError": "false",
}


@contextlib.asynccontextmanager
async def over_a_raw_leaf(result: str) -> AsyncIterator[tuple[Node, RawChild]]:
    """Three hops above a child that answers with exactly this."""
    async with chain("root", "mid", "low") as (root, _, low), raw_child(low) as child:
        child.on["tools/call"] = lambda _: RawText(result)
        await child.register(segment="raw")
        await reaches(root, "root.mid.low.raw.read")
        yield root, child


@pytest.mark.req("AX-7.2-2")
async def test_every_member_of_a_result_passes_three_hops_byte_for_byte() -> None:
    async with over_a_raw_leaf(WEIRD) as (root, _):
        result = await root.aggregator.call_tool("root.mid.low.raw.read", {})
        assert {key: bytes(raw).decode() for key, raw in result.items() if isinstance(raw, Raw)} == MEMBERS
        assert result.keys() - MEMBERS.keys() == {"_meta"}
        assert result["_meta"].keys() == {"x-mcpax-latency-ms"}
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {
                "name": "root.mid.low.raw.read",
                "arguments": {},
                "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}},
            },
        }
        headers = {
            "Authorization": f"Bearer {CLIENT_TOKEN}",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": "root.mid.low.raw.read",
        }
        async with httpx.AsyncClient(timeout=PATIENCE_S) as http:
            answer = await http.post(f"{root.url}/mcp", json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        for key, raw in MEMBERS.items():
            assert f'"{key}":{raw}' in answer.text


STANDARD: dict[str, Any] = {"x-mcpax-capability": {"latency_class": "standard"}}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "result",
    [
        '{"content":[],"_meta":7}',
        '{"content":[],"_meta":{"n":1e400}}',
        '{"content":[],"structuredContent":{"n":1e400}}',
    ],
    ids=lambda text: text[:48],
)
async def test_a_result_that_a_client_could_not_read_is_said_to_have_run(era: str, result: str) -> None:
    async with node("root") as root, raw_child(root) as child, client_of(root, era) as client:
        child.on["tools/call"] = lambda _: RawText(result)
        child.tools = [raw_tool("read", **STANDARD)]  # not the lean way
        await child.register()
        told = await client.call_tool("root__raw__read", {})
        assert told.is_error
        assert told.meta is not None
        assert told.meta["x-mcpax-error"]["outcome"] == "executed"
        assert told.meta["x-mcpax-error"]["error"] == "child_lied"
        child.on["tools/call"] = lambda _: {"content": []}
        assert not (await client.call_tool("root__raw__read", {})).is_error


async def test_arguments_arrive_as_they_were_given() -> None:
    arguments = {"n": 10**30, "f": 0.1, "s": "\u2028é\x00", "l": [None, True, {}], "neg": -(2**64), "e": 1e300}
    async with chain("root", "mid", "leaf") as (root, _, leaf):
        board = Board(tool("read"))
        await leaf.add("env", board)
        await reaches(root, "root.mid.leaf.env.read")
        await root.aggregator.call_tool("root.mid.leaf.env.read", arguments)
        assert board.calls[0].arguments == arguments


# --- route and cursor (§7.2), time (§7.3)


@pytest.mark.req("AX-7.2-1")
async def test_each_hop_passes_the_whole_route_and_moves_the_cursor_by_one_and_the_deadline_shrinks() -> None:
    async with three() as tree:
        board = Board(tool("read"))
        await tree.leaf.add("env", board)
        await reaches(tree.root, "root.mid.leaf.env.read")
        await tree.root.aggregator.call_tool("root.mid.leaf.env.read", {})
        calls = [relay.requests("tools/call") for relay in tree.relays]
        assert [len(call) for call in calls] == [1, 1]
        params = [call[0]["params"] for call in calls]
        assert [each["name"] for each in params] == ["leaf.env.read", "env.read"]
        route = ["root", "mid", "leaf", "env", "read"]
        assert [each["_meta"]["x-mcpax-route"] for each in params] == [route, route]
        assert [each["_meta"]["x-mcpax-cursor"] for each in params] == [1, 2]
        assert (board.calls[0].route, board.calls[0].cursor) == (tuple(route), 3)
        deadlines = [each["_meta"]["x-mcpax-deadline-ms"] for each in params]
        assert board.calls[0].deadline is not None
        left_ms = (board.calls[0].deadline - asyncio.get_running_loop().time()) * 1000
        hop_ms = HOP_COST_S * 1000
        assert 5000 - hop_ms >= deadlines[0] >= deadlines[1] + hop_ms
        assert deadlines[1] >= left_ms > 3000


@contextlib.asynccontextmanager
async def under_a_raw_parent() -> AsyncIterator[tuple[RawParent, Board]]:
    async with raw_parent() as parent, node("leaf") as leaf:
        board = Board(tool("read"))
        await leaf.add("env", board)
        leaf.join(parent.url, segment="known")
        await asyncio.wait_for(parent.registered.wait(), PATIENCE_S)
        yield parent, board


GOOD = {"x-mcpax-route": ["root", "known", "env", "read"], "x-mcpax-cursor": 1}


@pytest.mark.req("AX-7.2-1")
async def test_a_wrong_cursor_or_route_is_refused_and_nothing_runs() -> None:
    async with under_a_raw_parent() as (parent, board):
        ways: list[dict[str, Any]] = [
            {"x-mcpax-cursor": 0},
            {"x-mcpax-cursor": 2},
            {"x-mcpax-cursor": -3},
            {"x-mcpax-cursor": 99},
            {"x-mcpax-cursor": True},
            {"x-mcpax-cursor": 1.0},
            {"x-mcpax-cursor": None},
            {"x-mcpax-cursor": "1"},
            {"x-mcpax-route": None},
            {"x-mcpax-route": []},
            {"x-mcpax-route": "known"},
            {"x-mcpax-route": ["root", "leaf", "env", "read"]},
            {"x-mcpax-route": ["root", "known", "env", "write"]},
            {"x-mcpax-route": ["root", "known", "read"]},
            {"x-mcpax-route": ["Root", "known", "env", "read"]},
            {"x-mcpax-route": [7, "known", "env", "read"]},
            {"x-mcpax-route": None, "x-mcpax-cursor": None},
        ]
        for wrong in ways:
            answer = await parent.call("env.read", **{**GOOD, **wrong})
            assert answer["error"]["code"] == -32602, wrong
        assert (await parent.call("env.write", **GOOD))["error"]["code"] == -32601
        assert not board.calls
        assert "result" in await parent.call("env.read", **GOOD)
        assert board.calls[0].cursor == 2


async def test_a_call_whose_time_is_over_is_not_begun_and_a_time_that_is_none_is_refused() -> None:
    async with under_a_raw_parent() as (parent, board):
        wrong: list[Any] = [1.5, "soon", [], 10**400]
        for deadline in wrong:
            answer = await parent.call("env.read", **GOOD, **{"x-mcpax-deadline-ms": deadline})
            assert answer["error"]["code"] == -32602, deadline
        for deadline in (0, -5, -(10**18)):
            answer = await parent.call("env.read", **GOOD, **{"x-mcpax-deadline-ms": deadline})
            assert answer["result"]["_meta"]["x-mcpax-error"]["outcome"] == "not_executed", deadline
        assert not board.calls
        assert "result" in await parent.call("env.read", **GOOD, **{"x-mcpax-deadline-ms": 10**15})
        assert len(board.calls) == 1


async def test_a_client_that_states_a_wrong_way_is_refused_at_the_root() -> None:
    async with chain("root", "mid") as (root, mid):
        board = Board(tool("read"))
        await mid.add("env", board)
        await reaches(root, "root.mid.env.read")
        for meta in (
            {"x-mcpax-route": ["root", "mid", "env", "read"], "x-mcpax-cursor": 1},
            {"x-mcpax-route": ["root", "env", "read"], "x-mcpax-cursor": 0},
        ):
            with refused(ErrorKind.INVALID_PARAMS):
                await root.aggregator.call_tool("root.mid.env.read", {}, meta)
        assert not board.calls


# --- annotations (§9.2)

ANNOTATED = Capability.parse(
    {
        "latency_class": "slow",
        "consistency": "eventual",
        "mutable": True,
        "reversible": True,
        "idempotent": True,
        "transport": "ble_cbor",
        "auth_scope": "admin",
        "cost_class": "metered",
        "availability": "scheduled",
        "schema_version": "1.2.3-rc.1+7",
    }
)


@pytest.mark.req("AX-9.2-1")
async def test_annotations_travel_up_unmodified_and_hops_are_counted() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 10**20}}, "x-order": ["b", "a"]}
    async with chain("root", "mid", "leaf") as nodes:
        made = tool("set", capability=ANNOTATED, title="Set it", output_schema=schema, quarantined="")
        await nodes[2].add("env", Board(made, tool("odd", quarantined="not in the map")))
        await reaches(nodes[0], "root.mid.leaf.env.set", "root.mid.leaf.env.odd")
        for hops, each in enumerate(reversed(nodes), 1):
            found = {route.tool.path[-1]: route for route in each.aggregator.catalog.routes()}
            assert found["set"].capability == ANNOTATED
            assert found["set"].hops == hops
            assert found["set"].tool.title == "Set it"
            assert found["set"].tool.output_schema == schema
            assert found["set"].tool.description == made.description
            assert found["odd"].tool.quarantined == "not in the map"
        with refused(ErrorKind.TOOL_DISABLED):
            await nodes[0].aggregator.call_tool("root.mid.leaf.env.odd", {})


@pytest.mark.req("AX-9.2-2")
async def test_the_latency_class_is_raised_by_a_slow_way_and_never_lowered() -> None:
    async with node("root") as root, relayed(root) as relay, node("leaf") as leaf:
        relay.delay_s = 0.13
        realtime = Capability(latency_class=LatencyClass.REALTIME, mutable=False)
        await leaf.add(
            "env", Board(tool("quick", capability=realtime), tool("slow", capability=Capability(latency_class=LatencyClass.SLOW)))
        )
        leaf.join(relay.url)

        def classes() -> dict[str, str]:
            return {route.tool.path[-1]: str(route.capability.latency_class) for route in root.aggregator.catalog.routes()}

        await eventually(lambda: classes() == {"quick": "fast", "slow": "slow"})
        relay.delay_s = 0.0
        pings = len(relay.requests("ping"))
        await eventually(lambda: len(relay.requests("ping")) >= pings + 5)
        assert classes() == {"quick": "fast", "slow": "slow"}
        assert {str(route.capability.latency_class) for route in leaf.aggregator.catalog.routes()} == {"realtime", "slow"}


# --- cancelling, progress


class Watched(Board):
    """Tells progress, then waits, and notes when it is cancelled."""

    def __init__(self) -> None:
        super().__init__(tool("read", capability=Capability(mutable=False)))
        self.cancelled = asyncio.Event()
        self.go = asyncio.Event()

    async def call(self, call: Call) -> Json:
        self.calls.append(call)
        if call.progress is not None:
            await call.progress(1, 2, "half")
        self.entered.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return self.result


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_gives_up_at_the_root_ends_the_call_at_the_leaf(era: str) -> None:
    async with chain("root", "mid", "leaf") as (root, _, leaf), client_of(root, era) as client:
        board = Watched()
        await leaf.add("env", board)
        await reaches(root, "root.mid.leaf.env.read")
        board.entered.clear()
        calling = asyncio.create_task(client.call_tool("root__mid__leaf__env__read", {}))
        await asyncio.wait_for(board.entered.wait(), PATIENCE_S)
        calling.cancel()
        await asyncio.wait_for(board.cancelled.wait(), PATIENCE_S)
        board.go.set()
        await client.call_tool("root__mid__leaf__env__read", {})


@pytest.mark.parametrize("era", ERAS)
async def test_progress_of_the_leaf_reaches_the_client_at_the_root(era: str) -> None:
    async with chain("root", "mid", "leaf") as (root, _, leaf), client_of(root, era) as client:
        board = Watched()
        await leaf.add("env", board)
        await reaches(root, "root.mid.leaf.env.read")
        heard: list[tuple[float, float | None, str | None]] = []

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            heard.append((progress, total, message))
            board.go.set()

        await client.call_tool("root__mid__leaf__env__read", {}, progress_callback=hear)
        assert heard == [(1, 2, "half")]


# --- errors


@pytest.mark.req("AX-13.2-1")
async def test_a_degraded_board_at_the_leaf_is_degraded_at_the_root_with_the_leafs_own_words() -> None:
    async with chain("root", "mid", "leaf") as (root, _, leaf):
        session_id = await leaf.add("env", Board(tool("read")))
        await reaches(root, "root.mid.leaf.env.read")

        def availability() -> list[str]:
            return [str(route.capability.availability) for route in root.aggregator.catalog.routes()]

        leaf.aggregator.degrade(session_id, "unplugged")
        await eventually(lambda: availability() == [Availability.DEGRADED])
        here = await failure_of(leaf.aggregator.call_tool("leaf.env.read", {}))
        there = await failure_of(root.aggregator.call_tool("root.mid.leaf.env.read", {}))
        assert (there.code, there.message) == (here.code, here.message) == (-32002, "tool_degraded")
        assert there.data()["reason"] == "subserver_unreachable"
        assert there.data()["retry_after_ms"]
        assert {**there.data(), "hint": ""} == {**here.data(), "hint": ""}
        for era in ERAS:
            async with client_of(root, era) as client:
                with pytest.raises(MCPError) as caught:
                    await client.call_tool("root__mid__leaf__env__read", {})
                assert caught.value.code == -32002
                assert caught.value.data == there.data()
        leaf.aggregator.heartbeat(session_id)
        await eventually(lambda: availability() == [Availability.ALWAYS])
        await root.aggregator.call_tool("root.mid.leaf.env.read", {})


@pytest.mark.req("AX-11.4-1")
async def test_a_budget_spent_at_the_leaf_is_told_at_the_root() -> None:
    async with three(budget=Budget(max_calls_per_minute=1)) as tree:
        await tree.leaf.add("env", Board(tool("read")))
        await reaches(tree.root, "root.mid.leaf.env.read")
        await tree.root.aggregator.call_tool("root.mid.leaf.env.read", {})
        fault = await failure_of(tree.root.aggregator.call_tool("root.mid.leaf.env.read", {}))
        assert fault.code == -32003
        assert fault.data()["limit"] == "max_calls_per_minute"
        assert fault.data()["retry_after_ms"] > 0
        below = [json.loads(text[1:]).get("error") for text in tree.lower.up]
        assert fault.data() in [error["data"] for error in below if error]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Fault(ErrorKind.DEVICE_ERROR, "The valve is stuck.", details={"status": 64}),
        lambda: Fault(ErrorKind.INVALID_TOOL_ARGS, "n must be at most 5."),
    ],
)
async def test_what_a_model_should_read_arrives_as_a_result_with_the_leafs_words(make: Callable[[], Fault]) -> None:
    async with chain("root", "mid", "leaf") as (root, _, leaf), client_of(root, "auto") as client:
        board = Board(tool("read"))
        await leaf.add("env", board)
        await reaches(root, "root.mid.leaf.env.read")
        board.failure = make()
        told = await client.call_tool("root__mid__leaf__env__read", {})
        assert told.is_error
        assert told.content[0].text == make().text()  # type: ignore[union-attr]
        assert told.meta is not None
        assert told.meta["x-mcpax-error"] == {"code": make().code, **make().data()}
