"""The short way answers as the SDK's way does, and leaves to it whatever is unusual."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from mcpax.capability import Capability, LatencyClass
from mcpax.core.catalog import PAGE_TOOLS
from mcpax.core.subserver import Call, Json, Tool
from mcpax.errors import ErrorKind, Fault, Outcome
from mcpax.front.http import build_app
from mcpax.front.lean import LeanPath
from tests.front.bench import EMPTY, NUMBER_RESULT, Bench, Gateway, build_gateway
from tests.front.conftest import PATIENCE_S, serving

QUICK = Capability(latency_class=LatencyClass.FAST)
META: Json = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}
HEADERS = {
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/call",
}
QUICK_TOOLS = ["quick", "refused", "broken", "gone", "buggy"]
ODD_SCHEMA: Json = {
    "type": "object",
    "title": "größer \u2028",
    "properties": {
        "a": {"type": ["string", "null"], "default": None, "enum": ["x", None], "description": ""},
        "b": {"type": "integer", "minimum": -(2**63), "maximum": 2**64, "const": 1e300, "x-vendor": [1.0, True, {}, []]},
    },
    "required": [],
    "additionalProperties": False,
    "$defs": {"name": {"properties": {"_meta": {"default": {"x": None}}}}},
}
"""Whatever a schema holds, both ways must leave it as it is."""


class QuickBench(Bench):
    """The same bench with tools of the class that the short way takes."""

    def __init__(self) -> None:
        super().__init__()
        self.tools += [Tool((name,), "Quick.", EMPTY, QUICK, output_schema=NUMBER_RESULT) for name in QUICK_TOOLS]
        self.tools += [Tool(("odd",), "", ODD_SCHEMA, Capability(), title="größer", output_schema=ODD_SCHEMA, quarantined="odd")]
        self.tools += [Tool((f"many-{number}",), "One of many.", EMPTY, QUICK) for number in range(PAGE_TOOLS)]

    async def call(self, call: Call) -> Json:
        match call.path[0]:
            case "quick":
                return {"content": [{"type": "text", "text": "größer \u2028"}], "structuredContent": {"n": 1}, "isError": False}
            case "refused":
                raise Fault(ErrorKind.INVALID_TOOL_ARGS, "No.", outcome=Outcome.NOT_EXECUTED, details={"problems": [{"field": "x"}]})
            case "broken":
                raise Fault(ErrorKind.BUDGET_EXCEEDED, "budget_exceeded", outcome=Outcome.NOT_EXECUTED, retry_after_ms=7)
            case "gone":
                raise Fault(ErrorKind.TOOL_NOT_FOUND, "Gone meanwhile.")
            case "buggy":
                raise RuntimeError("secret detail")
        return await super().call(call)


async def quick_gateway() -> Gateway:
    gateway = await build_gateway()
    bench = QuickBench()
    session = gateway.aggregator.registry.get(gateway.session_id)
    assert session is not None
    answer = await gateway.aggregator.register(session.request, bench)
    return Gateway(gateway.aggregator, bench, answer.session_id)


@pytest.fixture
async def both() -> AsyncIterator[tuple[httpx.AsyncClient, httpx.AsyncClient]]:
    """Clients of two equal gateways: one with the short way, one without."""
    lean, plain = await quick_gateway(), await quick_gateway()
    async with (
        serving(build_app(lean.aggregator, lean=True)) as lean_url,
        serving(build_app(plain.aggregator, lean=False)) as plain_url,
        httpx.AsyncClient(base_url=lean_url, timeout=PATIENCE_S) as first,
        httpx.AsyncClient(base_url=plain_url, timeout=PATIENCE_S) as second,
    ):
        yield first, second


def body(name: str = "edge__bench__quick", **changes: Any) -> Json:
    params = {"name": name, "arguments": {}, "_meta": META, **changes.pop("params", {})}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params, **changes}


def without(key: str) -> Json:
    request = body()
    (request["params"] if key in request["params"] else request).pop(key)
    return request


CASES: dict[str, tuple[Json | bytes, dict[str, str]]] = {
    "plain": (body(), {}),
    "dotted": (body("edge.bench.quick"), {"Mcp-Name": "edge.bench.quick"}),
    "colon": (body("edge.bench:quick"), {"Mcp-Name": "edge.bench:quick"}),
    "text id": (body(id="a-1"), {}),
    "no arguments": (without("arguments"), {}),
    "null arguments": (body(params={"arguments": None}), {}),
    "arguments of the wrong kind": (body(params={"arguments": [1]}), {}),
    "error in result": (body("edge__bench__refused"), {"Mcp-Name": "edge__bench__refused"}),
    "error with code": (body("edge__bench__broken"), {"Mcp-Name": "edge__bench__broken"}),
    "not found below": (body("edge__bench__gone"), {"Mcp-Name": "edge__bench__gone"}),
    "bug": (body("edge__bench__buggy"), {"Mcp-Name": "edge__bench__buggy"}),
    "unknown tool": (body("edge__bench__nope"), {"Mcp-Name": "edge__bench__nope"}),
    "slower class": (body("edge__bench__count"), {"Mcp-Name": "edge__bench__count"}),
    "header names another tool": (body(), {"Mcp-Name": "edge__bench__count"}),
    "header names another method": (body(), {"Mcp-Method": "tools/list"}),
    "other revision in body": (body(params={"_meta": {**META, "io.modelcontextprotocol/protocolVersion": "2025-11-25"}}), {}),
    "unknown revision": (body(), {"MCP-Protocol-Version": "2099-01-01"}),
    "no meta": (without("_meta"), {}),
    "meta without capabilities": (body(params={"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}), {}),
    "no id": (without("id"), {}),
    "null id": (body(id=None), {}),
    "true as id": (body(id=True), {}),
    "wrong jsonrpc": (body(jsonrpc="1.0"), {}),
    "extra key": (body(extra=1), {}),
    "extra parameter": (body(params={"requestState": "x"}), {}),
    "wrong route": (body(params={"_meta": {**META, "x-mcpax-route": ["x"], "x-mcpax-cursor": 0}}), {}),
    "name of the wrong kind": (body(params={"name": 5}), {}),
    "batch": (b"[" + json.dumps(body()).encode() + b"]", {}),
    "not JSON": (b"{", {}),
    "NaN": (json.dumps(body()).replace('"arguments": {}', '"arguments": {"x": NaN}').encode(), {}),
    "huge integer": (json.dumps(body(params={"arguments": {"x": 10**30}})).encode(), {}),
    "key given twice": (json.dumps(body()).replace('"id": 1', '"id": 1, "id": 2').encode(), {}),
    "accepts JSON only": (body(), {"Accept": "application/json"}),
    "accepts anything": (body(), {"Accept": "*/*"}),
    "other content type": (body(), {"Content-Type": "text/plain"}),
    "parameter header": (body(), {"Mcp-Param-X": "1"}),
}


def comparable(response: httpx.Response) -> tuple[int, str, Any]:
    """Everything but the time it took."""
    if not response.content:
        return response.status_code, "", None
    kind = response.headers.get("content-type", "").partition(";")[0]
    if kind != "application/json":
        return response.status_code, kind, response.text
    answer = response.json()
    meta = answer.get("result", {}).get("_meta", {}) if isinstance(answer, dict) else {}
    if "x-mcpax-latency-ms" in meta:
        meta["x-mcpax-latency-ms"] = "measured"
    return response.status_code, kind, answer


async def test_both_ways_give_the_same_answer(both: tuple[httpx.AsyncClient, httpx.AsyncClient]) -> None:
    different = {}
    for case, (sent, changes) in CASES.items():
        content = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
        headers = {**HEADERS, "Mcp-Name": "edge__bench__quick", **changes}
        short, long = [comparable(await client.post("/mcp", content=content, headers=headers)) for client in both]
        if short != long:
            different[case] = (short, long)
    assert not different


def listing(**changes: Any) -> Json:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META, **changes.pop("params", {})}, **changes}


LIST_CASES: dict[str, tuple[Json, dict[str, str]]] = {
    "plain": (listing(), {}),
    "text id": (listing(id="a-1"), {}),
    "null cursor": (listing(params={"cursor": None}), {}),
    "cursor of nobody": (listing(params={"cursor": "zzz"}), {}),
    "cursor not in ASCII": (listing(params={"cursor": "größer"}), {}),
    "empty cursor": (listing(params={"cursor": ""}), {}),
    "cursor of the wrong kind": (listing(params={"cursor": 5}), {}),
    "unknown parameter": (listing(params={"name": "x"}), {}),
    "progress wanted": (listing(params={"_meta": {**META, "progressToken": 1}}), {}),
    "no meta": ({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}, {}),
    "no parameters": ({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, {}),
    "parameters of the wrong kind": ({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": []}, {}),
    "other revision in body": (listing(params={"_meta": {**META, "io.modelcontextprotocol/protocolVersion": "2025-11-25"}}), {}),
    "header names another method": (listing(), {"Mcp-Method": "tools/call"}),
    "header names a tool": (listing(), {"Mcp-Name": "edge__bench__quick"}),
    "parameter header": (listing(), {"Mcp-Param-X": "1"}),
    "null id": (listing(id=None), {}),
    "accepts JSON only": (listing(), {"Accept": "application/json"}),
}


async def test_both_ways_give_the_same_list(both: tuple[httpx.AsyncClient, httpx.AsyncClient]) -> None:
    different = {}
    for case, (sent, changes) in LIST_CASES.items():
        headers = {**HEADERS, "Mcp-Method": "tools/list", **changes}
        short, long = [comparable(await client.post("/mcp", json=sent, headers=headers)) for client in both]
        if short != long:
            different[case] = (short, long)
    assert not different


@pytest.mark.parametrize("path", ["/mcp", "/mcp/flat", "/mcp/dotted", "/mcp/colon"])
async def test_both_ways_turn_the_same_pages(both: tuple[httpx.AsyncClient, httpx.AsyncClient], path: str) -> None:
    walks = []
    for client in both:
        pages: list[Any] = []
        request = listing()
        while not pages or "nextCursor" in pages[-1]["result"]:
            if pages:
                request = listing(params={"cursor": pages[-1]["result"]["nextCursor"]})
            answer = await client.post(path, json=request, headers={**HEADERS, "Mcp-Method": "tools/list"})
            pages.append(answer.json())
        walks.append(pages)
    assert walks[0] == walks[1]
    assert [len(page["result"]["tools"]) for page in walks[0]] == [PAGE_TOOLS, 12]
    odd = next(tool for page in walks[0] for tool in page["result"]["tools"] if tool.get("title") == "größer")
    assert odd["inputSchema"] == odd["outputSchema"] == ODD_SCHEMA


async def run_lean(gateway: Gateway, request: Json, receive: Receive) -> tuple[list[Message], bool]:
    """Through `LeanPath` alone; tells whether it passed the request on."""
    passed_on = False
    sent: list[Message] = []

    async def beyond(_scope: Scope, _receive: Receive, _send: Send) -> None:
        nonlocal passed_on
        passed_on = True

    async def send(message: Message) -> None:
        sent.append(message)

    length = str(len(json.dumps(request).encode()))
    headers = {**HEADERS, "Mcp-Method": request["method"], "Content-Length": length}
    if "name" in request["params"]:
        headers["Mcp-Name"] = request["params"]["name"]
    scope: Scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
    }
    await LeanPath(beyond, gateway.aggregator, None, 1 << 20)(scope, receive, send)
    return sent, passed_on


def receiving(request: Json, then: asyncio.Event) -> Receive:
    waiting: list[Message] = [{"type": "http.request", "body": json.dumps(request).encode(), "more_body": False}]

    async def receive() -> Message:
        if waiting:
            return waiting.pop()
        await then.wait()
        return {"type": "http.disconnect"}

    return receive


async def test_a_plain_call_takes_the_short_way() -> None:
    request = body()
    sent, passed_on = await run_lean(await quick_gateway(), request, receiving(request, asyncio.Event()))
    assert not passed_on
    assert json.loads(sent[1]["body"])["result"]["structuredContent"] == {"n": 1}


@pytest.mark.parametrize("cursor", [{}, {"cursor": None}])
async def test_a_plain_list_takes_the_short_way(cursor: Json) -> None:
    request = listing(params=cursor)
    sent, passed_on = await run_lean(await quick_gateway(), request, receiving(request, asyncio.Event()))
    assert not passed_on
    assert len(json.loads(sent[1]["body"])["result"]["tools"]) == PAGE_TOOLS


@pytest.mark.parametrize(
    "request_body",
    [
        body("edge__bench__count"),
        body(params={"_meta": {**META, "progressToken": 1}}),
        body("edge__bench__nope"),
        listing(params={"_meta": {**META, "progressToken": 1}}),
        listing(params={"cursor": 5}),
        listing(params={"x": 5}),
    ],
    ids=["slow class", "progress wanted", "unknown", "list with progress", "list with wrong cursor", "list with more"],
)
async def test_the_unusual_goes_the_sdks_way(request_body: Json) -> None:
    _, passed_on = await run_lean(await quick_gateway(), request_body, receiving(request_body, asyncio.Event()))
    assert passed_on


async def test_hanging_up_within_the_body_is_no_request_at_all() -> None:
    request = body()
    waiting: list[Message] = [{"type": "http.disconnect"}, {"type": "http.request", "body": b"{", "more_body": True}]

    async def receive() -> Message:
        return waiting.pop()

    assert await run_lean(await quick_gateway(), request, receive) == ([], False)


async def test_hanging_up_cancels_the_call() -> None:
    gateway = await quick_gateway()
    slow = next(tool for tool in gateway.bench.tools if tool.path == ("slow",))
    gateway.bench.tools[gateway.bench.tools.index(slow)] = Tool(slow.path, slow.description, slow.input_schema, QUICK)
    await gateway.aggregator.registry.relist(gateway.session_id)
    hang_up = asyncio.Event()
    request = body("edge__bench__slow")
    exchange = asyncio.create_task(run_lean(gateway, request, receiving(request, hang_up)))
    await asyncio.wait_for(gateway.bench.started.wait(), PATIENCE_S)
    hang_up.set()
    await asyncio.wait_for(gateway.bench.cancelled.wait(), PATIENCE_S)
    sent, passed_on = await asyncio.wait_for(exchange, PATIENCE_S)
    assert (sent, passed_on) == ([], False)
