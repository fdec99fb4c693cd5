"""An emulated board as a process: commands on standard input, one JSON answer each, a chip between them and the host's terminal.

What is inside a chip, how its time passes and how its UART works is the chip's own affair; here it has power, a reset button, a plug and
somebody who asks how it is. The commands are those of docs/hil.md.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import select
import signal
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hil.emulators.terminal import Terminal

Json = dict[str, Any]

NEVER = float("inf")
"""Seconds."""
MAX_WAIT_S = 60.0
MAX_COMMAND_BYTES = 8192


class BoardError(Exception):
    """The board does not do what it was told; says what, where, and what to do."""


@dataclass(slots=True)
class Stats:
    """What is counted since the process began, or since it was asked to count anew; None where an emulator cannot know."""

    cycles: int | None = None
    busy_cycles: int | None = None
    """Not asleep."""
    stack_max: int | None = None
    """Bytes below the top of RAM."""
    stack_worst: int | None = None
    """The same, had the deepest interrupt come when the program was deepest."""
    rx: int = 0
    tx: int = 0
    rx_overruns: int | None = 0
    resets: int = 0
    """Starts of the program but for the first: by the button, an image, the watchdog, the program itself, power."""
    watchdog_resets: int = 0
    turnaround_cycles: int | None = None
    turnaround_cycles_max: int | None = None
    exchange_cycles: int | None = None
    fault: str | None = None


class Chip(ABC):
    """A chip with its program. It has no power until `power_on`, and does nothing while there is no image.

    Times are those of `time.monotonic`, in seconds.
    """

    transmit: Callable[[int], None]
    """Takes each byte when it has left the chip; given by the board."""

    def __init__(self) -> None:
        self.counts = Stats()

    def descriptors(self) -> Sequence[int]:
        """What to wait for besides time: readable ones wake the chip."""
        return ()

    @property
    @abstractmethod
    def hungry(self) -> bool:
        """Whether it takes bytes from the host just now."""

    @abstractmethod
    def receive(self, data: bytes, now: float) -> None:
        """Bytes that the host has just begun to send."""

    @abstractmethod
    def run(self, now: float) -> float:
        """Do all that is due by now; return when to be called again."""

    @abstractmethod
    def load(self, image: Path) -> None:
        """Put an image into flash, to run from the next reset. Raises `BoardError`, all being as before, if the file holds none."""

    @abstractmethod
    def reset(self) -> None:
        """Begin the program anew, with RAM as it is."""

    def press(self, down: bool) -> None:  # noqa: ARG002
        """The board's button, whatever the program makes of it."""
        raise BoardError("this board has no button")

    @abstractmethod
    def power_on(self, noise: random.Random) -> None:
        """Begin the program with RAM full of noise."""

    @abstractmethod
    def power_off(self) -> None:
        """Stop at once."""

    @abstractmethod
    def peek(self, address: int, length: int) -> bytes:
        """Contents of RAM; raises `BoardError` for anything else."""

    @abstractmethod
    def measured(self) -> Stats:
        """The counts, together with what is only looked at when somebody asks."""

    @abstractmethod
    def forget_stack(self) -> None:
        """Look for the deepest stack anew."""


