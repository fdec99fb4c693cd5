"""The gateway and the real C stub over a line that drops, damages, doubles and cuts a fifth of all frames: no call runs twice.

What was reported is compared, call by call, with what the board itself said at its clean end of the line (tests/harness/lossy_calls.py).
The same on chips: hil/test_lossy.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.lossy_calls import (
    DOSE,
    PULSE,
    Counting,
    LossyBoard,
    assert_ran_once_each,
    assert_restarts_cost_a_call_each,
    behind_lossy_line,
)
from tests.virtual import MAPS, VirtualBoard, running_gateway

SEED = int(os.environ.get("MCPAX_SEED", "20260701"))
CALLS = 10_000
"""On each of two boards."""
CALLS_WITH_RESETS = 1_500
COUNTING = {"relay-board": PULSE, "valve-actuator": DOSE}


@contextlib.contextmanager
def lossy_boards(directory: Path, seed: int) -> Iterator[list[tuple[VirtualBoard, LossyBoard]]]:
    with contextlib.ExitStack() as stack:

        def lossy(name: str, counting: Counting, seed: int) -> tuple[VirtualBoard, LossyBoard]:
            board = stack.enter_context(VirtualBoard(name, directory))
            line = behind_lossy_line(name, board.link, MAPS / f"{name}.toml", counting, directory / "by-id", seed=seed)
            return board, stack.enter_context(line)

        yield [lossy(name, counting, seed + number) for number, (name, counting) in enumerate(COUNTING.items())]


@pytest.mark.slow
@pytest.mark.req("AX-8.1-1")
async def test_no_call_runs_twice_over_a_lossy_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with lossy_boards(tmp_path, SEED) as boards:
        lossy = [each for _, each in boards]
        bindings = tuple(each.binding for each in lossy)
        async with running_gateway([], bindings=bindings, by_id_dirs=(tmp_path / "by-id",)) as running:
            aggregator = running.gateway.aggregator
            await asyncio.gather(*(each.call_many(aggregator, CALLS) for each in lossy))
            counters = {device["segment"]: device["counters"] for device in running.gateway.bridge.devices()}
            read = [await each.read(aggregator) for each in lossy]
        runs = [each.runs() for each in lossy]
        with capsys.disabled():
            print()
            for each, ran in zip(lossy, runs, strict=True):
                print(each.figures(counters[each.segment], f"{len(ran)}"))
        for each, ran, found in zip(lossy, runs, read, strict=True):
            assert len(each.reported) == CALLS
            assert_ran_once_each(each, ran, found, counters[each.segment])


@pytest.mark.slow
async def test_outcomes_stay_true_when_boards_restart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with lossy_boards(tmp_path, SEED + len(COUNTING)) as boards:
        bindings = tuple(each.binding for _, each in boards)
        async with running_gateway([], bindings=bindings, by_id_dirs=(tmp_path / "by-id",)) as running:
            aggregator = running.gateway.aggregator
            resets = await asyncio.gather(
                *(each.call_many_with_resets(aggregator, CALLS_WITH_RESETS, board.reset) for board, each in boards)
            )
            counters = {device["segment"]: device["counters"] for device in running.gateway.bridge.devices()}
        with capsys.disabled():
            print()
            for (_, each), pressed in zip(boards, resets, strict=True):
                runs = each.runs()
                boots = len({run.boot for run in runs})
                print(each.figures(counters[each.segment], f"{len(runs)} in {boots} boots"))
                assert_restarts_cost_a_call_each(each, runs, pressed)
