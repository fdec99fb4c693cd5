"""The session against a stub that follows §5 exactly, over a faulty line, in virtual time: outcomes are true and nothing runs twice."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from mcpax.bridge.counters import DeviceCounters
from mcpax.bridge.maps.model import DeviceMap, Field, FieldType, Profile, ToolMap
from mcpax.bridge.session import MAX_QUEUE, RESTART_PAUSE_S, SILENT_WORK_S, StubSession
from mcpax.bridge.wire.dialect import dialect_for
from mcpax.bridge.wire.messages import CallRequest, Event, Heartbeat, HeartbeatRequest, Registration, Response, Status, outcome_of
from mcpax.capability import Capability
from mcpax.errors import ErrorKind, Fault, Outcome
from tests.harness.model_stub import Answer, Fate, ModelTransport
from tests.harness.virtual_time import VirtualTimeLoop

ONCE, IDEMPOTENT = 1, 2
HEARTBEAT_S = 1.0
EXAMPLES = int(os.environ.get("MCPAX_EXAMPLES", "300"))
FAILED = 64
"""Status of a handler's own error."""


def device_map(profile: Profile) -> DeviceMap:
    def tool(number: int, name: str, *, idempotent: bool) -> ToolMap:
        capability = Capability(mutable=True, reversible=False, idempotent=idempotent)
        return ToolMap(number, name, "", capability, args=(Field("tag", FieldType.U16),), results=(Field("count", FieldType.U32),))

    return DeviceMap("model", profile, "1.0.0", tools=(tool(ONCE, "once", idempotent=False), tool(IDEMPOTENT, "again", idempotent=True)))


class Listener:
    """Stands in for the device."""

    def __init__(self) -> None:
        self.synchronisations = 0
        self.events: list[Event] = []
        self.reasons: list[str] = []

    def heard(self) -> None: ...

    def synchronised(self, heartbeat: Heartbeat) -> None:  # noqa: ARG002
        self.synchronisations += 1

    def registered(self, registration: Registration) -> None: ...

    def event(self, event: Event) -> None:
        self.events.append(event)

    def lost(self, reason: str) -> None:
        self.reasons.append(reason)


@dataclass
class Made:
    """One call that a test made, and how it ended."""

    tag: int
    tool: int
    task: asyncio.Task[Response]

    @property
    def ended(self) -> bool:
        return self.task.done()

    @property
    def outcome(self) -> Outcome:
        error = self.task.exception()
        if error is None:
            return outcome_of(self.task.result().status)
        assert isinstance(error, Fault), f"call {self.tag} ended with {error!r}"
        assert error.outcome is not None
        return error.outcome


