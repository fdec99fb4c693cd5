"""The peripherals of the STM32L053 that firmware here uses: clocks, ports, USART2, independent watchdog (RM0367).

Strict where a mistake would show on hardware: a peripheral without its clock reads as zero and takes nothing, the USART is only on the
line when its pins are switched to it. Times are core cycles. PLL and HSE never become ready; the watchdog has no window.
"""

from __future__ import annotations

from collections.abc import Callable

from hil.emulators.clocked import NEVER

HSI16_HZ = 16_000_000
MSI_LOWEST_HZ = 65_536
"""In range 0; each range doubles it."""
LSI_HZ = 37_000
BITS_PER_BYTE = 10


class Plain:
    """Registers that keep what is written into them and do nothing."""

    def __init__(self, reset_values: dict[int, int] | None = None) -> None:
        self._values = dict(reset_values or {})

    def read(self, offset: int) -> int:
        return self._values.get(offset, 0)

    def write(self, offset: int, value: int) -> None:
        self._values[offset] = value


class Rcc:
    """Reset and clock control: which clock drives the core, and which peripherals have theirs."""

    CR, ICSCR, CFGR, CCIPR, CSR = 0x00, 0x04, 0x0C, 0x4C, 0x50
    IOPENR, APB2ENR, APB1ENR = 0x2C, 0x34, 0x38
    HSI_ON, HSI_READY, HSI_DIVIDE, HSI_DIVIDED = 1 << 0, 1 << 2, 1 << 3, 1 << 4
    MSI_ON, MSI_READY = 1 << 8, 1 << 9
    LSI_ON, LSI_READY, REMOVE_RESET_FLAGS = 1 << 0, 1 << 1, 1 << 23
    RESET_FLAGS = 0xFE000000
    BY_PIN, BY_POWER, BY_SOFTWARE, BY_WATCHDOG = 1 << 26, 1 << 27, 1 << 28, 1 << 29

    def __init__(self, reset_flags: int) -> None:
        self._registers = Plain({self.ICSCR: 0xB000, 0x30: 0x100})
        self._oscillators = self.MSI_ON
        self._status = reset_flags

    def read(self, offset: int) -> int:
        if offset == self.CR:
            hsi, msi = self._oscillators & self.HSI_ON, self._oscillators & self.MSI_ON
            divided = self.HSI_DIVIDED if self._oscillators & self.HSI_DIVIDE else 0
            return self._oscillators | divided | (self.HSI_READY if hsi else 0) | (self.MSI_READY if msi else 0)
        if offset == self.CFGR:
            return self._registers.read(offset) & ~0xC | self._source() << 2
        if offset == self.CSR:
            return self._status | (self.LSI_READY if self._status & self.LSI_ON else 0)
        return self._registers.read(offset)

    def write(self, offset: int, value: int) -> None:
        if offset == self.CR:
            # The one in use cannot be switched off.
            in_use = {0: self.MSI_ON, 1: self.HSI_ON}[self._source()]
            self._oscillators = value & (self.HSI_ON | self.MSI_ON | self.HSI_DIVIDE) | in_use
        elif offset == self.CSR:
            kept = 0 if value & self.REMOVE_RESET_FLAGS else self._status & self.RESET_FLAGS
            self._status = kept | value & self.LSI_ON
        else:
            self._registers.write(offset, value)

    def clocked(self, enable_register: int, bit: int) -> bool:
        return bool(self._registers.read(enable_register) >> bit & 1)

    def core_hz(self) -> int:
        source = HSI16_HZ // (4 if self._oscillators & self.HSI_DIVIDE else 1)
        if self._source() == 0:
            source = MSI_LOWEST_HZ << min(self._registers.read(self.ICSCR) >> 13 & 0b111, 6)
        prescaler = self._registers.read(self.CFGR) >> 4 & 0xF
        return source >> (0, 1, 2, 3, 4, 6, 7, 8, 9)[max(prescaler - 7, 0)]

    def usart2_hz(self) -> int:
        if self._registers.read(self.CCIPR) >> 2 & 0b11 == 0b10:
            return HSI16_HZ
        prescaler = self._registers.read(self.CFGR) >> 8 & 0b111
        return self.core_hz() >> max(prescaler - 3, 0)

    def _source(self) -> int:
        """0 for MSI, 1 for HSI16. What is asked for and does not run is not switched to."""
        return 1 if self._registers.read(self.CFGR) & 0b11 == 1 and self._oscillators & self.HSI_ON else 0


