"""The flows of all subservers: each by itself, drained by timers in virtual time, ended with the session and not forgotten with it."""

from __future__ import annotations

import asyncio

import pytest

from mcpax.core import flows as flows_module
from mcpax.core.flow import OVERFLOW, FlowLimits
from mcpax.core.flows import FlowCount, Flows
from mcpax.core.subserver import Notification
from tests.core.rig import session
from tests.harness.virtual_time import in_virtual_time

EVENT = "notifications/mcpax/event"


class Rig:
    def __init__(self, *segments: str, limits: FlowLimits | None = None) -> None:
        self.loop = asyncio.get_running_loop()
        self.heard: list[Notification] = []
        self.flows = Flows("edge", self.heard.append, self.loop.time, limits or FlowLimits())
        self.sessions = {segment: session(segment, number=number) for number, segment in enumerate(segments)}
        for each in self.sessions.values():
            self.flows.added(each)

    def emit(self, segment: str, count: int, first: int = 0) -> None:
        for n in range(first, first + count):
            self.flows.emit(self.sessions[segment], Notification(EVENT, {"n": n}))

    def numbers(self, segment: str) -> list[int]:
        return [each.params["n"] for each in self.heard if each.method == EVENT and each.params["x-mcpax-source"] == f"edge.{segment}"]

    def timers(self) -> int:
        """What the loop still has to wake somebody for."""
        return sum(not handle.cancelled() for handle in self.loop._scheduled)  # type: ignore[attr-defined]

    async def quiet(self) -> float:
        """Wait, in virtual time, until no timer is left; returns how long that took."""
        started = self.loop.time()
        while self.timers():  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        return self.loop.time() - started


@in_virtual_time
async def test_what_waits_is_passed_on_by_itself_at_the_limit_and_then_the_timer_is_gone() -> None:
    rig = Rig("env")
    rig.emit("env", 600)
    assert rig.numbers("env") == list(range(100))
    await asyncio.sleep(2.0)
    assert 295 <= len(rig.numbers("env")) <= 300
    assert await rig.quiet() == pytest.approx(3.0, abs=0.01)
    assert rig.numbers("env") == list(range(600))
    assert rig.flows.dropped == 0


@in_virtual_time
async def test_a_flood_takes_nothing_from_another() -> None:
    rig = Rig("env", "lab")
    for n in range(1000):
        rig.emit("env", 50)
        if not n % 10:
            rig.emit("lab", 1, n)
            assert rig.numbers("lab")[-1] == n
        await asyncio.sleep(0.005)
    assert len(rig.numbers("lab")) == 100
    assert len(rig.numbers("env")) == pytest.approx(100 + 500, abs=5)
    assert rig.flows.counts() == [FlowCount("edge.env", 50_000 - len(rig.numbers("env")) - 1000, 1000)]


@in_virtual_time
async def test_a_flood_sets_one_timer_and_not_one_for_each() -> None:
    rig = Rig("env")
    rig.emit("env", 5000)
    assert len(rig.loop._scheduled) <= 2  # type: ignore[attr-defined]


@in_virtual_time
async def test_one_that_waits_is_not_held_up_by_a_later_appointment() -> None:
    """To tell of a dropped one again is due in a second; the next notification in a hundredth."""
    rig = Rig("env")
    large = Notification(EVENT, {"text": "x" * 70_000})
    for _ in range(2):
        rig.flows.emit(rig.sessions["env"], large)
    assert rig.timers() == 1
    rig.emit("env", 101)
    await asyncio.sleep(0.02)
    assert len(rig.numbers("env")) == 101
    await rig.quiet()
    assert [each.params["dropped"] for each in rig.heard if each.method == OVERFLOW] == [1, 1]


@in_virtual_time
async def test_the_end_of_a_session_drops_counts_tells_and_leaves_no_timer() -> None:
    rig = Rig("env")
    rig.emit("env", 500)
    rig.flows.removed(rig.sessions["env"])
    assert rig.timers() == 0
    assert rig.heard[100:] == [Notification(OVERFLOW, {"x-mcpax-source": "edge.env", "dropped": 400, "dropped_total": 400})]
    assert rig.flows.counts() == [FlowCount("edge.env", 400, 0)]


@in_virtual_time
async def test_the_end_within_a_second_of_an_overflow_tells_the_rest_when_it_is_due() -> None:
    rig = Rig("env")
    rig.emit("env", 1101)
    rig.flows.removed(rig.sessions["env"])
    assert await rig.quiet() == pytest.approx(1.0, abs=0.01)
    assert [each.params["dropped"] for each in rig.heard[100:]] == [1, 1000]


@in_virtual_time
async def test_coming_back_is_no_way_around_the_limit_and_the_count_goes_on() -> None:
    rig = Rig("env")
    for _ in range(100):
        rig.emit("env", 100)
        rig.flows.removed(rig.sessions["env"])
        rig.flows.added(rig.sessions["env"])
    assert len(rig.numbers("env")) == 100
    assert rig.flows.counts() == [FlowCount("edge.env", 9900, 0)]
    assert len([each for each in rig.heard if each.method == OVERFLOW]) == 1


@in_virtual_time
async def test_a_word_about_a_subserver_outlives_its_session_and_keeps_its_place() -> None:
    rig = Rig("env")
    rig.emit("env", 150)
    rig.flows.emit_about(rig.sessions["env"], Notification("lost", {"reason": "unplugged"}))
    rig.flows.removed(rig.sessions["env"])
    rig.flows.added(rig.sessions["env"])
    rig.emit("env", 1, 1000)
    await rig.quiet()
    assert [each.method for each in rig.heard[100:]] == [OVERFLOW, "lost", EVENT]
    assert rig.heard[101].params == {"reason": "unplugged", "x-mcpax-source": "edge.env"}


@in_virtual_time
async def test_only_so_many_that_left_are_remembered_and_the_total_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flows_module, "LEFT_REMEMBERED", 3)
    rig = Rig(*(f"s{n}" for n in range(6)), limits=FlowLimits(burst=1))
    for n in range(5):
        rig.emit(f"s{n}", 3)
        rig.flows.emit_about(rig.sessions[f"s{n}"], Notification("lost"))  # waits; forgotten with its flow, it counts as dropped
        rig.flows.removed(rig.sessions[f"s{n}"])
    rig.emit("s5", 3)
    assert [count.source for count in rig.flows.counts()] == ["edge.s2", "edge.s3", "edge.s4", "edge.s5"]
    assert (rig.flows.dropped, len(rig.flows._flows)) == (2 * 3 + 3 * 2, 4)
    await rig.quiet()
    assert len([each for each in rig.heard if each.method == "lost"]) == 3
    assert rig.flows.dropped == 12


@in_virtual_time
async def test_one_that_is_there_again_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flows_module, "LEFT_REMEMBERED", 1)
    rig = Rig("env", "lab", "zoo")
    rig.flows.removed(rig.sessions["env"])
    rig.flows.added(rig.sessions["env"])
    rig.flows.removed(rig.sessions["lab"])
    rig.flows.removed(rig.sessions["zoo"])
    rig.emit("env", 1)
    assert rig.numbers("env") == [0]


@in_virtual_time
async def test_closing_leaves_no_timer() -> None:
    rig = Rig("env", "lab")
    rig.emit("env", 2000)
    rig.emit("lab", 200)
    assert rig.timers() == 2
    rig.flows.close()
    assert rig.timers() == 0
    await asyncio.sleep(5)
    assert len(rig.numbers("env")) == 100
