"""The plugin as an engineer meets it: `pytest hil --rig …` with a board on a port, run as a program of its own.

The board on the bench is a virtual one behind an ordinary port, so to the rig it is as real as any.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hil import bench
from hil.lease import lease
from hil.places import ROOT
from hil.results import Results, load
from hil.rig import load_rig
from tests.virtual import BOARDS, VirtualBoard, build_boards

PATIENCE_S = 120.0
RIG = """
[rig]
lease_dir = "{directory}/leases"

[[board]]
name = "bench"
chip = "none"
app = "relay-board"
image = "none.elf"
port = "{port}"
reset = "kill -USR1 {pid}"
flash = "touch {directory}/flashed"
"""


@pytest.fixture
def virtual(tmp_path: Path) -> Iterator[VirtualBoard]:
    with VirtualBoard("relay-board", tmp_path) as board:
        (tmp_path / "rig.toml").write_text(RIG.format(directory=tmp_path, port=board.link, pid=board.pid))
        yield board


def command(directory: Path, *arguments: str) -> list[str]:
    options = ["-q", "-p", "no:cacheprovider", "--rig", str(directory / "rig.toml"), "--rig-results", str(directory / "results.json")]
    return [sys.executable, "-m", "pytest", *options, *arguments]


def run(directory: Path, *arguments: str) -> tuple[subprocess.CompletedProcess[str], Results | None]:
    """`pytest hil` with the rig that is written there, and what it left."""
    left = directory / "results.json"
    done = subprocess.run(command(directory, *arguments), cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    return done, load(left) if left.exists() else None


def test_the_same_tests_run_on_a_board_on_a_port(virtual: VirtualBoard, tmp_path: Path) -> None:
    done, results = run(
        tmp_path, "hil/test_presence.py", "hil/test_calls.py", "hil/test_power.py::test_a_brown_out_in_the_middle_of_an_answer"
    )
    assert done.returncode == 0, done.stdout
    assert results is not None
    outcomes = {test.test: test.outcome for test in results.tests}
    assert outcomes["its tools are listed"] == "passed"
    assert outcomes["each reset gives a new boot id"] == "passed"
    assert outcomes["a brown out in the middle of an answer, 1"] == "skipped"
    reasons = [test.reason for test in results.tests if test.outcome == "skipped"]
    assert "bench: no power switch" in reasons
    assert "bench: its power cannot be cut at a given byte; emulated boards can" in reasons
    assert (tmp_path / "flashed").exists(), "a board that somebody else may have used is flashed first"
    calls = [test for test in results.tests if test.test.startswith("every tool runs")]
    assert all(len(test.round_trips) >= 10 * len(virtual.map.tools) - 5 for test in calls)
    assert not any(test.frames for test in results.tests)


@pytest.mark.usefixtures("virtual")
def test_a_failing_test_leaves_what_was_said(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from hil.conftest import *")
    (tmp_path / "test_it.py").write_text("def test_it_fails(board, line):\n    line.synchronise()\n    assert 1 == 2, 'on purpose'\n")
    done, results = run(tmp_path, "-c", "pyproject.toml", str(tmp_path / "test_it.py"))
    assert done.returncode == 1, done.stdout
    assert results is not None
    (test,) = results.tests
    assert (test.test, test.boards, test.outcome) == ("it fails", ["bench"], "failed")
    assert "on purpose" in test.reason
    assert {(frame["direction"], frame["kind"]) for frame in test.frames} >= {("tx", "heartbeat"), ("rx", "heartbeat")}


def test_a_board_that_is_not_there_is_an_error_of_its_tests_alone(virtual: VirtualBoard, tmp_path: Path) -> None:
    virtual.stop()
    file = tmp_path / "rig.toml"
    file.write_text("\n".join(line for line in file.read_text().splitlines() if not line.startswith(("flash", "reset"))))
    done, results = run(tmp_path, "hil/test_presence.py::test_its_tools_are_listed")
    assert done.returncode == 1
    assert "bench is wedged, and nothing helped" in done.stdout
    assert results is not None
    (test,) = results.tests
    assert (test.boards, test.outcome) == (["bench"], "error")
    assert "Is the board plugged in?" in test.reason


@pytest.mark.usefixtures("virtual")
def test_whoever_waits_for_a_board_is_told_at_once(tmp_path: Path) -> None:
    """While pytest captures what a test says, as it does without -s."""
    name = bench.lease_name(load_rig(tmp_path / "rig.toml").boards[0])
    with contextlib.ExitStack() as stack:
        holding = stack.enter_context(contextlib.ExitStack())
        holding.enter_context(lease(tmp_path / "leases", name, "a long test"))
        one = command(tmp_path, "hil/test_presence.py::test_its_tools_are_listed")
        waiting = stack.enter_context(subprocess.Popen(one, cwd=ROOT, stdout=subprocess.PIPE, text=True))
        stack.callback(waiting.kill)
        assert waiting.stdout is not None
        told = next((line for line in waiting.stdout if "waits for" in line), "nothing, to the end")
        assert f"held by a long test (process {os.getpid()}, since" in told
        assert waiting.poll() is None
        holding.close()
        assert waiting.wait(PATIENCE_S) == 0


def test_boards_of_a_rig_run_together(tmp_path: Path) -> None:
    build_boards()
    (tmp_path / "rig.toml").write_text(
        f'[rig]\nlease_dir = "{tmp_path}"\n'
        + "".join(f'[[board]]\nname = "test-{app}"\nchip = "none"\napp = "{app}"\nemulator = "virtual"\n' for app in BOARDS)
    )
    done, results = run(tmp_path, "hil/test_together.py")
    assert done.returncode == 0, done.stdout
    assert results is not None
    assert {len(test.boards) for test in results.tests} == {len(BOARDS)}
    outcomes = {test.test: test.outcome for test in results.tests}
    assert outcomes.pop("each in turn loses power and the others go on") == "skipped", "it is about chips, and here are none"
    assert set(outcomes.values()) == {"passed"}
    assert {trip.board for test in results.tests for trip in test.round_trips} == {f"test-{app}" for app in BOARDS}


def test_a_rig_that_cannot_be_used_ends_the_run_with_its_faults(tmp_path: Path) -> None:
    (tmp_path / "rig.toml").write_text('[[board]]\nname = "x"\n')
    done, results = run(tmp_path, "hil")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert 'rig.toml:1: board "x": chip is missing' in done.stdout + done.stderr
    assert results is None
