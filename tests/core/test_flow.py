"""One subserver's notifications on their way up: their order, their number, what is dropped, and that nothing gets lost uncounted."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpax.core.flow import DEFAULT_LIMITS, OVERFLOW, TELL_EVERY_S, Flow, FlowLimits
from mcpax.core.subserver import Notification

SMALL = FlowLimits(per_s=10, burst=5, depth=7, notification_bytes=80, buffer_bytes=420)
"""Every limit within reach of a short script."""
ROUNDING = 1e-6


def event(n: int, **more: Any) -> Notification:
    return Notification("notifications/mcpax/event", {"n": n, **more})


@dataclass
class Upstream:
    """A flow, its time, and what came out of it when."""

    flow: Flow
    now: float = 0.0
    offered: int = 0
    passed: list[tuple[float, Notification]] = field(default_factory=list)
    overflows: list[tuple[float, dict[str, Any]]] = field(default_factory=list)

    def offer(self, count: int = 1, **more: Any) -> None:
        for _ in range(count):
            self.offered += 1
            self._came(self.flow.offer(event(self.offered, **more), self.now))

    def offer_this(self, notification: Notification) -> None:
        self.offered += 1
        self._came(self.flow.offer(notification, self.now))

    def wait(self, seconds: float) -> None:
        """Let time pass, and come back whenever the flow asks for it, as `flows` does."""
        until = self.now + seconds
        while (wait_s := self.flow.wait_s(self.now)) is not None and self.now + wait_s <= until:
            self.now += wait_s
            self.take()
        self.now = until

    def end(self) -> None:
        self._came(self.flow.end(self.now))

    def take(self) -> None:
        self._came(self.flow.take(self.now))

    def _came(self, notifications: list[Notification]) -> None:
        for each in notifications:
            if each.method == OVERFLOW:
                self.overflows.append((self.now, each.params))
            else:
                self.passed.append((self.now, each))

    @property
    def numbers(self) -> list[int]:
        return [each.params["n"] for _, each in self.passed]


def upstream(limits: FlowLimits = DEFAULT_LIMITS) -> Upstream:
    return Upstream(Flow("edge.env", limits, 0.0))


# --- the rate


def test_the_limits_are_the_drafts() -> None:
    assert (DEFAULT_LIMITS.per_s, DEFAULT_LIMITS.depth) == (100, 1000)


def test_a_hundred_pass_at_once_then_a_hundred_a_second_in_order() -> None:
    up = upstream()
    up.offer(350)
    assert len(up.passed) == 100
    up.wait(1.0)
    assert len(up.passed) in (199, 200)
    up.wait(1.6)
    assert up.numbers == list(range(1, 351))
    assert not up.overflows
    assert up.flow.wait_s(up.now) is None


def test_what_is_within_the_limit_never_waits() -> None:
    up = upstream()
    for _ in range(500):
        up.offer()
        assert not up.flow.buffered
        up.now += 0.011
    assert len(up.passed) == 500


def test_a_new_one_does_not_overtake_those_that_wait() -> None:
    up = upstream()
    up.offer(101)
    up.now += 0.5  # fifty might pass, but nobody has come back for them
    up.offer()
    assert up.numbers == list(range(1, 103))


def test_silence_saves_up_no_more_than_the_burst() -> None:
    up = upstream()
    up.now += 3600
    up.offer(200)
    assert len(up.passed) == 100


def test_a_clock_that_goes_back_takes_nothing_away() -> None:
    up = upstream()
    up.now = -5.0
    up.offer(100)
    assert len(up.passed) == 100


# --- overflow


def test_beyond_the_depth_the_oldest_is_dropped_and_counted() -> None:
    up = upstream()
    up.offer(1103)
    assert (up.flow.buffered, up.flow.dropped) == (1000, 3)
    up.wait(10.1)
    assert up.numbers == [*range(1, 101), *range(104, 1104)]


def test_overflow_is_told_when_it_begins_then_once_a_second_and_in_the_end_all_was_told() -> None:
    up = upstream()
    up.offer(1101)
    assert up.overflows == [(0.0, {"x-mcpax-source": "edge.env", "dropped": 1, "dropped_total": 1})]
    for _ in range(250):  # 2.5 s of twice what may pass
        up.wait(0.01)
        up.offer(2)
    told_at = [at for at, _ in up.overflows]
    assert told_at == pytest.approx([0, 1, 2], abs=0.02)
    up.wait(10)
    assert [at for at, _ in up.overflows] == pytest.approx([0, 1, 2, 3], abs=0.02)
    assert sum(params["dropped"] for _, params in up.overflows) == up.flow.dropped
    assert [params["dropped_total"] for _, params in up.overflows][-1] == up.flow.dropped
    up.wait(100)
    assert len(up.overflows) == 4


def test_without_any_depth_what_may_pass_still_passes() -> None:
    up = upstream(FlowLimits(depth=0))
    up.offer(101)
    assert (len(up.passed), up.flow.dropped, up.flow.buffered) == (100, 1, 0)


# --- size


def test_one_that_is_too_large_is_dropped_and_the_next_is_not() -> None:
    up = upstream()
    up.offer(text="x" * 65536)
    assert (up.flow.dropped, up.overflows[0][1]["dropped"]) == (1, 1)
    up.offer(text="x" * 65000)
    assert up.numbers == [2]


def test_the_size_that_counts_is_that_of_the_whole_as_json() -> None:
    bare = len('{"method":"m","params":{"t":""}}')
    up = upstream()
    up.offer_this(Notification("m", {"t": "x" * (65536 - bare)}))
    assert len(up.passed) == 1
    up.offer_this(Notification("m", {"t": "x" * (65536 - bare + 1)}))
    up.offer_this(Notification("m" * 2, {"t": "x" * (65536 - bare)}))
    assert (len(up.passed), up.flow.dropped) == (1, 2)


def test_the_buffer_is_bounded_by_size_too() -> None:
    up = upstream()
    up.offer(100)
    up.offer(40, text="x" * 60_000)
    assert up.flow.buffered * 60_000 <= 1024 * 1024 < (up.flow.buffered + 1) * 60_100
    assert up.flow.dropped == 40 - up.flow.buffered
    up.wait(1)
    assert up.numbers[100:] == list(range(141 - len(up.numbers[100:]), 141))


def deep(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value", [object(), "\ud800", {None: 1}, 10**5000, deep(100_000)], ids=["object", "surrogate", "key", "huge", "deep"]
)
def test_what_json_cannot_say_is_dropped_and_counted(value: Any) -> None:
    up = upstream()
    up.offer(value=value)
    up.offer()
    assert (up.flow.dropped, up.numbers) == (1, [2])


@pytest.mark.parametrize("levels", range(900, 1010))
def test_no_depth_of_nesting_gets_stuck(levels: int) -> None:
    up = upstream()
    up.offer(value=deep(levels))
    up.offer()
    assert up.numbers[-1] == 2
    assert len(up.passed) + up.flow.dropped == 2


# --- the end


def test_the_end_drops_and_counts_what_waits_and_leaves_the_aggregators_own_word() -> None:
    up = upstream(SMALL)
    up.offer(8)
    up.flow.offer(Notification("lost"), up.now, lasting=True)
    up.offer(2)
    up.end()
    assert (up.flow.buffered, up.flow.dropped) == (1, 5)
    up.wait(2)
    assert [each.method for _, each in up.passed[5:]] == ["lost"]
    assert up.overflows[-1][1]["dropped_total"] == 5
    assert up.flow.wait_s(up.now) is None


def test_the_end_gives_room_and_no_allowance() -> None:
    up = upstream(SMALL)
    up.offer(12)
    up.end()
    up.offer(7)
    assert (len(up.passed), up.flow.buffered, up.flow.dropped) == (5, 7, 7)


# --- content


@pytest.mark.req("AX-12-3")
@pytest.mark.parametrize("waits", [False, True])
def test_event_id_causal_parent_and_all_else_come_out_as_they_went_in(waits: bool) -> None:
    up = upstream()
    up.offer(100 if waits else 0)
    sent = [
        event(1, **{"x-mcpax-event-id": "3F2504E0-4f89-11d3-9a0c-0305e82c3301", "x-mcpax-causal-parent": None}),
        event(2, **{"x-mcpax-event-id": "no uuid", "x-mcpax-causal-parent": "3F2504E0-4f89-11d3-9a0c-0305e82c3301"}),
        event(
            2, **{"x-mcpax-event-id": "no uuid", "x-mcpax-causal-parent": "no uuid"}
        ),  # the same again, its own parent: none of our business
        event(3, values=[1.0, 1, -0.0, 1e300, 2**80, True, None, "é\u0000", {"": {}}], _meta={"a": [[]]}),
    ]
    for each in sent:
        up.offer_this(each)
    up.wait(1)
    came = [each for _, each in up.passed][-4:]
    assert came == sent
    assert [repr(each) for each in came] == [repr(each) for each in sent]  # 1 and 1.0 and True are equal, and not the same


# --- whatever happens

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("offer"), st.integers(1, 30)),
        st.tuples(st.just("large"), st.integers(1, 3)),
        st.tuples(st.just("wait"), st.floats(0, 3)),
        st.tuples(st.just("skip"), st.floats(0, 3)),
        st.tuples(st.just("take"), st.just(0)),
        st.tuples(st.just("end"), st.just(0)),
    ),
    max_size=40,
)


@given(STEPS, st.sampled_from([SMALL, FlowLimits(per_s=3, burst=1, depth=2), FlowLimits(per_s=100, burst=3, depth=50, buffer_bytes=500)]))
def test_order_rate_and_count_hold_whatever_happens(steps: list[tuple[str, Any]], limits: FlowLimits) -> None:
    up = upstream(limits)
    for what, amount in steps:
        match what:
            case "offer":
                up.offer(amount)
            case "large":
                up.offer(amount, text="x" * limits.notification_bytes)
            case "wait":
                up.wait(amount)
            case "skip":
                up.now += amount  # nobody came back in time
            case "take":
                up.take()
            case "end":
                up.end()
        assert up.offered == len(up.passed) + up.flow.dropped + up.flow.buffered
        assert up.flow.buffered <= limits.depth
    assert up.numbers == sorted(set(up.numbers)), "in order, none twice"
    times = [at for at, _ in up.passed]
    for first, begin in enumerate(times):
        for last in range(first, len(times)):
            assert last - first + 1 <= limits.burst + limits.per_s * (times[last] - begin) + ROUNDING
    told = [at for at, _ in up.overflows]
    assert all(later - earlier >= TELL_EVERY_S - ROUNDING for earlier, later in pairwise(told))
    up.wait(1000)
    assert not up.flow.buffered
    assert up.flow.wait_s(up.now) is None
    assert sum(params["dropped"] for _, params in up.overflows) == up.flow.dropped == up.offered - len(up.passed)


@given(STEPS)
def test_no_more_is_held_back_or_dropped_than_must_be(steps: list[tuple[str, Any]]) -> None:
    up = upstream(SMALL)
    for what, amount in steps:
        dropped, waiting, passed = up.flow.dropped, up.flow.buffered, len(up.passed)
        if what == "offer":
            up.offer(amount)
            assert up.flow.dropped == dropped or up.flow.buffered == SMALL.depth
        elif what == "wait":
            up.wait(amount)
            assert len(up.passed) - passed >= min(waiting, int(amount * SMALL.per_s) - 1)
            assert up.flow.dropped == dropped