@dataclass
class Bench:
    """A session, a model stub and the line between them."""

    profile: Profile = Profile.A
    window: int = 1
    kept: int | None = None
    answers: dict[int, Answer] = field(default_factory=dict)
    """What the handler does with a tag; without an entry it counts and answers."""

    def __post_init__(self) -> None:
        self.loop = VirtualTimeLoop()
        self.device = device_map(self.profile)
        self.tools = {tool.id: tool for tool in self.device.tools}
        self.count = 0
        self.counted: dict[int, list[int]] = {}
        self.calls: list[Made] = []
        self.listener = Listener()
        self.counters = DeviceCounters()
        self.outstanding: Counter[int] = Counter()
        self.loop.finish(self._start())

    async def _start(self) -> None:
        self.transport = ModelTransport(self.device, self._handle, window=self.window, kept=self.kept)
        self.transport.watch = self._sent
        self.session = StubSession(
            dialect_for(self.device),
            self.transport,
            self.listener,
            self.counters,
            heartbeat_s=HEARTBEAT_S,
            turnaround_s=0.02,
            tap=lambda *_: None,
            name="model",
        )
        self.session.start()

    @property
    def stub(self) -> Any:
        return self.transport.stub

    def _handle(self, _: int, args: list[Any]) -> Answer:
        (tag,) = args
        answer = self.answers.get(tag, Answer())
        if answer.status == Status.OK:
            self.count += 1
            self.counted.setdefault(tag, []).append(self.count)
            return Answer(Status.OK, (self.count,), answer.takes_s)
        return answer

    def _sent(self, message: bytes) -> None:
        """§5: no heartbeat while a call is outstanding, and never more of them than the window."""
        request = dialect_for(self.device).decode_request(message)
        open_calls = self.session._pending
        if isinstance(request, HeartbeatRequest):
            assert not [p for p in open_calls.values() if p.sent and not p.answer.done()], "a heartbeat overtakes a call"
        elif isinstance(request, CallRequest):
            assert len(open_calls) <= self.window, f"{len(open_calls)} calls outstanding, the window is {self.window}"

    def call(self, tag: int, tool: int = ONCE, timeout_s: float | None = 5.0) -> Made:
        deadline = None if timeout_s is None else self.loop.time() + timeout_s
        made = Made(tag, tool, self.loop.create_task(self.session.call(self.tools[tool], [tag], deadline)))
        self.calls.append(made)
        return made

    def wait(self, made: Made) -> Made:
        self.loop.run_until_complete(asyncio.wait([made.task]))
        return made

    def runs_of(self, tag: int) -> list[int]:
        """Boot ids in which a call ran."""
        return [run.boot_id for run in self.stub.runs if run.args == (tag,)]

    def check(self) -> None:
        """What was reported is what happened."""
        for made in self.calls:
            boots = self.runs_of(made.tag)
            assert len(boots) == len(set(boots)), f"call {made.tag} ran twice in one boot"
            if made.tool == ONCE:
                assert len(boots) <= 1, f"call {made.tag} ran {len(boots)} times"
            if not made.ended:
                continue
            if made.outcome is Outcome.NOT_EXECUTED:
                assert not boots, f"call {made.tag} is reported not_executed and ran"
            if made.outcome is Outcome.EXECUTED and not self._forgot_that_it_was_busy(made):
                assert boots, f"call {made.tag} is reported executed and did not run"
            if made.task.exception() is None and made.task.result().status == Status.OK:
                result = dialect_for(self.device).result(self.tools[made.tool], made.task.result().payload)
                assert result[0] in self.counted[made.tag], f"call {made.tag} got another call's answer"

    def _forgot_that_it_was_busy(self, made: Made) -> bool:
        """A stub that keeps fewer responses than its window says response_lost for a call that was busy, too: a limit of such stubs."""
        return (
            self.kept is not None
            and made.task.exception() is None
            and made.task.result().status == Status.RESPONSE_LOST
            and self.answers.get(made.tag, Answer()).status == Status.BUSY
        )

    def close(self) -> None:
        self.session.close()
        self.loop.run_until_complete(asyncio.sleep(0))
        pending = [made.task for made in self.calls if not made.ended]
        if pending:
            self.loop.run_until_complete(asyncio.wait(pending))
        for made in self.calls:
            made.task.exception()  # so that no loop complains of one that nobody looked at
        try:
            self.check()
        finally:
            self.loop.close()


