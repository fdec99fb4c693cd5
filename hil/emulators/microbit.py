"""A micro:bit (nRF51822: Cortex-M0, 256 KiB flash, 16 KiB RAM) in QEMU; its UART0 is the port to the host.

    python -m hil.emulators.microbit --image firmware.elf --link PORT

QEMU knows neither cycles nor time on the line: cycles are not told, and bytes are paced here, in real time, at the rate in the UART's
register. Every start is a new QEMU: with noise in RAM when power comes, with what was there before at a reset. It has no watchdog, and
the core is as fast as the host lets it be. Stack is measured by what has changed in RAM above the program's variables, to the word:
a byte that was overwritten by itself counts as unused.
"""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hil.emulators.board import BoardError, Chip, Stats, main
from hil.emulators.images import arm_elf, end_of_variables
from hil.emulators.line import NEVER, Line
from hil.emulators.qemu import READ_BYTES, QemuGone, QemuRun

MACHINE = ("-M", "microbit")
FLASH = range(0x00000000, 0x00040000)
RAM = range(0x20000000, 0x20004000)
STACK_WORD = 4

CHIP = "/machine/nrf51"
"""In QEMU's tree."""
BUTTON_A = 17
"""P0.17; held high on the board until it is pressed."""

UART_BAUDRATE = 0x40002524
BAUDRATE_UNIT = 16_000_000 / (1 << 32)
"""Baud for each step of the register."""

INCOMING_BYTES = 512
UNREAD_BYTES = 64
"""So many bytes may wait on the way into QEMU, which fetches them as long as there is room in the chip's own six. Fewer would count it
as the program's fault when the host is busy and QEMU does not get its turn for some milliseconds."""


class Microbit(Chip):
    """The chip. It has a QEMU while it has power, an image, and no fault."""

    def __init__(self, _unpaced: bool) -> None:
        super().__init__()
        self._run: QemuRun | None = None
        self._flash: bytes | None = None
        self._ram = bytes(len(RAM))
        """As it was when the program last began."""
        self._variables_end = RAM.start
        self._paint = b""
        """What stands in RAM where no stack has been; kept over resets, so that it tells of all since it was painted."""
        self._noise = random.Random(0)
        self._deepest = 0
        self._pressed = False
        self._fault: str | None = None
        self._incoming, self._outgoing = Line(), Line()
        self._last_baud = 0.0

    # --- What the board asks for

    def descriptors(self) -> Sequence[int]:
        return () if self._run is None else (self._run.uart.fileno(), self._run.monitor.fileno())

    @property
    def hungry(self) -> bool:
        return len(self._incoming) < INCOMING_BYTES

    def receive(self, data: bytes, now: float) -> None:
        if self._run is not None and (baud := self._baud(self._run)):
            self._incoming.put(data, now, baud)

    def run(self, now: float) -> float:
        run = self._run
        if run is None:
            return NEVER
        if run.crashed():
            self._fault = run.last_words() or "QEMU ended without a word"
            print(f"fault: {self._fault}", file=sys.stderr, flush=True)
            self._stop()
            return NEVER
        if run.has_reset_itself():
            self.counts.resets += 1
            self.reset()
            return now
        try:
            data = run.uart.recv(READ_BYTES)
        except OSError:  # nothing to read, or it has just crashed
            data = b""
        if data and (baud := self._baud(run)):
            self._outgoing.put(data, now, baud)
        self._deliver(run, now)
        return min(self._incoming.due, self._outgoing.due)

    def load(self, image: Path) -> None:
        self._flash = arm_elf(image, FLASH)
        self._variables_end = end_of_variables(image, RAM)

    def reset(self) -> None:
        self._ram = self._present_ram()
        self._stop()
        self._start()

    def press(self, down: bool) -> None:
        self._pressed = down
        if self._run is not None:
            self._run.set_pin(CHIP, BUTTON_A, not down)

    def power_on(self, noise: random.Random) -> None:
        self._noise = noise
        self._ram = noise.randbytes(len(RAM))
        self._paint = self._ram
        self._start()

    def power_off(self) -> None:
        self._look_at_stack()
        self._stop()

    def peek(self, address: int, length: int) -> bytes:
        if address < RAM.start or address + length > RAM.stop:
            raise BoardError(f"peek {address:#x} {length} is outside RAM, which is {RAM.start:#x} to {RAM.stop - 1:#x}")
        return self._present_ram()[address - RAM.start : address - RAM.start + length]

    def measured(self) -> Stats:
        self._look_at_stack()
        return replace(self.counts, stack_max=self._deepest, fault=self._fault)

    def forget_stack(self) -> None:
        self._deepest = 0
        self._paint = b""

    # --- Inside

    def _start(self) -> None:
        self._fault = None
        if self._flash is None:
            return
        if not self._paint:
            variables = self._ram[: self._variables_end - RAM.start]
            self._ram = self._paint = variables + self._noise.randbytes(len(RAM) - len(variables))
        self._run = QemuRun(MACHINE, {FLASH.start: self._flash, RAM.start: self._ram})
        self.press(self._pressed)

    def _stop(self) -> None:
        if self._run is not None:
            self._run.end()
            self._run = None
        self._incoming.clear()
        self._outgoing.clear()

    def _deliver(self, run: QemuRun, now: float) -> None:
        """Hand over the bytes that are through."""
        while (byte := self._incoming.take(now)) is not None:
            self.counts.rx += 1
            if run.unread() >= UNREAD_BYTES:
                self.counts.rx_overruns = (self.counts.rx_overruns or 0) + 1
            else:
                with contextlib.suppress(OSError):
                    run.uart.send(bytes((byte,)))
        while (byte := self._outgoing.take(now)) is not None:
            self.counts.tx += 1
            self.transmit(byte)

    def _baud(self, run: QemuRun) -> float:
        """Of the line; 0 while the UART is off, because then QEMU's registers read as zero."""
        if not len(self._incoming) and not len(self._outgoing):
            self._last_baud = 0.0
            with contextlib.suppress(QemuGone):
                self._last_baud = run.register(UART_BAUDRATE) * BAUDRATE_UNIT
        return self._last_baud

    def _present_ram(self) -> bytes:
        """What is in RAM now; after a crash, what was there when the program began."""
        if self._run is not None:
            with contextlib.suppress(QemuGone):
                return self._run.read_memory(RAM)
        return self._ram

    def _look_at_stack(self) -> None:
        if not self._paint:
            return
        ram = self._present_ram()
        for at in range(self._variables_end - RAM.start, len(RAM), STACK_WORD):
            if ram[at : at + STACK_WORD] != self._paint[at : at + STACK_WORD]:
                self._deepest = max(self._deepest, len(RAM) - at)
                return


if __name__ == "__main__":
    main(Microbit, "An emulated micro:bit.")
