"""`scripts/bench tree` runs and counts right; how fast anything is, is for the benchmark to judge."""

from __future__ import annotations

import pytest

from tests.bench.tree import measure, tell
from tests.harness.process_figures import percentile_99


@pytest.mark.slow
async def test_a_small_tree_is_measured_whole() -> None:
    result = await measure(children=12, tools=20, passes=2)
    assert result["children"] == 12
    assert result["tools"] == 240
    assert result["pages"] == 2
    assert 0 < result["page_ms"]["p50"] <= result["page_ms"]["p99"]
    assert result["join_cpu_ms"].keys() >= {"first", "last", "growth"}
    assert "240 tools" in tell(result)[0]


def test_one_of_a_hundred_may_take_longer() -> None:
    assert percentile_99(range(100)) == 98
    assert percentile_99([3, 1, 2]) == 3
