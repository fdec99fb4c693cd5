"""The emulated boards written in C, from outside: a probe program in their flash, bytes through their port, orders on their input.

Time is judged by the chip's own cycles, not by the clock of a busy machine; only the price of idling is measured in processor time.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from tests.hil.process import ANSWER_S, Board

FIRMWARE = Path(__file__).parent / "firmware"
WARNINGS = ("-Wall", "-Wextra", "-Werror")

MARK, HANG, GO_DEAF, FAULT, TELL_CAUSE, LIGHT, STOP_TICK, COUNT_TICKS = (bytes([order]) for order in range(1, 9))
"""What probe.c does instead of echoing."""
TICKS_COUNTED = 1000
PLAIN = bytes(range(0x20, 0x100))
"""Bytes that the probe only echoes."""

MAX_IDLE_SHARE = 0.05
"""Of a processor; measured is less than a fifth of this, but the machine may be busy and the kernel counts in hundredths of a second."""
UNPACED_SLICE_S = 0.001
"""By so much may an unpaced sleeper's cycles run on after the last byte."""


@dataclass(frozen=True)
class Chip:
    """What differs between the chips, for the tests."""

    name: str
    hertz: int
    byte_cycles: int
    """By the baud registers that the probe writes."""
    held: int
    """Received bytes that the hardware holds until the program fetches them."""
    led: tuple[int, int]
    """Register and bit."""
    power_on_cause: int
    button_cause: int
    watchdog_cause: int
    ram_end: int
    build: Callable[[Path], list[list[str]]]
    """The commands that make the probe's image."""


def build_avr(image: Path) -> list[list[str]]:
    flags = ["-mmcu=atmega328p", "-DF_CPU=16000000UL", "-Os", "-std=gnu99", *WARNINGS]
    return [["avr-gcc", *flags, str(FIRMWARE / "probe.c"), str(FIRMWARE / "probe_avr.c"), "-o", str(image)]]


def build_msp430(image: Path, *options: str) -> list[list[str]]:
    flags = [*options, "--target=msp430", "-mmcu=msp430g2553", "-Oz", "-std=gnu99", "-ffreestanding", "-fno-builtin", *WARNINGS]
    objects = [image.with_name(name) for name in ("probe.o", "probe_msp430.o")]
    compile_all = [["clang-19", *flags, "-c", str(FIRMWARE / made.with_suffix(".c").name), "-o", str(made)] for made in objects]
    link = ["ld.lld-19", "-T", str(FIRMWARE / "msp430g2553.ld"), "--nmagic", *map(str, objects), "-o", str(image)]
    return [*compile_all, link]


AVR = Chip(
    name="avr",
    hertz=16_000_000,
    byte_cycles=10 * 8 * 17,
    held=3,
    led=(0x25, 0x20),
    power_on_cause=0x01,
    button_cause=0x02,
    watchdog_cause=0x08,
    ram_end=0x900,
    build=build_avr,
)
MSP430 = Chip(
    name="msp430",
    hertz=16_000_000,
    byte_cycles=10 * 138 + 9,
    held=1,
    led=(0x21, 0x01),
    power_on_cause=0x04,
    button_cause=0x08,
    watchdog_cause=0x01,
    ram_end=0x400,
    build=build_msp430,
)
CHIPS = {chip.name: chip for chip in (AVR, MSP430)}


@pytest.fixture(scope="module", params=CHIPS)
def chip(request: pytest.FixtureRequest) -> Chip:
    return CHIPS[request.param]


