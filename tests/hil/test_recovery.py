"""Wedged boards, brought back by the gentlest thing that helps, or given up with a full account.

The boards are real in the rig's eyes: a serial port and commands. Behind it a virtual board is stopped, and commands let it go on.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hil.boards import BoardError, RealBoard, run_command
from hil.line import Line
from hil.recovery import BoardWedged, ensure_well, problem_of
from hil.rig import BoardSpec
from tests.virtual import MAPS, VirtualBoard

check = partial(problem_of, patience_s=0.4)

Bench = Callable[..., RealBoard]


@pytest.fixture
def virtual(tmp_path: Path) -> Iterator[VirtualBoard]:
    with VirtualBoard("valve-actuator", tmp_path) as board:
        yield board


@pytest.fixture
def bench(virtual: VirtualBoard) -> Bench:
    """A board with the given commands; `go on` is the one that brings the virtual board back, `nothing` one that has no effect."""

    def make(**commands: str) -> RealBoard:
        known = {"go on": f"kill -CONT {virtual.pid}", "nothing": "true", "fails": "echo no programmer found; exit 4"}
        given: dict[str, Any] = {key: known.get(command, command) for key, command in commands.items()}
        file = MAPS / "valve-actuator.toml"
        spec = BoardSpec("uno", "none", "valve-actuator", virtual.map, file, Path("x.elf"), env="e", port=str(virtual.link), **given)
        return RealBoard(spec)

    return make


def wedge(virtual: VirtualBoard) -> None:
    virtual.hang()


def test_a_board_that_is_well_is_left_alone(bench: Bench) -> None:
    assert ensure_well(bench(reset="fails", flash="fails"), check) == []


@pytest.mark.parametrize(
    ("commands", "steps"),
    [
        ({"reset": "go on", "flash": "fails"}, ["reset: the board answers"]),
        (
            {"reset": "nothing", "power_off": "nothing", "power_on": "go on", "flash": "fails"},
            ["reset: uno on", "power cycle: the board answers"],
        ),
        ({"reset": "fails", "flash": "go on"}, ["reset: uno: exit code 4", "power cycle: not possible", "flash again: the board answers"]),
        ({"flash": "go on"}, ["reset: not possible: no reset", "power cycle: not possible", "flash again: the board answers"]),
    ],
)
def test_a_wedged_board_is_brought_back(commands: dict[str, str], steps: list[str], bench: Bench, virtual: VirtualBoard) -> None:
    wedge(virtual)
    taken = [str(step) for step in ensure_well(bench(**commands), check)]
    assert len(taken) == len(steps)
    for step, expected in zip(taken, steps, strict=True):
        assert step.startswith(expected)


def test_a_board_that_cannot_be_brought_back_is_given_up_with_an_account(bench: Bench, virtual: VirtualBoard) -> None:
    wedge(virtual)
    with pytest.raises(BoardWedged) as caught:
        ensure_well(bench(reset="nothing", flash="fails"), check)
    told = str(caught.value).splitlines()
    assert told[0] == "uno is wedged, and nothing helped:"
    assert "1. first look: uno on" in told[1]
    assert "no answer to a heartbeat within 0.4 s" in told[1]
    assert "2. reset: uno on" in told[2]
    assert "3. power cycle: not possible: no power switch" in told[3]
    assert "4. flash again: uno: exit code 4: echo no programmer found" in told[4]
    assert "no programmer found" in told[5]


def test_a_board_with_firmware_of_another_map_is_wedged_too(bench: Bench, virtual: VirtualBoard) -> None:
    board = bench(flash="nothing")
    virtual.stop()
    with VirtualBoard("valve-actuator", virtual.link.parent, map=virtual.map):
        board.spec = replace(board.spec, map=replace(board.map, name="other"))
        with pytest.raises(BoardWedged, match=rf"runs firmware of another map: its hash is {virtual.map.hash:08x}"):
            ensure_well(board, check)


def test_a_port_that_is_not_there_is_told(bench: Bench, virtual: VirtualBoard) -> None:
    board = bench()
    virtual.stop()
    with pytest.raises(BoardWedged, match=r"no such port\. Is the board plugged in\?"):
        ensure_well(board, check)


def test_a_command_that_takes_too_long_is_ended_with_all_it_started() -> None:
    with pytest.raises(BoardError, match=r"uno: not done within 0.2 s: cat /dev/zero \| cat >/dev/null"):
        run_command("uno", "cat /dev/zero | cat >/dev/null", patience_s=0.2)


def test_a_command_ends_with_all_it_started_when_we_are_told_to_end(tmp_path: Path) -> None:
    """Ctrl-C: a flash tool in its own session would go on writing to a board that is given back."""
    file = tmp_path / "pid"

    def interrupt_once_it_runs() -> None:
        while not (file.exists() and file.read_text().endswith("\n")):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt_once_it_runs, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        run_command("uno", f"sleep 60 & echo $! > {file}; wait", patience_s=30)
    command_line = Path(f"/proc/{file.read_text().strip()}/cmdline")
    assert not (command_line.exists() and command_line.read_bytes()), "what it started goes on"


def test_a_command_holds_the_lease_as_long_as_it_runs(tmp_path: Path) -> None:
    """Should we be killed in the middle, nobody else gets the board before the command has ended."""
    held = os.open(tmp_path / "lease", os.O_RDWR | os.O_CREAT)
    try:
        run_command("uno", f"test -e /proc/self/fd/{held}", inherits=[held])
        with pytest.raises(BoardError):
            run_command("uno", f"test -e /proc/self/fd/{held}")
    finally:
        os.close(held)


def test_placeholders_reach_the_command_as_single_words(bench: Bench, tmp_path: Path) -> None:
    board = bench(flash=f"printf '%s|' {{env}} {{port}} {{image}} > {tmp_path / 'said'}")
    board.flash(Path("/a firmware; rm -rf.hex"))
    assert (tmp_path / "said").read_text() == f"e|{board.port}|/a firmware; rm -rf.hex|"


@pytest.mark.parametrize("opened", [True, False])
def test_a_port_without_a_dtr_line_cannot_be_reset_by_it(opened: bool, bench: Bench) -> None:
    """Which a pty is; and who has the port open already, exclusively, is in nobody's way."""
    board = bench(reset="dtr")
    with contextlib.ExitStack() as stack:
        if opened:
            stack.enter_context(Line(board.port, board.map, board.log))
        with pytest.raises(BoardError, match=r"uno: reset: .*: its DTR line cannot be moved: .*another reset command"):
            board.reset()
