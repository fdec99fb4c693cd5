"""The session against a stub that follows §5 exactly, over a faulty line, in virtual time: outcomes are true and nothing runs twice."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from mcpax.bridge.counters import DeviceCounters
from mcpax.bridge.maps.model import DeviceMap, Field, FieldType, Profile, ToolMap
from mcpax.bridge.session import StubSession
from mcpax.bridge.wire.dialect import dialect_for
from mcpax.bridge.wire.messages import CallRequest, Event, Heartbeat, HeartbeatRequest, Registration, Response, Status, outcome_of
from mcpax.capability import Capability
from mcpax.errors import Fault, Outcome
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
            if made.outcome is Outcome.EXECUTED:
                assert boots, f"call {made.tag} is reported executed and did not run"
            if made.task.exception() is None and made.task.result().status == Status.OK:
                result = dialect_for(self.device).result(self.tools[made.tool], made.task.result().payload)
                assert result[0] in self.counted[made.tag], f"call {made.tag} got another call's answer"

    def close(self) -> None:
        self.session.close()
        self.loop.run_until_complete(asyncio.sleep(0))
        pending = [made.task for made in self.calls if not made.ended]
        if pending:
            self.loop.run_until_complete(asyncio.wait(pending))
        self.check()
        self.loop.close()


PROFILES = pytest.mark.parametrize("profile", list(Profile))


@pytest.fixture
def benches() -> Iterator[list[Bench]]:
    made: list[Bench] = []
    yield made
    for bench in made:
        bench.close()


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
        tag, self.next_tag = self.next_tag, self.next_tag + 1
        self.bench.answers[tag] = answer
        self.bench.call(tag, tool, timeout_s)

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
        async def press() -> None:
            bench = self.bench
            bench.stub.reset(self.next_boot)
            self.next_boot += 1
            if cut:
                bench.transport.to_stub.cut()
            if announces:
                bench.stub.announce()

        self.bench.loop.finish(press())

    @rule(stalled=st.booleans())
    def stall(self, stalled: bool) -> None:
        """The port takes nothing more, or again."""
        self.bench.transport.stalled = stalled

    @rule()
    def cancel_oldest(self) -> None:
        for made in self.bench.calls:
            if not made.ended:
                made.task.cancel()
                self.bench.loop.advance(0)
                self.bench.calls.remove(made)
                return

    @precondition(lambda self: not self.unplugged)
    @rule(really=st.sampled_from([False, False, False, True]))
    def unplug(self, really: bool) -> None:
        if really:
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


@pytest.mark.req("AX-B.4-1")
def test_no_call_runs_twice_and_every_outcome_is_true() -> None:
    run_state_machine_as_test(
        SessionMachine,
        settings=settings(
            max_examples=EXAMPLES, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True
        ),
    )