@pytest.fixture(scope="module")
def image(chip: Chip, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp(chip.name) / "probe.elf"
    for command in chip.build(path):
        subprocess.run(command, check=True, cwd=path.parent)
    return path


@pytest.fixture
def link(tmp_path: Path) -> Path:
    return tmp_path / "port"


@pytest.fixture
def board(chip: Chip, image: Path, link: Path) -> Iterator[Board]:
    with Board(chip.name, link, image=image) as board:
        yield board


def symbol(image: Path, name: str) -> int:
    with image.open("rb") as file:
        symbols = ELFFile(file).get_section_by_name(".symtab")
        assert isinstance(symbols, SymbolTableSection)
        found = symbols.get_symbol_by_name(name)
        assert found, f"{image} has no {name}"
        return int(found[0]["st_value"])


def until(board: Board, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Ask until it is so; every answer lets the board run on. A test that waits in vain is ended by the limit on its questions."""
    for _ in range(100_000):
        stats = board.stats()
        if condition(stats):
            return stats
    raise AssertionError(f"it never came to that: {stats}")


# --- Line and time


def test_a_thousand_bytes_come_back_at_the_configured_rate(chip: Chip, image: Path, link: Path) -> None:
    data = (PLAIN * 5)[:1000]
    with Board(chip.name, link, image=image, options=["--unpaced"]) as board, board.port() as port:
        port.exchange(STOP_TICK, 1)  # from now on time passes only while bytes are under way
        before = board.stats()
        assert port.exchange(data, len(data)) == data
        after = until(board, lambda stats: stats["tx"] == before["tx"] + len(data))

    assert after["rx"] == before["rx"] + len(data)
    assert after["rx_overruns"] == 0
    taken = after["cycles"] - before["cycles"]
    wire = (len(data) + 1) * chip.byte_cycles
    assert wire <= taken < wire + chip.byte_cycles + 2 * UNPACED_SLICE_S * chip.hertz


def test_emulated_time_does_not_run_ahead_of_real_time(chip: Chip, board: Board) -> None:
    with board.port() as port:
        started = os.times().elapsed
        first = board.stats()["cycles"]
        port.exchange(PLAIN, len(PLAIN))
        last = board.stats()["cycles"]
        elapsed = os.times().elapsed - started
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    assert (last - first) / chip.hertz <= elapsed + 2 * tick_s


def test_the_answer_takes_the_program_some_cycles_but_no_byte_time_more(chip: Chip, board: Board) -> None:
    with board.port() as port:
        port.exchange(b"A", 1)
        stats = board.stats()
    assert 0 < stats["turnaround_cycles"] <= stats["turnaround_cycles_max"] < chip.byte_cycles
    # One byte in, one out, by the chip's own clock; writing a register is no more than a few cycles from the byte's first bit.
    assert stats["exchange_cycles"] == pytest.approx(2 * chip.byte_cycles + stats["turnaround_cycles"], abs=4)


def test_ticks_come_while_it_sleeps_and_idling_costs_next_to_nothing(chip: Chip, board: Board) -> None:
    with board.port() as port:
        port.exchange(b"A", 1)
        before, cpu_before = board.stats(), board.cpu_s()
        assert port.exchange(COUNT_TICKS, 1) == COUNT_TICKS
        after, cpu_after = board.stats(), board.cpu_s()
    span = after["cycles"] - before["cycles"]
    assert span == pytest.approx(TICKS_COUNTED * chip.hertz / 1000, rel=0.02)
    assert after["busy_cycles"] - before["busy_cycles"] < 0.2 * span
    assert cpu_after - cpu_before < MAX_IDLE_SHARE * span / chip.hertz


def test_what_the_program_does_not_fetch_in_time_is_lost_and_counted(chip: Chip, board: Board) -> None:
    data = b"0123456789"
    with board.port() as port:
        heard = port.exchange(GO_DEAF + data, chip.held)
        lost = len(data) - chip.held
        assert heard == data[: chip.held - 1] + data[-1:]
        assert board.stats()["rx_overruns"] == lost


def test_bytes_nobody_reads_do_not_stop_the_chip(board: Board) -> None:
    with board.port() as port:
        for _ in range(100):
            port.write(PLAIN)
        stats = until(board, lambda stats: stats["rx"] == 100 * len(PLAIN))
    until(board, lambda stats: stats["tx"] == stats["rx"])
    assert stats["rx_overruns"] == 0
    with board.port() as port:  # what nobody has read is not for whoever comes next
        assert port.exchange(b"!", 1) == b"!"


def test_stack_and_registers_can_be_looked_at(chip: Chip, board: Board) -> None:
    register, bit = chip.led
    with board.port() as port:
        assert not board.peek(register, 1)[0] & bit
        port.exchange(LIGHT, 1)
        assert board.peek(register, 1)[0] & bit
    stats = board.stats()
    assert 0 < stats["stack_max"] <= stats["stack_worst"] < 64
    assert board.do("stats reset")["rx"] == 1
    assert board.stats()["rx"] == 0
    assert "ends at" in board.ask(f"peek {chip.ram_end:#x} 1")["error"]


# --- Reset, power, faults


def test_reset_keeps_ram_and_a_power_cycle_does_not(chip: Chip, board: Board, image: Path) -> None:
    keepsake = symbol(image, "keepsake")
    with board.port() as port:
        assert port.exchange(TELL_CAUSE, 1)[0] == chip.power_on_cause
        port.exchange(MARK, 1)
        board.do("reset")
        assert port.exchange(TELL_CAUSE, 1)[0] == chip.button_cause
        assert board.peek(keepsake, 8) == b"\x5a" * 8
    board.do("power off")
    board.do("power on")
    first = board.peek(keepsake, 8)
    board.do("power off")
    board.do("power on")
    assert len({b"\x5a" * 8, first, board.peek(keepsake, 8)}) == 3
    with board.port() as port:
        assert port.exchange(TELL_CAUSE, 1)[0] == chip.power_on_cause


def test_noise_in_ram_follows_the_seed(chip: Chip, image: Path, tmp_path: Path) -> None:
    keepsake = symbol(image, "keepsake")
    seen = []
    for number, seed in enumerate((7, 7, 8)):
        with Board(chip.name, tmp_path / str(number), image=image, options=["--seed", str(seed)]) as board:
            seen.append(board.peek(keepsake, 8))
    assert seen[0] == seen[1] != seen[2]


def test_the_watchdog_resets_a_program_that_hangs(chip: Chip, board: Board) -> None:
    with board.port() as port:
        port.write(HANG)
        assert until(board, lambda stats: stats["watchdog_resets"] == 1)["resets"] == 1
        assert port.exchange(TELL_CAUSE, 1)[0] == chip.watchdog_cause
    assert board.stats()["watchdog_resets"] == 1


def test_a_fault_stops_the_chip_until_it_is_reset(board: Board) -> None:
    with board.port() as port:
        port.write(FAULT)
        stats = until(board, lambda stats: stats["fault"] is not None)
        assert board.stats()["cycles"] == stats["cycles"]
        board.do("reset")
        assert port.exchange(b"A", 1) == b"A"
    assert board.stats()["fault"] is None
    assert stats["fault"] in board.close()


def test_the_port_comes_and_goes_with_the_power(board: Board, link: Path) -> None:
    with board.port() as port:
        assert port.exchange(b"A", 1) == b"A"
        board.do("power off")
        assert not link.is_symlink()
        assert port.read(1) == b""  # hung up
    stats = board.stats()
    assert board.stats()["cycles"] == stats["cycles"]
    assert not board.ask("reset")["ok"]
    port_path = board.do("power on")["port"]
    assert link.readlink() == Path(port_path)
    with board.port() as port:
        assert port.exchange(b"A", 1) == b"A"


def test_a_brown_out_comes_after_that_many_bytes(board: Board, link: Path) -> None:
    with board.port() as port:
        board.do("cut 5")
        port.write(b"0123456789")
        assert port.read(10) == b"01234"
    assert not link.is_symlink()
    assert board.stats()["tx"] == 5
    board.do("power on")
    with board.port() as port:
        assert port.exchange(b"0123456789", 10) == b"0123456789"


def test_a_link_taken_over_by_another_board_is_left_to_it(chip: Chip, image: Path, link: Path) -> None:
    with Board(chip.name, link, image=image) as old, Board(chip.name, link, image=image) as new:
        old.close()
        with new.port() as port:
            assert port.exchange(b"A", 1) == b"A"
    assert not link.is_symlink()


# --- What only the MSP430 has


def made(image: Path, *options: str) -> Path:
    for command in build_msp430(image, *options):
        subprocess.run(command, check=True)
    return image


def test_the_calibration_that_the_program_loads_sets_the_pace(link: Path, tmp_path: Path) -> None:
    hertz, byte_cycles, data = 1_000_000, 10 * 104 + 1, PLAIN[:100]
    with Board("msp430", link, image=made(tmp_path / "slow.elf", "-DAT_1_MHZ")) as board, board.port() as port:
        port.exchange(b"A", 1)
        before = board.stats()
        assert port.exchange(COUNT_TICKS, 1) == COUNT_TICKS
        ticked = board.stats()
        assert ticked["cycles"] - before["cycles"] == pytest.approx(TICKS_COUNTED * hertz / 1000, rel=0.03)
        assert port.exchange(data, len(data)) == data
        assert board.stats()["cycles"] - ticked["cycles"] >= (len(data) + 1) * byte_cycles


def test_the_wrong_key_to_the_watchdog_resets_at_once(link: Path, tmp_path: Path) -> None:
    with Board("msp430", link, image=made(tmp_path / "key.elf", "-DWRONG_KEY")) as board, board.port() as port:
        before = board.stats()["busy_cycles"]
        port.write(HANG)
        after = until(board, lambda stats: stats["watchdog_resets"] == 1)
        assert after["busy_cycles"] - before < 0.005 * MSP430.hertz  # the watchdog itself would have taken longer
        assert port.exchange(TELL_CAUSE, 1)[0] == MSP430.watchdog_cause


# --- Images and orders


def test_an_empty_chip_waits_for_its_image(chip: Chip, image: Path, link: Path) -> None:
    with Board(chip.name, link) as board:
        assert board.stats()["cycles"] == 0
        board.do(f"load {image}")
        with board.port() as port:
            assert port.exchange(b"A", 1) == b"A"


def truncated(image: Path) -> bytes:
    return image.read_bytes()[:200]


def for_another_machine(image: Path) -> bytes:
    data = bytearray(image.read_bytes())
    data[18:20] = (40).to_bytes(2, "little")  # e_machine: ARM
    return bytes(data)


def outside_flash(image: Path) -> bytes:
    data = bytearray(image.read_bytes())
    first_header = int.from_bytes(data[28:32], "little")  # e_phoff
    data[first_header + 12 : first_header + 16] = (0x20000).to_bytes(4, "little")  # p_paddr
    return bytes(data)


@pytest.mark.parametrize("spoil", [truncated, for_another_machine, outside_flash, lambda _: b"no image", lambda _: b""])
def test_a_bad_image_is_refused_and_the_running_one_goes_on(
    spoil: Callable[[Path], bytes], board: Board, image: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.elf"
    bad.write_bytes(spoil(image))
    before = board.stats()
    assert str(bad) in board.ask(f"load {bad}")["error"]
    assert "cannot be read" in board.ask(f"load {tmp_path / 'none.elf'}")["error"]
    with board.port() as port:
        assert port.exchange(b"A", 1) == b"A"
    assert board.stats()["resets"] == before["resets"]


@pytest.mark.parametrize(
    "order", ["fly", "cut", "cut 0", "cut x", "power", "power up", "peek", "peek 0x100", "peek x 1", "stats x", "", "x" * 9000]
)
def test_an_order_that_makes_no_sense_is_refused(order: str, board: Board) -> None:
    assert board.ask(order)["ok"] is False
    assert board.stats()["fault"] is None


def test_it_ends_when_told_to(chip: Chip, image: Path, link: Path) -> None:
    with Board(chip.name, link, image=image) as board:
        board.do("quit")
        assert board.process.wait(ANSWER_S) == 0
    with Board(chip.name, link, image=image) as board:
        board.process.send_signal(signal.SIGTERM)
        assert board.process.wait(ANSWER_S) == 0
    assert not link.is_symlink()


# --- The bootloader of the Uno


def avrdude(link: Path, image: Path) -> subprocess.CompletedProcess[str]:
    hexed = image.with_suffix(".hex")
    subprocess.run(["avr-objcopy", "-O", "ihex", image, hexed], check=True)
    command = ["avrdude", "-p", "m328p", "-c", "arduino", "-P", str(link), "-b", "115200", "-U", f"flash:w:{hexed}:i"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("chip", ["avr"], indirect=True)
def test_avrdude_flashes_and_verifies_an_empty_chip(image: Path, link: Path) -> None:
    assert shutil.which("avrdude"), "install avrdude"
    with Board("avr", link) as board:
        board.do("bootloader on")
        flashed = avrdude(link, image)
        board.do("bootloader off")
        assert flashed.returncode == 0, flashed.stderr
        assert "bytes of flash verified" in flashed.stderr
        with board.port() as port:
            assert port.exchange(b"A", 1) == b"A"


@pytest.mark.parametrize("chip", ["avr"], indirect=True)
def test_opening_resets_only_while_the_bootloader_is_on(chip: Chip, board: Board) -> None:
    with board.port() as port:
        port.exchange(b"A", 1)
    assert board.stats()["resets"] == 0
    board.do("bootloader on")
    with board.port() as port:
        until(board, lambda stats: stats["resets"] == 1)  # nothing sensible was heard for a while: the program starts
        assert port.exchange(TELL_CAUSE, 1)[0] & chip.button_cause
