"""A few hours of a plant in seconds: resident memory is flat after warm-up. The whole day is `scripts/bench soak`."""

from __future__ import annotations

import pytest

from tests.bench.soak import soak

CALLS = 12_000
"""A leak of 220 bytes a call after warm-up would be seen."""


@pytest.mark.slow
async def test_memory_is_flat_after_warm_up(capsys: pytest.CaptureFixture[str]) -> None:
    result = await soak(CALLS)
    memory = result["memory"]
    with capsys.disabled():
        print(f"\nsoak: {result['counts']}, {result['took_s']} s, memory {memory}, heard {result['heard']}")
    assert result["counts"]["calls"] == CALLS
    assert result["counts"]["failed"] == 0
    assert result["counts"]["replug"] >= 6
    assert result["heard"]["notifications/tools/list_changed"] >= 1
    assert result["heard"]["notifications/message"] >= 100
    assert memory["growth_mib"] <= memory["allowance_mib"], f"{memory}: {result['samples']}"
