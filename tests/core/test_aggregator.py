"""The aggregator as a whole: registered tools are listed, called, aged, re-asked, announced, drained."""

import asyncio
import uuid
from collections.abc import AsyncIterator

import pytest

from mcpax.capability import Capability
from mcpax.core import aggregator as aggregator_module
from mcpax.core import flows as flows_module
from mcpax.core import notify
from mcpax.core.aggregator import LIST_TTL_S, Aggregator
from mcpax.core.notify import LIST_CHANGED
from mcpax.core.registration import Budget
from mcpax.core.subserver import Json, Notification
from mcpax.errors import ErrorKind, Fault, Outcome
from mcpax.name_codec import NameStyle
from tests.core.rig import UUIDS, Board, Clock, refused, request, tool
from tests.harness.virtual_time import in_virtual_time

DOTTED = NameStyle.DOTTED


class Rig:
    def __init__(self, *, list_ttl_s: float = LIST_TTL_S, grace_s: float = 300, budget: Budget | None = None) -> None:
        self.clock = Clock()
        self.aggregator = Aggregator("edge", "some-id", clock=self.clock, list_ttl_s=list_ttl_s, grace_s=grace_s, budget=budget)
        self.heard: list[Notification] = []
        self.changed = asyncio.Event()
        self.aggregator.notifier.subscribe(self._hear)

    def _hear(self, notification: Notification) -> None:
        self.heard.append(notification)
        if notification == LIST_CHANGED:
            self.changed.set()

    async def add(self, segment: str, board: Board, number: int = 0, interval_ms: int = 0) -> str:
        response = await self.aggregator.register(request(segment, number, heartbeat_interval_ms=interval_ms), board)
        return response.session_id

    async def names(self) -> list[str]:
        return [listed["name"] for listed in (await self.aggregator.list_tools(DOTTED)).tools]

    async def told_of_a_change(self) -> None:
        await asyncio.wait_for(self.changed.wait(), 5)
        self.changed.clear()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify, "COALESCE_S", 0.001)


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    rig = Rig()
    yield rig
    await rig.aggregator.close(0)


# --- the merged list


@pytest.mark.req("AX-5.1-1")
async def test_the_list_is_answered_from_the_cache_for_sixty_seconds(rig: Rig) -> None:
    board = Board(tool("a"))
    await rig.add("env", board)
    board.tools.append(tool("b"))
    for _ in range(3):
        rig.clock.at += 20
        assert await rig.names() == ["edge.env.a"]
    assert board.listed == 1  # at registration
    rig.clock.at += 0.001
    assert await rig.names() == ["edge.env.a", "edge.env.b"]
    assert board.listed == 2
    rig.clock.at += 60
    await rig.names()
    assert board.listed == 2


@pytest.mark.req("AX-5.1-1")
async def test_changes_show_at_once_without_asking_anybody(rig: Rig) -> None:
    first = Board(tool("a"))
    await rig.add("env", first)
    assert await rig.names() == ["edge.env.a"]
    session_id = await rig.add("zoo", Board(tool("b")), 1)
    assert await rig.names() == ["edge.env.a", "edge.zoo.b"]
    rig.aggregator.degrade(session_id, "unplugged")
    [_, degraded] = (await rig.aggregator.list_tools(DOTTED)).tools
    assert degraded["_meta"]["x-mcpax-capability"]["availability"] == "degraded"
    rig.aggregator.registry.deregister(session_id)
    assert await rig.names() == ["edge.env.a"]
    assert first.listed == 1


@pytest.mark.req("AX-5.1-1")
async def test_a_further_page_is_of_the_list_that_was_begun(rig: Rig) -> None:
    board = Board(*(tool(f"t{n:03}") for n in range(201)))
    await rig.add("env", board)
    page = await rig.aggregator.list_tools(DOTTED)
    rig.clock.at += 1000
    rest = await rig.aggregator.list_tools(DOTTED, page.next_cursor)
    assert [listed["name"] for listed in rest.tools] == ["edge.env.t200"]
    assert board.listed == 1


