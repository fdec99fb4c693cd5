"""The image for an 8052: that it takes one frame buffer and a handful of bytes besides, that it draws new boot ids, and runs in ucsim, too.

What it answers is held against the byte vectors in test_chip_vectors.py.
"""

import os
import select
import shutil
import subprocess
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import TypeVar

import pytest

from hil.emulator import KINDS, Emulator
from hil.frames import FrameLog
from hil.image_size import sdcc_size
from hil.line import Line
from hil.values import EDGES, valid
from mcpax.bridge.maps.load import load_map
from mcpax.bridge.wire.dialect import dialect_for
from mcpax.bridge.wire.messages import Event, Heartbeat, Message, Response, Status
from tests.firmware import sdcc
from tests.firmware.chip import build_mcs51

MAP = load_map(sdcc.ROOT / "device-maps/relay-board-51.toml")
RELAY_BOARD = sdcc.ROOT / "build/mcs51/relay-board.ihx"
LIBRARY = ("crc", "frame_a", "profile_a", "stub", "tables")
FLASH_BYTES = 8192
RAM_BYTES = 256
BOOT_ID_BYTES = 2
"""At the end of RAM, above the stack."""

FRAME_BUFFER = {"received": 1 + 1 + 3 + 16 + 2}
"""A5, LEN, header, the 16 bytes of an echo, CRC."""
REMEMBERED = {"boot_id": 2, "highest": 1, "flags": 1, "ran": 1, "events_sent": 1, "heard": 1, "filled": 1}
"""What must be known when the next message comes, in bytes."""
AT_HAND = {
    **{"believed_boot_id": 2, "sequence": 1, "tool_id": 1, "status": 1, "failed": 1},
    **{"in": 1, "in_end": 1, "out_length": 1, "out_crc": 2, "out_counting": 1, "tool": 2, "argument": 2, "output": 2},
    **{"args": 2 * 2, "results": 2 * 2},
}
"""Of the message being read or written, and of no meaning after it."""
STACK_LEAST = 20
"""Bytes; less would mean that nobody has counted."""
LOCALS_MAX = 36
"""Bytes of the library's parameters and local variables, which SDCC gives fixed places, because this chip's stack has no frames."""

CLOCK_HZ = 11_059_200
IDLE_LOAD_MAX = 0.03
"""The tick, forty times a second, and what the application does then."""
RESETS = 20
PATIENCE_S = 20.0

Answer = TypeVar("Answer", bound=Message)

pytestmark = pytest.mark.skipif(not (shutil.which("make") and shutil.which("sdcc")), reason="needs make and sdcc")


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    build_mcs51()


class Bytes:
    """A line without a clock: however long a byte takes, it is waited for."""

    dialect = dialect_for(MAP)

    def __init__(self, into: int, out: int) -> None:
        self._into, self._out = into, out
        self._decoder = self.dialect.framing.decoder(self.dialect.max_message)

    def ask(self, message: bytes, kind: type[Answer]) -> Answer:
        """The next of this kind; what else comes is passed over."""
        os.write(self._into, self.dialect.framing.encode(message))
        while not isinstance(answer := self.receive(), kind):
            pass
        return answer

    def receive(self) -> Message:
        while select.select([self._out], [], [], PATIENCE_S)[0]:
            for message in self._decoder.feed(os.read(self._out, 1)):
                return self.dialect.decode(message)
        raise AssertionError(f"nothing came within {PATIENCE_S:g} s")


# --- What it takes


@pytest.mark.req("AX-B.1-2")
def test_the_stub_remembers_one_frame_and_a_handful_of_bytes(tmp_path: Path) -> None:
    folder = tmp_path / "mcs51/relay-board"
    sdcc.make(folder / "stub.rel", build=str(tmp_path), SDCC="sdcc --debug")
    state = sdcc.members(folder / "stub.adb", "boot_id")
    assert state == FRAME_BUFFER | REMEMBERED | AT_HAND
    assert sum(REMEMBERED.values()) < 10
    kept = {variable.name: variable.size for variable in sdcc.variables(RELAY_BOARD) if variable.file in LIBRARY and not is_local(variable)}
    assert kept == {"mcpax": sum(state.values())}, "the library has RAM besides its state"


def test_local_variables_take_no_more_than_they_must() -> None:
    taken = [variable for variable in sdcc.variables(RELAY_BOARD) if variable.file in LIBRARY and is_local(variable)]
    assert taken
    assert len({place for variable in taken for place in variable.places}) <= LOCALS_MAX, "\n".join(map(str, taken))


@pytest.mark.req("AX-B.1-2")
def test_the_tables_of_commands_are_in_flash() -> None:
    assert {"mcpax_tools", "mcpax_arguments", "mcpax_outputs"} == set(sdcc.labels(RELAY_BOARD, "tables", "CONST"))
    assert [variable for variable in sdcc.variables(RELAY_BOARD) if variable.file == "tables"] == []


def test_half_of_the_flash_is_left() -> None:
    assert sdcc_size(RELAY_BOARD.with_suffix(".mem")).code <= FLASH_BYTES // 2


