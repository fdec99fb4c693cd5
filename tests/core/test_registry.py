"""Who is registered: first come first served, heartbeats, degraded, removed. Time is turned by hand."""

import asyncio
from datetime import UTC, datetime

import pytest
from structlog.testing import capture_logs

from mcpax.core.admission import MAX_TOOLS_PER_SUBSERVER
from mcpax.core.registration import Budget, RegistrationRequest
from mcpax.core.registry import GRACE_S, Registry, RegistryListener, Session
from mcpax.core.subserver import Tool
from mcpax.errors import ErrorKind, Fault
from tests.core.rig import Board, Clock, refused, request, tool

NOW = datetime(2026, 5, 1, 12, 5, tzinfo=UTC)
INTERVAL_MS = 2000
DEADLINE_S = 6.0


class Told(RegistryListener):
    """Writes down what the registry tells."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []

    def added(self, session: Session) -> None:
        self.events.append(("added", session.segment))

    def changed(self, session: Session) -> None:
        self.events.append(("changed", session.segment))

    def removed(self, session: Session) -> None:
        self.events.append(("removed", session.segment))


class Rig:
    def __init__(self, *, grace_s: float = GRACE_S, budget: Budget | None = None) -> None:
        self.clock = Clock()
        self.told = Told()
        self.registry = Registry("edge", self.told, clock=self.clock, now=lambda: NOW, grace_s=grace_s, budget=budget)

    async def register(self, asked: RegistrationRequest | None = None, board: Board | None = None) -> Session:
        response = await self.registry.register(asked or request(heartbeat_interval_ms=INTERVAL_MS), board or Board(tool("read")))
        session = self.registry.get(response.session_id)
        assert session is not None
        return session

    def segments(self) -> list[str]:
        return [session.segment for session in self.registry]


# --- registering


async def test_the_answer_assigns_segment_session_deadline_and_budget() -> None:
    rig = Rig(budget=Budget(max_calls_per_minute=60))
    responses = [await rig.registry.register(request(f"s{n}", n, heartbeat_interval_ms=5000), Board(tool("read"))) for n in range(3)]
    assert [r.to_json() | {"session_id": ""} for r in responses] == [
        {
            "status": "registered",
            "assigned_segment": f"s{n}",
            "session_id": "",
            "heartbeat_deadline_ms": 15000,
            "budget": {"max_calls_per_minute": 60},
        }
        for n in range(3)
    ]
    ids = {response.session_id for response in responses}
    assert len(ids) == 3
    assert all(len(session_id) >= 32 for session_id in ids)  # not to be guessed
    assert rig.told.events == [("added", "s0"), ("added", "s1"), ("added", "s2")]


@pytest.mark.req("AX-4.2-1")
async def test_the_first_keeps_its_segment_and_the_loser_gets_namespace_conflict() -> None:
    rig = Rig()
    first = await rig.register(request("env", 0))
    loser = Board(tool("read"))
    with refused(ErrorKind.NAMESPACE_CONFLICT) as caught:
        await rig.registry.register(request("env", 1), loser)
    assert caught.value.data()["error"] == "namespace_conflict"
    assert "namespace_conflict" in caught.value.message
    assert caught.value.data()["segment"] == "env"
    assert list(rig.registry) == [first]
    assert loser.listed == 0
    assert rig.told.events == [("added", "env")]
    await rig.register(request("env2", 1))
    assert rig.segments() == ["env", "env2"]


@pytest.mark.req("AX-4.2-1")
async def test_the_loser_does_not_learn_the_id_by_which_it_could_take_the_segment_over() -> None:
    rig = Rig()
    await rig.register(request("env", 0))
    with refused(ErrorKind.NAMESPACE_CONFLICT) as caught:
        await rig.register(request("env", 1))
    assert request("env", 0).subserver_id not in f"{caught.value.text()}{caught.value.data()}"


@pytest.mark.req("AX-4.2-1")
async def test_a_segment_is_free_again_when_its_holder_is_gone() -> None:
    rig = Rig()
    first = await rig.register(request("env", 0))
    rig.registry.deregister(first.id)
    await rig.register(request("env", 1))
    assert rig.segments() == ["env"]


@pytest.mark.req("AX-4.2-1")
async def test_a_degraded_holder_keeps_its_segment_for_the_grace_period() -> None:
    rig = Rig()
    first = await rig.register(request("env", 0))
    rig.registry.degrade(first.id, "unplugged")
    with refused(ErrorKind.NAMESPACE_CONFLICT):
        await rig.register(request("env", 1))


@pytest.mark.req("AX-4.2-1")
async def test_of_two_that_register_at_the_same_time_one_gets_the_segment() -> None:
    rig = Rig()
    slow, quick = Board(tool("slow")), Board(tool("quick"))
    slow.gate.clear()
    waiting = asyncio.create_task(rig.registry.register(request("env", 0), slow))
    await slow.entered.wait()
    winner = await rig.register(request("env", 1), quick)
    slow.gate.set()
    with refused(ErrorKind.NAMESPACE_CONFLICT):
        await waiting
    assert list(rig.registry) == [winner]
    assert rig.told.events == [("added", "env")]


async def test_the_same_subserver_coming_back_takes_its_segment_over_with_a_fresh_listing() -> None:
    rig = Rig()
    old = await rig.register(request("env", 0), Board(tool("old")))
    rig.registry.degrade(old.id, "unplugged")
    new = await rig.register(request("env", 0), Board(tool("new")))
    assert new.id != old.id
    assert not new.degraded
    assert [each.path for each in new.tools] == [("new",)]
    assert list(rig.registry) == [new]
    assert rig.registry.get(old.id) is None
    assert rig.told.events[-2:] == [("removed", "env"), ("added", "env")]


async def test_a_subserver_that_moves_leaves_its_old_segment() -> None:
    rig = Rig()
    await rig.register(request("env", 0))
    await rig.register(request("lab", 0))
    assert rig.segments() == ["lab"]
    assert rig.told.events == [("added", "env"), ("removed", "env"), ("added", "lab")]


async def test_a_listing_that_fails_registers_nothing() -> None:
    rig = Rig()
    board = Board(tool("read"))
    board.failure = Fault(ErrorKind.DEVICE_LOST, "gone")
    with refused(ErrorKind.DEVICE_LOST):
        await rig.register(board=board)
    assert rig.segments() == []
    assert rig.told.events == []


# --- the tools presented


@pytest.mark.req("AX-4.3-1")
async def test_a_leaf_with_a_dotted_name_is_refused_and_an_aggregator_is_not() -> None:
    deep = tool("stm32h7", "dma2d_status")
    for board in (Board(tool("read"), deep), Board(tool("stm32h7.dma2d_status"))):
        rig = Rig()
        with refused(ErrorKind.INVALID_PARAMS) as caught:
            await rig.register(board=board)
        assert "'stm32h7.dma2d_status'" in caught.value.message
        assert rig.segments() == []
    session = await Rig().register(request(is_aggregator=True), Board(deep))
    assert session.tools == (deep,)


@pytest.mark.req("AX-4.3-1")
@pytest.mark.parametrize("path", [("a.b",), ("a", "b.c"), ("", "a"), ("a", ""), (), ("..",), ("A",)])
async def test_even_an_aggregator_presents_plain_segments_only(path: tuple[str, ...]) -> None:
    with refused(ErrorKind.INVALID_PARAMS):
        await Rig().register(request(is_aggregator=True), Board(Tool(path, "", {}, tool("x").capability)))


@pytest.mark.req("AX-4.1-2")
async def test_a_name_of_more_than_255_characters_with_its_prefix_is_left_out_never_shortened() -> None:
    long = ["x" * 63] * 3
    fits, too_long = [*long, "y" * (255 - len("edge.env.") - 3 * 64)], [*long, "y" * (256 - len("edge.env.") - 3 * 64)]
    with capture_logs() as logs:
        session = await Rig().register(request(is_aggregator=True), Board(tool("a", "b"), tool(*fits), tool(*too_long)))
    assert [each.path for each in session.tools] == [("a", "b"), tuple(fits)]
    assert [(log["event"], log["count"]) for log in logs if log["log_level"] == "warning"] == [("tools_left_out", 1)]


async def test_a_tool_listed_twice_and_too_many_tools_are_refused() -> None:
    with refused(ErrorKind.INVALID_PARAMS) as caught:
        await Rig().register(board=Board(tool("a"), tool("b"), tool("a")))
    assert "'a' of 'env' is listed twice" in caught.value.message
    many = [tool(f"t{n}") for n in range(MAX_TOOLS_PER_SUBSERVER + 1)]
    assert len((await Rig().register(board=Board(*many[:-1]))).tools) == MAX_TOOLS_PER_SUBSERVER
    with refused(ErrorKind.INVALID_PARAMS):
        await Rig().register(board=Board(*many))


# --- heartbeats


async def test_three_missed_heartbeats_deregister() -> None:
    rig = Rig(grace_s=0)
    session = await rig.register()
    for _ in range(10):  # one in each interval keeps it
        rig.clock.at += INTERVAL_MS / 1000
        rig.registry.sweep()
        rig.registry.heartbeat(session.id)
    rig.clock.at += DEADLINE_S - 0.001
    assert rig.registry.sweep() == pytest.approx(0.001)
    assert rig.segments() == ["env"]
    rig.clock.at += 0.001
    assert rig.registry.sweep() is None
    assert rig.segments() == []
    assert rig.told.events[-1] == ("removed", "env")
    with refused(ErrorKind.UNKNOWN_SESSION):
        rig.registry.heartbeat(session.id)


async def test_two_missed_and_then_one_heard_start_the_count_anew() -> None:
    rig = Rig(grace_s=0)
    session = await rig.register()
    for _ in range(5):
        rig.clock.at += 2.9 * INTERVAL_MS / 1000
        rig.registry.sweep()
        rig.registry.heartbeat(session.id)
    assert rig.segments() == ["env"]


async def test_with_interval_zero_no_heartbeat_is_expected() -> None:
    rig = Rig()
    await rig.register(request(heartbeat_interval_ms=0))
    rig.clock.at += 1e9
    assert rig.registry.sweep() is None
    assert not next(iter(rig.registry)).degraded


async def test_only_the_silent_one_goes_and_the_next_sweep_is_asked_for_in_time() -> None:
    rig = Rig()
    await rig.register(request("silent", 0, heartbeat_interval_ms=1000))
    lively = await rig.register(request("lively", 1, heartbeat_interval_ms=4000))
    assert rig.registry.sweep() == 3.0
    rig.clock.at += 3
    assert rig.registry.sweep() == 9.0  # the lively one's deadline comes before the grace period's end
    assert {session.segment: session.degraded for session in rig.registry} == {"silent": True, "lively": False}
    assert rig.told.events[2:] == [("changed", "silent")]
    rig.registry.heartbeat(lively.id)
    rig.clock.at += 100
    assert rig.registry.sweep() == GRACE_S - 100


# --- deregistering


async def test_deregistering_removes_at_once() -> None:
    rig = Rig()
    session = await rig.register()
    rig.registry.deregister(session.id)
    assert rig.segments() == []
    assert rig.registry.get(session.id) is None
    assert rig.told.events == [("added", "env"), ("removed", "env")]
    for again in (rig.registry.deregister, rig.registry.heartbeat):
        with refused(ErrorKind.UNKNOWN_SESSION):
            again(session.id)


# --- degraded


async def test_degraded_until_heard_again() -> None:
    rig = Rig()
    session = await rig.register()
    rig.registry.degrade(session.id, "unplugged")
    assert (session.degraded, session.degraded_since, session.degraded_reason) == (True, NOW, "unplugged")
    rig.registry.degrade(session.id, "again")
    assert session.degraded_reason == "unplugged"  # what came first is why
    rig.registry.heartbeat(session.id)
    assert (session.degraded, session.degraded_since, session.degraded_reason) == (False, None, "")
    rig.registry.heartbeat(session.id)
    assert rig.told.events == [("added", "env"), ("changed", "env"), ("changed", "env")]
    rig.registry.degrade("nobody", "x")  # its session may have ended before its link did


@pytest.mark.req("AX-13.2-2")
async def test_the_degraded_are_removed_after_the_grace_period_of_five_minutes() -> None:
    rig = Rig()
    session = await rig.register(request(heartbeat_interval_ms=0))
    rig.registry.degrade(session.id, "unplugged")
    assert rig.registry.sweep() == 300.0
    rig.clock.at += 299.9
    rig.registry.sweep()
    assert rig.segments() == ["env"]
    rig.clock.at += 0.1
    assert rig.registry.sweep() is None
    assert rig.segments() == []
    assert rig.told.events[-1] == ("removed", "env")


@pytest.mark.req("AX-13.2-2")
async def test_one_that_recovers_is_not_removed_and_gets_a_whole_grace_period_next_time() -> None:
    rig = Rig(grace_s=10)
    session = await rig.register(request(heartbeat_interval_ms=0))
    rig.registry.degrade(session.id, "unplugged")
    rig.clock.at += 9
    rig.registry.heartbeat(session.id)
    rig.clock.at += 9
    assert rig.registry.sweep() is None
    rig.registry.degrade(session.id, "unplugged")
    assert rig.registry.sweep() == 10


# --- listing again


async def test_listing_again_tells_of_a_change_and_only_of_a_change() -> None:
    rig = Rig()
    board = Board(tool("a"))
    session = await rig.register(board=board)
    await rig.registry.relist(session.id)
    assert rig.told.events == [("added", "env")]
    board.tools.append(tool("b"))
    await rig.registry.relist(session.id)
    assert [each.path for each in session.tools] == [("a",), ("b",)]
    assert rig.told.events == [("added", "env"), ("changed", "env")]


@pytest.mark.req("AX-4.3-1")
async def test_listing_again_is_held_to_the_same_rules() -> None:
    rig = Rig()
    board = Board(tool("a"))
    session = await rig.register(board=board)
    board.tools.append(tool("b", "c"))
    with refused(ErrorKind.INVALID_PARAMS):
        await rig.registry.relist(session.id)
    assert [each.path for each in session.tools] == [("a",)]


async def test_a_listing_that_comes_after_its_session_ended_changes_nothing() -> None:
    rig = Rig()
    board = Board(tool("a"))
    session = await rig.register(board=board)
    board.gate.clear()
    board.entered.clear()
    board.tools.append(tool("b"))
    listing = asyncio.create_task(rig.registry.relist(session.id))
    await board.entered.wait()
    successor = await rig.register(board=Board(tool("c")))
    board.gate.set()
    await listing
    assert [each.path for each in successor.tools] == [("c",)]
    assert rig.told.events == [("added", "env"), ("removed", "env"), ("added", "env")]
    with refused(ErrorKind.UNKNOWN_SESSION):
        await rig.registry.relist(session.id)