@pytest.mark.req("AX-5.1-2")
async def test_on_a_cold_cache_each_subserver_is_asked_and_the_answers_are_prefixed_and_merged() -> None:
    rig = Rig(list_ttl_s=10)
    boards = {segment: Board(tool("old")) for segment in ("zoo", "env", "lab")}
    for number, (segment, board) in enumerate(boards.items()):
        await rig.add(segment, board, number)
        board.tools = [tool("new"), tool("more")]
    rig.clock.at += 11
    assert await rig.names() == [f"edge.{segment}.{name}" for segment in ("env", "lab", "zoo") for name in ("more", "new")]
    assert [board.listed for board in boards.values()] == [2, 2, 2]


@pytest.mark.req("AX-5.1-2")
@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(None, id="slow"),
        pytest.param(Fault(ErrorKind.DEVICE_LOST, "gone"), id="lost"),
        pytest.param(ConnectionResetError("gone"), id="connection reset"),
        pytest.param(TimeoutError(), id="its own time-out"),
        pytest.param(RuntimeError("a bug"), id="a bug in it"),
    ],
)
async def test_a_slow_or_dead_subserver_does_not_hold_back_the_rest(failure: Exception | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregator_module, "RELIST_TIMEOUT_S", 0.002)
    rig = Rig()
    bad, good = Board(tool("kept")), Board(tool("old"))
    await rig.add("bad", bad)
    await rig.add("good", good, 1)
    bad.tools = [tool("never")]
    good.tools = [tool("new")]
    bad.failure = failure
    if failure is None:
        bad.gate.clear()
    rig.clock.at += LIST_TTL_S + 1
    assert await rig.names() == ["edge.bad.kept", "edge.good.new"]
    assert await rig.names() == ["edge.bad.kept", "edge.good.new"]
    assert bad.listed == 2  # it is left alone until the list has aged again


async def test_a_degraded_subserver_is_not_asked(rig: Rig) -> None:
    board = Board(tool("a"))
    rig.aggregator.degrade(await rig.add("env", board), "unplugged")
    rig.clock.at += LIST_TTL_S + 1
    assert await rig.names() == ["edge.env.a"]
    assert board.listed == 1


async def test_callers_share_one_round_of_asking_and_one_that_leaves_does_not_end_it(rig: Rig) -> None:
    board = Board(tool("a"))
    await rig.add("env", board)
    board.tools.append(tool("b"))
    board.gate.clear()
    board.entered.clear()
    rig.clock.at += LIST_TTL_S + 1
    leaving, *staying = [asyncio.create_task(rig.names()) for _ in range(5)]
    await board.entered.wait()
    leaving.cancel()
    board.gate.set()
    assert await asyncio.gather(*staying) == [["edge.env.a", "edge.env.b"]] * 4
    assert board.listed == 2


async def test_a_subserver_that_goes_while_it_is_asked_is_gone(rig: Rig) -> None:
    board = Board(tool("a"))
    session_id = await rig.add("env", board)
    board.gate.clear()
    board.entered.clear()
    board.tools.append(tool("b"))
    rig.clock.at += LIST_TTL_S + 1
    listing = asyncio.create_task(rig.names())
    await board.entered.wait()
    rig.aggregator.registry.deregister(session_id)
    board.gate.set()
    assert await listing == []


# --- telling upstream


async def test_after_deregistration_the_tools_are_gone_and_the_change_is_told(rig: Rig) -> None:
    session_id = await rig.add("env", Board(tool("a")), interval_ms=2000)
    await rig.told_of_a_change()
    rig.aggregator.registry.deregister(session_id)
    assert await rig.names() == []
    with refused(ErrorKind.TOOL_NOT_FOUND):
        await rig.aggregator.call_tool("edge.env.a", {})
    await rig.told_of_a_change()
    assert rig.heard == [LIST_CHANGED, LIST_CHANGED]


async def test_after_missed_heartbeats_too_by_the_aggregators_own_watch() -> None:
    rig = Rig(grace_s=0)
    await rig.add("env", Board(tool("a")), interval_ms=100)
    await rig.told_of_a_change()
    watch = asyncio.create_task(rig.aggregator.run())
    rig.clock.at += 0.3
    await rig.told_of_a_change()
    assert await rig.names() == []
    watch.cancel()


