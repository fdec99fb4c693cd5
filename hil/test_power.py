"""Boards lose their minds and their power, under the gateway's hands: what it reports stays true, and it takes them back."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from hil.boards import Board
from hil.gateway import ONLINE, RunningGateway
from hil.plugin import GatewayWith
from hil.witness import Witness
from mcpax.bridge.maps.model import DeviceMap
from mcpax.bridge.maps.values import FieldsCodec
from mcpax.capability import LatencyClass
from mcpax.errors import Fault, Outcome

RESETS = 5
CUT_AFTER_BYTES = (1, 5)
HEARTBEAT_MS = 200
"""Three of them go unanswered before a board is lost: longer than the deadline of a call, so no busier machine fails here than there."""


def impatient(board: Board) -> dict[str, DeviceMap]:
    """Its map with quick heartbeats and short deadlines: a power cut may leave the port there, and then only silence tells of it."""
    tools = tuple(replace(tool, capability=replace(tool.capability, latency_class=LatencyClass.REALTIME)) for tool in board.map.tools)
    return {board.name: replace(board.map, tools=tools, port=replace(board.map.port, heartbeat_ms=HEARTBEAT_MS))}


async def act(running: RunningGateway, board: Board, witness: Witness) -> Outcome:
    """Calls the tool that acts; what the gateway reports of it."""
    try:
        await running.call(board.name, witness.act.name, FieldsCodec(witness.act.args).from_raw(witness.arguments))
    except Fault as fault:
        return Outcome(str(fault.outcome))  # a fault without an outcome is a failure of the test
    return Outcome.EXECUTED


async def runs_since_boot(running: RunningGateway, board: Board, witness: Witness) -> int:
    return int((await running.call(board.name, witness.reading_name, {}))[witness.field_name])


@pytest.mark.needs("reset")
async def test_a_reset_during_a_call_is_reported_truly(board: Board, gateway_with: GatewayWith, witness: Witness) -> None:
    async with gateway_with([board]) as running:
        for _ in range(RESETS):
            outcome, _ = await asyncio.gather(act(running, board, witness), asyncio.to_thread(board.reset))
            await running.until_state(board.name, ONLINE)
            if witness.counts:
                runs = await runs_since_boot(running, board, witness)
                # A run before the reset left no trace; one that is seen now may not have been denied.
                assert runs <= 1
                assert outcome is not Outcome.NOT_EXECUTED or runs == 0
        assert await act(running, board, witness) is Outcome.EXECUTED


@pytest.mark.needs("cut")
@pytest.mark.parametrize("after_bytes", CUT_AFTER_BYTES)
async def test_a_brown_out_in_the_middle_of_an_answer(board: Board, gateway_with: GatewayWith, witness: Witness, after_bytes: int) -> None:
    """The call ran, and its answer was never whole: nothing but unknown is true. The tools degrade, and come back with the power."""
    async with gateway_with([board], maps=impatient(board)) as running:
        assert await act(running, board, witness) is Outcome.EXECUTED
        board.cut(after_bytes)
        assert await act(running, board, witness) is Outcome.UNKNOWN
        await running.until_degraded(board.name)
        board.power_on()
        await running.until_state(board.name, ONLINE)
        assert await act(running, board, witness) is Outcome.EXECUTED
        if witness.counts:
            assert await runs_since_boot(running, board, witness) == 1


@pytest.mark.needs("power")
async def test_a_board_without_power_is_degraded_and_comes_back(board: Board, gateway_with: GatewayWith, witness: Witness) -> None:
    async with gateway_with([board], maps=impatient(board)) as running:
        board.power_off()
        await running.until_degraded(board.name)
        assert await act(running, board, witness) is Outcome.NOT_EXECUTED
        board.power_on()
        await running.until_state(board.name, ONLINE)
        assert await act(running, board, witness) is Outcome.EXECUTED