class SessionMachine(RuleBasedStateMachine):
    """Any order of calls, faults, resets, stalls and waiting."""

    bench: Bench

    def __init__(self) -> None:
        super().__init__()
        self.next_tag = 1
        self.next_boot = 2
        self.unplugged = False

    @initialize(profile=st.sampled_from(list(Profile)), window=st.integers(1, 4), few=st.booleans())
    def begin(self, profile: Profile, window: int, few: bool) -> None:
        self.bench = Bench(profile, window, 1 if few else None)

    @rule(
        tool=st.sampled_from([ONCE, ONCE, IDEMPOTENT]),
        timeout_s=st.sampled_from([0.0, 0.01, 0.05, 0.5, 5.0]),
        answer=st.sampled_from(
            [Answer()] * 5
            + [Answer(takes_s=0.03), Answer(takes_s=0.7), Answer(Status.BUSY), Answer(Status.OUT_OF_RANGE), Answer(FAILED)]
            + [Answer(Status.RESULT_TOO_LARGE), Answer(Status.UNKNOWN_TOOL)]
        ),
    )
    def call(self, tool: int, timeout_s: float, answer: Answer) -> None:
        self._call(tool, timeout_s, answer)

    def _call(self, tool: int, timeout_s: float, answer: Answer) -> None:
        tag, self.next_tag = self.next_tag, self.next_tag + 1
        self.bench.answers[tag] = answer
        self.bench.call(tag, tool, timeout_s)

    @rule(
        tool=st.sampled_from([ONCE, ONCE, IDEMPOTENT]),
        request=st.sampled_from(list(Fate)),
        answer=st.sampled_from(list(Fate)),
        before_s=st.sampled_from([0.0, 2.0]),
        after_s=st.sampled_from([0.0, 0.0005, 0.0015, 0.003, 0.01]),
        reset=st.booleans(),
        announces=st.booleans(),
    )
    def call_in_trouble(
        self, *, tool: int, request: Fate, answer: Fate, before_s: float, after_s: float, reset: bool, announces: bool
    ) -> None:
        """A call whose request and answer suffer, with a reset in the middle: what takes many rules to meet by chance."""
        self.bench.loop.advance(before_s)
        self.bench.transport.to_stub.fates.appendleft(request)
        self.bench.transport.to_gateway.fates.appendleft(answer)
        self._call(tool, 5.0, Answer())
        self.bench.loop.advance(after_s)
        if reset:
            self._reset(announces, cut=False)

    @rule(fates=st.lists(st.sampled_from(list(Fate)), min_size=1, max_size=6))
    def disturb_to_stub(self, fates: list[Fate]) -> None:
        self.bench.transport.to_stub.fates.extend(fates)

    @rule(fates=st.lists(st.sampled_from(list(Fate)), min_size=1, max_size=6))
    def disturb_to_gateway(self, fates: list[Fate]) -> None:
        self.bench.transport.to_gateway.fates.extend(fates)

    @rule(seconds=st.sampled_from([0.0, 0.0005, 0.0015, 0.003, 0.01, 0.05, 0.3, 1.5]))
    def wait(self, seconds: float) -> None:
        self.bench.loop.advance(seconds)

    @rule(announces=st.booleans(), cut=st.booleans())
    def reset(self, announces: bool, cut: bool) -> None:
        self._reset(announces, cut=cut)

    def _reset(self, announces: bool, *, cut: bool) -> None:
        async def press() -> None:
            bench = self.bench
            bench.stub.reset(self.next_boot)
            self.next_boot += 1
            if cut:
                bench.transport.to_stub.cut()
            if announces:
                bench.stub.announce()

        self.bench.loop.finish(press())

    @rule(seconds=st.sampled_from([0.0, 0.002, 0.1]))
    def stall(self, seconds: float) -> None:
        """The port takes nothing for a while."""
        self.bench.transport.stalled = True
        self._call(ONCE, 0.05, Answer())
        self.bench.loop.advance(seconds)
        self.bench.transport.stalled = False

    @rule()
    def cancel_oldest(self) -> None:
        for made in self.bench.calls:
            if not made.ended:
                made.task.cancel()
                self.bench.loop.advance(0)
                self.bench.calls.remove(made)
                return

    @precondition(lambda self: not self.unplugged)
    @rule(dice=st.integers(1, 30))
    def unplug(self, dice: int) -> None:
        if dice == 30:  # rarely, because nothing more happens after it
            self.unplugged = True
            self.bench.transport.lose()

    @invariant()
    def truth(self) -> None:
        if hasattr(self, "bench"):
            self.bench.check()

    def teardown(self) -> None:
        if not hasattr(self, "bench"):
            return
        bench = self.bench
        bench.transport.stalled = False
        bench.transport.to_stub.fates.clear()
        bench.transport.to_gateway.fates.clear()
        bench.loop.advance(5.0)
        if not bench.listener.reasons:
            # The line is good again: whatever happened, the next call runs.
            last = bench.wait(bench.call(60_000, timeout_s=60.0))
            bench.loop.advance(5.0)
            if not bench.listener.reasons:
                assert last.outcome is Outcome.EXECUTED, f"does not recover: {last.task.exception()!r}"
        bench.loop.advance(5.0)  # everything that is still on its way arrives
        bench.close()


def test_no_call_runs_twice_and_every_outcome_is_true() -> None:
    run_state_machine_as_test(
        SessionMachine,
        settings=settings(
            max_examples=EXAMPLES, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True
        ),
    )


# --- one rule at a time

MakeBench = Callable[..., Bench]
PROFILES = pytest.mark.parametrize("profile", list(Profile))


@pytest.fixture
def ready() -> Iterator[MakeBench]:
    """Makes benches whose session is synchronised; checks at the end that all they reported is true."""
    made: list[Bench] = []

    def make(profile: Profile = Profile.A, window: int = 1, **options: Any) -> Bench:
        bench = Bench(profile, window, **options)
        made.append(bench)
        bench.loop.advance(0.1)
        assert bench.listener.synchronisations == 1
        return bench

    yield make
    for bench in made:
        bench.close()


