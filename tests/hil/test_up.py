"""`python -m hil up`: boards for work by hand, held until one says so, and not taken from whoever has them."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from hil.__main__ import main
from hil.control import control_path
from hil.frames import FrameLog
from hil.line import Line
from hil.places import ROOT
from mcpax.bridge.maps.load import load_map
from tests.virtual import MAPS, build_boards

BOARD = "test-up"
PATIENCE_S = 30.0


@pytest.fixture
def rig(tmp_path: Path) -> Path:
    build_boards()
    file = tmp_path / "rig.toml"
    file.write_text(
        f'[rig]\nlease_dir = "{tmp_path}"\n[[board]]\nname = "{BOARD}"\nchip = "none"\napp = "relay-board"\nemulator = "virtual"\n'
    )
    return file


@contextlib.contextmanager
def up(rig: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-m", "hil", "up", BOARD, "--rig", rig], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def port_of(process: subprocess.Popen[str]) -> Path:
    assert process.stdout is not None
    name, port, _ = process.stdout.readline().split(maxsplit=2)
    assert name == f"{BOARD}:"
    return Path(port.rstrip(","))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_board_is_there_until_it_is_ended(rig: Path, number: signal.Signals) -> None:
    device = load_map(MAPS / "relay-board.toml")
    with up(rig) as process:
        port = port_of(process)
        with Line(str(port), device, FrameLog(BOARD, device)) as line:
            assert line.heartbeat().map_hash == device.hash
        assert control_path(port).is_socket()
        process.send_signal(number)
        assert process.wait(PATIENCE_S) == 0
        assert not port.is_symlink()
        assert not control_path(port).exists()


def test_a_second_one_waits_and_says_for_whom(rig: Path) -> None:
    with up(rig) as first:
        port_of(first)
        with up(rig) as second:
            assert second.stderr is not None
            assert f"hil up waits for {BOARD}, held by hil up (process {first.pid}" in second.stderr.readline()
            first.terminate()
            assert port_of(second).is_symlink()
            second.terminate()
            assert second.wait(PATIENCE_S) == 0


def test_a_board_that_is_not_in_the_rig_is_told(rig: Path) -> None:
    told = _said("up", "test-pu", "--rig", str(rig))
    assert "has no board 'test-pu'; did you mean \"test-up\"?" in told


def test_firmware_that_is_not_built_is_told(rig: Path) -> None:
    rig.write_text(rig.read_text() + 'image = "build/none"\n')
    assert "build/none; build it with: make -C firmware virtual" in _said("up", "--rig", str(rig))


def test_boards_are_listed_with_what_they_can_do(rig: Path) -> None:
    told = CliRunner().invoke(main, ["boards", "--rig", str(rig)]).output
    assert told.split()[:3] == [BOARD, "none", "relay-board"]
    assert "emulated (virtual); can: cut, flash, power, reset, stats" in told


def _said(*arguments: str) -> str:
    """On stderr, by a command that fails."""
    command = [sys.executable, "-m", "hil", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 1
    return done.stderr
