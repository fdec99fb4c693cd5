"""The spine's test on chips: a fifth of all frames is dropped, damaged, doubled or cut between the gateway and the firmware's image.

The board's own counter says what ran (tests/harness/lossy_calls.py); the same on virtual boards, with more calls: tests/e2e/test_lossy.py.
The long run is on the AVR. What keeps a call from running twice is the same library on all chips, so the others have a shorter one: it
shows that nothing of the chip's own, its ring, its interrupts, its clock, comes in between.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from hil.boards import Board
from hil.gateway import RunningGateway, gateway_on
from hil.plugin import SEED, taken
from hil.rig import Rig
from mcpax.bridge.maps.model import DeviceMap
from tests.harness.lossy_calls import (
    DOSE,
    PULSE,
    Counting,
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
Lossy = list[tuple[Board, LossyBoard]]


def counting_of(device: DeviceMap) -> Counting | None:
    return next((COUNTING[tool.name] for tool in device.tools if tool.name in COUNTING), None)


@pytest.fixture
def boards(request: pytest.FixtureRequest, rig: Rig) -> Iterator[list[Board]]:
    """All that will do, at once: most of the time each waits for answers that were lost."""
    specs = [spec for spec in rig.boards if spec.emulator not in (None, "virtual") and counting_of(spec.map) is not None]
    if not specs:
        pytest.skip("the line is put between the gateway and an emulated chip that counts its runs")
    yield from taken(request, rig, specs)


@pytest.fixture
def lossy(boards: list[Board], tmp_path: Path) -> Iterator[Lossy]:
    """Each behind a line of its own."""
    with contextlib.ExitStack() as stack:

        def behind(board: Board) -> LossyBoard:
            counting = counting_of(board.map)
            assert counting is not None
            line = behind_lossy_line(board.name, Path(board.port), board.spec.map_file, counting, tmp_path, seed=SEED)
            return stack.enter_context(line)

        yield [(board, behind(board)) for board in boards]


def gateway_behind(lossy: Lossy) -> AbstractAsyncContextManager[RunningGateway]:
    links = {each.line.link.parent for _, each in lossy}
    return gateway_on([board for board, _ in lossy], bindings=tuple(each.binding for _, each in lossy), by_id_dirs=tuple(links))


@pytest.mark.slow
async def test_no_call_runs_twice_over_a_lossy_line(lossy: Lossy, capsys: pytest.CaptureFixture[str]) -> None:
    async with gateway_behind(lossy) as running:
        aggregator = running.gateway.aggregator
        await asyncio.gather(*(each.call_many(aggregator, CALLS if is_long(board) else FEWER_CALLS) for board, each in lossy))
        counters = {board.name: running.device(board.name)["counters"] for board, _ in lossy}
        read = {board.name: await each.read(aggregator) for board, each in lossy}
    runs = {board.name: each.runs() for board, each in lossy}
    with capsys.disabled():
        print(*("", *(each.figures(counters[board.name], f"{len(runs[board.name])}") for board, each in lossy)), sep="\n")
    for board, each in lossy:
        keeps_responses = board.spec.emulator != KEEPS_NO_RESPONSE
        assert_ran_once_each(each, runs[board.name], read[board.name], counters[board.name], keeps_responses=keeps_responses)


@pytest.mark.slow
async def test_outcomes_stay_true_when_the_board_restarts(lossy: Lossy, capsys: pytest.CaptureFixture[str]) -> None:
    async with gateway_behind(lossy) as running:
        aggregator = running.gateway.aggregator
        resets = await asyncio.gather(
            *(
                each.call_many_with_resets(aggregator, CALLS_WITH_RESETS if is_long(board) else FEWER_CALLS_WITH_RESETS, board.reset)
                for board, each in lossy
            )
        )
        counters = {board.name: running.device(board.name)["counters"] for board, _ in lossy}
    for (board, each), pressed in zip(lossy, resets, strict=True):
        runs = each.runs()
        with capsys.disabled():
            boots = f"{len(runs)} in {len({run.boot for run in runs})} boots, {len(pressed)} resets"
            print(f"\n{each.figures(counters[board.name], boots)}")
        assert_restarts_cost_a_call_each(each, runs, pressed)


def is_long(board: Board) -> bool:
    return board.spec.emulator == LONG_ON