def fault_of(made: Made) -> Fault:
    error = made.task.exception()
    assert isinstance(error, Fault)
    return error


@PROFILES
def test_a_lost_answer_is_asked_for_again_and_nothing_runs_again(ready: MakeBench, profile: Profile) -> None:
    bench = ready(profile)
    bench.transport.to_gateway.fates.extend([Fate.DROP, Fate.CORRUPT])
    assert bench.wait(bench.call(7)).outcome is Outcome.EXECUTED
    assert len(bench.runs_of(7)) == 1
    assert bench.counters.retries == 2


@PROFILES
def test_copies_of_answers_are_counted_and_dropped(ready: MakeBench, profile: Profile) -> None:
    bench = ready(profile)
    bench.transport.to_gateway.fates.append(Fate.TWICE)
    bench.wait(bench.call(7))
    bench.loop.advance(0.01)
    assert bench.counters.duplicates_suppressed == 1


@PROFILES
def test_a_late_answer_is_never_taken_for_another_calls(ready: MakeBench, profile: Profile) -> None:
    bench = ready(profile)
    bench.answers[1] = Answer(takes_s=0.3)
    late = bench.wait(bench.call(1, timeout_s=0.1))
    assert fault_of(late).kind is ErrorKind.DEVICE_TIMEOUT
    assert late.outcome is Outcome.UNKNOWN  # it did run, and nobody can know yet
    assert bench.wait(bench.call(2)).outcome is Outcome.EXECUTED
    assert bench.counters.duplicates_suppressed >= 1


@PROFILES
def test_a_board_that_restarted_unnoticed_runs_the_call_after_synchronising(ready: MakeBench, profile: Profile) -> None:
    bench = ready(profile)
    bench.stub.reset(2)
    assert bench.wait(bench.call(7)).outcome is Outcome.EXECUTED
    assert bench.runs_of(7) == [2]
    assert bench.counters.reboots == 1


@PROFILES
def test_a_restart_after_a_copy_may_have_run_is_unknown(ready: MakeBench, profile: Profile) -> None:
    bench = ready(profile)
    bench.transport.to_gateway.fates.append(Fate.DROP)  # it runs, and the answer is lost
    made = bench.call(7)
    bench.loop.advance(0.005)
    bench.stub.reset(2)
    assert bench.wait(made).outcome is Outcome.UNKNOWN
    assert bench.runs_of(7) == [1]


@PROFILES
def test_an_idempotent_call_goes_on_after_a_restart(ready: MakeBench, profile: Profile) -> None:
    bench = ready(profile)
    bench.transport.to_gateway.fates.append(Fate.DROP)
    made = bench.call(7, IDEMPOTENT)
    bench.loop.advance(0.005)
    bench.stub.reset(2)
    assert bench.wait(made).outcome is Outcome.EXECUTED
    assert bench.runs_of(7) == [1, 2]


@PROFILES
@pytest.mark.parametrize("then", ["deadline", "refused", "unplugged"])
def test_what_may_have_run_before_a_restart_is_never_not_executed(ready: MakeBench, profile: Profile, then: str) -> None:
    bench = ready(profile)
    bench.transport.to_gateway.fates.append(Fate.DROP)
    made = bench.call(7, IDEMPOTENT, timeout_s=0.2)
    bench.loop.advance(0.005)
    bench.stub.reset(2)
    if then == "deadline":
        bench.transport.to_gateway.fates.extend([Fate.PASS] + [Fate.DROP] * 100)  # it hears of the restart, and nothing after
    elif then == "refused":
        bench.answers[7] = Answer(Status.BUSY)
    else:
        bench.loop.advance(0.01)
        bench.transport.lose()
    assert bench.wait(made).outcome is Outcome.UNKNOWN
    assert bench.runs_of(7) == [1]


@PROFILES
def test_a_refusal_of_one_of_several_copies_is_unknown(ready: MakeBench, profile: Profile) -> None:
    """A copy damaged unseen is refused, and the next one runs: only together do they tell."""
    bench = ready(profile)
    bench.answers[8] = Answer(Status.BAD_ARGUMENTS)
    assert bench.wait(bench.call(8)).outcome is Outcome.NOT_EXECUTED, "the only copy was refused"
    bench.answers[9] = Answer(Status.BAD_ARGUMENTS)
    bench.transport.to_gateway.fates.append(Fate.DROP)
    refused = bench.wait(bench.call(9))
    assert refused.outcome is Outcome.UNKNOWN
    assert "bad_arguments" in fault_of(refused).message