class Gpio:
    """One port. An input is what its pull-up says, unless something outside holds it high, or low, which is stronger."""

    MODER, PUPDR, IDR, ODR, BSRR, AFRL, AFRH, BRR = 0x00, 0x0C, 0x10, 0x14, 0x18, 0x20, 0x24, 0x28
    OUTPUT, ALTERNATE = 1, 2
    PULL_UP = 1

    def __init__(self, modes: int, held_high: int = 0) -> None:
        self._registers = Plain({self.MODER: modes})
        self._held_high = held_high
        self.held_low = 0

    def read(self, offset: int) -> int:
        if offset == self.IDR:
            return sum(self._level(pin) << pin for pin in range(16))
        return self._registers.read(offset)

    def write(self, offset: int, value: int) -> None:
        output = self._registers.read(self.ODR)
        if offset == self.BSRR:
            self._registers.write(self.ODR, output & ~(value >> 16) | value & 0xFFFF)
        elif offset == self.BRR:
            self._registers.write(self.ODR, output & ~value)
        elif offset != self.IDR:
            self._registers.write(offset, value)

    def function(self, pin: int) -> int | None:
        """The alternate function that a pin is switched to, if it is."""
        if self._mode(pin) != self.ALTERNATE:
            return None
        return self._registers.read(self.AFRL if pin < 8 else self.AFRH) >> 4 * (pin % 8) & 0xF

    def _mode(self, pin: int) -> int:
        return self._registers.read(self.MODER) >> 2 * pin & 0b11

    def _level(self, pin: int) -> int:
        if self._mode(pin) == self.OUTPUT:
            return self._registers.read(self.ODR) >> pin & 1
        if self.held_low >> pin & 1:
            return 0
        pulled_up = self._registers.read(self.PUPDR) >> 2 * pin & 0b11 == self.PULL_UP
        return 1 if pulled_up or self._held_high >> pin & 1 else 0


class Watchdog:
    """The independent watchdog: once started it bites unless it is fed, whatever else happens."""

    KR, PR, RLR = 0x00, 0x04, 0x08
    START, FEED, UNLOCK = 0xCCCC, 0xAAAA, 0x5555

    def __init__(self, now: Callable[[], int], rcc: Rcc) -> None:
        self.bites_at = NEVER
        self._now, self._rcc = now, rcc
        self._prescaler = 0
        self._reload = 0xFFF
        self._unlocked = False

    def read(self, offset: int) -> int:
        return {self.PR: self._prescaler, self.RLR: self._reload}.get(offset, 0)

    def write(self, offset: int, value: int) -> None:
        if offset == self.KR:
            self._unlocked = value == self.UNLOCK
            if value == self.START or (value == self.FEED and self.bites_at != NEVER):
                self.bites_at = self._now() + (self._reload + 1) * (4 << min(self._prescaler, 6)) * self._rcc.core_hz() // LSI_HZ
        elif self._unlocked and offset == self.PR:
            self.rescale(self._now(), 4 << min(self._prescaler, 6), 4 << min(value & 0b111, 6))
            self._prescaler = value & 0b111
        elif self._unlocked and offset == self.RLR:
            self._reload = value & 0xFFF

    def rescale(self, now: int, old: int, new: int) -> None:
        """What is left of its patience takes more or fewer cycles from now on."""
        if self.bites_at != NEVER:
            self.bites_at = now + (self.bites_at - now) * new // old


