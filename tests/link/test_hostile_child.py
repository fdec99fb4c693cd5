"""A child that means harm, or is merely broken: each thing it can do has a limit, an error that names it and a log line, and its
neighbours are served meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
import uuid
from collections.abc import AsyncIterator, Callable, MutableMapping
from functools import partial
from itertools import count
from typing import Any

import pytest
from structlog.testing import capture_logs

from mcpax.core import aggregator
from mcpax.core.admission import MAX_TOOLS_PER_AGGREGATOR, MAX_TOOLS_PER_SUBSERVER
from mcpax.core.notify import LIST_CHANGED
from mcpax.errors import ErrorKind, Outcome
from mcpax.front import http
from mcpax.link import parent, remote
from mcpax.link.messages import MAX_MESSAGE_BYTES
from mcpax.link.parent import MAX_REGISTRATIONS, RELIST_EVERY_S
from mcpax.link.tools import MAX_SCHEMA_BYTES
from mcpax.link.tree import tree
from tests.core.rig import refused
from tests.link import nodes
from tests.link.frames import nested
from tests.link.nodes import PATIENCE_S, Node, eventually, node
from tests.link.raw import SILENCE, Json, RawChild, RawText, raw_child, raw_tool, registration

Logs = list[MutableMapping[str, Any]]


class Scene:
    def __init__(self, root: Node, bad: RawChild, good: RawChild, logs: Logs) -> None:
        self.root = root
        self.bad = bad
        self.good = good
        self.logs = logs

    async def good_is_served(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            result = await self.root.aggregator.call_tool("root.good.read", {"n": 1})
        assert json.loads(bytes(result["content"]))[0]["text"] == '{"n": 1}'

    async def end(self) -> str:
        """Why the bad one's link ended, by the log."""
        await eventually(lambda: bool(self.of("link_ended")))
        return str(self.of("link_ended")[0]["reason"])

    def of(self, event: str) -> list[MutableMapping[str, Any]]:
        return [log for log in self.logs if log["event"] == event]

    async def call(self) -> Json:
        return await self.root.aggregator.call_tool("root.raw.read", {})


