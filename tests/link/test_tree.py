"""Trees of aggregators: what is registered below is listed and called above, through every hop."""

from __future__ import annotations

import pytest

from tests.core.rig import Board, tool
from tests.link.nodes import chain, eventually


@pytest.mark.req("AX-1.1-b", "AX-5.3-1")
async def test_a_call_passes_ten_levels_and_its_answer_comes_back() -> None:
    segments = [f"n{level}" for level in range(10)]
    async with chain(*segments) as nodes:
        board = Board(tool("read"))
        board.result = {"content": [{"type": "text", "text": "hello"}], "structuredContent": {"n": 1.50}}
        await nodes[-1].add("env", board)
        name = ".".join([*segments, "env", "read"])
        await eventually(lambda: name in nodes[0].names())
        result = await nodes[0].aggregator.call_tool(name, {"a": [1, None]})
        assert result["content"]
        assert board.calls[0].arguments == {"a": [1, None]}
        assert board.calls[0].route == (*segments, "env", "read")
        assert board.calls[0].cursor == 10
