"""Linked images on emulated chips, for tests that count every byte: building them, and a board whose line and time the test holds in hand.

Nothing waits for real time to pass: that a chip has done its work shows in its own clock, or in a variable of its program.
"""

from __future__ import annotations

import fcntl
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from hil.emulator import KINDS, Emulator

ROOT = Path(__file__).resolve().parents[2]
INI = Path(__file__).with_name("chips.ini")
IMAGES = ROOT / "build/chips"
PATIENCE_S = 20.0
TICK_S = 0.025
"""APP_TICK_MS."""
TICKS_TO_SEE_A_BUTTON = 3
"""One may have passed when it is pressed or released, and the next sees it; one to spare."""

SDCC_SYMBOL = re.compile(r"^ +([0-9A-F]{8})  _(\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Chip:
    board: str
    emulator: str
    clock_hz: int | None
    """Of the cycles that its emulator counts; None if it counts none, and the chip lives in real time."""


UNO = Chip("uno", "avr", 16_000_000)
L053 = Chip("l053", "stm32l0", 16_000_000)
MICROBIT = Chip("microbit", "microbit", None)
MSP430 = Chip("msp430g2553", "msp430", 16_000_000)
MCS51 = Chip("mcs51", "mcs51", 11_059_200)


@cache
def build(envs: tuple[str, ...], window: int = 1, kept: int = 1) -> Path:
    """Environments of chips.ini; returns the folder with one folder for each. Other windows and responses may be built meanwhile."""
    images = IMAGES / f"{window}-{kept}"
    images.mkdir(parents=True, exist_ok=True)
    flags = "" if window == kept == 1 else f"-DMCPAX_WINDOW={window} -DMCPAX_KEPT={kept}"
    words = [sys.executable, str(ROOT / "firmware/pio/offline"), "run", "-c", str(INI), *(word for env in envs for word in ("-e", env))]
    with images.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test runs side by side
        made = subprocess.run(
            words,
            env=os.environ | {"PLATFORMIO_BUILD_DIR": str(images), "PLATFORMIO_BUILD_FLAGS": flags},
            capture_output=True,
            text=True,
            check=False,
        )
    assert made.returncode == 0, made.stdout[-4000:] + made.stderr
    return images


@cache
def build_mcs51() -> Path:
    """By SDCC; returns the folder with the images."""
    images = ROOT / "build/mcs51"
    images.mkdir(parents=True, exist_ok=True)
    with (images / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = subprocess.run(["make", "-C", str(ROOT / "firmware"), "mcs51", "mcs51-tests"], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    return images


@dataclass(frozen=True)
class Symbol:
    address: int
    size: int = 0
    """Bytes; 0 if nobody says."""


def symbols(image: Path) -> dict[str, Symbol]:
    """By name; SDCC leaves them in a table beside the image, with an underscore in front and without their sizes."""
    if image.suffix == ".ihx":
        return {name: Symbol(int(address, 16)) for address, name in SDCC_SYMBOL.findall(image.with_suffix(".map").read_text())}
    with image.open("rb") as file:
        tables = [table for table in ELFFile(file).iter_sections() if isinstance(table, SymbolTableSection)]
        return {symbol.name: Symbol(symbol["st_value"], symbol["st_size"]) for table in tables for symbol in table.iter_symbols()}


class ChipBoard:
    """An emulated chip with an image, as fast as it can be, and its line open."""

    def __init__(self, chip: Chip, image: Path, folder: Path, *, seed: int = 1) -> None:
        self._chip = chip
        self._emulator = Emulator(KINDS[chip.emulator], folder / "port", image=image, seed=seed, unpaced=True).start()
        self._file = os.open(self._emulator.link, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        self._symbols = symbols(image)
        self._has_booted = False
        self._bytes_read = 0
        self._bytes_before = 0
        """Sent by the chip and heard by nobody."""

    # --- The line

    def send(self, data: bytes) -> None:
        """All of it, without a pause on the line."""
        assert os.write(self._file, data) == len(data)

    def read(self, count: int, patience_s: float = PATIENCE_S) -> bytes:
        """So many bytes, or as many as come."""
        data = b""
        while len(data) < count and select.select([self._file], [], [], patience_s)[0]:
            data += os.read(self._file, count - len(data))
        self._bytes_read += len(data)
        return data

    def unread(self) -> bytes:
        """What it has sent besides."""
        sent = self._emulator.stats().tx
        assert sent is not None
        return self.read(sent - self._bytes_before - self._bytes_read)

    def forget_unread(self) -> None:
        """All that it has sent up to now is read, or was never heard because the line was not open yet."""
        sent = self._emulator.stats().tx
        assert sent is not None
        self._bytes_before = sent - self._bytes_read

    def pieces(self, stub: str, stream: bytes) -> list[bytes]:
        """What can be sent without waiting for an answer; a vector may have more frames than that.

        While a chip answers it keeps what comes in in its ring, and loses what does not fit: a gateway waits for answers.
        """
        if stub.startswith("a"):
            return [stream]  # which are short
        first, *others = (frame + b"\0" for frame in stream.split(b"\0")[:-1])
        found, room = [first], self._ring_room()
        for frame in others:
            if len(frame) <= room:
                found[-1] += frame
                room -= len(frame)
            else:
                found.append(frame)
                room = self._ring_room()
        return found

    # --- Its time

    def idle(self, seconds: float) -> None:
        """Let so much of the chip's time pass."""
        assert self._chip.clock_hz is not None
        start, cycles = self._cycles(), seconds * self._chip.clock_hz
        self._until(lambda: self._cycles() - start >= cycles, f"{seconds:g} s of the chip's time")

    def settle(self) -> None:
        """Until the main loop has been around with nothing more to do. For images that count ticks."""
        start = self.variable("ticks_counted", 1)
        self._until(lambda: (self.variable("ticks_counted", 1) - start) % 256 >= 2, "two ticks")

    def take(self, data: bytes) -> None:
        """Send, and wait until the chip has worked on all of it. For images that count ticks."""
        received = (self._emulator.stats().rx or 0) + len(data)
        self.send(data)
        self._until(lambda: self._emulator.stats().rx == received, f"{len(data)} bytes to be received")
        self.settle()

    # --- Its program

    def variable(self, name: str, size: int) -> int:
        return int.from_bytes(self._emulator.peek(self._symbols[name].address, size), "little")

    def boot(self, boot_id: int) -> None:
        """Begin, or begin anew. For images that are told their boot id."""
        if self._has_booted:
            self._emulator.reset()
        self._has_booted = True
        self._until(lambda: self.variable("wants_boot_id", 1) == 1, "the program to begin")
        self.send(boot_id.to_bytes(2, "big"))

    def press(self) -> None:
        self._emulator.press()

    def release(self) -> None:
        self._emulator.release()

    def check(self) -> None:
        """No fault, and no reset that nobody asked for."""
        stats = self._emulator.stats()
        assert stats.fault is None
        assert self._chip.clock_hz is None or stats.rx_overruns == 0
        assert stats.watchdog_resets in (0, None)

    # --- Inside

    def _ring_room(self) -> int:
        """ring.h: two positions and the bytes, one of which stays free."""
        return self._symbols["ring"].size - 2 - 1

    def _cycles(self) -> int:
        cycles = self._emulator.stats().cycles
        assert cycles is not None
        return cycles

    def _until(self, done: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not done():
            assert time.monotonic() < deadline, f"{self._chip.board}: waited in vain for {what}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        os.close(self._file)
        self._emulator.close()
