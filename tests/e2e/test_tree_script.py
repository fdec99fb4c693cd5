"""`scripts/tree`, as a person starts it: levels of the real program as processes, virtual boards at the lowest."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.program import WITH_SIGNALS_OF_A_TERMINAL
from tests.harness.levels import segments
from tests.virtual import ROOT, build_boards

PATIENCE_S = 120.0
"""Three Python programs have to load, on a machine that may have much else to do."""
TREE = [sys.executable, "-m", "tests.harness.tree"]


@pytest.fixture(autouse=True)
def _built() -> None:
    build_boards()


def test_the_check_calls_through_all_levels() -> None:
    done = subprocess.run([*TREE, "3", "--check"], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = done.stdout.splitlines()
    report = json.loads(line)
    assert report["ok"] is True
    assert report["levels"] == ["cloud", "region", "edge"]
    assert report["protocols"] == ["2026-07-28", "2025-11-25"]
    assert report["call"]["name"].startswith("cloud__region__edge__")
    assert report["result"]


@pytest.mark.slow
def test_an_interrupt_ends_everything() -> None:
    with subprocess.Popen([*WITH_SIGNALS_OF_A_TERMINAL, *TREE, "2", "--json"], cwd=ROOT, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        try:
            told = ""
            while not told.endswith("\n}\n"):
                told += started.stdout.readline() or pytest.fail("it ended")
            pids = [level["pid"] for level in json.loads(told)["levels"]]
            assert all(Path(f"/proc/{pid}").exists() for pid in pids)
            started.send_signal(signal.SIGINT)
            assert started.wait(PATIENCE_S) == 0
        finally:
            started.terminate()  # whatever went wrong, so that leaving does not wait for ever
        assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_tree_without_boards_says_how_to_get_them(tmp_path: Path) -> None:
    done = subprocess.run([*TREE, "2", "--check", "--boards", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert not report["ok"]
    assert "no virtual boards" in report["error"]


@pytest.mark.parametrize(
    ("levels", "expected"),
    [(1, ["edge"]), (2, ["cloud", "edge"]), (3, ["cloud", "region", "edge"]), (4, ["cloud", "region-1", "region-2", "edge"])],
)
def test_levels_have_telling_names(levels: int, expected: list[str]) -> None:
    assert segments(levels) == expected
