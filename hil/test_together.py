"""All boards of the rig on one gateway at once: all their tools, called side by side, and one's trouble is nobody else's."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from mcp import Client

from hil.boards import Board
from hil.gateway import ONLINE, SEGMENT, RunningGateway
from hil.places import DEFAULT_RIG
from hil.plugin import GatewayWith
from hil.rig import Capability, Rig
from hil.values import valid
from mcpax.bridge.maps.model import DeviceMap, ToolMap
from mcpax.bridge.maps.values import FieldsCodec
from mcpax.capability import LatencyClass
from mcpax.errors import ErrorKind, Fault

ROUNDS = 5
HEARTBEAT_MS = 400
FIVE_CHIPS = {"uno", "l053", "msp430g2553", "microbit", "mcs51"}


def arguments_of(tool: ToolMap) -> dict[str, Any]:
    return dict(FieldsCodec(tool.args).from_raw(valid(tool, "lowest")))


async def call_every_tool(running: RunningGateway, board: Board, rounds: int = ROUNDS) -> int:
    """Any fault fails the test."""
    for _ in range(rounds):
        for tool in board.map.tools:
            await running.call(board.name, tool.name, arguments_of(tool))
    return rounds * len(board.map.tools)


async def call_in_turn_until(over: asyncio.Event, running: RunningGateway, boards: Sequence[Board]) -> int:
    """One board at a time: all at once would test how many emulators this machine can run. Returns how often each has had its turn."""
    turns = 0
    while not over.is_set():
        for board in boards:
            await call_every_tool(running, board, rounds=1)
        turns += 1
    return turns


def test_five_chips_are_on_the_rig_of_this_tree(rig: Rig) -> None:
    if rig.file != DEFAULT_RIG:
        pytest.skip("another rig has the boards that are on its bench")
    assert {spec.name for spec in rig.boards if spec.emulator != "virtual"} == FIVE_CHIPS


async def test_all_boards_at_once(boards: list[Board], gateway_with: GatewayWith) -> None:
    async with gateway_with(boards) as running:
        for board in boards:
            assert set(await running.tools(board.name)) == {tool.name for tool in board.map.tools}
        called = await asyncio.gather(*(call_every_tool(running, board) for board in boards))
        answered = [running.device(board.name)["counters"]["answered"] for board in boards]
        assert answered == called


@pytest.mark.slow
async def test_each_in_turn_loses_power_and_the_others_go_on(boards: list[Board], gateway_with: GatewayWith) -> None:
    chips = [board for board in boards if board.spec.emulator != "virtual"]
    switchable = [board for board in chips if Capability.POWER in board.spec.capabilities]
    if not switchable or len(chips) < 2:
        pytest.skip("needs a board with a power switch, and another")
    async with gateway_with(chips, maps={board.name: _watched_closely(board.map) for board in chips}) as running:
        for board in switchable:
            await _power_cycled_beside(running, board, [other for other in chips if other is not board])
        connects = {board.name: running.device(board.name)["counters"]["connects"] for board in chips}
        assert connects == {board.name: 2 if board in switchable else 1 for board in chips}, "a board was lost that had its power"


def _watched_closely(device: DeviceMap) -> DeviceMap:
    """Quick heartbeats, because some boards' ports stay when their power goes, as on a bench: then only missing ones tell of it. Deadlines
    with room: how long an emulator waits for a core of a busy machine is not what is tested."""
    tools = tuple(replace(tool, capability=replace(tool.capability, latency_class=LatencyClass.FAST)) for tool in device.tools)
    return replace(device, tools=tools, port=replace(device.port, heartbeat_ms=HEARTBEAT_MS))


async def _power_cycled_beside(running: RunningGateway, board: Board, others: Sequence[Board]) -> None:
    """Its tools are degraded and come back, while those of the others are called all the time."""
    over = asyncio.Event()
    calling = asyncio.create_task(call_in_turn_until(over, running, others))
    try:
        await asyncio.to_thread(board.power_off)
        await running.until_degraded(board.name)
        tool = board.map.tools[0]
        with pytest.raises(Fault) as told:
            await running.call(board.name, tool.name, arguments_of(tool))
        assert told.value.kind is ErrorKind.TOOL_DEGRADED
        await asyncio.to_thread(board.power_on)
        await running.until_state(board.name, ONLINE)
        await call_every_tool(running, board, rounds=1)
    finally:
        over.set()
        turns = await calling
    assert turns > 0


async def test_a_client_that_is_not_ours_finds_and_calls_every_tool(boards: list[Board], gateway_with: GatewayWith) -> None:
    """The official SDK's, over HTTP."""
    async with gateway_with(boards) as running, Client(f"{running.url}/mcp") as client:
        listed = {tool.name for tool in (await client.list_tools()).tools}
        wanted = {f"{SEGMENT}__{board.name}__{tool.name}": tool for board in boards for tool in board.map.tools}
        assert listed >= set(wanted)
        for name, tool in wanted.items():
            result = await client.call_tool(name, arguments_of(tool))
            assert not result.is_error, f"{name}: {result.content}"
            assert (result.structured_content or {}).keys() == {field.name for field in tool.results}
