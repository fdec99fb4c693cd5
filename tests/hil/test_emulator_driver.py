"""The driver of emulator processes, with ones that die, hang, garble or refuse: each error says what happened, and what was last said."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hil.boards import EmulatedBoard
from hil.control import control_path
from hil.emulator import KINDS, Emulator, EmulatorError, EmulatorRefused, Stats
from hil.line import Line
from hil.places import ROOT
from hil.rig import BoardSpec
from mcpax.bridge.maps.load import load_map
from tests.virtual import MAPS, build_boards

IMPATIENCE_S = 0.5
MOMENT_S = 10.0
READY = 'print(\'{"ready": true, "port": "/dev/pts/0"}\', flush=True)'


@pytest.fixture
def fake(tmp_path: Path) -> Callable[[str], Emulator]:
    """An emulator whose whole program is given."""

    def make(program: str) -> Emulator:
        file = tmp_path / "fake.py"
        file.write_text("import json, os, sys, signal\n" + textwrap.dedent(program))
        return Emulator((sys.executable, str(file)), tmp_path / "link", patience_s=IMPATIENCE_S)

    return make


def test_one_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(EmulatorError, match=r"cannot be started: No such file .* make -C hil/emulators"):
        Emulator((str(tmp_path / "nothing"),), tmp_path / "link").start()


def test_one_that_dies_at_the_start(fake: Callable[[str], Emulator]) -> None:
    with pytest.raises(EmulatorError, match=r"exit code 3 instead of answering to start\n    stderr: no such chip"):
        fake("print('no such chip', file=sys.stderr); sys.exit(3)").start()


def test_one_that_never_gets_ready(fake: Callable[[str], Emulator]) -> None:
    emulator = fake("print('loading', file=sys.stderr, flush=True); sys.stdin.read()")
    with pytest.raises(EmulatorError, match=r"did not answer to start within 0.5 s and was ended\n    stderr: loading"):
        emulator.start()
    assert not emulator.alive


def test_one_that_begins_with_something_else(fake: Callable[[str], Emulator]) -> None:
    with pytest.raises(EmulatorError, match="not with a ready line"):
        fake("print('{}', flush=True); sys.stdin.read()").start()


def test_one_that_dies_at_work(fake: Callable[[str], Emulator]) -> None:
    with (
        fake(f"{READY}\nsys.stdin.readline(); print('bus fault', file=sys.stderr); os._exit(7)") as emulator,
        pytest.raises(EmulatorError, match=r"exit code 7 instead of answering to 'reset'\n    stderr: bus fault"),
    ):
        emulator.reset()


def test_one_that_died_before_it_was_asked(fake: Callable[[str], Emulator]) -> None:
    with fake(f"{READY}\nprint('tired', file=sys.stderr)") as emulator:
        os.waitid(os.P_PID, emulator.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(EmulatorError, match="stderr: tired"):
            emulator.reset()
        assert not emulator.alive


def test_one_that_hangs_is_ended_with_all_it_started(fake: Callable[[str], Emulator]) -> None:
    with fake(
        f"{READY}\nimport subprocess\nchild = subprocess.Popen(['cat'], stdin=subprocess.PIPE)\n"
        "print(child.pid, file=sys.stderr, flush=True)\nsignal.pause()"
    ) as emulator:
        with pytest.raises(EmulatorError, match=r"did not answer to 'stats' within 0.5 s") as caught:
            emulator.stats()
        assert not emulator.alive
        child = int(str(caught.value).rsplit("stderr: ", 1)[1])
        assert _ends(child)


def test_one_that_garbles_its_answer(fake: Callable[[str], Emulator]) -> None:
    with (
        fake(f"{READY}\nfor line in sys.stdin: print('Segmentation f', flush=True)") as emulator,
        pytest.raises(EmulatorError, match=r"answered to 'reset' with b'Segmentation f', which is no JSON object"),
    ):
        emulator.reset()


def test_one_that_refuses_goes_on(fake: Callable[[str], Emulator]) -> None:
    program = f"""{READY}
for line in sys.stdin:
    print(json.dumps({{"ok": not line.startswith("load"), "error": "x.elf: not an ELF image", "rx": 5, "new": 1}}), flush=True)
"""
    with fake(program) as emulator:
        with pytest.raises(EmulatorRefused, match=r"load x.elf: x.elf: not an ELF image"):
            emulator.load(Path("x.elf"))
        assert emulator.stats() == Stats(rx=5), "what is not known is None, and what is new is no trouble"


def test_one_that_does_not_quit_is_ended(fake: Callable[[str], Emulator], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hil.emulator.QUIT_S", 0.2)
    emulator = fake(f"signal.signal(signal.SIGTERM, signal.SIG_IGN)\n{READY}\nwhile True: signal.pause()").start()
    pid = emulator.pid
    emulator.close()
    emulator.close()
    assert _ends(pid)


# --- A board behind the driver: the virtual one, as it is quick


@pytest.fixture
def spec() -> BoardSpec:
    build_boards()
    file = MAPS / "relay-board.toml"
    return BoardSpec("relay", "none", "relay-board", load_map(file), file, ROOT / "build/virtual/relay-board", emulator="virtual")


def test_another_program_flashes_a_running_board(spec: BoardSpec, tmp_path: Path) -> None:
    with EmulatedBoard(spec, directory=tmp_path) as board:
        before = _boot(board)
        assert _told(board, f"load {spec.image}") == {"ok": True}
        assert _boot(board) != before
        before = _boot(board)
        assert _told(board, "reset") == {"ok": True}
        assert _boot(board) != before
    assert list(tmp_path.iterdir()) == [], "link and socket go with the board"


@pytest.mark.parametrize(
    ("command", "error"),
    [("load /etc/passwd", "/etc/passwd"), ("power off", "not for this socket"), ("", "load FILE"), ("bootloader on", "bootloader")],
)
def test_what_another_program_may_not_do_changes_nothing(spec: BoardSpec, tmp_path: Path, command: str, error: str) -> None:
    with EmulatedBoard(spec, directory=tmp_path) as board:
        before = _boot(board)
        answer = _told(board, command)
        assert answer["ok"] is False
        assert error in answer["error"]
        assert _boot(board) == before


def test_a_board_whose_emulator_died_is_back_after_flashing(spec: BoardSpec, tmp_path: Path) -> None:
    with EmulatedBoard(spec, directory=tmp_path) as board:
        os.kill(board.pid, signal.SIGKILL)
        os.waitid(os.P_PID, board.pid, os.WEXITED | os.WNOWAIT)
        board.flash()
        assert _boot(board) > 0


def test_every_kind_of_emulator_has_its_command() -> None:
    for kind, command in KINDS.items():
        assert kind in command[-1]


def _told(board: EmulatedBoard, command: str) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(30)
        directory = os.open(Path(board.port).parent, os.O_PATH)
        client.connect(f"/proc/self/fd/{directory}/{control_path(Path(board.port)).name}")
        os.close(directory)
        client.sendall(f"{command}\n".encode())
        with client.makefile() as answer:
            return dict(json.loads(answer.readline()))


def _boot(board: EmulatedBoard) -> int:
    with Line(board.port, board.map, board.log) as line:
        return line.heartbeat().boot_id


def _ends(pid: int) -> bool:
    """Within a moment: a process that is killed may take that long to go."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    readable, _, _ = select.select([process], [], [], MOMENT_S)
    os.close(process)
    return bool(readable)
