"""From a printed name to the subserver that owns the tool, and the answer back."""

import asyncio
import copy
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from mcpax import capability as capability_module
from mcpax.capability import Capability, LatencyClass
from mcpax.core import router as router_module
from mcpax.core.catalog import Catalog
from mcpax.core.registration import Budget
from mcpax.core.registry import Session
from mcpax.core.router import Router
from mcpax.core.subserver import Json
from mcpax.errors import ErrorKind, Fault, Outcome
from mcpax.name_codec import NameStyle, render
from tests.core.rig import Board, Clock, refused, session, tool

WAY = ["edge", "env", "read"]


class Rig:
    """Boards `env` and `zoo` below aggregator `edge`."""

    def __init__(self, *sessions_: Session) -> None:
        self.clock = Clock()
        self.sessions = {
            each.segment: each for each in sessions_ or (session("env", tool("read"), tool("write")), session("zoo", tool("read")))
        }
        self.catalog = Catalog("edge", lambda: None)
        for each in self.sessions.values():
            self.catalog.added(each)
        self.router = Router("edge", self.catalog, self.clock)

    def board(self, segment: str = "env") -> Board:
        board = self.sessions[segment].subserver
        assert isinstance(board, Board)
        return board

    async def call(self, name: str = "edge.env.read", arguments: Json | None = None, **meta: Any) -> Json:
        return await self.router.call(name, arguments or {}, {key.replace("_", "-"): value for key, value in meta.items()} or None)


# --- finding the owner


@pytest.mark.req("AX-5.2-1")
@pytest.mark.parametrize("style", NameStyle)
@pytest.mark.parametrize("name", [("edge", "env", "read"), ("edge", "env", "write"), ("edge", "zoo", "read")])
async def test_a_call_goes_to_the_owner_alone_and_its_answer_comes_back(name: tuple[str, ...], style: NameStyle) -> None:
    rig = Rig()
    rig.board(name[1]).result = {"content": [{"type": "text", "text": "/".join(name)}]}
    arguments = {"n": [1, {"deep": None}]}
    result = await rig.call(render(name, style), arguments)
    assert result["content"] == [{"type": "text", "text": "/".join(name)}]
    [call] = rig.board(name[1]).calls
    assert (call.path, call.arguments) == ((name[-1],), arguments)
    assert sum(len(rig.board(segment).calls) for segment in rig.sessions) == 1
    assert rig.sessions[name[1]].calls == 1


@pytest.mark.req("AX-5.2-1")
async def test_below_a_child_aggregator_the_rest_of_the_name_is_handed_down() -> None:
    rig = Rig(session("site", tool("plc", "stop")))
    await rig.call("edge.site.plc.stop")
    assert rig.board("site").calls[0].path == ("plc", "stop")


@pytest.mark.req("AX-5.2-2")
@pytest.mark.parametrize(
    "name", ["", "read", "edge", "edge.env", "edge.env.read.more", "EDGE.env.read", "edge.env.reed", "\udc80", "x" * 5000]
)
async def test_an_unknown_tool_is_method_not_found(name: str) -> None:
    with refused(ErrorKind.TOOL_NOT_FOUND) as caught:
        await Rig().call(name)
    assert caught.value.code == -32601
    assert caught.value.outcome is Outcome.NOT_EXECUTED
    assert len(caught.value.message) < 400


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("edge.env.reed", "edge.env.read"),
        ("edge__env__reed", "edge__env__read"),
        ("edge.env:wirte", "edge.env:write"),
        ("?", "tools/list names"),
    ],
)
async def test_a_misspelt_name_meets_its_nearest_in_the_same_style(name: str, hint: str) -> None:
    with refused(ErrorKind.TOOL_NOT_FOUND) as caught:
        await Rig().call(name)
    assert hint in caught.value.hint


# --- results


@pytest.mark.req("AX-7.2-2")
@pytest.mark.parametrize(
    "result",
    [
        {},
        {"content": [], "isError": True},
        {"content": [{"type": "text", "text": "é"}], "structuredContent": {"a": [1, 2.5, None]}, "isError": False, "vendor": {"x": 1}},
        {"content": [], "_meta": {"vendor/key": 1, "x-mcpax-event-id": "e"}},
        {"content": [], "_meta": {"x-mcpax-latency-ms": 99999.0}},
    ],
)
async def test_a_result_is_passed_on_unmodified_but_for_the_latency(result: Json) -> None:
    rig = Rig()
    rig.board().result = result
    original = copy.deepcopy(result)
    answer = await rig.call()
    latency = answer["_meta"].pop("x-mcpax-latency-ms")
    assert 0 <= latency < 10_000
    meta = {key: value for key, value in original.pop("_meta", {}).items() if key != "x-mcpax-latency-ms"}
    assert answer.pop("_meta") == meta
    assert answer == original


