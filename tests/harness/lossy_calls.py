"""Calls to a board behind a lossy line, and whether what was reported of them is what the board did.

Each call carries a number of its own as argument, so every run can be traced to its call. The truth is the board's own word at its clean
end of the line. Any board will do that has a port and a tool that counts; knows no gateway but its aggregator.
"""

from __future__ import annotations

import asyncio
import contextlib
import glob
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mcpax.bridge.device import Binding
from mcpax.bridge.maps.load import load_map
from mcpax.bridge.maps.model import DeviceMap, PortMatch
from mcpax.bridge.wire.dialect import dialect_for
from mcpax.bridge.wire.messages import CallRequest, Heartbeat, Response, Status, WireError
from mcpax.core.aggregator import Aggregator
from mcpax.errors import Fault, Outcome
from tests.harness.lossy import FAULTY, KINDS, LossyLine

RESET_EVERY = (40, 120)
"""Calls between two presses of the reset button."""
RESET_WITHIN_S = 0.003
"""Of the beginning of a call: in the middle of it, as often as not."""
NEARLY_ALL = 0.999
"""Of the calls must get through: a fault costs time, not calls."""
FAR_OFF = 3.75
"""Standard deviations from the faults there should be: no dice, however few throws."""


@dataclass(frozen=True)
class Counting:
    """A tool that counts, an argument that can carry a call's number, and a reading of what all calls together did."""

    tool: str
    tag: str
    others: dict[str, Any]
    tags: int
    count: str
    reading: str
    read: str
    adds_tags: bool
    """The reading is the sum of all arguments, in 16 bits; otherwise the number of calls."""

    def arguments(self, number: int) -> dict[str, Any]:
        return {**self.others, self.tag: self.tag_of(number)}

    def tag_of(self, number: int) -> int:
        return 1 + number % self.tags

    def reading_after(self, tags: list[int]) -> int:
        return sum(tags) & 0xFFFF if self.adds_tags else len(tags)


PULSE = Counting("pulse_relay", "duration", {"relay": 1}, 5000, "pulses", "read_relays", "pulses", adds_tags=False)
DOSE = Counting("dose", "amount", {}, 500, "doses", "read_valve", "dosed", adds_tags=True)


@dataclass(frozen=True)
class Reported:
    number: int
    outcome: Outcome
    count: int | None = None
    """As answered; of a call that is known to have run and whose answer is lost, nothing."""


@dataclass(frozen=True)
class Run:
    """By the board's own word."""

    boot: int
    count: int
    tag: int


@dataclass
class LossyBoard:
    """One board behind a lossy line, and what was reported of the calls to it."""

    segment: str
    map: DeviceMap
    counting: Counting
    line: LossyLine
    reported: list[Reported] = field(default_factory=list)

    @property
    def binding(self) -> Binding:
        return Binding(self.segment, self.map, PortMatch(by_id=glob.escape(self.line.link.name)))

    @property
    def where(self) -> str:
        return f"{self.segment}, seed {self.line.seed}"

    async def call(self, aggregator: Aggregator, number: int) -> None:
        try:
            result = await aggregator.call_tool(f"edge.{self.segment}.{self.counting.tool}", self.counting.arguments(number))
        except Fault as fault:
            self.reported.append(Reported(number, Outcome(str(fault.outcome))))  # a fault without an outcome is a failure of the test
            return
        assert not result["isError"]
        self.reported.append(Reported(number, Outcome.EXECUTED, result["structuredContent"][self.counting.count]))

    async def call_many(self, aggregator: Aggregator, calls: int) -> None:
        for number in range(calls):
            await self.call(aggregator, number)

    async def call_many_with_resets(self, aggregator: Aggregator, calls: int, reset: Callable[[], None]) -> list[int]:
        """Returns the calls during which the button was pressed."""
        dice = random.Random(self.line.seed)
        next_reset = dice.randint(*RESET_EVERY)
        hit: list[int] = []

        def press() -> None:
            hit.append(len(self.reported))
            reset()

        for number in range(calls):
            if number == next_reset:
                next_reset += dice.randint(*RESET_EVERY)
                asyncio.get_running_loop().call_later(dice.uniform(0, RESET_WITHIN_S), press)
            await self.call(aggregator, number)
        return hit

    async def read(self, aggregator: Aggregator) -> int:
        """What the board says at the end, over a line without faults."""
        self.line.tell("rate 0")
        result = await aggregator.call_tool(f"edge.{self.segment}.{self.counting.reading}", {})
        return int(result["structuredContent"][self.counting.read])

    def outcomes(self) -> Counter[Outcome]:
        return Counter(each.outcome for each in self.reported)

    def answered(self) -> int:
        return sum(each.count is not None for each in self.reported)

    def runs(self) -> list[Run]:
        """Every run, in order."""
        self.line.tell("stats")  # which writes down all up to now
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
        return [Run(boot, count, tag) for (boot, count), tag in runs.items()]

    def figures(self, counters: dict[str, Any], counter: str) -> str:
        outcomes, faults = self.outcomes(), self.line.faults()
        frames = faults.pop("frames")
        return (
            f"seed {self.line.seed}: {self.segment} (profile {self.map.profile}): calls {len(self.reported)}, "
            + ", ".join(f"{outcome} {outcomes[outcome]}" for outcome in Outcome)
            + f", answered {self.answered()}, retries {counters['retries']}"
            + f", duplicates suppressed {counters['duplicates_suppressed']}, device counter {counter}; "
            + f"frames {frames}, faulty {sum(faults.values()) / frames:.1%}: "
            + ", ".join(f"{kind} {faults[kind]}" for kind in KINDS)
        )


