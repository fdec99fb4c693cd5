"""`scripts/bench hops` runs and adds up; how fast anything is, is for the benchmark to judge."""

from __future__ import annotations

import pytest

from tests.bench.hops import Subject, judge, measure
from tests.harness.plain_client import PlainClient


@pytest.mark.slow
async def test_a_short_run_measures_every_way() -> None:
    result = await measure([1, 3], 20)
    assert [(row["kind"], row["hops"]) for row in result["rows"]] == [("mcpax", 0), ("mcpax", 2), ("sdk", 1), ("sdk", 2)]
    assert all(row["p50_ms"] > 0 for row in result["rows"])
    assert result["calls"] == 20


def subject(kind: str, hops: int, ms: float) -> Subject:
    return Subject(kind, hops, PlainClient.__new__(PlainClient), b"", [ms] * 10)


@pytest.mark.parametrize(("ours_ms", "ok"), [(1.5, True), (3.0, False)])
def test_a_hop_costs_the_slope(ours_ms: float, ok: bool) -> None:
    ways = [subject("mcpax", 0, 1.0), subject("mcpax", 1, ours_ms), subject("sdk", 1, 5.0), subject("sdk", 2, 9.0)]
    judged = judge(ways)
    assert judged["per_hop_ms"] == {"mcpax": ours_ms - 1, "sdk": 4.0}
    assert judged["ratio"] == (ours_ms - 1) / 4
    assert judged["ratio_in_parts"] == [judged["ratio"]] * 5
    assert judged["ok"] is ok
