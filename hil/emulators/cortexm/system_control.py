"""The system control space of a Cortex-M0+: SysTick, interrupt controller, system control block.

Decides which exception is next; saving and restoring the program's state is the core's part. SLEEPDEEP is refused, because no chip here
has a stop mode.
"""

from __future__ import annotations

from typing import Protocol

from hil.emulators.clocked import NEVER

SYSTEM_CONTROL = 0xE000E000
SYSTEM_CONTROL_BYTES = 0x1000

SVCALL, PENDSV, SYSTICK, FIRST_INTERRUPT = 11, 14, 15, 16
INTERRUPTS = 32
ALWAYS_ENABLED = 1 << SVCALL | 1 << PENDSV | 1 << SYSTICK
IDLE_PRIORITY = 256
"""Lower than that of any exception."""
PRIORITY_BITS = 0xC0

SYST_CSR, SYST_RVR, SYST_CVR, SYST_CALIB = 0xE010, 0xE014, 0xE018, 0xE01C
NVIC_ISER, NVIC_ICER, NVIC_ISPR, NVIC_ICPR, NVIC_IPR = 0xE100, 0xE180, 0xE200, 0xE280, 0xE400
CPUID, ICSR, VTOR, AIRCR, SCR, CCR, SHPR2, SHPR3 = 0xED00, 0xED04, 0xED08, 0xED0C, 0xED10, 0xED14, 0xED1C, 0xED20

CORTEX_M0PLUS_R0P1 = 0x410CC601
ALIGNED_STACK_AND_TRAPS = 0x208
TICK_ENABLE, TICK_INTERRUPT, TICK_CORE_CLOCK, TICK_COUNTED = 1, 2, 4, 1 << 16
TICK_REFERENCE_DIVIDER = 8
TICK_MASK = 0xFFFFFF
ICSR_PENDSTCLR, ICSR_PENDSTSET, ICSR_PENDSVCLR, ICSR_PENDSVSET = (1 << bit for bit in range(25, 29))
AIRCR_KEY, AIRCR_SYSRESETREQ = 0x05FA, 4
SCR_SLEEPONEXIT, SCR_SLEEPDEEP = 2, 4


class CoreView(Protocol):
    """What is needed of the core."""

    def now(self) -> int: ...
    def reset_requested(self) -> None: ...
    def active_exceptions(self) -> list[int]: ...


