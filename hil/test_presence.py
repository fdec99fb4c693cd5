"""A board is there: it says what its map says, is listed with all its tools, and shows every restart by a new boot id."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from hil.boards import Board
from hil.gateway import ONLINE, until
from hil.line import Line
from hil.plugin import GatewayWith
from mcpax.bridge.device import MISFIT
from mcpax.bridge.maps.model import Profile
from mcpax.bridge.wire import profile_b
from mcpax.bridge.wire.messages import Registration

RESTARTS = 6


async def test_its_tools_are_listed(board: Board, gateway_with: GatewayWith) -> None:
    async with gateway_with([board]) as running:
        tools = await running.tools(board.name)
        assert set(tools) == {tool.name for tool in board.map.tools}
        for tool in board.map.tools:
            assert set(tools[tool.name]["inputSchema"].get("properties", {})) == {arg.name for arg in tool.args}
        assert running.device(board.name)["state"] == ONLINE


def test_it_announces_exactly_its_map(board: Board, line: Line) -> None:
    heartbeat = line.heartbeat()
    assert heartbeat.map_hash in (board.map.hash, None)
    if board.map.profile is Profile.A:
        pytest.skip("a Profile A board does not announce itself")
    line.send(profile_b.encode_announce_request())
    announced = line.receive(lambda message: message if isinstance(message, Registration) else None, "registration")
    assert announced == profile_b.decode(profile_b.encode_registration(board.map))


@pytest.mark.needs("reset")
def test_each_reset_gives_a_new_boot_id(board: Board, line: Line) -> None:
    before = line.synchronise().boot_id
    for _ in range(RESTARTS):
        board.reset()
        restarted = line.wait_for_restart()
        assert not restarted.synchronised
        assert restarted.boot_id not in (0, before)
        before = restarted.boot_id


@pytest.mark.needs("power")
def test_each_power_cycle_gives_a_new_boot_id(board: Board) -> None:
    boots = []
    for _ in range(RESTARTS):
        board.power_off()
        board.power_on()
        with Line(board.port, board.map, board.log) as line:
            boots.append(line.wait_for_restart().boot_id)
    assert all(before != after for before, after in pairwise(boots)), boots


async def test_a_changed_map_is_told_and_the_board_not_used(board: Board, gateway_with: GatewayWith) -> None:
    """As after editing the map without flashing."""
    with Line(board.port, board.map, board.log) as line:
        if line.heartbeat().map_hash is None:
            pytest.skip("the board does not state its map's hash, which Profile A allows")
    first, *others = board.map.tools
    changed = replace(board.map, tools=(replace(first, name=f"{first.name}_x"), *others))
    async with gateway_with([board], maps={board.name: changed}, online=False) as running:
        await until(lambda: running.device(board.name)["problem"].startswith(MISFIT), lambda: str(running.device(board.name)))
        assert running.device(board.name)["state"] != ONLINE
        assert await running.tools(board.name) == {}