async def test_heartbeats_keep_it() -> None:
    rig = Rig(grace_s=0)
    session_id = await rig.add("env", Board(tool("a")), interval_ms=100)
    for _ in range(10):
        rig.clock.at += 0.299
        rig.aggregator.heartbeat(session_id)
        rig.aggregator.registry.sweep()
    assert await rig.names() == ["edge.env.a"]


@pytest.mark.req("AX-12-1")
async def test_notifications_of_a_subserver_are_told_in_order_with_their_source(rig: Rig) -> None:
    session_id = await rig.add("env", Board(tool("a")))
    await rig.told_of_a_change()
    for n in range(5):
        rig.aggregator.emit(session_id, Notification("notifications/mcpax/event", {"n": n}))
    rig.aggregator.emit("nobody", Notification("notifications/mcpax/event", {}))
    assert rig.heard[1:] == [Notification("notifications/mcpax/event", {"n": n, "x-mcpax-source": "edge.env"}) for n in range(5)]


async def tree() -> tuple[Aggregator, str, list[Notification]]:
    """An aggregator "edge" below an aggregator "root": the lower one with a session of a leaf "env", and what the upper one tells."""
    loop = asyncio.get_running_loop()
    root, edge = Aggregator("root", "r", clock=loop.time), Aggregator("edge", "e", clock=loop.time)
    link = (await root.register(request("edge", is_aggregator=True), Board(tool("env", "a")))).session_id
    leaf = (await edge.register(request("env", heartbeat_interval_ms=1000), Board(tool("a")))).session_id
    edge.notifier.subscribe(lambda each: root.emit(link, each) if each != LIST_CHANGED else None)
    heard: list[Notification] = []
    root.notifier.subscribe(lambda each: heard.append(each) if each != LIST_CHANGED else None)
    return edge, leaf, heard


@pytest.mark.req("AX-12-1", "AX-12-3")
@in_virtual_time
async def test_through_two_levels_each_adds_its_own_and_changes_nothing_else_even_of_what_had_to_wait() -> None:
    edge, leaf, heard = await tree()
    ids = [str(uuid.UUID(int=n)) for n in range(251)]
    sent = [{"n": n, "x-mcpax-event-id": ids[n], "x-mcpax-causal-parent": ids[n - 1] if n else None} for n in range(250)]
    for params in sent:
        edge.emit(leaf, Notification("notifications/mcpax/event", params))
        await asyncio.sleep(0.003)
    await asyncio.sleep(3)
    assert [each.method for each in heard] == ["notifications/mcpax/event"] * 250
    assert [each.params for each in heard] == [{**params, "x-mcpax-source": "root.edge.env"} for params in sent]


@pytest.mark.req("AX-12-2")
@in_virtual_time
async def test_a_storm_is_limited_buffered_dropped_counted_and_told() -> None:
    aggregator = Aggregator("edge", "e", clock=asyncio.get_running_loop().time, own_tools=True)
    await aggregator.start()
    storm, calm = [(await aggregator.register(request(s, n), Board(tool("a")))).session_id for n, s in enumerate(("env", "lab"))]
    heard: list[Notification] = []
    aggregator.notifier.subscribe(heard.append)

    def numbers(source: str) -> list[int]:
        return [each.params["n"] for each in heard if each.method == "event" and each.params["x-mcpax-source"] == source]

    async def dropped() -> Json:
        told: Json = (await aggregator.call_tool("edge.mcpax.notifications_dropped", {}))["structuredContent"]
        return told

    for n in range(2500):
        aggregator.emit(storm, Notification("event", {"n": n}))
    aggregator.emit(calm, Notification("event", {"n": 0}))
    assert numbers("edge.env") == list(range(100))
    assert numbers("edge.lab") == [0]
    assert await dropped() == {"total": 1400, "by_subserver": [{"source": "edge.env", "dropped": 1400, "buffered": 1000}]}
    await asyncio.sleep(5)
    assert 595 <= len(numbers("edge.env")) <= 600
    await asyncio.sleep(6)
    assert numbers("edge.env") == [*range(100), *range(1500, 2500)]
    overflows = [each.params for each in heard if each.method == "notifications/mcpax/notification_overflow"]
    assert overflows == [
        {"x-mcpax-source": "edge.env", "dropped": 1, "dropped_total": 1},
        {"x-mcpax-source": "edge.env", "dropped": 1399, "dropped_total": 1400},
    ]
    assert await dropped() == {"total": 1400, "by_subserver": [{"source": "edge.env", "dropped": 1400, "buffered": 0}]}


