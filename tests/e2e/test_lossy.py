"""The gateway and the real C stub over a line that drops, damages, doubles and cuts a fifth of all frames: no call runs twice.

What was reported is compared, call by call, with what the board itself said at its clean end of the line. Each call carries a number of
its own as argument, so every run can be traced to its call.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mcpax.bridge.maps.model import DeviceMap
from mcpax.bridge.wire.dialect import dialect_for
from mcpax.bridge.wire.messages import CallRequest, Heartbeat, Response, Status, WireError
from mcpax.core.aggregator import Aggregator
from mcpax.errors import Fault, Outcome
from tests.harness.lossy import FAULTY, KINDS, LossyLine
from tests.virtual import MAPS, VirtualBoard, running_gateway

SEED = int(os.environ.get("MCPAX_SEED", "20260701"))
CALLS = 10_000
"""On each of two boards."""
CALLS_WITH_RESETS = 1_500
RESET_EVERY = (40, 120)
"""Calls between two presses of the reset button."""


@dataclass(frozen=True)
class Counting:
    """A tool that counts, an argument that can carry a call's number, and where its counter is read."""

    board: str
    tool: str
    tag: str
    others: dict[str, Any]
    tags: int
    count: str
    reading: str
    reading_count: str

    def arguments(self, number: int) -> dict[str, Any]:
        return {**self.others, self.tag: self.tag_of(number)}

    def tag_of(self, number: int) -> int:
        return 1 + number % self.tags


PULSE = Counting("relay-board", "pulse_relay", "duration", {"relay": 1}, 5000, "pulses", "read_relays", "pulses")
DOSE = Counting("valve-actuator", "dose", "amount", {}, 500, "doses", "read_valve", "dosed")


@dataclass
class Reported:
    number: int
    outcome: Outcome
    count: int | None = None


@dataclass
class Rig:
    """One board behind a lossy line, and what was reported of the calls to it."""

    counting: Counting
    board: VirtualBoard
    line: LossyLine
    reported: list[Reported] = field(default_factory=list)

    @property
    def map(self) -> DeviceMap:
        return self.board.map

    async def call(self, aggregator: Aggregator, number: int) -> None:
        name = f"edge.{self.counting.board}.{self.counting.tool}"
        try:
            result = await aggregator.call_tool(name, self.counting.arguments(number))
        except Fault as fault:
            self.reported.append(Reported(number, Outcome(str(fault.outcome))))  # a fault without an outcome is a failure of the test
            return
        assert not result["isError"]
        self.reported.append(Reported(number, Outcome.EXECUTED, result["structuredContent"][self.counting.count]))

    def outcomes(self) -> Counter[Outcome]:
        return Counter(each.outcome for each in self.reported)

    def runs(self) -> list[tuple[int, int, int]]:
        """(boot, count, tag) of every run, by the board's own word at its end of the line."""
        dialect = dialect_for(self.map)
        tool = next(tool for tool in self.map.tools if tool.name == self.counting.tool)
        tag_at = [arg.name for arg in tool.args].index(self.counting.tag)
        count_at = [result.name for result in tool.results].index(self.counting.count)
        asked: dict[int, int] = {}
        runs: dict[tuple[int, int], int] = {}
        boot = 0
        for seen in self.line.truth():
            with contextlib.suppress(WireError):
                if seen.to_board:
                    request = dialect.decode_request(seen.message)
                    if isinstance(request, CallRequest):
                        asked.pop(request.seq, None)
                        if request.tool == tool.id:
                            asked[request.seq] = dialect.args(tool, request.payload)[tag_at]
                    continue
                match dialect.decode(seen.message):
                    case Heartbeat(boot_id=boot):
                        pass
                    case Response(seq, Status.OK, payload) if seq in asked:
                        # What was said for the same count before is the kept response, sent again.
                        runs.setdefault((boot, dialect.result(tool, payload)[count_at]), asked[seq])
        return [(boot, count, tag) for (boot, count), tag in runs.items()]

    def figures(self, counters: dict[str, Any], counter: int | str) -> str:
        outcomes, faults = self.outcomes(), self.line.faults()
        frames = faults.pop("frames")
        return (
            f"{self.counting.board} (profile {self.map.profile}): calls {len(self.reported)}, "
            + ", ".join(f"{outcome} {outcomes[outcome]}" for outcome in Outcome)
            + f", retries {counters['retries']}, duplicates suppressed {counters['duplicates_suppressed']}, device counter {counter}; "
            + f"frames {frames}, faulty {sum(faults.values()) / frames:.1%}: "
            + ", ".join(f"{kind} {faults[kind]}" for kind in KINDS)
        )


@contextlib.contextmanager
def rig(counting: Counting, directory: Path, seed: int) -> Iterator[Rig]:
    (directory / "boards").mkdir(exist_ok=True)
    (directory / "by-id").mkdir(exist_ok=True)
    with VirtualBoard(counting.board, directory / "boards") as board:
        link = directory / "by-id" / board.link.name
        with LossyLine(board.link, link, MAPS / f"{counting.board}.toml", directory / f"{counting.board}.record", seed=seed) as line:
            yield Rig(counting, board, line)


