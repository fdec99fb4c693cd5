"""A board with an 8052 at 11.0592 MHz (64 KiB code, 256 bytes RAM); its serial port is the port to the host.

    python -m hil.emulators.mcs51 --image firmware.ihx --link PORT

The processor is our own, checked instruction by instruction against ucsim, which is the better known but cannot serve as a board: it
answers its console every 100 ms only, and simulates a sleeping chip at a fifth of a core. Cycles are told in clocks of the oscillator,
twelve to a machine cycle. The stack grows upward here: its size is how far SP has been above where the program put it.
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

from hil.emulators.board import BoardError, Stats, main
from hil.emulators.clocked import NEVER, ClockedChip
from hil.emulators.images import intel_hex
from hil.emulators.mcs51_cpu import CODE_BYTES, IRAM_BYTES, Cpu
from hil.emulators.mcs51_instructions import step
from hil.emulators.mcs51_peripherals import (
    IDLE,
    IE,
    P3,
    PCON,
    POWER_DOWN,
    SCON,
    T2CON,
    T2CON_RUN,
    TCON,
    TMOD,
    Interrupts,
    SerialPort,
    Timer,
)

CLOCKS_PER_CYCLE = 12
MACHINE_HZ = 11_059_200 // CLOCKS_PER_CYCLE
TIMER_1_INTERRUPT = 1 << 3
BUTTON = 1 << 2
"""Of port 3, to ground."""
LOOPS_THAT_COUNT = (0xD5, *range(0xD8, 0xE0))
"""DJNZ: may jump to itself and still come to an end."""


def _clocks(cycles: int | None) -> int | None:
    return None if cycles is None else cycles * CLOCKS_PER_CYCLE


class Mcs51(ClockedChip):
    """The chip. Its times are machine cycles."""

    def __init__(self, unpaced: bool) -> None:
        super().__init__(unpaced)
        self.hz = MACHINE_HZ
        self._cpu = Cpu()
        self._loaded = False
        self._halted = False
        self._pressed = False
        self._spins = False
        self._attention = False
        """Something was written that may change what is next."""
        self._sleep_cycles = 0
        self._restart()

    # --- What a clocked chip is asked for

    @property
    def cycles(self) -> int:
        return self._cpu.cycles

    @property
    def fault(self) -> str | None:
        return self._cpu.fault

    @property
    def runs(self) -> bool:
        return self._loaded and self._cpu.fault is None

    @property
    def waits(self) -> bool:
        return self._asleep or self._spins

    @property
    def listens(self) -> bool:
        return self._serial.listens

    @property
    def byte_cycles(self) -> int:
        return self._serial.byte_cycles

    def deliver(self, byte: int) -> bool:
        return self._serial.deliver(byte)

    def next_event(self) -> int:
        enabled = self._cpu.sfr[IE]
        return min(
            self.incoming_at,
            self._serial.sent_at,
            self._timers[0].overflows_at,
            self._timers[1].overflows_at if enabled & TIMER_1_INTERRUPT else NEVER,
        )

    def run_until(self, cycle: int) -> None:
        cpu = self._cpu
        while cpu.cycles < cycle and cpu.fault is None and not self._halted:
            if cpu.cycles >= self.next_event():
                self._advance()
            if not self._interrupts.held_back:
                self._interrupts.take()
            stop_at = min(cycle, self.next_event())
            if self._asleep:
                stop_at = max(stop_at, cpu.cycles)
                self._sleep_cycles += stop_at - cpu.cycles
                cpu.cycles = stop_at
            else:
                self._execute(stop_at)

    # --- What the board asks for

    def load(self, image: Path) -> None:
        self._cpu.code = intel_hex(image, range(CODE_BYTES))
        self._loaded = True

    def reset(self) -> None:
        self._restart()

    def press(self, down: bool) -> None:
        self._pressed = down

    def power_on(self, noise: random.Random) -> None:
        self._cpu.iram[:] = noise.randbytes(IRAM_BYTES)
        self.start_clock()
        self._restart()

    def power_off(self) -> None:
        self._halted = True
        self.silence()

    def peek(self, address: int, length: int) -> bytes:
        if address + length > IRAM_BYTES:
            raise BoardError(f"peek {address:#x} {length} is outside RAM, which has {IRAM_BYTES} bytes")
        return bytes(self._cpu.iram[address : address + length])

    def measured(self) -> Stats:
        counts, cycles = self.counts, self.cycles
        return replace(
            counts,
            cycles=_clocks(cycles),
            busy_cycles=_clocks(cycles - self._sleep_cycles),
            stack_max=self._cpu.stack.deepest,
            stack_worst=self._cpu.stack.worst,
            turnaround_cycles=_clocks(counts.turnaround_cycles),
            turnaround_cycles_max=_clocks(counts.turnaround_cycles_max),
            exchange_cycles=_clocks(counts.exchange_cycles),
            fault=self.fault,
        )

    def forget_stack(self) -> None:
        self._cpu.stack.forget()

    # --- Inside

    @property
    def _asleep(self) -> bool:
        return bool(self._cpu.sfr[PCON] & IDLE)

    def _restart(self) -> None:
        cpu = self._cpu
        cpu.reset()
        self._halted = self._spins = False
        self._timers = (Timer(cpu, 0), Timer(cpu, 1))
        self._serial = SerialPort(cpu, self._timers[1], self._sending, self.byte_went_out)
        self._interrupts = Interrupts(cpu)
        cpu.on_read[TCON] = self._read_tcon
        cpu.on_read[P3] = lambda: cpu.sfr[P3] & ~(BUTTON if self._pressed else 0)
        cpu.on_write[TCON] = cpu.on_write[TMOD] = lambda _: self._timers_changed()
        cpu.on_write[SCON] = lambda _: self._note()
        cpu.on_write[PCON] = self._power_changed
        cpu.on_write[T2CON] = self._timer_2_changed

    def _note(self) -> None:
        self._attention = True

    def _execute(self, stop_at: int) -> None:
        """Instructions until then, or until something needs attention."""
        cpu, interrupts = self._cpu, self._interrupts
        self._attention = self._spins = False
        while cpu.cycles < stop_at and not self._attention and cpu.fault is None:
            before, began = cpu.pc, cpu.cycles
            held_back, interrupts.held_back = interrupts.held_back, False
            step(cpu)
            if held_back or interrupts.held_back:
                return
            if cpu.pc == before and cpu.code[before] not in LOOPS_THAT_COUNT:
                turn = cpu.cycles - began
                cpu.cycles += max(-((cpu.cycles - stop_at) // turn), 0) * turn
                self._spins = True

    def _advance(self) -> None:
        """Let happen what is due."""
        while self.incoming_at <= self._cpu.cycles:
            self.byte_came_in()
        self._serial.advance()
        for timer in self._timers:
            timer.advance()

    def _sending(self, now: int) -> None:
        self.answer_began(now)
        self._attention = True

    def _read_tcon(self) -> int:
        for timer in self._timers:
            timer.advance()
        return self._cpu.sfr[TCON]

    def _timers_changed(self) -> None:
        for timer in self._timers:
            timer.control_written()
        self._attention = True

    def _power_changed(self, value: int) -> None:
        if value & POWER_DOWN:
            self._cpu.fault = f"power down, from which only a reset would wake it, at {self._cpu.pc:#06x}"
        self._attention = True

    def _timer_2_changed(self, value: int) -> None:
        if value & T2CON_RUN:
            self._cpu.fault = f"timer 2 is not emulated, at {self._cpu.pc:#06x}"


if __name__ == "__main__":
    main(Mcs51, "An emulated board with an 8052.")