class Usart:
    """An asynchronous receiver and transmitter, 8N1, with one data register each way."""

    CR1, CR2, CR3, BRR, RTOR, RQR, ISR, ICR, RDR, TDR = 0x00, 0x04, 0x08, 0x0C, 0x14, 0x18, 0x1C, 0x20, 0x24, 0x28
    ENABLE, RECEIVER, TRANSMITTER, OVERSAMPLE_8 = 1 << 0, 1 << 2, 1 << 3, 1 << 15
    ON_RECEIVED, ON_COMPLETE, ON_EMPTY, ON_ERROR = 1 << 5, 1 << 6, 1 << 7, 1 << 0
    OVERRUN, RECEIVED, COMPLETE, EMPTY, TRANSMITTER_ON, RECEIVER_ON = 1 << 3, 1 << 5, 1 << 6, 1 << 7, 1 << 21, 1 << 22
    FLUSH_RECEIVED = 1 << 3
    LEAST_DIVIDER = 16

    def __init__(
        self, now: Callable[[], int], rcc: Rcc, wired: Callable[[], bool], on_written: Callable[[int], None], on_sent: Callable[[int], None]
    ) -> None:
        self._now, self._rcc, self._wired = now, rcc, wired
        self._on_written, self._on_sent = on_written, on_sent
        self._control = self._error_control = self._divider = 0
        self._others = Plain()
        self._status = self.COMPLETE | self.EMPTY
        self._received = 0
        self._waiting: int | None = None
        """In the transmit data register, behind the byte on the line."""
        self._sending = 0
        self.sent_at = NEVER

    @property
    def byte_cycles(self) -> int:
        """How long a byte is on the line, in core cycles."""
        clocks = BITS_PER_BYTE * self._divider
        if self._control & self.OVERSAMPLE_8:
            clocks = BITS_PER_BYTE // 2 * (self._divider & ~0xF | (self._divider & 0b111) << 1)
        return clocks * self._rcc.core_hz() // self._rcc.usart2_hz()

    @property
    def listens(self) -> bool:
        return self._on(self.RECEIVER)

    def _on(self, part: int) -> bool:
        wanted = self.ENABLE | part
        fast_enough = self._divider >= self.LEAST_DIVIDER
        return self._control & wanted == wanted and fast_enough and self._wired()

    def interrupt(self) -> bool:
        control, status = self._control, self._status
        if not control & self.ENABLE:
            return False
        if status & self.OVERRUN and (control & self.ON_RECEIVED or self._error_control & self.ON_ERROR):
            return True
        # Each of these stands at the same bit in both registers.
        return bool(control & status & (self.ON_RECEIVED | self.ON_EMPTY | self.ON_COMPLETE))

    def deliver(self, byte: int) -> bool:
        """A byte has come in completely; false if it was lost because the one before has not been fetched."""
        if self._status & self.RECEIVED:
            self._status |= self.OVERRUN
            return False
        self._received = byte
        self._status |= self.RECEIVED
        return True

    def advance(self, now: int) -> None:
        while self.sent_at <= now:
            byte = self._sending
            if self._waiting is None:
                self.sent_at = NEVER
                self._status |= self.COMPLETE
            else:
                self._sending, self._waiting = self._waiting, None
                self.sent_at += self.byte_cycles
                self._status |= self.EMPTY
            self._on_sent(byte)

    def read(self, offset: int) -> int:
        match offset:
            case self.ISR:
                transmits, receives = self._control & self.TRANSMITTER, self._control & self.RECEIVER
                ready = (self.TRANSMITTER_ON if transmits else 0) | (self.RECEIVER_ON if receives else 0)
                return self._status | (ready if self._control & self.ENABLE else 0)
            case self.RDR:
                self._status &= ~self.RECEIVED
                return self._received
            case self.CR1:
                return self._control
            case self.CR3:
                return self._error_control
            case self.BRR:
                return self._divider
        return self._others.read(offset)

    def write(self, offset: int, value: int) -> None:
        match offset:
            case self.TDR:
                self._send(value & 0xFF)
            case self.CR1:
                self._control = value
                if not value & self.ENABLE:
                    self._status = self.COMPLETE | self.EMPTY
                    self._waiting, self.sent_at = None, NEVER
            case self.CR3:
                self._error_control = value
            case self.BRR:
                self._divider = value & 0xFFFF
            case self.ICR:
                self._status &= ~(value & (self.OVERRUN | self.COMPLETE))
            case self.RQR if value & self.FLUSH_RECEIVED:
                self._status &= ~self.RECEIVED
            case self.CR2 | self.RTOR:
                self._others.write(offset, value)

    def _send(self, byte: int) -> None:
        if not self._on(self.TRANSMITTER):
            return
        now = self._now()
        self._on_written(now)
        self._status &= ~self.COMPLETE
        if self.sent_at == NEVER:
            self._sending = byte
            self.sent_at = now + self.byte_cycles
        else:
            self._waiting = byte
            self._status &= ~self.EMPTY