def test_a_new_boot_id_ends_outstanding_calls(ready: MakeBench) -> None:
    bench = ready(Profile.A)
    bench.answers[7] = Answer(takes_s=1.0)
    made = bench.call(7)
    bench.loop.advance(0.005)

    async def press() -> None:
        bench.stub.reset(2)
        bench.stub.announce()

    bench.loop.finish(press())
    before = bench.loop.time()
    assert bench.wait(made).outcome is Outcome.UNKNOWN
    assert fault_of(made).kind is ErrorKind.DEVICE_LOST
    assert bench.loop.time() - before < 0.01, "told at once, not at the deadline"


def test_an_idle_board_that_announces_itself_is_synchronised_at_once(ready: MakeBench) -> None:
    bench = ready(Profile.B)
    bench.loop.advance(0.2)

    async def press() -> None:
        bench.stub.reset(2)
        bench.stub.announce()

    bench.loop.finish(press())
    bench.loop.advance(0.1)
    assert bench.listener.synchronisations == 2


@PROFILES
def test_a_port_that_takes_nothing_means_not_executed(ready: MakeBench, profile: Profile) -> None:
    bench = ready(profile)
    bench.transport.stalled = True
    sent = len(bench.transport.sent)
    made = bench.wait(bench.call(7, timeout_s=0.5))
    assert made.outcome is Outcome.NOT_EXECUTED
    assert len(bench.transport.sent) == sent


@PROFILES
def test_a_silent_board_means_unknown_and_how_often_it_was_asked(ready: MakeBench, profile: Profile) -> None:
    bench = ready(profile)
    bench.transport.to_stub.fates.extend([Fate.DROP] * 100)
    made = bench.wait(bench.call(7, timeout_s=0.5))
    assert made.outcome is Outcome.UNKNOWN
    assert f"asked {bench.counters.retries + 1} times" in fault_of(made).message
    assert 3 <= bench.counters.retries <= 10, "it backs off"


@PROFILES
def test_a_deadline_that_has_passed_sends_nothing(ready: MakeBench, profile: Profile) -> None:
    bench = ready(profile)
    sent = len(bench.transport.sent)
    assert bench.wait(bench.call(7, timeout_s=0.0)).outcome is Outcome.NOT_EXECUTED
    assert len(bench.transport.sent) == sent


@PROFILES
def test_more_calls_than_the_queue_takes_are_refused_as_busy(ready: MakeBench, profile: Profile) -> None:
    bench = ready(profile)
    calls = [bench.call(tag) for tag in range(MAX_QUEUE + 3)]
    for made in calls:
        bench.wait(made)
    refused = [made for made in calls if made.task.exception()]
    assert len(refused) == 2
    assert {fault_of(made).kind for made in refused} == {ErrorKind.DEVICE_BUSY}
    assert {made.outcome for made in refused} == {Outcome.NOT_EXECUTED}


@PROFILES
@pytest.mark.parametrize("window", [1, 2, 4])
def test_the_window_is_used_in_full(ready: MakeBench, profile: Profile, window: int) -> None:
    bench = ready(profile, window)
    bench.transport.to_stub.latency_s = bench.transport.to_gateway.latency_s = 0.05
    bench.wait(bench.call(999))  # so that the round trip is known
    started = bench.loop.time()
    calls = [bench.call(tag) for tag in range(40)]
    for made in calls:
        bench.wait(made)
    rounds = (bench.loop.time() - started) / 0.1
    assert rounds == pytest.approx(40 / window, rel=0.2), "one round trip for each window of calls"


@PROFILES
def test_sequences_wrap_around(ready: MakeBench, profile: Profile) -> None:
    bench = ready(profile, 3)
    for tag in range(700):
        assert bench.wait(bench.call(tag)).outcome is Outcome.EXECUTED
    assert bench.count == 700


