"""Every tool of a board can be called, through the gateway, with arguments at both edges of what its map allows."""

from __future__ import annotations

import pytest

from hil.boards import Board
from hil.plugin import GatewayWith
from hil.values import EDGES, valid
from mcpax.bridge.maps.values import FieldsCodec

ROUNDS = 10
"""Calls of each tool, for a round-trip histogram that means something."""


@pytest.mark.parametrize("edge", EDGES)
async def test_every_tool_runs_with_valid_arguments(board: Board, gateway_with: GatewayWith, edge: str) -> None:
    async with gateway_with([board]) as running:
        for tool in board.map.tools:
            arguments = FieldsCodec(tool.args).from_raw(valid(tool, edge))
            for _ in range(ROUNDS):
                result = await running.call(board.name, tool.name, arguments)
                assert result.keys() == {field.name for field in tool.results}, tool.name
        counters = running.device(board.name)["counters"]
        assert counters["answered"] == ROUNDS * len(board.map.tools)
        assert counters["refused_messages"] == 0
        assert counters["refused_results"] == 0