class SysTick:
    """The tick timer. Time is given in core cycles."""

    def __init__(self) -> None:
        self._control = 0
        self._reload = 0
        self._value = 0
        """While it stands still."""
        self._zero_at = NEVER
        self._counted = False

    @property
    def _cycles_per_count(self) -> int:
        return 1 if self._control & TICK_CORE_CLOCK else TICK_REFERENCE_DIVIDER

    def next_event(self) -> int:
        return self._zero_at if self._control & TICK_INTERRUPT else NEVER

    def advance(self, now: int) -> bool:
        """Whether it has counted to zero with its interrupt on."""
        if now < self._zero_at:
            return False
        period = (self._reload + 1) * self._cycles_per_count
        self._zero_at += ((now - self._zero_at) // period + 1) * period
        self._counted = True
        return bool(self._control & TICK_INTERRUPT)

    def read(self, register: int, now: int) -> int:
        if register == SYST_CSR:
            value = self._control | (TICK_COUNTED if self._counted else 0)
            self._counted = False
            return value
        if register == SYST_RVR:
            return self._reload
        return self._count(now)

    def write(self, register: int, value: int, now: int) -> None:
        count = self._count(now)
        if register == SYST_CSR:
            self._control = value & (TICK_ENABLE | TICK_INTERRUPT | TICK_CORE_CLOCK)
        elif register == SYST_RVR:
            self._reload = value & TICK_MASK
        else:
            count = 0
            self._counted = False
        self._value = count
        self._zero_at = NEVER
        if self._control & TICK_ENABLE and self._reload:
            # From zero, the next clock reloads.
            self._zero_at = now + (count or self._reload + 1) * self._cycles_per_count

    def _count(self, now: int) -> int:
        if self._zero_at == NEVER:
            return self._value
        return (self._zero_at - now) // self._cycles_per_count % (self._reload + 1)


class SystemControl:
    """Its registers, and which exceptions wait."""

    def __init__(self, core: CoreView) -> None:
        self._core = core
        self.reset()

    def reset(self) -> None:
        self.tick = SysTick()
        self.pending = 0
        """One bit for each exception number; interrupt lines that are high come on top."""
        self.vectors = 0
        self.sleep_on_exit = False
        self._sleep = 0
        self._enabled = ALWAYS_ENABLED
        self._priority = [0] * (FIRST_INTERRUPT + INTERRUPTS)

    @property
    def deep_sleep(self) -> bool:
        return bool(self._sleep & SCR_SLEEPDEEP)

    def advance(self, now: int) -> None:
        if self.tick.advance(now):
            self.pending |= 1 << SYSTICK

    def next_exception(self, lines: int) -> int | None:
        """The most urgent one that waits and is enabled, if it is more urgent than what is being handled."""
        waiting = (self.pending | lines << FIRST_INTERRUPT) & self._enabled
        if not waiting:
            return None
        numbers = [number for number in range(SVCALL, FIRST_INTERRUPT + INTERRUPTS) if waiting >> number & 1]
        best = min(numbers, key=lambda number: self._priority[number])  # the lowest number among equals
        handled = min((self._priority[number] for number in self._core.active_exceptions()), default=IDLE_PRIORITY)
        return best if self._priority[best] < handled else None

    def read(self, register: int) -> int:
        match register:
            case _ if SYST_CSR <= register <= SYST_CVR:
                self.advance(self._core.now())
                return self.tick.read(register, self._core.now())
            case _ if register in (NVIC_ISER, NVIC_ICER):
                return self._enabled >> FIRST_INTERRUPT
            case _ if register in (NVIC_ISPR, NVIC_ICPR):
                return self.pending >> FIRST_INTERRUPT
            case _ if NVIC_IPR <= register < NVIC_IPR + INTERRUPTS:
                return self._read_priorities(FIRST_INTERRUPT + register - NVIC_IPR)
            case _ if register in (SHPR2, SHPR3):
                return self._read_priorities(register - SHPR2 + 8)
        active = self._core.active_exceptions()
        pending_tick = self.pending >> SYSTICK & 1
        return {
            CPUID: CORTEX_M0PLUS_R0P1,
            ICSR: (active[-1] if active else 0) | pending_tick * ICSR_PENDSTSET,
            VTOR: self.vectors,
            AIRCR: 0xFA050000,
            SCR: self._sleep,
            CCR: ALIGNED_STACK_AND_TRAPS,
        }.get(register, 0)

    def write(self, register: int, value: int) -> None:
        match register:
            case _ if SYST_CSR <= register <= SYST_CVR:
                self.advance(self._core.now())
                self.tick.write(register, value, self._core.now())
            case _ if register == NVIC_ISER:
                self._enabled |= value << FIRST_INTERRUPT
            case _ if register == NVIC_ICER:
                self._enabled &= ~(value << FIRST_INTERRUPT)
            case _ if register == NVIC_ISPR:
                self.pending |= value << FIRST_INTERRUPT
            case _ if register == NVIC_ICPR:
                self.pending &= ~(value << FIRST_INTERRUPT)
            case _ if NVIC_IPR <= register < NVIC_IPR + INTERRUPTS:
                self._write_priorities(FIRST_INTERRUPT + register - NVIC_IPR, value)
            case _ if register in (SHPR2, SHPR3):
                self._write_priorities(register - SHPR2 + 8, value)
            case _ if register == ICSR:
                self._write_icsr(value)
            case _ if register == VTOR:
                self.vectors = value & ~0xFF
            case _ if register == AIRCR and value >> 16 == AIRCR_KEY and value & AIRCR_SYSRESETREQ:
                self._core.reset_requested()
            case _ if register == SCR:
                self._sleep = value
                self.sleep_on_exit = bool(value & SCR_SLEEPONEXIT)

    def _write_icsr(self, value: int) -> None:
        for bit, exception, pends in (
            (ICSR_PENDSTSET, SYSTICK, True),
            (ICSR_PENDSTCLR, SYSTICK, False),
            (ICSR_PENDSVSET, PENDSV, True),
            (ICSR_PENDSVCLR, PENDSV, False),
        ):
            if value & bit:
                self.pending = self.pending | 1 << exception if pends else self.pending & ~(1 << exception)

    def _read_priorities(self, first: int) -> int:
        return int.from_bytes(bytes(self._priority[first : first + 4]), "little")

    def _write_priorities(self, first: int, value: int) -> None:
        self._priority[first : first + 4] = [byte & PRIORITY_BITS for byte in value.to_bytes(4, "little")]