@PROFILES
@pytest.mark.parametrize("window", [1, 8])
def test_calls_that_never_reach_the_board_cannot_make_it_answer_for_another(ready: MakeBench, profile: Profile, window: int) -> None:
    """Far enough ahead, a sequence looks old to the board; once around, it looks like one that has run."""
    bench = ready(profile, window)
    assert bench.wait(bench.call(1)).outcome is Outcome.EXECUTED
    deliver = bench.transport.to_stub.deliver
    bench.transport.to_stub.deliver = lambda _: None
    for tag in range(1000, 1130):
        made = bench.call(tag)
        bench.loop.advance(0.002)
        if bench.listener.reasons:
            break
        made.task.cancel()
        bench.loop.advance(0.0)
        bench.calls.remove(made)
    bench.transport.to_stub.deliver = deliver
    lost = bench.listener.reasons == ["sequences_unconfirmed"]
    later = [bench.wait(bench.call(tag, timeout_s=0.5)) for tag in range(2000, 2140)]
    assert lost
    assert all(made.outcome is Outcome.NOT_EXECUTED for made in later)
    assert not any(bench.runs_of(made.tag) for made in later)


@PROFILES
def test_a_call_that_was_never_sent_gives_its_sequence_back(ready: MakeBench, profile: Profile) -> None:
    bench = ready(profile)
    before = bench.session._seq
    send, bench.transport.send = bench.transport.send, lambda *_, **__: False  # type: ignore[method-assign]
    for tag in range(200):
        made = bench.call(tag)
        bench.loop.advance(0.001)
        made.task.cancel()
        bench.loop.advance(0.0)
        bench.calls.remove(made)
    bench.transport.send = send  # type: ignore[method-assign]
    assert bench.session._seq == before
    assert bench.wait(bench.call(1000)).outcome is Outcome.EXECUTED


@PROFILES
def test_an_answer_to_an_earlier_owner_of_the_line_synchronises_nobody(ready: MakeBench, profile: Profile) -> None:
    """The old gateway's heartbeat is still being answered, and its call about to run, when the new one opens the port."""
    bench = ready(profile)
    bench.transport.to_gateway.latency_s = 0.03
    new = Listener()

    async def take_over() -> Response:
        bench.session._boot_in_doubt = True
        bench.session._beat()
        await asyncio.sleep(0.0005)
        old = bench.loop.create_task(bench.session.call(bench.tools[ONCE], [111], None))
        await asyncio.sleep(0.002)
        old.cancel()
        session = StubSession(
            dialect_for(bench.device),
            bench.transport,
            new,
            DeviceCounters(),
            heartbeat_s=HEARTBEAT_S,
            turnaround_s=0.02,
            tap=lambda *_: None,
            name="new",
        )
        session.start()
        return await session.call(bench.tools[ONCE], [222], None)

    assert bench.loop.finish(take_over()).status == Status.OK
    assert bench.runs_of(222)


@PROFILES
def test_sequences_that_an_earlier_owner_may_have_used_are_skipped(ready: MakeBench, profile: Profile) -> None:
    bench = ready(profile)
    assert bench.wait(bench.call(1)).outcome is Outcome.EXECUTED
    assert bench.stub._highest > 8  # more than any window


@PROFILES
def test_a_board_that_died_at_work_is_lost_even_to_a_caller_without_a_deadline(ready: MakeBench, profile: Profile) -> None:
    bench = ready(profile)
    bench.transport.to_stub.deliver = lambda _: None
    made = bench.call(1, timeout_s=None)
    bench.loop.advance(SILENT_WORK_S + 3 * HEARTBEAT_S)
    assert bench.listener.reasons == ["heartbeat_timeout"]
    assert made.outcome is Outcome.UNKNOWN


def test_an_idempotent_call_that_brings_the_board_down_is_not_run_for_ever(ready: MakeBench) -> None:
    bench = ready(Profile.A)
    deliver = bench.transport.to_stub.deliver
    boots = iter(range(100, 1000))

    def crash(message: bytes) -> None:
        if isinstance(dialect_for(bench.device).decode_request(message), HeartbeatRequest):
            deliver(message)
        else:
            bench.stub.reset(next(boots))
            bench.stub.announce()

    bench.transport.to_stub.deliver = crash
    made = bench.call(1, IDEMPOTENT, timeout_s=None)
    bench.loop.advance(60)
    assert made.outcome is Outcome.UNKNOWN