def test_variables_and_the_deepest_stack_fit_into_ram(tmp_path: Path) -> None:
    """Startup clears from the stack's start downward, so all variables must lie below it."""
    start = sdcc.stack_start(RELAY_BOARD)
    assert max(variable.places.stop for variable in sdcc.variables(RELAY_BOARD)) <= start
    with Emulator(KINDS["mcs51"], tmp_path / "port", image=RELAY_BOARD, unpaced=True) as running:
        file = os.open(running.link, os.O_RDWR | os.O_NOCTTY)
        line = Bytes(file, file)
        heartbeat = line.ask(line.dialect.heartbeat(0, 0), Heartbeat)
        while not heartbeat.synchronised:
            heartbeat = line.ask(line.dialect.heartbeat(0, heartbeat.boot_id), Heartbeat)
        for seq, (tool, edge) in enumerate(product(MAP.tools, EDGES), start=1):
            assert line.ask(line.dialect.call(tool, seq, valid(tool, edge)), Response).status == Status.OK
        running.press()
        assert isinstance(line.receive(), Event)
        stats = running.stats()
        os.close(file)
    assert stats.stack_worst is not None
    assert STACK_LEAST <= stats.stack_worst <= RAM_BYTES - BOOT_ID_BYTES - start


def is_local(variable: sdcc.Variable) -> bool:
    return any(variable.name.startswith(f"{function}_") for function in sdcc.labels(RELAY_BOARD, variable.file, "CSEG"))


# --- What it does


@pytest.fixture
def emulator(tmp_path: Path) -> Iterator[Emulator]:
    with Emulator(KINDS["mcs51"], tmp_path / "port", image=RELAY_BOARD) as running:
        yield running


@pytest.fixture
def line(emulator: Emulator) -> Iterator[Line]:
    with Line(str(emulator.link), MAP, FrameLog("mcs51", MAP)) as opened:
        yield opened


def test_boot_ids_differ_from_reset_to_reset(emulator: Emulator, line: Line) -> None:
    """The button bounces: another reset comes while the chip is still starting, and the id before must not be lost by that."""
    seen = [line.heartbeat().boot_id]
    for _ in range(RESETS):
        emulator.reset()
        emulator.reset()
        seen.append(line.wait_for_restart().boot_id)
    assert len(set(seen)) == len(seen)


def test_boot_ids_differ_from_power_on_to_power_on(tmp_path: Path) -> None:
    seen = []
    for seed in range(5):
        with (
            Emulator(KINDS["mcs51"], tmp_path / "port", image=RELAY_BOARD, seed=seed) as running,
            Line(str(running.link), MAP, FrameLog("mcs51", MAP)) as line,
        ):
            seen.append(line.heartbeat().boot_id)
    assert len(set(seen)) == len(seen)


def test_it_sleeps_when_there_is_nothing_to_do(tmp_path: Path) -> None:
    with Emulator(KINDS["mcs51"], tmp_path / "port", image=RELAY_BOARD, unpaced=True) as running:
        while cycles_of(running)[0] < CLOCK_HZ:  # it has begun
            pass
        before, busy_before = cycles_of(running)
        while cycles_of(running)[0] < before + CLOCK_HZ:
            pass
        after, busy_after = cycles_of(running)
    assert busy_after - busy_before < (after - before) * IDLE_LOAD_MAX


def cycles_of(emulator: Emulator) -> tuple[int, int]:
    """All, and those not asleep."""
    stats = emulator.stats()
    assert stats.cycles is not None
    assert stats.busy_cycles is not None
    return stats.cycles, stats.busy_cycles


# --- In ucsim, which is other people's work and not paced


@pytest.fixture
def ucsim(tmp_path: Path) -> Iterator[Bytes]:
    if not shutil.which("s51"):
        pytest.skip("needs s51, of Debian's sdcc-ucsim")
    # Pipes, because on a terminal ucsim takes some bytes for itself; open for both ways, so that neither side waits for the other.
    ends = [tmp_path / "into", tmp_path / "out"]
    for end in ends:
        os.mkfifo(end)
    into, out = (os.open(end, os.O_RDWR) for end in ends)
    command = ["s51", "-t", "8052", "-X", str(CLOCK_HZ), "-S", f"uart=0,in={ends[0]},out={ends[1]}"]
    # By itself it looks for input so seldom that the bytes of a frame are longer apart than a frame may be interrupted.
    command += ["-e", "expression uart0_check_often=1", "-e", "run", str(RELAY_BOARD)]
    simulator = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    yield Bytes(into, out)
    simulator.kill()
    simulator.wait()
    os.close(into)
    os.close(out)


def test_it_runs_in_ucsim(ucsim: Bytes) -> None:
    dialect = ucsim.dialect
    pulse, read = (next(tool for tool in MAP.tools if tool.name == name) for name in ("pulse_relay", "read_relays"))
    started = ucsim.receive()
    assert isinstance(started, Heartbeat)
    assert started.map_hash == MAP.hash
    assert ucsim.ask(dialect.heartbeat(7, started.boot_id), Heartbeat).synchronised
    for status in (Status.OK, Status.RESPONSE_LOST):
        assert ucsim.ask(dialect.call(pulse, 8, [1, 5]), Response).status == status
    _, pulses = dialect.result(read, ucsim.ask(dialect.call(read, 9, []), Response).payload)
    assert pulses == 1
