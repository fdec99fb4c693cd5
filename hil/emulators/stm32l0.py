"""A Nucleo board with an STM32L053 (Cortex-M0+, 64 KiB flash, 8 KiB RAM); its USART2 on PA2 and PA3 is the port to the host.

    python -m hil.emulators.stm32l0 --image firmware.elf --link PORT

Emulated time follows real time and never runs ahead of it, unless told so. Peripherals that are not in `stm32l0_peripherals` are not
there: touching them is a fault of the program.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from hil.emulators.board import BoardError, Stats, main
from hil.emulators.clocked import ClockedChip
from hil.emulators.cortexm.core import BusFault, Core
from hil.emulators.images import arm_elf
from hil.emulators.stm32l0_peripherals import Gpio, Plain, Rcc, Usart, Watchdog

FLASH = range(0x08000000, 0x08010000)
RAM = range(0x20000000, 0x20002000)
PERIPHERALS = (range(0x40000000, 0x40030000), range(0x50000000, 0x50002000))
PERIPHERAL_BYTES = 0x400

USART2_INTERRUPT = 28
USART2_CLOCK_BIT = 17
USART2_PINS, USART2_FUNCTION = (2, 3), 4
BUTTON_PIN = 13
"""Of port C; held high on the board until it is pressed."""


class Registers(Protocol):
    def read(self, offset: int) -> int: ...
    def write(self, offset: int, value: int) -> None: ...


class Stm32L0(ClockedChip):
    """The chip."""

    def __init__(self, unpaced: bool) -> None:
        super().__init__(unpaced)
        self._core = Core(FLASH, RAM, PERIPHERALS, self)
        self._loaded = False
        self._reset_cause: int | None = None
        self._pressed = False
        self.hz = Rcc(0).core_hz()
        self._restart(Rcc.BY_POWER)

    # --- What a clocked chip is asked for

    @property
    def cycles(self) -> int:
        return self._core.cycles

    @property
    def fault(self) -> str | None:
        return self._core.fault

    @property
    def runs(self) -> bool:
        return self._loaded and self._core.fault is None

    @property
    def waits(self) -> bool:
        return self._core.asleep or self._core.spinning

    @property
    def listens(self) -> bool:
        return self._usart.listens

    @property
    def byte_cycles(self) -> int:
        return self._usart.byte_cycles

    def run_until(self, cycle: int) -> None:
        self._core.run(cycle)

    def deliver(self, byte: int) -> bool:
        return self._usart.deliver(byte)

    # --- What the board asks for

    def load(self, image: Path) -> None:
        self._core.write_flash(arm_elf(image, FLASH))
        self._loaded = True

    def reset(self) -> None:
        self._restart(Rcc.BY_PIN)

    def press(self, down: bool) -> None:
        self._pressed = down
        self._gpio_c.held_low = int(down) << BUTTON_PIN

    def power_on(self, noise: random.Random) -> None:
        self._core.write_ram(noise.randbytes(len(RAM)))
        self.start_clock()
        self._restart(Rcc.BY_POWER | Rcc.BY_PIN)

    def power_off(self) -> None:
        self._core.halt()
        self.silence()

    def peek(self, address: int, length: int) -> bytes:
        if address < RAM.start or address + length > RAM.stop:
            raise BoardError(f"peek {address:#x} {length} is outside RAM, which is {RAM.start:#x} to {RAM.stop - 1:#x}")
        return self._core.read_ram(address, length)

    def measured(self) -> Stats:
        core = self._core
        return replace(
            self.counts,
            cycles=core.cycles,
            busy_cycles=core.cycles - core.sleep_cycles,
            stack_max=core.stack.deepest,
            stack_worst=core.stack.worst,
            fault=core.fault,
        )

    def forget_stack(self) -> None:
        self._core.stack.forget()

    # --- What the core asks for

    def advance(self, now: int) -> None:
        while self.incoming_at <= now:
            self.byte_came_in()
        self._usart.advance(now)
        if self._watchdog.bites_at <= now:
            self.counts.watchdog_resets += 1
            self.counts.resets += 1
            self._restart(Rcc.BY_WATCHDOG | Rcc.BY_PIN)
        elif self._reset_cause is not None:
            self.counts.resets += 1
            self._restart(self._reset_cause)

    def next_event(self) -> int:
        if self._reset_cause is not None:
            return self._core.cycles
        return min(self.incoming_at, self._usart.sent_at, self._watchdog.bites_at, self._core.system.tick.next_event())

    def interrupts(self) -> int:
        return int(self._usart.interrupt()) << USART2_INTERRUPT

    def reset_requested(self) -> None:
        self._reset_cause = Rcc.BY_SOFTWARE | Rcc.BY_PIN

    def read(self, address: int) -> tuple[int, bool]:
        registers, offset = self._find(address, "read from")
        if registers is None:
            return 0, False
        return registers.read(offset), registers is self._usart and offset == Usart.RDR

    def write(self, address: int, value: int) -> None:
        registers, offset = self._find(address, "write to")
        if registers is not None:
            registers.write(offset, value)
        if registers is self._rcc and self._rcc.core_hz() != self.hz:
            self._change_clock()

    # --- Inside

    def _restart(self, cause: int) -> None:
        """Core and peripherals begin anew; RAM and what the host has on the line stay."""
        self._reset_cause = None
        now = self._core.now
        self._rcc = rcc = Rcc(cause)
        self._gpio_a = Gpio(0xEBFFFCFF)
        self._gpio_c = Gpio(0xFFFFFFFF, held_high=1 << BUTTON_PIN)
        self.press(self._pressed)
        self._watchdog = Watchdog(now, rcc)
        self._usart = Usart(now, rcc, self._usart_wired, self.answer_began, self.byte_went_out)
        self._map: dict[int, tuple[Registers, Callable[[], bool]]] = {
            0x40003000: (self._watchdog, lambda: True),
            0x40004400: (self._usart, lambda: rcc.clocked(Rcc.APB1ENR, USART2_CLOCK_BIT)),
            0x40007000: (Plain({0: 0x1000}), lambda: rcc.clocked(Rcc.APB1ENR, 28)),  # PWR
            0x40010000: (Plain(), lambda: rcc.clocked(Rcc.APB2ENR, 0)),  # SYSCFG
            0x40021000: (rcc, lambda: True),
            0x40022000: (Plain(), lambda: True),  # the flash's own registers
            0x50000000: (self._gpio_a, lambda: rcc.clocked(Rcc.IOPENR, 0)),
            0x50000400: (Gpio(0xFFFFFFFF), lambda: rcc.clocked(Rcc.IOPENR, 1)),
            0x50000800: (self._gpio_c, lambda: rcc.clocked(Rcc.IOPENR, 2)),
        }
        self.keep_time(self._core.cycles)
        self.hz = rcc.core_hz()
        self._core.reset()

    def _find(self, address: int, attempt: str) -> tuple[Registers | None, int]:
        """The peripheral at an address, or none while it has no clock."""
        base = address - address % PERIPHERAL_BYTES
        if base not in self._map:
            raise BusFault(f"{attempt} {address:#010x}, where this board has no peripheral")
        registers, clocked = self._map[base]
        return registers if clocked() else None, address - base

    def _usart_wired(self) -> bool:
        return all(self._gpio_a.function(pin) == USART2_FUNCTION for pin in USART2_PINS)

    def _change_clock(self) -> None:
        now, old_hz = self._core.now(), self.hz
        self.keep_time(now)
        self.hz = self._rcc.core_hz()
        self._watchdog.rescale(now, old_hz, self.hz)


if __name__ == "__main__":
    main(Stm32L0, "An emulated Nucleo board with an STM32L053.")