@contextlib.contextmanager
def behind_lossy_line(segment: str, port: Path, map_file: Path, counting: Counting, directory: Path, *, seed: int) -> Iterator[LossyBoard]:
    """`port`: the board's own; the line's other end, for a gateway, appears in `directory`."""
    directory.mkdir(exist_ok=True)
    link = directory / f"usb-mcpax_{segment}-if00"
    with LossyLine(port, link, map_file, directory / f"{segment}.record", seed=seed) as line:
        yield LossyBoard(segment, load_map(map_file), counting, line)


def assert_true(board: LossyBoard, runs: list[Run]) -> None:
    """Every run belongs to one call that was reported as executed or unknown, in order, and none is there twice."""
    reported, at = board.reported, 0
    for run in runs:
        # Calls were made one after the other, so runs come in their order: skip those that did not run.
        while at < len(reported) and board.counting.tag_of(reported[at].number) != run.tag:
            assert reported[at].outcome is not Outcome.EXECUTED, f"call {reported[at].number} is reported executed and did not run"
            at += 1
        assert at < len(reported), f"{board.where}: {run} belongs to no call, or to one that ran before"
        call = reported[at]
        assert call.outcome is not Outcome.NOT_EXECUTED, f"{board.where}: call {call.number} is reported not executed and ran: {run}"
        assert call.count in (None, run.count), f"{board.where}: call {call.number} was answered {call.count}: {run}"
        at += 1
    for call in reported[at:]:
        assert call.outcome is not Outcome.EXECUTED, f"{board.where}: call {call.number} is reported executed and did not run"
    for boot in {run.boot for run in runs}:
        counts = [run.count for run in runs if run.boot == boot]
        assert counts == list(range(1, len(counts) + 1)), f"{board.where}: a count was skipped or repeated in boot {boot}"


def assert_ran_once_each(board: LossyBoard, runs: list[Run], read: int, counters: dict[str, Any], *, keeps_responses: bool = True) -> None:
    """A line with faults, and a board that never restarted. Without a kept response, a lost answer leaves only that the call has run."""
    assert_true(board, runs)
    outcomes, calls = board.outcomes(), len(board.reported)
    assert outcomes[Outcome.EXECUTED] <= len(runs) <= outcomes[Outcome.EXECUTED] + outcomes[Outcome.UNKNOWN], board.where
    assert outcomes[Outcome.EXECUTED] >= NEARLY_ALL * calls, f"{board.where}: {outcomes}"
    assert not keeps_responses or board.answered() == outcomes[Outcome.EXECUTED], f"{board.where}: a kept response was not sent again"
    assert read == board.counting.reading_after([run.tag for run in runs]), f"{board.where}: its own reading tells of other runs"
    assert counters["duplicates_suppressed"] > 0, board.where
    faults = board.line.faults()
    expected, spread = FAULTY * faults["frames"], math.sqrt(FAULTY * (1 - FAULTY) * faults["frames"])
    assert sum(faults[kind] for kind in KINDS) == pytest.approx(expected, abs=FAR_OFF * spread), board.where
    assert min(faults[kind] for kind in KINDS) > 0.03 * faults["frames"], board.where


def assert_restarts_cost_a_call_each(board: LossyBoard, runs: list[Run], resets: list[int]) -> None:
    """A line with faults, and a board whose reset button was pressed during these calls."""
    assert_true(board, runs)
    assert len({run.boot for run in runs}) > len(resets) / 2, board.where
    # A restart costs the call it hit, or the one after if the board was quick with that one, and no other.
    unknown = [call.number for call in board.reported if call.outcome is Outcome.UNKNOWN]
    assert [number for number in unknown if not {number, number - 1} & set(resets)] == [], f"{board.where}: unknown without a reset"
    assert len(unknown) <= len(resets), board.where
    assert board.outcomes()[Outcome.NOT_EXECUTED] == 0, board.where
