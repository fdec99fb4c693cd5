"""The virtual boards, spoken to over their terminals with the gateway's codecs."""

import os
import re
import select
import shutil
import signal
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpax.bridge.maps.load import load_map
from mcpax.bridge.maps.model import ToolMap
from mcpax.bridge.wire.dialect import dialect_for
from mcpax.bridge.wire.messages import Event, Heartbeat, Message, Registration, Response, Status

ROOT = Path(__file__).resolve().parents[2]
MAPS = ROOT / "device-maps"
BUILD = ROOT / "build"
BOARDS = ["env-sensor", "relay-board", "relay-board-b", "valve-actuator"]
PATIENCE_S = 5.0
BITS_PER_BYTE = 10
TICK_S = 0.025
"""APP_TICK_MS of firmware/ports/app.h."""

pytestmark = pytest.mark.skipif(not (shutil.which("make") and shutil.which("cc")), reason="needs make and a C compiler")


class Board:
    """A running board with the terminal open on the gateway's side."""

    def __init__(self, name: str, *options: str, maps: Path = MAPS, build: Path = BUILD) -> None:
        self.device = load_map(maps / f"{name}.toml")
        self.dialect = dialect_for(self.device)
        self.process = subprocess.Popen([str(build / "virtual" / name), *options], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.path = self.process.stdout.readline().strip()
        self.open()

    def open(self) -> None:
        self.terminal = os.open(self.path, os.O_RDWR | os.O_NOCTTY)
        self.decoder = self.dialect.framing.decoder(self.dialect.max_message)
        self.heard: list[Message] = []

    def close(self) -> None:
        os.close(self.terminal)

    def end(self) -> int:
        self.close()
        self.process.terminate()
        status = self.process.wait(PATIENCE_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status

    def send(self, message: bytes) -> int:
        return os.write(self.terminal, self.dialect.framing.encode(message))

    def receive(self) -> Message:
        """The next message; fails after long silence."""
        while not self.heard:
            assert select.select([self.terminal], [], [], PATIENCE_S)[0], "the board is silent"
            self.heard += map(self.dialect.decode, self.decoder.feed(os.read(self.terminal, 4096)))
        return self.heard.pop(0)

    def heartbeat(self, seq: int = 0, boot_id: int = 0) -> Heartbeat:
        self.send(self.dialect.heartbeat(seq, boot_id))
        answer = self.receive()
        assert isinstance(answer, Heartbeat)
        return answer

    def synchronise(self, seq: int = 0) -> None:
        """Also takes what the board says after boot."""
        self.receive()
        assert self.heartbeat(seq, self.heartbeat().boot_id).synchronised

    def tool(self, name: str) -> ToolMap:
        return next(tool for tool in self.device.tools if tool.name == name)

    def call(self, name: str, seq: int, *raw: Any) -> list[Any]:
        self.send(self.dialect.call(self.tool(name), seq, raw))
        answer = self.receive()
        assert isinstance(answer, Response)
        assert answer.seq == seq
        assert answer.status == Status.OK
        return self.dialect.result(self.tool(name), answer.payload)


StartBoard = Callable[..., Board]


def make(*arguments: str) -> None:
    done = subprocess.run(["make", "-C", str(ROOT / "firmware"), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    make("virtual")


@pytest.fixture
def start_board() -> Iterator[StartBoard]:
    boards: list[Board] = []

    def start(name: str, *options: str, **folders: Path) -> Board:
        boards.append(Board(name, *options, **folders))
        return boards[-1]

    yield start
    for board in boards:
        assert board.end() == 0


@pytest.mark.parametrize("name", BOARDS)
def test_says_at_boot_that_it_is_there(name: str, start_board: StartBoard) -> None:
    board = start_board(name)
    first = board.receive()
    if board.dialect.announces:
        assert isinstance(first, Registration)
        assert first.device == name
    else:
        assert isinstance(first, Heartbeat)
        assert not first.synchronised
    assert first.map_hash == board.device.hash


def test_link_comes_and_goes_with_the_board(tmp_path: Path) -> None:
    link = tmp_path / "port"
    link.symlink_to("left over from before")
    board = Board("relay-board", "--link", str(link))
    assert os.readlink(link) == board.path
    assert board.end() == 0
    assert not link.is_symlink()


def test_link_taken_over_by_another_board_stays(tmp_path: Path, start_board: StartBoard) -> None:
    link = tmp_path / "port"
    first = Board("relay-board", "--link", str(link))
    second = start_board("relay-board", "--link", str(link))
    first.end()
    assert os.readlink(link) == second.path


@pytest.mark.parametrize(
    ("name", "tool", "raw"),
    [("relay-board", "pulse_relay", (1, 50)), ("relay-board-b", "pulse_relay", (1, 50)), ("valve-actuator", "dose", (5,))],
)
def test_a_repeated_call_counts_once(name: str, tool: str, raw: tuple[int, ...], start_board: StartBoard) -> None:
    board = start_board(name)
    board.synchronise()
    counts = [board.call(tool, seq, *raw)[0] for seq in (1, 1, 2, 2, 2, 3)]
    assert counts == [1, 1, 2, 2, 2, 3]


@pytest.mark.parametrize("name", BOARDS)
def test_reset_button(name: str, start_board: StartBoard) -> None:
    board = start_board(name)
    board.synchronise()
    before = board.heartbeat()
    board.process.send_signal(signal.SIGUSR1)
    assert isinstance(board.receive(), Registration if board.dialect.announces else Heartbeat)
    after = board.heartbeat(boot_id=before.boot_id)
    assert after.boot_id != before.boot_id
    assert not after.synchronised


def test_what_is_sent_after_a_reset_is_for_the_new_boot(start_board: StartBoard) -> None:
    board = start_board("relay-board")
    board.receive()
    before = {board.heartbeat().boot_id}
    for _ in range(20):
        board.process.send_signal(signal.SIGUSR1)
        board.send(board.dialect.heartbeat(0, 0))
        announced, answered = board.receive(), board.receive()
        assert isinstance(announced, Heartbeat)
        assert isinstance(answered, Heartbeat)
        assert announced.boot_id == answered.boot_id
        assert answered.boot_id not in before
        before = {answered.boot_id}


def test_reset_forgets_what_the_application_did(start_board: StartBoard) -> None:
    board = start_board("relay-board")
    board.synchronise()
    board.call("set_relay", 1, 3, 1)
    board.call("pulse_relay", 2, 1, 5000)
    assert board.call("read_relays", 3) == [0b0101, 1]
    board.process.send_signal(signal.SIGUSR1)
    board.synchronise()
    assert board.call("read_relays", 1) == [0, 0]


def test_a_pulse_ends_by_itself(start_board: StartBoard) -> None:
    board = start_board("relay-board-b")
    board.synchronise()
    board.call("pulse_relay", 1, 2, 100)
    seq, mask = 1, 0b0010
    assert board.call("read_relays", 2) == [mask, 1]
    began = time.monotonic()
    while mask:
        seq = seq % 255 + 1
        mask, _ = board.call("read_relays", seq)
        assert time.monotonic() - began < PATIENCE_S


@pytest.mark.parametrize(
    ("name", "event", "raw"),
    [("env-sensor", 1, [9000]), ("relay-board", 1, [1]), ("relay-board-b", 1, [1]), ("valve-actuator", 1, [0])],
)
def test_physical_event(name: str, event: int, raw: list[int], start_board: StartBoard) -> None:
    board = start_board(name)
    board.receive()
    board.process.send_signal(signal.SIGUSR2)
    notice = board.receive()
    assert isinstance(notice, Event)
    assert (notice.id, notice.count) == (event, 0)
    assert board.dialect.event(board.device.events[0], notice.payload) == raw


def test_alarm_by_the_temperature_itself(start_board: StartBoard) -> None:
    board = start_board("env-sensor")
    board.synchronise()
    assert board.call("set_alarm", 1, 1000) == [8500]
    notice = board.receive()
    assert isinstance(notice, Event)


def test_a_heated_room_is_dry_and_cools_down(start_board: StartBoard) -> None:
    board = start_board("env-sensor")
    board.synchronise()
    rest, damp = board.call("read_climate", 1)
    board.process.send_signal(signal.SIGUSR2)
    assert isinstance(board.receive(), Event)
    hot, dry = board.call("read_climate", 2)
    assert hot > rest + 4000
    assert dry < damp
    began, seq, now = time.monotonic(), 2, hot
    while now > hot - 500:
        seq = seq % 255 + 1
        now, _ = board.call("read_climate", seq)
        assert time.monotonic() - began < PATIENCE_S


def test_a_blocked_valve_does_not_move_until_acknowledged(start_board: StartBoard) -> None:
    board = start_board("valve-actuator")
    board.synchronise()
    board.process.send_signal(signal.SIGUSR2)
    assert isinstance(board.receive(), Event)
    board.send(board.dialect.call(board.tool("move_valve"), 1, [50]))
    answer = board.receive()
    assert isinstance(answer, Response)
    assert answer.status == 64
    assert board.call("stop", 2) == []
    assert board.call("move_valve", 3, 50) == [0]


def test_the_valve_takes_its_time(start_board: StartBoard) -> None:
    board = start_board("valve-actuator")
    board.synchronise()
    began = time.monotonic()
    board.call("move_valve", 1, 8)
    seq, position = 1, 0
    while position < 8:
        seq = seq % 255 + 1
        position, flow, _ = board.call("read_valve", seq)
        assert flow == position * 16
        assert time.monotonic() - began < PATIENCE_S
    assert time.monotonic() - began >= 7 * TICK_S  # a percent per tick, and the first tick may come at once


# --- The dead man's switch

DEADMAN_MS = 400
HEARTBEAT_MS = 130
OPEN = 4
"""Per cent: so that it does not take long."""


@pytest.fixture(scope="module")
def short_lease(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A valve whose patience is short; where its map and its program are."""
    folder = tmp_path_factory.mktemp("short-lease")
    text = (MAPS / "valve-actuator.toml").read_text()
    for key, value in (("heartbeat_ms", HEARTBEAT_MS), ("deadman_ms", DEADMAN_MS)):
        text, changed = re.subn(rf"(?m)^{key} = \d+", f"{key} = {value}", text)
        assert changed == 1
    (folder / "valve-actuator.toml").write_text(text)
    make(f"maps={folder}", f"build={folder}", f"{folder}/virtual/valve-actuator")
    return {"maps": folder, "build": folder}


def opened(board: Board) -> int:
    """Opens the valve a bit and waits until it is; gives the sequence number of the last call."""
    board.synchronise()
    board.call("move_valve", 1, OPEN)
    seq, position, began = 1, 0, time.monotonic()
    while position < OPEN:
        seq = seq % 255 + 1
        position, *_ = board.call("read_valve", seq)
        assert time.monotonic() - began < PATIENCE_S
    return seq


def be_silent_until_closed(board: Board) -> None:
    """To look whether it is closed would keep it open: there is nothing to wait for but the time that it takes."""
    assert not select.select([board.terminal], [], [], DEADMAN_MS / 1000 + 2 * OPEN * TICK_S)[0], "the board must not speak unasked"


def test_the_valve_closes_when_the_gateway_is_silent(short_lease: dict[str, Path], start_board: StartBoard) -> None:
    board = start_board("valve-actuator", **short_lease)
    seq = opened(board)
    be_silent_until_closed(board)
    assert board.call("read_valve", seq % 255 + 1)[0] == 0


def test_heartbeats_keep_the_valve_open(short_lease: dict[str, Path], start_board: StartBoard) -> None:
    board = start_board("valve-actuator", **short_lease)
    seq = opened(board)
    ends = time.monotonic() + 3 * DEADMAN_MS / 1000
    while time.monotonic() < ends:
        board.heartbeat()
        select.select([board.terminal], [], [], HEARTBEAT_MS / 1000)
    assert board.call("read_valve", seq % 255 + 1)[0] == OPEN


def test_a_blocked_valve_stays_where_it_is_when_the_gateway_is_silent(short_lease: dict[str, Path], start_board: StartBoard) -> None:
    board = start_board("valve-actuator", **short_lease)
    seq = opened(board)
    board.process.send_signal(signal.SIGUSR2)
    assert isinstance(board.receive(), Event)
    be_silent_until_closed(board)
    assert board.call("read_valve", seq % 255 + 1)[0] == OPEN


# --- Options, lines


def test_number(start_board: StartBoard) -> None:
    board = start_board("env-sensor", "--number", "4711")
    board.synchronise()
    assert board.call("read_info", 1)[1] == 4711


@pytest.mark.parametrize("options", [["--number", "65536"], ["--baud", "fast"], ["--baud", "-1"], ["--what"], ["more"]])
def test_refuses_what_it_does_not_understand(options: list[str]) -> None:
    done = subprocess.run([str(ROOT / "build/virtual/env-sensor"), *options], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "usage:" in done.stderr


def test_the_gateway_may_come_and_go(start_board: StartBoard) -> None:
    board = start_board("relay-board")
    board.synchronise()
    boot_id = board.heartbeat().boot_id
    for _ in range(3):
        board.close()
        board.open()
        assert board.heartbeat().boot_id == boot_id


@pytest.mark.parametrize("options", [(), ("--baud", "4000000")], ids=["unpaced", "paced"])
def test_a_gateway_that_never_reads_does_not_wedge_the_board(options: tuple[str, ...], start_board: StartBoard) -> None:
    board = start_board("relay-board", *options)
    board.synchronise()
    for _ in range(2000):  # 34 kB of answers: more than the terminal and the board can hold
        board.send(board.dialect.heartbeat(0, 0))
    seen = 0
    while seen < 2:  # what was kept, then what is still coming: an answer to a call sent now gets through in the end
        termios.tcflush(board.terminal, termios.TCIFLUSH)
        board.send(board.dialect.call(board.tool("echo"), 1, [b"alive"]))
        while select.select([board.terminal], [], [], 0.2)[0]:
            for message in board.decoder.feed(os.read(board.terminal, 4096)):
                seen += isinstance(board.dialect.decode(message), Response)


@pytest.mark.req("AX-B.2-2")
@pytest.mark.parametrize("baud", [9600, 115200])
def test_takes_the_time_of_a_real_line(baud: int, start_board: StartBoard) -> None:
    board = start_board("valve-actuator", "--baud", str(baud))
    board.synchronise()
    request = board.dialect.call(board.tool("dose"), 1, [5])
    began = time.monotonic()
    sent = board.send(request)
    received = 0
    while not board.heard:
        assert select.select([board.terminal], [], [], PATIENCE_S)[0]
        data = os.read(board.terminal, 4096)
        received += len(data)
        board.heard += map(board.dialect.decode, board.decoder.feed(data))
    took = time.monotonic() - began
    on_the_line = (sent + received) * BITS_PER_BYTE / baud
    assert on_the_line <= took < on_the_line + 0.25
