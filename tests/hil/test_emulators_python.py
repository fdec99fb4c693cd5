"""The emulated boards that are driven from Python, tried with programs made for it: is each what the rig takes it for?

Times are those of the emulated chip or of its UART's line; nothing here waits for time to pass but where time itself is tested.
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import time
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from hil.emulator import KINDS, Emulator, EmulatorError, EmulatorRefused
from hil.emulators.terminal import Terminal
from tests.hil.process import Port

ROOT = Path(__file__).resolve().parents[2]
FIRMWARE = ROOT / "tests/hil/firmware"
BUILT = ROOT / "build/tests/hil"

CHIPS = {"stm32l0": "stm32l0", "microbit": "nrf51", "mcs51": "mcs51"}
BAUD = {"stm32l0": 115_200, "microbit": 115_200, "mcs51": 9_600}
FRAME_BYTES = 25
TICK_S = 0.01
PATIENCE_S = 10.0
SEED = int(os.environ.get("MCPAX_SEED", "20261118"))

# The bytes that echo.h gives a meaning to.
MARK, TELL, DEAF, HANG, FAULT, COUNT_TICKS, CAUSE, RESTART = (bytes((byte,)) for byte in range(1, 9))
KEPT = b"\x5a"
UNKNOWN, BY_SOFTWARE_AND_PIN, BY_WATCHDOG_AND_PIN = b"\0", b"\x14", b"\x24"
TICKS_TO_COUNT = 100
SPECIAL_BYTES = 9

WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wstrict-prototypes", "-Werror")
ARM_GCC = ("arm-none-eabi-gcc", "-mthumb", "-std=c99", "-Os", "-ffreestanding", "-nostdlib", f"-L{FIRMWARE}", *WARNINGS)
SDCC = ("sdcc", "-mmcs51", "--std-c99", "--model-small", "--Werror", "-DRING=32", "-DKEEPSAKE=")
COMPILERS = {
    "stm32l0": (*ARM_GCC, "-mcpu=cortex-m0plus", "-Tstm32l0.ld"),
    "nrf51": (*ARM_GCC, "-mcpu=cortex-m0", "-Tnrf51.ld"),
}


@cache
def image(name: str, *shared: str, which: str = "") -> Path:
    """The program in `<name>.c` or `<name>.S` and the files that it shares with others, built for the chip it is named after."""
    BUILT.mkdir(parents=True, exist_ok=True)
    chip = name.partition("_")[2]
    (source,) = FIRMWARE.glob(f"{name}.[cS]")
    sources = [source, *(FIRMWARE / file for file in shared)]
    if chip == "mcs51":
        return with_sdcc(name, sources)
    target = BUILT / f"{name}{zlib.crc32(which.encode()):08x}.elf"
    build([*COMPILERS[chip], f"-DWHICH={which}", *map(str, sources), "-lgcc", "-o", str(target)])
    return target


def with_sdcc(name: str, sources: list[Path]) -> Path:
    """It takes one source at a time, and what is linked gets the name of the first."""
    objects = [str(BUILT / f"{source.stem}.rel") for source in sources]
    for source, compiled in zip(sources, objects, strict=True):
        build([*SDCC, "-c", str(source), "-o", compiled])
    build([*SDCC, *objects, "-o", str(BUILT / f"{name}.ihx")])
    return BUILT / f"{name}.ihx"


def build(command: list[str]) -> None:
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr


def echo(kind: str) -> Path:
    return image(f"echo_{CHIPS[kind]}", "echo.c")


def ordinary(count: int) -> bytes:
    """Bytes that are just echoed."""
    return bytes(SPECIAL_BYTES + number % (256 - SPECIAL_BYTES) for number in range(count))


@pytest.fixture(params=CHIPS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def board(kind: str, tmp_path: Path) -> Iterator[Emulator]:
    with Emulator(KINDS[kind], tmp_path / "port", image=echo(kind), seed=SEED) as emulator:
        yield emulator


@pytest.fixture
def port(board: Emulator) -> Iterator[Port]:
    """Open, and the program answers."""
    with Port(board.link) as opened:
        ask(opened, b"?")
        board.tell("stats reset")
        yield opened


@pytest.fixture
def nucleo(tmp_path: Path) -> Emulator:
    return Emulator(KINDS["stm32l0"], tmp_path / "port", seed=SEED)


# --- The line


def test_every_byte_comes_back_at_the_pace_of_the_line(kind: str, board: Emulator, port: Port) -> None:
    data = ordinary(500)
    began = time.monotonic()
    for at in range(0, len(data), FRAME_BYTES):  # one with a single transmit register cannot keep up for longer
        frame = data[at : at + FRAME_BYTES]
        assert port.exchange(frame, len(frame)) == frame
    assert time.monotonic() - began >= len(data) * 10 / BAUD[kind]
    stats = board.stats()
    assert (stats.rx, stats.tx, stats.rx_overruns) == (500, 500, 0)


def test_the_host_may_close_the_port_and_come_again(board: Emulator) -> None:
    for byte in (b"a", b"b"):
        with Port(board.link) as port:
            assert ask(port, byte) == byte


def test_bytes_that_are_not_fetched_in_time_are_lost_and_counted(board: Emulator, port: Port) -> None:
    sent = ordinary(100)
    port.write(DEAF + sent)
    assert port.read(1) == DEAF
    port.write(b"end")
    came = port.read(3)
    while not came.endswith(b"end"):
        came += port.read(1)
    lost = len(sent) + 3 - len(came)
    assert lost > 0
    assert board.stats().rx_overruns == lost


def test_a_host_that_does_not_read_does_not_hold_the_chip_up(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path / "port")
    terminal.plug()
    with Port(tmp_path / "port") as port:
        written = 1 << 20  # more than any pty keeps
        for _ in range(written // 1024):
            terminal.write(bytes(1024))
        assert port.read(1024) == bytes(1024)
    terminal.unplug()


# --- Time


def test_ticks_follow_real_time(board: Emulator, port: Port) -> None:
    began = time.monotonic()
    assert port.exchange(COUNT_TICKS, 1) == COUNT_TICKS
    took = time.monotonic() - began
    assert (TICKS_TO_COUNT - 1) * TICK_S <= took < 1.5 * TICKS_TO_COUNT * TICK_S
    assert board.stats().fault is None


def test_an_idle_board_costs_next_to_nothing(board: Emulator, port: Port) -> None:
    before = board.stats()
    cpu_before = cpu_s()
    port.exchange(COUNT_TICKS, 1)  # asleep but for the ticks
    share = (cpu_s() - cpu_before) / (TICKS_TO_COUNT * TICK_S)
    assert share < IDLE_SHARE
    stats = board.stats()
    if stats.cycles is not None and before.cycles is not None and stats.busy_cycles is not None and before.busy_cycles is not None:
        assert stats.busy_cycles - before.busy_cycles < 0.05 * (stats.cycles - before.cycles)


IDLE_SHARE = 0.1
"""Of a core, with a hundred ticks a second, on a machine that does other things as well."""


def cpu_s() -> float:
    """Processor time of the board that this test has started: a session of its own, with whatever it has started itself."""
    processes: list[tuple[int, list[str]]] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # ended meanwhile
            processes.append((int(stat.parent.name), stat.read_text().rpartition(")")[2].split()))
    ours = {pid for pid, (_, parent, _, session, *_) in processes if int(parent) == os.getpid() and int(session) == pid}
    ticks = sum(int(fields[11]) + int(fields[12]) for _, fields in processes if int(fields[3]) in ours)
    return ticks / os.sysconf("SC_CLK_TCK")


# --- Power and reset


def test_reset_keeps_ram_and_loss_of_power_does_not(board: Emulator, port: Port) -> None:
    assert port.exchange(MARK + TELL, 2) == MARK + KEPT
    board.reset()
    assert ask(port, TELL) == KEPT
    kept = set()
    for _ in range(3):
        board.power_off()
        board.power_on()
        kept.add(ask(port, TELL))
    assert kept != {KEPT}
    assert board.stats().resets == 4


def test_noise_in_ram_comes_from_the_seed(kind: str, tmp_path: Path) -> None:
    begin = {"stm32l0": 0x20000400, "microbit": 0x20000400, "mcs51": 0xA0}[kind]

    def noise(seed: int) -> bytes:
        with Emulator(KINDS[kind], tmp_path / "port", image=echo(kind), seed=seed) as emulator:
            return emulator.peek(begin, 32)

    assert noise(1) == noise(1) != noise(2)


def test_the_link_goes_with_the_power_and_comes_back_with_it(board: Emulator) -> None:
    assert os.readlink(board.link) == board.port
    board.power_off()
    assert not board.link.is_symlink()
    with pytest.raises(EmulatorRefused, match="power on"):
        board.reset()
    board.power_on()
    with Port(board.link) as port:
        assert ask(port, b"a") == b"a"
    board.close()
    assert not board.link.is_symlink()


def test_a_link_that_another_board_has_taken_over_is_left_to_it(board: Emulator) -> None:
    other = board.link.with_name("other")
    other.symlink_to("/dev/null")
    other.rename(board.link)
    board.close()
    assert os.readlink(board.link) == "/dev/null"


def test_power_fails_after_so_many_bytes(board: Emulator, port: Port) -> None:
    board.cut(5)
    port.write(ordinary(20))
    wait_until(lambda: not board.link.is_symlink())
    assert port.read(5) == ordinary(5)
    assert board.stats().tx == 5
    board.power_on()
    assert ask(port, b"z") == b"z"


# --- Images and faults


def test_a_bad_image_is_refused_and_the_program_goes_on(kind: str, board: Emulator, port: Port, tmp_path: Path) -> None:
    cut_short = tmp_path / "cut-short"
    cut_short.write_bytes(echo(kind).read_bytes()[:100])
    foreign = tmp_path / "foreign"
    foreign.write_bytes(Path("/bin/true").read_bytes())
    for bad in (cut_short, foreign, tmp_path / "missing"):
        with pytest.raises(EmulatorRefused, match=str(bad)):
            board.load(bad)
        assert port.exchange(b"a", 1) == b"a"
    assert board.stats().resets == 0


def test_without_an_image_it_does_nothing_until_one_is_loaded(kind: str, tmp_path: Path) -> None:
    with Emulator(KINDS[kind], tmp_path / "port", seed=SEED) as emulator, Port(emulator.link) as port:
        port.write(b"lost")
        assert emulator.stats().tx == 0
        emulator.load(echo(kind))
        assert ask(port, b"a") == b"a"


def test_an_image_that_cannot_be_used_ends_the_process_with_a_reason(kind: str, tmp_path: Path) -> None:
    with pytest.raises(EmulatorError, match="missing"):
        Emulator(KINDS[kind], tmp_path / "port", image=tmp_path / "missing").start()
    assert not (tmp_path / "port").is_symlink()


def test_unknown_commands_are_answered(board: Emulator) -> None:
    for nonsense in ("", "dance", "cut some", "peek 0x20000000", "peek 0 4000000000"):
        with pytest.raises(EmulatorRefused):
            board.tell(nonsense)


@pytest.mark.parametrize(("kind", "reason"), [("stm32l0", "undefined"), ("microbit", "Lockup"), ("mcs51", "no such instruction")])
def test_a_fault_stops_the_chip_until_reset(board: Emulator, port: Port, reason: str) -> None:
    port.write(FAULT)
    wait_until(lambda: board.stats().fault is not None)
    assert reason in str(board.stats().fault)
    board.reset()
    assert ask(port, b"a") == b"a"
    assert board.stats().fault is None


@pytest.mark.parametrize(
    ("mistake", "reason"),
    [
        ("ldr r4, [r0]", "misaligned access"),
        ("str r0, [r1]", "write of 4 bytes at 0x0800"),
        ("ldr r4, [r3]", "read of 4 bytes at 0x60000000"),
        ("ldr r4, [r2]", "0x40013800, where this board has no peripheral"),
        ("udf #1", "undefined"),
        (".inst.w 0xfbb0f0f1", "0xfbb0 0xf0f1 is no instruction of ARMv6-M"),
        ("bkpt #0", "BKPT"),
        ("bx r0", "0x20000000"),
    ],
)
def test_faults_are_told_with_what_and_where(nucleo: Emulator, mistake: str, reason: str) -> None:
    with nucleo:
        nucleo.load(image("fault_stm32l0", which=mistake))
        wait_until(lambda: nucleo.stats().fault is not None)
        assert reason in str(nucleo.stats().fault)


@pytest.mark.parametrize("kind", ["stm32l0"])
def test_the_watchdog_ends_a_program_that_hangs(board: Emulator, port: Port) -> None:
    assert port.exchange(MARK, 1) == MARK
    port.write(HANG)
    wait_until(lambda: board.stats().watchdog_resets == 1)
    assert port.exchange(CAUSE, 1) == BY_WATCHDOG_AND_PIN
    assert port.exchange(TELL, 1) == KEPT


@pytest.mark.parametrize(("kind", "cause"), [("stm32l0", BY_SOFTWARE_AND_PIN), ("microbit", UNKNOWN)])
def test_a_program_can_restart_itself(board: Emulator, port: Port, cause: bytes) -> None:
    port.exchange(CAUSE + MARK, 2)
    port.write(RESTART)
    wait_until(lambda: board.stats().resets == 1)
    assert ask(port, CAUSE) == cause
    assert port.exchange(TELL, 1) == KEPT


def test_stack_use_of_the_8052_is_exact(tmp_path: Path) -> None:
    program = tmp_path / "stack.ihx"
    # MOV SP,#30; PUSH ACC three times; LCALL 0020; SJMP to itself. At 0020: PUSH B; POP B; RET
    records = [bytes.fromhex(record) for record in ("0e000000 758130 c0e0 c0e0 c0e0 120020 80fe", "05002000 c0f0 d0f0 22")]
    program.write_text("".join(f":{record.hex()}{-sum(record) & 0xFF:02x}\n" for record in records) + ":00000001ff\n")
    with Emulator(KINDS["mcs51"], tmp_path / "port", image=program) as emulator:
        wait_until(lambda: (emulator.stats().cycles or 0) > 1000)
        assert emulator.stats().stack_max == 3 + 2 + 1


# --- The Cortex-M0+ core


def test_stack_use_is_exact(nucleo: Emulator) -> None:
    with nucleo:
        nucleo.load(image("stack_stm32l0"))
        wait_until(lambda: (nucleo.stats().cycles or 0) > 10_000)
        assert nucleo.stats().stack_max == 116
        assert nucleo.stats().stack_worst == 120 + 32 + 8, "as if the interrupt had come when the program was deepest"
        nucleo.tell("stats reset")
        before = nucleo.stats().cycles or 0
        wait_until(lambda: (nucleo.stats().cycles or 0) > before + 10_000)
        assert nucleo.stats().stack_max == 20 + 4 + 32 + 8


def test_cycles_are_those_of_the_manual(nucleo: Emulator) -> None:
    with nucleo:
        nucleo.load(image("cycles_stm32l0"))
        wait_until(lambda: (nucleo.stats().cycles or 0) > 1000)
        assert int.from_bytes(nucleo.peek(0x20000000, 4), "little") == 2 + 1 + 10 + (9 * 2 + 1) + 3 + (3 + 1 + 3 + 5) + 2


def test_interrupts_at_any_moment_leave_the_program_as_it_was(nucleo: Emulator) -> None:
    dice = random.Random(SEED)
    with nucleo:
        nucleo.load(image("storm_stm32l0"))
        wait_until(lambda: (nucleo.stats().cycles or 0) > 10_000)  # it listens by then
        with Port(nucleo.link) as port:
            for period in (0, 1, *(dice.randrange(2, 256) for _ in range(40))):
                result = int.from_bytes(port.exchange(bytes((period,)), 4), "little")
                assert result == storm_sum(), f"interrupted every {50 + period} cycles, seed {SEED}"
        assert nucleo.stats().fault is None


def storm_sum() -> int:
    """What storm_stm32l0.c computes."""
    word = 0xFFFFFFFF
    a, b, c, carry = 1, 0x12345678, 0xDEADBEEF, 0
    for turn in range(300):
        a ^= a << 13 & word
        a ^= a >> 17
        a ^= a << 5 & word
        b = b + a & word
        carry += b < a
        c = (c >> 3 | c << 29 & word) ^ (b * a & word)
        if (c ^ 0x80000000) < (b ^ 0x80000000):
            b = b - turn & word
    return a ^ b ^ c ^ carry


# --- Helpers


def ask(port: Port, question: bytes) -> bytes:
    """For a chip that has just been started and may not listen yet: see that it is awake, then ask."""
    for mark in range(ord("A"), 256):
        port.write(bytes((mark,)))
        with contextlib.suppress(AssertionError):
            while port.read(1, 0.05) != bytes((mark,)):  # what is older may still come
                pass
            return port.exchange(question, 1)
    raise AssertionError(f"no answer to {question!r}")


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "what was waited for did not happen"
