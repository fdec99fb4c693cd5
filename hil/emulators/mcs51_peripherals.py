"""What an 8052 has besides its processor and the firmware here uses: timers 0 and 1, the serial port in mode 1, two levels of interrupt.

Times are machine cycles. Timer 2, timers counting pins, timer mode 3 and other modes of the serial port are not there; a program that
switches them on is told so. Timer 1 sets the baud rate.
"""

from __future__ import annotations

from collections.abc import Callable

from hil.emulators.clocked import NEVER
from hil.emulators.mcs51_cpu import Cpu

PCON, TCON, TMOD, TL0, TL1, TH0, TH1, SCON, SBUF, IE, P3, IP, T2CON = (
    0x87, 0x88, 0x89, 0x8A, 0x8B, 0x8C, 0x8D, 0x98, 0x99, 0xA8, 0xB0, 0xB8, 0xC8,
)  # fmt: skip
IDLE, POWER_DOWN, DOUBLE_BAUD = 0x01, 0x02, 0x80
SCON_MODE, SCON_MODE_1, SCON_RECEIVES, SCON_SENT, SCON_RECEIVED = 0xC0, 0x40, 0x10, 0x02, 0x01
T2CON_RUN = 0x04
ALL_ENABLED = 0x80
BITS_PER_BYTE = 10
OVERFLOWS_PER_BIT = 32


