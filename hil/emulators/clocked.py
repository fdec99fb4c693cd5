"""A chip whose emulation counts cycles: how they follow real time, and the line from the host, byte by byte, in the chip's own time.

Emulated time never runs ahead of real time, unless told so, and the process sleeps while the chip does. Registers, interrupts and
instructions are for those who build on it.
"""

from __future__ import annotations

import sys
import time
from abc import abstractmethod
from collections import deque

from hil.emulators.board import NEVER as NEVER_S
from hil.emulators.board import Chip

NEVER = 1 << 62
"""Cycles."""
INCOMING_BYTES = 512
BUSY_TURN_S = 50e-6
"""While the program works, so much of its time is emulated at once: what it sends is at most so late."""
AHEAD_TURN_S = 2e-3
MAX_LAG_S = 0.1
"""When emulation falls behind further than this, the chip loses time instead of hurrying after it."""


class ClockedChip(Chip):
    """Times are cycles, but for those that the board gives. Whoever changes `hz` calls `keep_time` first."""

    hz: int

    def __init__(self, unpaced: bool) -> None:
        super().__init__()
        self.incoming_at = NEVER
        """When the next byte from the host will be in; `byte_came_in` is to be called then."""
        self._unpaced = unpaced
        self._incoming: deque[int] = deque()
        self._heard_at: int | None = None
        """When the last byte came in that is not answered yet."""
        self._asked_at = 0
        """When the first byte of what was answered last, or will be next, began to come in."""
        self._anchor = (0.0, 0)
        """A moment of real time, and the cycle that belongs to it."""

    # --- What a chip must tell and do

    @property
    @abstractmethod
    def cycles(self) -> int:
        """Since the process began."""

    @property
    @abstractmethod
    def fault(self) -> str | None: ...

    @property
    @abstractmethod
    def runs(self) -> bool:
        """Whether it has a program and is not at fault."""

    @property
    @abstractmethod
    def waits(self) -> bool:
        """Whether it does nothing before the next event."""

    @property
    @abstractmethod
    def listens(self) -> bool:
        """Whether its UART receives."""

    @property
    @abstractmethod
    def byte_cycles(self) -> int:
        """How long its UART takes over a byte."""

    @abstractmethod
    def run_until(self, cycle: int) -> None: ...

    @abstractmethod
    def next_event(self) -> int:
        """When something happens by itself, tick, line or watchdog; `NEVER` if nothing does."""

    @abstractmethod
    def deliver(self, byte: int) -> bool:
        """A byte is in; false if it is lost because the one before was not fetched."""

    # --- Time

    def start_clock(self) -> None:
        """From now on, because there is power."""
        self._anchor = (time.monotonic(), self.cycles)

    def keep_time(self, cycle: int) -> None:
        """Fix the time of this cycle, before or after which the clock has another rate."""
        self._anchor = (self._time_of(cycle), cycle)

    def run(self, now: float) -> float:
        if not self.runs:
            return NEVER_S
        if self._unpaced:
            self.run_until(self.cycles + int(AHEAD_TURN_S * self.hz))
        else:
            if now - self._time_of(self.cycles) > MAX_LAG_S:
                self._anchor = (now, self.cycles)
            self.run_until(self._cycle_at(now))
        if self.fault is not None:
            print(f"fault: {self.fault}", file=sys.stderr, flush=True)
            return NEVER_S
        if self._unpaced:
            return now
        due = self._time_of(self.next_event())
        return due if self.waits else min(due, now + BUSY_TURN_S)

    def _cycle_at(self, moment: float) -> int:
        anchor_time, anchor_cycle = self._anchor
        return anchor_cycle + int((moment - anchor_time) * self.hz)

    def _time_of(self, cycle: int) -> float:
        anchor_time, anchor_cycle = self._anchor
        return anchor_time + (cycle - anchor_cycle) / self.hz

    # --- The line

    @property
    def hungry(self) -> bool:
        return len(self._incoming) < INCOMING_BYTES

    def receive(self, data: bytes, now: float) -> None:
        if not self.listens:
            return  # nobody hears them
        if not self._incoming:
            self.incoming_at = max(self._cycle_at(now), self.cycles) + self.byte_cycles
        self._incoming.extend(data)

    def silence(self) -> None:
        """What the host had on the line is gone."""
        self._incoming.clear()
        self.incoming_at = NEVER

    def byte_came_in(self) -> None:
        byte = self._incoming.popleft()
        if self.listens:
            self.counts.rx += 1
            if self._heard_at is None:
                self._asked_at = self.incoming_at - self.byte_cycles
            self._heard_at = self.incoming_at
            if not self.deliver(byte):
                self.counts.rx_overruns = (self.counts.rx_overruns or 0) + 1
        self.incoming_at = self.incoming_at + self.byte_cycles if self._incoming else NEVER

    def byte_went_out(self, byte: int) -> None:
        self.counts.tx += 1
        self.counts.exchange_cycles = self.cycles - self._asked_at
        self.transmit(byte)

    def answer_began(self, now: int) -> None:
        """The program has given its UART a byte to send."""
        if self._heard_at is not None:
            turnaround = now - self._heard_at
            self.counts.turnaround_cycles = turnaround
            self.counts.turnaround_cycles_max = max(turnaround, self.counts.turnaround_cycles_max or 0)
            self._heard_at = None