@pytest.mark.req("AX-13.1-1")
@in_virtual_time
async def test_a_lost_subserver_is_told_through_all_levels_and_back_with_a_fresh_list() -> None:
    edge, leaf, heard = await tree()
    watch = asyncio.create_task(edge.run())
    await asyncio.sleep(2.5)
    edge.heartbeat(leaf)
    await asyncio.sleep(2.9)
    assert heard == []
    await asyncio.sleep(1.2)
    assert [(each.method, each.params["x-mcpax-source"], each.params["reason"]) for each in heard] == [
        ("notifications/mcpax/subserver_lost", "root.edge.env", "heartbeat_timeout")
    ]
    fresh = (await edge.register(request("env"), Board(tool("b")))).session_id
    assert heard[1:] == [Notification("notifications/mcpax/subserver_back", {"x-mcpax-source": "root.edge.env"})]
    assert [each["name"] for each in (await edge.list_tools(DOTTED)).tools] == ["edge.env.b"]
    edge.degrade(fresh, "unplugged")
    assert [each.params.get("reason") for each in heard[2:]] == ["unplugged"]
    assert not {leaf, fresh, UUIDS[0]} & {value for each in heard for value in each.params.values()}
    watch.cancel()
    await edge.close(0)
    assert len(heard) == 3


@in_virtual_time
async def test_a_subserver_that_flaps_is_held_to_the_limits_and_its_last_word_arrives() -> None:
    aggregator = Aggregator("edge", "e", clock=asyncio.get_running_loop().time)
    heard: list[Notification] = []
    aggregator.notifier.subscribe(lambda each: heard.append(each) if each != LIST_CHANGED else None)
    for _ in range(1000):
        session_id = (await aggregator.register(request("env"), Board(tool("a")))).session_id
        aggregator.degrade(session_id, "unplugged")
        await asyncio.sleep(0.001)
    assert len(heard) <= 100 + 100 * 1.1
    await asyncio.sleep(30)
    assert heard[-1].method == "notifications/mcpax/subserver_lost"


@in_virtual_time
async def test_loss_is_told_even_of_one_that_floods_and_is_removed_at_once() -> None:
    aggregator = Aggregator("edge", "e", clock=asyncio.get_running_loop().time, grace_s=0)
    heard: list[Notification] = []
    aggregator.notifier.subscribe(heard.append)
    session_id = (await aggregator.register(request("env"), Board(tool("a")))).session_id
    for _ in range(2000):
        aggregator.emit(session_id, Notification("event"))
    aggregator.degrade(session_id, "unplugged")
    aggregator.registry.sweep()
    assert not list(aggregator.registry)
    await asyncio.sleep(3)
    assert [each.params["reason"] for each in heard if each.method == "notifications/mcpax/subserver_lost"] == ["unplugged"]


async def test_one_that_is_back_after_its_flow_was_forgotten_is_told_too(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flows_module, "LEFT_REMEMBERED", 1)
    for number, segment in enumerate(("env", "lab")):
        rig.aggregator.degrade(await rig.add(segment, Board(tool("a")), number), "unplugged")
    rig.clock.at += 300
    rig.aggregator.registry.sweep()
    rig.heard.clear()
    await rig.add("env", Board(tool("a")))
    assert rig.heard[0] == Notification("notifications/mcpax/subserver_back", {"x-mcpax-source": "edge.env"})


# --- calls


async def test_calls_are_routed_with_arguments_meta_and_progress(rig: Rig) -> None:
    board = Board(tool("a"))
    await rig.add("env", board)

    async def progress(_done: float, _total: float | None, _message: str | None) -> None: ...

    await rig.aggregator.call_tool("edge__env__a", {"x": 1}, {"x-mcpax-route": ["edge", "env", "a"], "x-mcpax-cursor": 0}, progress)
    [call] = board.calls
    assert (call.arguments, call.cursor, call.progress) == ({"x": 1}, 1, progress)