async def test_a_subservers_own_fault_is_passed_on() -> None:
    rig = Rig()
    fault = Fault(ErrorKind.DEVICE_LIED, "It lied.", outcome=Outcome.EXECUTED)
    rig.board().failure = fault
    with refused(ErrorKind.DEVICE_LIED) as caught:
        await rig.call()
    assert caught.value is fault


# --- route and cursor


@pytest.mark.parametrize(
    ("meta", "way", "cursor"),
    [
        pytest.param({}, ("edge", "env", "read"), 1, id="a plain client states none: the way begins here"),
        pytest.param({"x_mcpax_route": WAY, "x_mcpax_cursor": 0}, ("edge", "env", "read"), 1, id="we are the root"),
        pytest.param(
            {"x_mcpax_route": ["infra", "eu", *WAY], "x_mcpax_cursor": 2}, ("infra", "eu", "edge", "env", "read"), 3, id="we are below"
        ),
        pytest.param({"x_mcpax_route": ["edge", *WAY], "x_mcpax_cursor": 1}, ("edge", "edge", "env", "read"), 2, id="a parent of our name"),
        pytest.param({"progressToken": 1, "x-mcpax-other": 2}, ("edge", "env", "read"), 1, id="other metadata"),
    ],
)
async def test_the_whole_route_is_forwarded_with_the_cursor_one_further(meta: Json, way: tuple[str, ...], cursor: int) -> None:
    rig = Rig()
    await rig.call(**meta)
    [call] = rig.board().calls
    assert (call.route, call.cursor) == (way, cursor)
    assert call.route[call.cursor] == "env"  # the subserver finds itself there


@pytest.mark.parametrize(
    "meta",
    [
        {"x_mcpax_route": WAY},
        {"x_mcpax_cursor": 0},
        {"x_mcpax_route": WAY, "x_mcpax_cursor": 1},
        {"x_mcpax_route": WAY, "x_mcpax_cursor": -3},
        {"x_mcpax_route": WAY, "x_mcpax_cursor": 3},
        {"x_mcpax_route": WAY, "x_mcpax_cursor": 0.0},
        {"x_mcpax_route": WAY, "x_mcpax_cursor": "0"},
        {"x_mcpax_route": WAY, "x_mcpax_cursor": False},
        {"x_mcpax_route": "edge.env.read", "x_mcpax_cursor": 0},
        {"x_mcpax_route": {"0": "edge"}, "x_mcpax_cursor": 0},
        {"x_mcpax_route": [], "x_mcpax_cursor": 0},
        {"x_mcpax_route": ["other", "env", "read"], "x_mcpax_cursor": 0},
        {"x_mcpax_route": ["edge", "zoo", "read"], "x_mcpax_cursor": 0},
        {"x_mcpax_route": ["edge", "env"], "x_mcpax_cursor": 0},
        {"x_mcpax_route": [*WAY, "more"], "x_mcpax_cursor": 0},
        {"x_mcpax_route": ["infra", *WAY], "x_mcpax_cursor": 0},
        {"x_mcpax_route": [7, *WAY], "x_mcpax_cursor": 1},
        {"x_mcpax_route": ["In fra", *WAY], "x_mcpax_cursor": 1},
        {"x_mcpax_route": [["x"], *WAY], "x_mcpax_cursor": 1},
    ],
)
async def test_a_wrong_route_or_cursor_is_refused_before_anything_is_sent(meta: Json) -> None:
    rig = Rig()
    with refused(ErrorKind.INVALID_PARAMS) as caught:
        await rig.call(**meta)
    assert caught.value.code == -32602
    assert caught.value.outcome is Outcome.NOT_EXECUTED
    assert "x-mcpax-" in caught.value.message
    assert rig.board().calls == []


