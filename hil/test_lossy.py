"""The spine's test on chips: a fifth of all frames is dropped, damaged, doubled or cut between the gateway and the firmware's image.

The board's own counter says what ran (tests/harness/lossy_calls.py); the same on virtual boards, with more calls: tests/e2e/test_lossy.py.
The long run is on the AVR. What keeps a call from running twice is the same library on all chips, so the others have a shorter one: it
shows that nothing of the chip's own, its ring, its interrupts, its clock, comes in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hil.boards import Board
from hil.gateway import gateway_on
from hil.plugin import SEED
from tests.harness.lossy_calls import (
    DOSE,
    PULSE,
    LossyBoard,
    assert_ran_once_each,
    assert_restarts_cost_a_call_each,
    behind_lossy_line,
)

LONG_ON = "avr"
CALLS, CALLS_WITH_RESETS = 2_500, 800
FEWER_CALLS, FEWER_CALLS_WITH_RESETS = 600, 250
KEEPS_NO_RESPONSE = "mcs51"
"""Built with MCPAX_KEPT=0: it has no RAM for them."""
COUNTING = {counting.tool: counting for counting in (DOSE, PULSE)}


@pytest.fixture
def lossy(board: Board, tmp_path: Path) -> Iterator[LossyBoard]:
    if board.spec.emulator in (None, "virtual"):
        pytest.skip("the line is put between an emulated chip and the gateway")
    counting = next((COUNTING[tool.name] for tool in board.map.tools if tool.name in COUNTING), None)
    if counting is None:
        pytest.skip(f"no tool of {board.map.name} counts its runs")
    with behind_lossy_line(board.name, Path(board.port), board.spec.map_file, counting, tmp_path, seed=SEED) as line:
        yield line


@pytest.mark.slow
async def test_no_call_runs_twice_over_a_lossy_line(board: Board, lossy: LossyBoard, capsys: pytest.CaptureFixture[str]) -> None:
    async with gateway_on([board], bindings=(lossy.binding,), by_id_dirs=(lossy.line.link.parent,)) as running:
        await lossy.call_many(running.gateway.aggregator, CALLS if board.spec.emulator == LONG_ON else FEWER_CALLS)
        counters = running.device(board.name)["counters"]
        read = await lossy.read(running.gateway.aggregator)
    runs = lossy.runs()
    with capsys.disabled():
        print(f"\n{lossy.figures(counters, f'{len(runs)}')}")
    assert_ran_once_each(lossy, runs, read, counters, keeps_responses=board.spec.emulator != KEEPS_NO_RESPONSE)


@pytest.mark.slow
@pytest.mark.needs("reset")
async def test_outcomes_stay_true_when_the_board_restarts(board: Board, lossy: LossyBoard, capsys: pytest.CaptureFixture[str]) -> None:
    calls = CALLS_WITH_RESETS if board.spec.emulator == LONG_ON else FEWER_CALLS_WITH_RESETS
    async with gateway_on([board], bindings=(lossy.binding,), by_id_dirs=(lossy.line.link.parent,)) as running:
        resets = await lossy.call_many_with_resets(running.gateway.aggregator, calls, board.reset)
        counters = running.device(board.name)["counters"]
    runs = lossy.runs()
    with capsys.disabled():
        print(f"\n{lossy.figures(counters, f'{len(runs)} in {len({run.boot for run in runs})} boots, {len(resets)} resets')}")
    assert_restarts_cost_a_call_each(lossy, runs, resets)
