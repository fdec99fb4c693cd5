"""`scripts/hil up`: boards for work by hand, held until one says so, and not taken from whoever has them."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from hil import build
from hil.__main__ import main
from hil.control import control_path
from hil.frames import FrameLog
from hil.line import Line
from hil.places import DEFAULT_RIG, ROOT
from hil.rig import load_rig
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


def test_what_a_board_starts_with_is_built_where_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        made.append(command)
        return subprocess.CompletedProcess(command, len(made) - 1, "no compiler")

    monkeypatch.setattr(subprocess, "run", run)
    spec = replace(load_rig(DEFAULT_RIG).boards[0], image=tmp_path / "none.elf", env="uno-valve-actuator")
    told: list[str] = []
    build.build_missing([replace(spec, image=tmp_path), replace(spec, emulator=None), replace(spec, env="")], told.append)
    assert made == [], "it is there, or is not ours to build"
    build.build_missing([spec], told.append)
    assert told == [f"building the firmware of {spec.name}: scripts/pio-offline run -e uno-valve-actuator"]
    with pytest.raises(build.BuildError, match=f"{spec.name}: its firmware does not build: make -C firmware virtual\nno compiler"):
        build.build_missing([replace(spec, emulator="virtual")], told.append)
    assert [command[1:] for command in made] == [["firmware/pio/offline", "run", "-e", "uno-valve-actuator"], ["-C", "firmware", "virtual"]]


def test_every_emulated_board_of_the_rig_has_firmware_that_can_be_built() -> None:
    assert all(build.how_to_build(spec) for spec in load_rig(DEFAULT_RIG).boards)