async def test_a_board_that_returns_is_listed_afresh_and_called_in_its_new_session(rig: Rig) -> None:
    old, new = Board(tool("a"), tool("gone")), Board(tool("a"), tool("new"))
    old_id = await rig.add("env", old)
    rig.aggregator.degrade(old_id, "unplugged")
    with refused(ErrorKind.TOOL_DEGRADED):
        await rig.aggregator.call_tool("edge.env.a", {})
    await rig.add("env", new)
    assert await rig.names() == ["edge.env.a", "edge.env.new"]
    await rig.aggregator.call_tool("edge.env.a", {})
    assert (len(old.calls), len(new.calls)) == (0, 1)


async def test_the_budget_of_the_configuration_holds_for_every_session_anew() -> None:
    rig = Rig(budget=Budget(max_mutable_calls_per_session=0))
    await rig.add("env", Board(tool("write", capability=Capability())))
    with refused(ErrorKind.BUDGET_EXCEEDED):
        await rig.aggregator.call_tool("edge.env.write", {})


# --- the end


async def test_draining_lets_running_calls_finish_and_takes_no_new_ones() -> None:
    rig = Rig()
    board = Board(tool("a"))
    await rig.add("env", board)
    board.gate.clear()
    board.entered.clear()
    running = asyncio.create_task(rig.aggregator.call_tool("edge.env.a", {}))
    await board.entered.wait()
    closing = asyncio.create_task(rig.aggregator.close(5))
    await asyncio.sleep(0)
    with refused(ErrorKind.SERVER_DRAINING) as caught:
        await rig.aggregator.call_tool("edge.env.a", {})
    assert (caught.value.outcome, caught.value.retry_after_ms) == (Outcome.NOT_EXECUTED, 5000)
    assert not board.closed
    board.gate.set()
    result: Json = await running
    assert result["content"] == []
    await asyncio.wait_for(closing, 1)
    assert board.closed
    assert len(board.calls) == 1


async def test_draining_does_not_wait_longer_than_it_may_and_one_bad_close_spoils_no_other() -> None:
    rig = Rig()
    stuck, other = Board(tool("a")), Board(tool("a"))
    await rig.add("stuck", stuck)
    await rig.add("other", other, 1)

    async def fail() -> None:
        raise RuntimeError("cannot close")

    stuck.gate.clear()
    stuck.entered.clear()
    running = asyncio.create_task(rig.aggregator.call_tool("edge.stuck.a", {}))
    await stuck.entered.wait()
    stuck.close = fail  # type: ignore[method-assign]
    await rig.aggregator.close(0.001)
    assert other.closed
    assert not running.done()
    running.cancel()


async def test_a_subserver_that_never_closes_does_not_keep_the_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpax.core.aggregator.CLOSE_TIMEOUT_S", 0.01)
    rig = Rig()
    board = Board(tool("a"))
    await rig.add("env", board)
    forever = asyncio.Event()
    board.close = forever.wait  # type: ignore[method-assign,assignment]
    await asyncio.wait_for(rig.aggregator.close(0), 5)


@in_virtual_time
async def test_after_the_end_nothing_more_is_told() -> None:
    aggregator = Aggregator("edge", "e", clock=asyncio.get_running_loop().time)
    session_id = (await aggregator.register(request("env"), Board(tool("a")))).session_id
    heard: list[Notification] = []
    aggregator.notifier.subscribe(heard.append)
    for _ in range(1200):
        aggregator.emit(session_id, Notification("event"))
    await aggregator.close(0)
    told = len(heard)
    await asyncio.sleep(60)
    assert len(heard) == told


async def test_nobody_registers_while_draining() -> None:
    rig = Rig()
    await rig.aggregator.close(0)
    with refused(ErrorKind.SERVER_DRAINING):
        await rig.add("env", Board(tool("a")))


async def test_a_call_that_fails_counts_as_finished() -> None:
    rig = Rig()
    board = Board(tool("a"))
    await rig.add("env", board)
    board.failure = Fault(ErrorKind.DEVICE_ERROR, "no")
    with refused(ErrorKind.DEVICE_ERROR):
        await rig.aggregator.call_tool("edge.env.a", {})
    await asyncio.wait_for(rig.aggregator.close(5), 1)


def test_a_segment_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="contains a dot"):
        Aggregator("a.b", "id")