@given(st.lists(st.sampled_from(["edge", "env", "read", "zoo"]), max_size=6), st.integers(-2, 7))
async def test_only_a_route_whose_cursor_stands_at_us_and_leads_to_the_tool_is_taken(route: list[str], cursor: int) -> None:
    rig = Rig()
    right = 0 <= cursor < len(route) and route[cursor:] == WAY
    if right:
        await rig.call(x_mcpax_route=route, x_mcpax_cursor=cursor)
        assert rig.board().calls[0].cursor == cursor + 1
    else:
        with refused(ErrorKind.INVALID_PARAMS):
            await rig.call(x_mcpax_route=route, x_mcpax_cursor=cursor)


# --- presence, quarantine, budget


@pytest.mark.req("AX-13.2-1")
async def test_a_degraded_tool_answers_with_the_drafts_error_and_is_not_called() -> None:
    rig = Rig()
    env = rig.sessions["env"]
    env.degraded_at, env.degraded_reason = 1.0, "unplugged"
    env.degraded_since = datetime(2026, 5, 1, 12, 5, 0, 999_999, tzinfo=UTC)
    rig.catalog.changed(env)
    with refused(ErrorKind.TOOL_DEGRADED) as caught:
        await rig.call()
    fault = caught.value
    the_drafts = {"reason": "subserver_unreachable", "since": "2026-05-01T12:05:00Z", "retry_after_ms": 5000}
    assert (fault.code, fault.message) == (-32002, "tool_degraded")
    assert fault.data().items() >= the_drafts.items()
    assert fault.outcome is Outcome.NOT_EXECUTED
    assert "unplugged" in fault.hint
    assert rig.board().calls == []
    await rig.call("edge.zoo.read")


async def test_a_quarantined_tool_is_not_called() -> None:
    rig = Rig(session("env", tool("read", quarantined="no entry.")))
    with refused(ErrorKind.TOOL_DISABLED) as caught:
        await rig.call()
    assert "no entry." in caught.value.message
    assert caught.value.outcome is Outcome.NOT_EXECUTED
    assert rig.board().calls == []


async def test_a_budget_is_each_sessions_own_and_refused_calls_do_not_reach_the_board() -> None:
    budget = Budget(max_calls_per_minute=1)
    rig = Rig(session("env", tool("read"), budget=budget), session("zoo", tool("read"), budget=budget))
    await rig.call()
    with refused(ErrorKind.BUDGET_EXCEEDED):
        await rig.call()
    assert (len(rig.board().calls), rig.sessions["env"].calls) == (1, 1)
    await rig.call("edge.zoo.read")
    rig.clock.at += 60
    await rig.call()


# --- time-outs


@pytest.mark.req("AX-7.3-1")
@pytest.mark.parametrize(("name", "seconds"), [("realtime", 0.5), ("fast", 5), ("standard", 30), ("slow", 120), ("batch", None)])
async def test_the_deadline_follows_from_the_latency_class(name: str, seconds: float | None) -> None:
    rig = Rig(session("env", tool("read", capability=Capability.parse({"latency_class": name}))))
    await rig.call()
    assert rig.board().calls[0].deadline == (None if seconds is None else rig.clock.at + seconds)


@pytest.mark.req("AX-7.3-1")
async def test_a_subserver_that_does_not_keep_its_deadline_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(capability_module._TIMEOUT_S, LatencyClass.REALTIME, 0.002)
    monkeypatch.setattr(router_module, "BACKSTOP_S", 0.001)
    rig = Rig(session("env", tool("read", capability=Capability.parse({"latency_class": "realtime"}))))
    rig.board().gate.clear()
    with refused(ErrorKind.DEVICE_TIMEOUT) as caught:
        await asyncio.wait_for(rig.call(), 5)
    assert caught.value.outcome is Outcome.UNKNOWN
    assert "edge.env.read did not answer within 0.002 s (realtime)" in caught.value.message


@pytest.mark.req("AX-7.3-1")
async def test_a_batch_call_is_the_callers_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router_module, "BACKSTOP_S", 0.0)
    rig = Rig(session("env", tool("read", capability=Capability.parse({"latency_class": "batch"}))))
    board = rig.board()
    board.gate.clear()
    calling = asyncio.create_task(rig.call())
    await board.entered.wait()
    assert not calling.done()
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling


# --- what can be followed afterwards


async def test_every_dispatch_is_logged_with_its_fence_where_somebody_listens() -> None:
    with capture_logs() as logs:
        rig = Rig()
        rig.sessions["env"].fence = 7
        await rig.call()
    assert [each for each in logs if each["event"] == "dispatched"] == [
        {"event": "dispatched", "log_level": "debug", "subserver": rig.sessions["env"].request.subserver_id, "fence": 7, "owned": True}
    ]