class Board:
    """A chip on a terminal."""

    def __init__(self, chip: Chip, terminal: Terminal, seed: int) -> None:
        self._chip = chip
        self._terminal = terminal
        self._noise = random.Random(seed)
        self._powered = False
        self._bytes_until_cut: int | None = None
        self._running = True
        self._commands = b""
        chip.transmit = self._transmit

    def serve(self) -> None:
        """Until told to quit."""
        host = self._terminal.fileno()
        with _end_requested() as signals:
            while self._running:
                due = self._chip.run(time.monotonic()) if self._powered else NEVER
                listening = [host] if not self._powered or self._chip.hungry else []
                wait_s = min(max(due - time.monotonic(), 0.0), MAX_WAIT_S)
                readable, _, _ = select.select([0, signals, *listening, *self._chip.descriptors()], [], [], wait_s)
                if host in readable:
                    data = self._terminal.read()
                    if self._powered:  # otherwise nobody is there, and they are lost
                        self._chip.receive(data, time.monotonic())
                if 0 in readable:
                    self._obey()
                if signals in readable:
                    self._running = False
        self.power_off()

    def load(self, image: Path) -> None:
        self._chip.load(image)
        self._chip.forget_stack()

    def power_on(self) -> None:
        if not self._powered:
            self._powered = True
            self._chip.power_on(self._noise)
            self._terminal.plug()

    def power_off(self) -> None:
        self._bytes_until_cut = None
        if self._powered:
            self._powered = False
            self._chip.power_off()
            self._terminal.unplug()

    def _transmit(self, byte: int) -> None:
        if not self._powered:
            return
        self._terminal.write(bytes((byte,)))
        if self._bytes_until_cut is not None:
            self._bytes_until_cut -= 1
            if self._bytes_until_cut == 0:
                self.power_off()

    def _obey(self) -> None:
        data = os.read(0, MAX_COMMAND_BYTES)
        if not data:
            self._running = False
        *lines, self._commands = (self._commands + data).split(b"\n")
        for line in lines:
            if not self._running:
                return
            try:
                answer = {"ok": True, **self._command(line.decode(errors="replace").strip())}
            except BoardError as error:
                answer = {"ok": False, "error": str(error)}
            _say(answer)

    def _command(self, line: str) -> Json:
        verb, _, rest = line.partition(" ")
        match verb, rest.strip():
            case "load", path if path:
                self.load(Path(path))
                if self._powered:
                    self._restart()
            case "reset", "":
                self._press_reset()
            case ("press" | "release") as way, "":
                self._chip.press(way == "press")
            case "power", "on":
                self._chip.counts.resets += not self._powered
                self.power_on()
                return {"port": self._terminal.port}
            case "power", "off":
                self.power_off()
            case "cut", count:
                self._cut(_number(count))
            case "stats", ("" | "reset") as anew:
                counted = asdict(self._chip.measured())
                if anew:
                    self._chip.counts = Stats()
                    self._chip.forget_stack()
                return counted
            case "peek", range_ if len(range_.split()) == 2:
                address, length = map(_number, range_.split())
                return {"hex": self._chip.peek(address, length).hex()}
            case "quit", "":
                self._running = False
            case _:
                raise BoardError(
                    f"{line!r} is no command; there are load FILE, reset, press, release, power on|off, cut N, stats, stats reset,"
                    " peek ADDR LEN, quit"
                )
        return {}

    def _press_reset(self) -> None:
        if not self._powered:
            raise BoardError("the board is off; switch it on with: power on")
        self._restart()

    def _restart(self) -> None:
        self._chip.counts.resets += 1
        self._chip.reset()

    def _cut(self, count: int) -> None:
        if count == 0:
            self.power_off()
        else:
            self._bytes_until_cut = count


def main(make_chip: Callable[[bool], Chip], description: str) -> None:
    """The program of every emulated board. `make_chip` is told whether emulated time may run ahead of real time."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--image", type=Path, help="what is in flash at the start; without it, nothing runs until 'load'")
    parser.add_argument("--link", type=Path, required=True, help="symbolic link to the board's terminal, there while it is plugged in")
    parser.add_argument("--seed", type=int, default=1, help="of the noise in RAM at power on")
    parser.add_argument("--unpaced", action="store_true", help="let emulated time run ahead of real time")
    options = parser.parse_args()
    # The usual 50 µs of slack are half a byte at 115200 baud.
    with contextlib.suppress(OSError):
        Path("/proc/self/timerslack_ns").write_text("1")
    chip = make_chip(options.unpaced)
    terminal = Terminal(options.link)
    board = Board(chip, terminal, options.seed)
    try:
        if options.image is not None:
            board.load(options.image)
        board.power_on()
    except BoardError as error:
        sys.exit(f"{parser.prog}: {error}")
    _say({"ready": True, "port": terminal.port})
    board.serve()


@contextlib.contextmanager
def _end_requested() -> Iterator[int]:
    """Readable once somebody wants the process to end."""
    readable, writable = os.pipe()
    os.set_blocking(writable, False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    before = signal.set_wakeup_fd(writable)
    try:
        yield readable
    finally:
        signal.set_wakeup_fd(before)


def _number(text: str) -> int:
    try:
        number = int(text, 0)
    except ValueError:
        number = -1
    if number < 0:
        raise BoardError(f"{text!r} is no number; write it in decimal or as 0x…")
    return number


def _say(answer: Json) -> None:
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps(answer), flush=True)
