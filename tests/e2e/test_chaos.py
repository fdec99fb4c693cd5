"""Half a minute of chaos with fixed faults: a tree of seven processes over a real etcd keeps its word. Ten minutes are `scripts/chaos`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.run import run
from tests.harness.etcd_server import needs_etcd

SECONDS = 30.0
SEED = 1262
"""Its nine faults are of every kind; a replica stands still for longer than its lease, and etcd is restarted before one is killed."""


@needs_etcd
@pytest.mark.slow
async def test_calls_owners_and_lists_stay_true_while_everything_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verdict = await run(tmp_path, SECONDS, SEED, lambda _: None)
    with capsys.disabled():
        print(f"\nchaos: {dict(verdict.counts)}, converged within {verdict.longest_s:.2f} s")
    assert verdict.passed, f"{verdict.text()}\nlogs: {tmp_path}"
    assert verdict.counts["result"] > 200
    assert all(verdict.counts[each] for each in ("kills", "freezes", "cuts", "silences", "delays", "etcd restarts"))