@contextlib.asynccontextmanager
async def scene() -> AsyncIterator[Scene]:
    with capture_logs() as logs:
        async with node("root") as root, raw_child(root) as good, raw_child(root) as bad:
            await good.register(segment="good")
            made = Scene(root, bad, good, logs)
            yield made
            await made.good_is_served()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Megabytes on a busy machine must not count as missed heartbeats."""
    monkeypatch.setattr(nodes, "HEARTBEAT_S", 5.0)


AGGREGATOR = {"x-mcpax-subtree-ids": [str(uuid.uuid4())]}


# --- lists


@pytest.mark.parametrize(("kind", "most"), [({}, MAX_TOOLS_PER_SUBSERVER), (AGGREGATOR, MAX_TOOLS_PER_AGGREGATOR)])
async def test_a_list_without_end_is_cut_off_at_the_most_that_is_allowed(kind: Json, most: int) -> None:
    async with scene() as at:
        numbers = count()
        pages = 0

        def page(_: Json) -> RawText:
            nonlocal pages
            pages += 1
            tools = ",".join(f'{{"name":"t{next(numbers)}","inputSchema":{{}}}}' for _ in range(2000))
            return RawText(f'{{"tools":[{tools}],"nextCursor":"{pages}"}}')

        at.bad.on["tools/list"] = page
        registering = asyncio.create_task(at.bad.refused(**kind))
        await at.good_is_served()
        error = await registering
        assert error["code"] == -32602
        assert str(most) in error["message"]
        assert pages <= most // 2000 + 1
        assert len(at.of("registration_refused")) == 1
        assert not [log for log in at.of("registered") if log["segment"] == "raw"]


async def test_a_list_too_long_in_bytes_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "MAX_LIST_BYTES", 1 << 20)
    async with scene() as at:
        numbers = count()
        at.bad.on["tools/list"] = lambda _: {
            "tools": [{**raw_tool(f"t{next(numbers)}"), "description": "x" * 16_000} for _ in range(20)],
            "nextCursor": str(uuid.uuid4()),
        }
        error = await at.bad.refused()
        assert f"{1 << 20} bytes" in error["message"]
        assert next(numbers) < 100


@pytest.mark.parametrize(
    "page",
    [
        lambda _: {"tools": [raw_tool()], "nextCursor": "again"},
        lambda params: {"tools": [raw_tool()], "nextCursor": "b" if params.get("cursor") == "a" else "a"},
        lambda _: {"tools": [], "nextCursor": str(uuid.uuid4())},
    ],
    ids=["the same", "in turns", "empty"],
)
async def test_pages_that_lead_in_a_circle_are_left(page: Callable[[Json], Json], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "most_tools", lambda _: 50)
    async with scene() as at:
        at.bad.on["tools/list"] = page
        assert await at.bad.refused()
        assert len(at.bad.asked) < 60
        assert at.of("registration_refused")


NO_LISTS: list[Any] = [
    None,
    [],
    {},
    {"tools": None},
    {"tools": {}},
    {"tools": [None]},
    {"tools": ["read"]},
    {"tools": [{}]},
    {"tools": [{"name": 7}]},
    {"tools": [{"name": "a" * 256}]},
    {"tools": [{"name": "read", "description": 7}]},
    {"tools": [{"name": "read", "description": "x" * 20_000}]},
    {"tools": [{"name": "read", "inputSchema": []}]},
    {"tools": [{"name": "read", "inputSchema": {"x": "y" * MAX_SCHEMA_BYTES}}]},
    {"tools": [{"name": "read", "outputSchema": {"x": [1e15] * 10_000}}]},
    {"tools": [{"name": "read", "_meta": 7}]},
    {"tools": [{"name": "read", "_meta": {"x-mcpax-hops": -1}}]},
    {"tools": [{"name": "read", "_meta": {"x-mcpax-hops": 65}}]},
    {"tools": [{"name": "read", "_meta": {"x-mcpax-hops": True}}]},
    {"tools": [{"name": "read", "_meta": {"x-mcpax-capability": 7}}]},
    {"tools": [{"name": "read", "_meta": {"x-mcpax-capability": {"latency_class": []}}}]},
    {"tools": [{"name": "read", "_meta": {"x-mcpax-capability": {"mutable": "no"}}}]},
    {"tools": [raw_tool(), raw_tool()]},
    {"tools": [], "nextCursor": 7},
]


def _said(listed: Any, _: Json) -> Any:
    return listed


async def test_a_list_that_is_none_is_refused_with_what_is_wrong() -> None:
    async with scene() as at:
        for number, listed in enumerate(NO_LISTS, 1):
            at.bad.on["tools/list"] = partial(_said, listed)
            error = await at.bad.refused()
            assert error["code"] in (-32602, ErrorKind.CHILD_LIED.value.code), listed
            assert len(error["message"]) < 1000
            assert len(at.of("registration_refused")) == number


async def test_a_child_that_never_lists_is_refused_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parent, "REGISTER_S", 0.2)
    async with scene() as at:
        for silent in ("tools/list", "mcpax/parent"):
            at.bad.on[silent] = lambda _: SILENCE
            error = await at.bad.refused()
            assert "0.2 s" in error["message"]
        assert len(at.of("registration_refused")) == 2
        assert [told["method"] for told in at.bad.told] == ["notifications/cancelled"] * 2


async def test_a_list_that_changes_all_the_time_is_asked_for_now_and_then() -> None:
    async with scene() as at:
        await at.bad.register()
        started = time.monotonic()
        for number in range(300):
            at.bad.tools = [raw_tool(f"t{number}")]
            await at.bad.tell(LIST_CHANGED.method)
            await at.bad.ask("mcpax/identity", {})  # time enough to list
        await at.good_is_served()
        await eventually(lambda: "root.raw.t299" in at.root.names())
        asked = [request for request in at.bad.asked if request["method"] == "tools/list"]
        assert len(asked) <= (time.monotonic() - started) / RELIST_EVERY_S + 3


async def test_a_list_that_was_not_told_in_time_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene() as at:
        await at.bad.register()
        monkeypatch.setattr(aggregator, "CHANGED_LIST_TIMEOUT_S", 0.05)
        answers = [SILENCE, SILENCE, {"tools": [raw_tool("late")]}]
        at.bad.on["tools/list"] = lambda _: answers.pop(0)
        await at.bad.tell(LIST_CHANGED.method)
        await eventually(lambda: "root.raw.late" in at.root.names())
        assert len(at.of("relist_failed")) == 2


# --- answers


async def test_a_call_that_is_never_answered_ends_in_time_and_the_child_is_told() -> None:
    async with scene() as at:
        at.bad.tools = [raw_tool("read", **{"x-mcpax-capability": {"latency_class": "realtime", "mutable": False}})]
        at.bad.on["tools/call"] = lambda _: SILENCE
        await at.bad.register()
        calling = asyncio.create_task(at.call())
        await at.good_is_served()
        with refused(ErrorKind.DEVICE_TIMEOUT) as caught:
            await calling
        assert caught.value.outcome is Outcome.UNKNOWN
        await eventually(lambda: "notifications/cancelled" in [told["method"] for told in at.bad.told])


@pytest.mark.parametrize("result", ["null", "7", '"text"', "[]", "true", "1e400", nested(900)], ids=lambda text: text[:10])
async def test_a_result_that_is_no_object_is_a_lie_and_said_to_have_run(result: str) -> None:
    async with scene() as at:
        await at.bad.register()
        at.bad.on["tools/call"] = lambda _: RawText(result)
        with refused(ErrorKind.CHILD_LIED) as caught:
            await at.call()
        assert caught.value.outcome is Outcome.EXECUTED
        at.bad.on["tools/call"] = lambda _: {"content": []}
        await at.call()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda i: f'D{{"jsonrpc":"2.0","id":{i},"result":{nested(100_000)}}}', "recursion"),
        (lambda i: f'D{{"jsonrpc":"2.0","id":{i},"result":}}', "bad message"),
        (lambda i: f'D{{"jsonrpc":"2.0","id":{i},"error":{{}}}}', "bad message"),
        (lambda i: f'{{"jsonrpc":"2.0","id":{i},"result":{{}}}}', "U or D"),
        (lambda i: f'D{{"jsonrpc":"2.0","id":{i},"result":{{}}}}'.encode(), "binary"),
        (lambda i: f'D{{"jsonrpc":"2.0","id":{i},"result":{{"x":"{"x" * (100 << 20)}"}}}}', str(MAX_MESSAGE_BYTES)),
    ],
    ids=["deep", "not JSON", "no error", "no direction", "binary", "100 MB"],
)
async def test_an_answer_that_is_no_message_ends_the_link_and_the_call(answer: Callable[[int], str | bytes], reason: str) -> None:
    async with scene() as at:

        async def send(_: Json) -> object:
            with contextlib.suppress(OSError, EOFError):
                await at.bad.send(answer(at.bad.asked[-1]["id"]))
            return SILENCE

        at.bad.on["tools/call"] = send
        await at.bad.register()
        calling = asyncio.create_task(at.call())
        await at.good_is_served()
        with refused(ErrorKind.LINK_LOST) as caught:
            await calling
        assert caught.value.outcome is Outcome.UNKNOWN
        assert reason in await at.end()
        assert reason in caught.value.message
        await eventually(lambda: [session.degraded for session in at.root.aggregator.registry] == [False, True])


async def test_text_that_is_not_utf_8_ends_the_link() -> None:
    async with scene() as at:
        await at.bad.register()
        await at.bad.connection.send(b'U{"\xff\xfe"}', text=True)
        assert "1007" in await at.end()


async def test_answers_to_requests_of_others_are_nothing() -> None:
    async with scene() as at:
        await at.bad.register()

        async def slow(_: Json) -> Json:
            for identifier in range(200):
                await at.bad.send(f'D{{"jsonrpc":"2.0","id":{identifier},"result":{{"content":[],"forged":true}}}}')
                await at.bad.send(f'U{{"jsonrpc":"2.0","id":{identifier},"result":{{"content":[],"forged":true}}}}')
            await at.bad.ask("mcpax/identity", {})  # what was sent before has arrived
            return {"content": [], "own": True}

        at.good.on["tools/call"] = slow
        result = await at.root.aggregator.call_tool("root.good.read", {})
        assert result.keys() >= {"own"}
        assert "forged" not in result
        at.good.on["tools/call"] = RawChild(at.good.connection).on["tools/call"]


@pytest.mark.parametrize(
    "error",
    [
        {"code": -32002, "message": "tool_degraded", "data": {"n": 10**40}},
        {"code": 7, "message": "x" * 100_000, "data": {"n": [1e15] * 1_000_000}},
        {"code": -32601, "message": "", "data": [1, 2]},
    ],
    ids=["big number", "long", "a list"],
)
@pytest.mark.usefixtures("patient")
async def test_an_error_of_any_shape_reaches_the_top_of_a_tree_and_costs_no_link(error: Json) -> None:
    async with node("top") as top, node("root") as root, raw_child(root) as child:
        root.join(top)
        child.on["tools/call"] = lambda _: SILENCE
        await child.register()
        await eventually(lambda: top.names() == ["top.root.raw.read"])
        calling = asyncio.create_task(top.aggregator.call_tool("top.root.raw.read", {}))
        await eventually(lambda: bool(child.asked) and child.asked[-1]["method"] == "tools/call")
        text = json.dumps({"jsonrpc": "2.0", "id": child.asked[-1]["id"], "error": error}).replace("1000000000000000.0, ", "1e15,")
        await child.send("D" + text)
        with refused(
            ErrorKind.CHILD_ERROR if error["code"] == 7 else next(k for k in ErrorKind if k.value.code == error["code"])
        ) as caught:
            await calling
        assert caught.value.code == error["code"]
        assert top.aggregator.registry.subtree_ids() == {top.aggregator.id, root.aggregator.id}


@pytest.mark.usefixtures("patient")
async def test_a_list_that_grows_when_it_is_sent_on_reaches_the_top_of_a_tree() -> None:
    """Each schema just within its limit: hundreds of them are more than one message, and come in pages."""
    schema = {"enum": [1e15] * (MAX_SCHEMA_BYTES // 19 - 2)}
    async with node("top") as top, node("root") as root, raw_child(root) as child:
        root.join(top)
        numbers = iter(range(100))
        text = json.dumps(schema).replace("1000000000000000.0", "1e15")

        def page(_: Json) -> RawText:
            first = next(numbers)
            tools = ",".join(f'{{"name":"t{first}-{number}","inputSchema":{text}}}' for number in range(10))
            return RawText(f'{{"tools":[{tools}]' + (f',"nextCursor":"{first}"}}' if first < 9 else "}"))

        child.on["tools/list"] = page
        await child.register()
        await eventually(lambda: len(top.names()) == 100)


async def test_a_child_that_lies_about_its_own_tree_is_shown_as_unanswered() -> None:
    async with scene() as at:
        await at.bad.register(**AGGREGATOR)
        answers: list[Any] = [7, [], {}, {"below": 7}, RawText('{"below":[' + nested(900) + "]}"), RawText("1e400")]
        while answers:
            at.bad.on["mcpax/status"] = lambda _: answers.pop()
            drawn = await tree(at.root.aggregator)
            assert {each["segment"] for each in drawn["below"]} == {"good", "raw"}
        at.bad.on["mcpax/status"] = lambda _: SILENCE
        drawn = await tree(at.root.aggregator, 0.1)
        assert [each.get("unanswered") for each in drawn["below"]] == [None, True]


# --- floods


async def test_a_flood_of_notifications_leaves_nothing_behind() -> None:
    async with scene() as at:
        await at.bad.register()
        tasks = len(asyncio.all_tasks())
        for number in range(5000):
            await at.bad.tell("notifications/message", data="x" * 100, number=number)
            if number % 1000 == 0:
                await at.good_is_served()
        await at.bad.ask("mcpax/identity", {})
        assert len(asyncio.all_tasks()) <= tasks + 5


async def test_ten_thousand_registrations_on_one_link_are_bounded() -> None:
    async with scene() as at:
        answers: list[Json] = []
        for start in range(0, 10_000, 200):
            asked = (at.bad.ask("mcpax/register", registration(segment=f"s{number}")) for number in range(start, start + 200))
            answers += await asyncio.gather(*asked)
            if start % 2000 == 0:
                await at.good_is_served()
        taken = [answer for answer in answers if "result" in answer]
        refusals = [answer["error"] for answer in answers if "error" in answer]
        assert len(taken) == MAX_REGISTRATIONS
        assert len(refusals) == 10_000 - MAX_REGISTRATIONS
        assert all(str(MAX_REGISTRATIONS) in refusal["message"] for refusal in refusals)
        assert len(list(at.root.aggregator.registry)) == MAX_REGISTRATIONS + 1


async def test_a_child_that_takes_nothing_any_more_holds_up_no_call_for_longer_than_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "SOCKET_PING_S", 0.5)
    async with scene() as at:
        at.bad.tools = [raw_tool("read", **{"x-mcpax-capability": {"latency_class": "realtime", "mutable": False}})]
        await at.bad.register()
        at.bad.connection.transport.pause_reading()
        huge = {"x": "y" * (1 << 20)}
        calls = [asyncio.create_task(at.root.aggregator.call_tool("root.raw.read", huge)) for _ in range(12)]
        await at.good_is_served()
        started = time.monotonic()
        failures = await asyncio.gather(*calls, return_exceptions=True)
        assert time.monotonic() - started < 3
        assert {type(failure).__name__ for failure in failures} == {"Fault"}
        assert {failure.outcome for failure in failures} <= {Outcome.UNKNOWN, Outcome.NOT_EXECUTED}  # type: ignore[union-attr]
        await at.end()  # it answered no ping
        await eventually(lambda: [session.degraded for session in at.root.aggregator.registry] == [False, True])


# --- coming and going


async def test_one_who_leaves_while_it_is_registered_leaves_nothing_active() -> None:
    async with scene() as at:
        for stay in ("mcpax/parent", "tools/list"):
            async with raw_child(at.root) as child:
                child.on[stay] = lambda _: SILENCE
                asking = asyncio.create_task(child.ask("mcpax/register", registration()))
                await eventually(lambda stay=stay, child=child: stay in [request["method"] for request in child.asked])  # type: ignore[misc]
                await child.connection.close()
                assert isinstance((await asyncio.gather(asking, return_exceptions=True))[0], ConnectionResetError)
        await eventually(lambda: len(at.of("link_ended")) == 2)
        assert [session.segment for session in at.root.aggregator.registry] == ["good"]
        await at.bad.register()  # its segment is free


async def test_one_who_hangs_up_before_it_says_anything_is_no_error() -> None:
    async with scene() as at:
        for _ in range(5):
            async with raw_child(at.root):
                pass
        await eventually(lambda: len(at.of("link_ended")) == 5)
        assert not [log for log in at.logs if log["log_level"] in ("error", "critical")]