class Timer:
    """Timer 0 or 1, counting machine cycles: in mode 1 with 16 bits, in mode 2 with 8, loaded again from the high byte."""

    def __init__(self, cpu: Cpu, number: int) -> None:
        self._cpu = cpu
        self._low, self._high = (TL0, TH0) if number == 0 else (TL1, TH1)
        self._mode_shift = 4 * number
        self._run_bit, self._flag_bit = 0x10 << 2 * number, 0x20 << 2 * number
        self._mode = 0
        """In which it runs."""
        self.overflows_at = NEVER
        cpu.on_read[self._low] = lambda: self._count() & 0xFF
        cpu.on_read[self._high] = lambda: self._count() >> 8
        cpu.on_write[self._low] = self._low_written
        cpu.on_write[self._high] = self._high_written

    @property
    def runs(self) -> bool:
        return self.overflows_at != NEVER

    @property
    def reload_cycles(self) -> int:
        """From one overflow to the next in mode 2."""
        return 256 - self._cpu.sfr[self._high]

    def control_written(self) -> None:
        """TCON or TMOD."""
        sfr = self._cpu.sfr
        mode = sfr[TMOD] >> self._mode_shift & 0b111
        shall_run = bool(sfr[TCON] & self._run_bit)
        if shall_run and mode not in (1, 2):
            self._cpu.fault = f"TMOD is {sfr[TMOD]:#04x}, but only timer modes 1 and 2 are emulated, at {self._cpu.pc:#06x}"
        elif (shall_run, mode) != (self.runs, self._mode):
            self._put_count(self._count())
            self._mode = mode
            self.overflows_at = NEVER
            if shall_run:
                self._start()

    def advance(self) -> None:
        """Set the flag if it has overflowed, and go on."""
        passed = self._cpu.cycles - self.overflows_at
        if passed >= 0:
            period = 0x10000 if self._mode == 1 else self.reload_cycles
            self.overflows_at += (passed // period + 1) * period
            self._cpu.sfr[TCON] |= self._flag_bit

    def _start(self) -> None:
        sfr = self._cpu.sfr
        left = 0x10000 - (sfr[self._high] << 8 | sfr[self._low]) if self._mode == 1 else 0x100 - sfr[self._low]
        self.overflows_at = self._cpu.cycles + left

    def _count(self) -> int:
        """Both bytes."""
        sfr = self._cpu.sfr
        if not self.runs:
            return sfr[self._high] << 8 | sfr[self._low]
        self.advance()
        left = self.overflows_at - self._cpu.cycles
        return 0x10000 - left if self._mode == 1 else sfr[self._high] << 8 | 0x100 - left

    def _put_count(self, count: int) -> None:
        self._cpu.sfr[self._high], self._cpu.sfr[self._low] = count >> 8, count & 0xFF

    def _low_written(self, value: int) -> None:
        if self.runs:
            self._put_count(self._count() & 0xFF00 | value)
            self._start()

    def _high_written(self, value: int) -> None:
        if self.runs and self._mode == 1:
            self._put_count(value << 8 | self._count() & 0xFF)
            self._start()


class SerialPort:
    """Eight bits, no parity, one stop bit; one byte is kept each way."""

    def __init__(self, cpu: Cpu, baud_timer: Timer, on_written: Callable[[int], None], on_sent: Callable[[int], None]) -> None:
        self._cpu, self._baud_timer = cpu, baud_timer
        self._on_written, self._on_sent = on_written, on_sent
        self._received = self._sending = 0
        self.sent_at = NEVER
        cpu.on_read[SBUF] = lambda: self._received
        cpu.on_write[SBUF] = self._send

    @property
    def byte_cycles(self) -> int:
        per_bit = OVERFLOWS_PER_BIT // (2 if self._cpu.sfr[PCON] & DOUBLE_BAUD else 1)
        return BITS_PER_BYTE * per_bit * self._baud_timer.reload_cycles

    @property
    def listens(self) -> bool:
        return self._works and bool(self._cpu.sfr[SCON] & SCON_RECEIVES)

    @property
    def _works(self) -> bool:
        return self._cpu.sfr[SCON] & SCON_MODE == SCON_MODE_1 and self._baud_timer.runs

    def deliver(self, byte: int) -> bool:
        if self._cpu.sfr[SCON] & SCON_RECEIVED:
            return False
        self._received = byte
        self._cpu.sfr[SCON] |= SCON_RECEIVED
        return True

    def advance(self) -> None:
        if self.sent_at <= self._cpu.cycles:
            self.sent_at = NEVER
            self._cpu.sfr[SCON] |= SCON_SENT
            self._on_sent(self._sending)

    def _send(self, byte: int) -> None:
        if self._works:
            self._on_written(self._cpu.cycles)
            self._sending = byte
            self.sent_at = self._cpu.cycles + self.byte_cycles


class Interrupts:
    """Which source interrupts: those that are enabled, by their level, then by their order."""

    # Bit in IE and IP; register and bit of the flag; where its handler is; whether taking it clears the flag.
    SOURCES = (
        (1 << 1, TCON, 0x20, 0x000B, True),
        (1 << 3, TCON, 0x80, 0x001B, True),
        (1 << 4, SCON, SCON_SENT | SCON_RECEIVED, 0x0023, False),
    )

    def __init__(self, cpu: Cpu) -> None:
        self._cpu = cpu
        self._levels: list[int] = []
        """Of those being handled, the innermost last."""
        self.held_back = False
        """For one instruction after a return from an interrupt and after a change of the registers that decide on them."""
        cpu.on_return_from_interrupt = self._returned
        for register in (IE, IP):
            cpu.on_write[register] = lambda _: self._hold_back()

    def take(self) -> bool:
        """Enter the handler of the most urgent one that waits, if it may interrupt."""
        sfr = self._cpu.sfr
        enabled = sfr[IE] if sfr[IE] & ALL_ENABLED else 0
        for level in (1, 0):
            if self._levels and self._levels[-1] >= level:
                return False
            for bit, register, flags, handler, clears in self.SOURCES:
                if enabled & bit and sfr[register] & flags and (sfr[IP] & bit != 0) == bool(level):
                    if clears:
                        sfr[register] &= ~flags
                    sfr[PCON] &= ~IDLE
                    self._levels.append(level)
                    self._cpu.stack.interrupted(self._cpu.stack_depth)
                    self._cpu.call(handler)
                    self._cpu.cycles += 2
                    return True
        return False

    def _returned(self) -> None:
        self._cpu.note_stack()
        if self._levels:
            self._levels.pop()
        self.held_back = True

    def _hold_back(self) -> None:
        self.held_back = True