@PROFILES
def test_three_unanswered_heartbeats_and_the_board_is_lost(ready: MakeBench, profile: Profile) -> None:
    bench = ready(profile)
    bench.transport.to_gateway.fates.extend([Fate.DROP] * 100)
    bench.loop.advance(2.5 * HEARTBEAT_S)
    assert not bench.listener.reasons, "two misses are none"
    bench.loop.advance(2.5 * HEARTBEAT_S)
    assert bench.listener.reasons == ["heartbeat_timeout"]
    made = bench.wait(bench.call(7))
    assert fault_of(made).kind is ErrorKind.DEVICE_LOST
    assert made.outcome is Outcome.NOT_EXECUTED


@PROFILES
def test_a_board_that_sends_events_all_the_time_is_still_asked(ready: MakeBench, profile: Profile) -> None:
    """Its dead man's switch waits to hear from us, however much we hear from it."""
    bench = ready(profile)
    asked: list[float] = []

    def watch(message: bytes) -> None:
        if isinstance(dialect_for(bench.device).decode_request(message), HeartbeatRequest):
            asked.append(bench.loop.time())

    bench.transport.watch = watch
    began = bench.loop.time()
    for count in range(100):
        say(bench, bench.stub.writer.event(1, count))
        bench.loop.advance(HEARTBEAT_S / 10)
    assert len(bench.listener.events) == 100
    gaps = [later - earlier for earlier, later in pairwise([began, *asked, bench.loop.time()])]
    assert max(gaps) <= 1.5 * HEARTBEAT_S


@PROFILES
def test_a_lost_port_ends_calls_before_the_listener_hears_of_it(ready: MakeBench, profile: Profile) -> None:
    bench = ready(profile)
    bench.answers[1] = Answer(takes_s=1.0)
    running, waiting = bench.call(1), bench.call(2)
    bench.loop.advance(0.01)
    bench.transport.lose()
    assert bench.listener.reasons == ["unplugged"]
    assert bench.wait(running).outcome is Outcome.UNKNOWN
    assert bench.wait(waiting).outcome is Outcome.NOT_EXECUTED


# --- boards that do not keep to the rules


def say(bench: Bench, *messages: bytes) -> None:
    async def speak() -> None:
        for message in messages:
            bench.transport.to_gateway.put(message)

    bench.loop.finish(speak())
    bench.loop.advance(0.01)


def test_an_answer_for_another_tool_is_refused(ready: MakeBench) -> None:
    bench = ready(Profile.A)
    bench.transport.to_stub.fates.extend([Fate.DROP] * 3)
    made = bench.call(7)
    bench.loop.advance(0.001)
    say(bench, bench.stub.writer.response(bench.session._seq, IDEMPOTENT, Status.OK, [99]))
    assert not made.ended
    assert bench.counters.refused_messages == 1
    assert bench.wait(made).outcome is Outcome.EXECUTED


@PROFILES
def test_an_answer_to_a_call_that_was_never_sent_is_refused(ready: MakeBench, profile: Profile) -> None:
    bench = ready(profile)
    bench.transport.stalled = True
    made = bench.call(7, timeout_s=0.5)
    bench.loop.advance(0.001)
    say(bench, bench.stub.writer.response(bench.session._seq, ONCE, Status.OK, [99]))
    assert not made.ended
    assert bench.counters.refused_messages == 1
    assert bench.wait(made).outcome is Outcome.NOT_EXECUTED


@PROFILES
def test_a_board_with_ever_new_boot_ids_is_not_chased(profile: Profile) -> None:
    bench = Bench(profile)
    boots = iter(range(2, 60_000))

    def answer(message: bytes) -> None:
        if isinstance(dialect_for(bench.device).decode_request(message), HeartbeatRequest):
            bench.transport.to_gateway.put(bench.stub.writer.heartbeat(0, next(boots), synchronised=False, window=1))

    bench.transport.to_stub.deliver = answer
    bench.loop.advance(2.0)
    sent = len(bench.transport.sent)
    assert 10 < sent <= 2.0 / RESTART_PAUSE_S + 5, f"{sent} messages in 2 s"
    bench.loop.advance(5.0)
    assert bench.listener.reasons == ["heartbeat_timeout"]
    bench.close()


@PROFILES
def test_nonsense_is_counted_and_told_once_a_second(ready: MakeBench, profile: Profile, capsys: pytest.CaptureFixture[str]) -> None:
    bench = ready(profile)
    capsys.readouterr()
    say(bench, *[b"\xff\xff\xff"] * 1000)
    assert bench.counters.refused_messages == 1000
    assert capsys.readouterr().out.count("message_refused") == 1