def assert_true_to(reported: list[Reported], runs: list[tuple[int, int, int]], counting: Counting) -> None:
    """Every run belongs to one call that was reported as executed or unknown, in order, and none is there twice."""
    at = 0
    for _, count, tag in runs:
        # Calls were made one after the other, so runs come in their order: skip those that did not run.
        while at < len(reported) and counting.tag_of(reported[at].number) != tag:
            assert reported[at].outcome is not Outcome.EXECUTED, f"call {reported[at].number} is reported executed and did not run"
            at += 1
        assert at < len(reported), f"run {count} with tag {tag} belongs to no call, or to one that ran before"
        call = reported[at]
        assert call.outcome is not Outcome.NOT_EXECUTED, f"call {call.number} is reported not executed and ran as {count}"
        assert call.count in (None, count), f"call {call.number} ran as {count} and was answered {call.count}"
        at += 1
    for call in reported[at:]:
        assert call.outcome is not Outcome.EXECUTED, f"call {call.number} is reported executed and did not run"


async def read_counter(each: Rig, aggregator: Aggregator) -> int:
    result = await aggregator.call_tool(f"edge.{each.counting.board}.{each.counting.reading}", {})
    return int(result["structuredContent"][each.counting.reading_count])


@pytest.mark.slow
@pytest.mark.req("AX-8.1-1")
async def test_no_call_runs_twice_over_a_lossy_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with rig(PULSE, tmp_path, SEED) as pulses, rig(DOSE, tmp_path, SEED + 1) as doses:
        rigs = [pulses, doses]
        bindings = tuple(each.board.binding for each in rigs)
        async with running_gateway([], bindings=bindings, by_id_dirs=(tmp_path / "by-id",)) as running:
            aggregator, bridge = running.gateway.aggregator, running.gateway.bridge

            async def load(each: Rig) -> None:
                for number in range(CALLS):
                    await each.call(aggregator, number)

            await asyncio.gather(*(load(each) for each in rigs))
            for each in rigs:
                each.line.tell("rate 0")
            counters = {device["segment"]: device["counters"] for device in bridge.devices()}
            read = [await read_counter(each, aggregator) for each in rigs]
        for each in rigs:
            each.line.tell("stats")
        amounts = [DOSE.tag_of(number) for number in range(CALLS)]
        runs = [each.runs() for each in rigs]
        with capsys.disabled():
            print()
            for each, counter in zip(rigs, (read[0], len(runs[1])), strict=True):
                print(f"seed {each.line.seed}: {each.figures(counters[each.counting.board], counter)}")

        for each, ran in zip(rigs, runs, strict=True):
            where = f"{each.counting.board}, seed {each.line.seed}"
            outcomes = each.outcomes()
            assert len(each.reported) == CALLS, where
            assert_true_to(each.reported, ran, each.counting)
            assert outcomes[Outcome.EXECUTED] <= len(ran) <= outcomes[Outcome.EXECUTED] + outcomes[Outcome.UNKNOWN], where
            assert [count for _, count, _ in ran] == list(range(1, len(ran) + 1)), f"{where}: a count was skipped or repeated"
            # Nearly all must get through: a fault costs time, not calls.
            assert outcomes[Outcome.EXECUTED] >= 0.999 * CALLS, f"{where}: {outcomes}"
            assert counters[each.counting.board]["duplicates_suppressed"] > 0, where
            faults = each.line.faults()
            assert sum(faults[kind] for kind in KINDS) == pytest.approx(FAULTY * faults["frames"], rel=0.1), where
            assert min(faults[kind] for kind in KINDS) > 0.03 * faults["frames"], where
        # The boards' own counters, asked for at the end.
        assert read[0] == len(runs[0])
        if doses.outcomes()[Outcome.EXECUTED] == CALLS:
            assert read[1] == sum(amounts)


@pytest.mark.slow
async def test_outcomes_stay_true_when_boards_restart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with rig(PULSE, tmp_path, SEED + 2) as pulses, rig(DOSE, tmp_path, SEED + 3) as doses:
        rigs = [pulses, doses]
        bindings = tuple(each.board.binding for each in rigs)
        resets: Counter[str] = Counter()
        async with running_gateway([], bindings=bindings, by_id_dirs=(tmp_path / "by-id",)) as running:
            loop = asyncio.get_running_loop()

            async def load(each: Rig) -> None:
                dice = random.Random(each.line.seed)
                next_reset = dice.randint(*RESET_EVERY)
                for number in range(CALLS_WITH_RESETS):
                    if number == next_reset:
                        next_reset += dice.randint(*RESET_EVERY)
                        resets[each.counting.board] += 1
                        loop.call_later(dice.uniform(0, 0.003), each.board.reset)  # in the middle of a call, as often as not
                    await each.call(running.gateway.aggregator, number)

            await asyncio.gather(*(load(each) for each in rigs))
            counters = {device["segment"]: device["counters"] for device in running.gateway.bridge.devices()}
        with capsys.disabled():
            print()
            for each in rigs:
                each.line.tell("stats")
                runs = each.runs()
                boots = Counter(boot for boot, _, _ in runs)
                where = f"{each.counting.board}, seed {each.line.seed}"
                print(f"seed {each.line.seed}: {each.figures(counters[each.counting.board], f'{len(runs)} in {len(boots)} boots')}")

                assert len(boots) > resets[each.counting.board] / 2, where
                assert_true_to(each.reported, runs, each.counting)
                for boot in boots:
                    counts = [count for in_boot, count, _ in runs if in_boot == boot]
                    assert counts == list(range(1, len(counts) + 1)), f"{where}: a count was skipped or repeated in boot {boot}"
                # A restart costs the call it hit, and no other.
                assert each.outcomes()[Outcome.UNKNOWN] <= resets[each.counting.board], where
                assert each.outcomes()[Outcome.NOT_EXECUTED] == 0, where
