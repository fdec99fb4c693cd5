"""One subserver's notifications on their way up: so many a second, the next ones buffered, then the oldest dropped and counted (draft §12).

Keeps their order and bounds what they take of memory. Pure: the caller brings the time, asks when to come back, and does the sending
(see `flows`). Does not know what a notification says, nor whether it belongs with another.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import msgspec

from mcpax.allowance import Allowance
from mcpax.core.source import SOURCE
from mcpax.core.subserver import Notification

OVERFLOW = "notifications/mcpax/notification_overflow"
TELL_EVERY_S = 1.0
"""How often it is told at most that some were dropped."""
MIN_WAIT_S = 0.001
"""A timer may fire a hair early; with a shorter wait than this it would then spin."""

_decode = msgspec.json.Decoder(Notification).decode


@dataclass(frozen=True, slots=True)
class FlowLimits:
    per_s: float = 100.0
    burst: int = 100
    """So many pass at once after a silence; at least 1."""
    depth: int = 1000
    """So many are buffered."""
    notification_bytes: int = 64 * 1024
    """A larger one is dropped whatever else there is. All sizes are as JSON."""
    buffer_bytes: int = 1024 * 1024


DEFAULT_LIMITS = FlowLimits()


@dataclass(frozen=True, slots=True)
class _Waiting:
    raw: bytes
    """As JSON: parsed it would take many times its size, and the bound on memory would be none."""
    lasting: bool


class Flow:
    """All that was offered has passed, waits, or is counted in `dropped`."""

    def __init__(self, source: str, limits: FlowLimits, now: float) -> None:
        self.source = source
        self.dropped = 0
        self._limits = limits
        self._waiting: deque[_Waiting] = deque()
        self._waiting_bytes = 0
        self._allowance = Allowance(limits.per_s, limits.burst, now)
        self._told = 0
        self._told_at: float | None = None

    @property
    def buffered(self) -> int:
        return len(self._waiting)

    def offer(self, notification: Notification, now: float, *, lasting: bool = False) -> list[Notification]:
        """Add one; returns what goes up now. A lasting one outlives `end`: it is not the subserver's word but the aggregator's about it."""
        try:
            raw = msgspec.json.encode(notification)
        except (TypeError, ValueError, OverflowError, RecursionError):
            self.dropped += 1  # nobody above could be told it
        else:
            if len(raw) > self._limits.notification_bytes:
                self.dropped += 1
            else:
                self._waiting.append(_Waiting(raw, lasting))
                self._waiting_bytes += len(raw)
        return self.take(now)

    def take(self, now: float) -> list[Notification]:
        """What goes up now, in order; and the word that some were dropped, when it is due."""
        limits = self._limits
        passing = []
        while self._waiting and self._allowance.spend(now):
            try:
                passing.append(_decode(self._pop()))
            except RecursionError:  # nested so deep that it could just be written
                self.dropped += 1
        while len(self._waiting) > limits.depth or self._waiting_bytes > limits.buffer_bytes:
            self._pop()
            self.dropped += 1
        if self.dropped > self._told and (self._told_at is None or now - self._told_at >= TELL_EVERY_S):
            passing.append(self._overflow(now))
        return passing

    def wait_s(self, now: float) -> float | None:
        """Right after any of these: how long until `take` has more to give. None: nothing waits."""
        waits = [self._allowance.wait_s()] if self._waiting else []
        if self.dropped > self._told and self._told_at is not None:
            waits.append(self._told_at + TELL_EVERY_S - now)
        return max(MIN_WAIT_S, min(waits)) if waits else None

    def end(self, now: float) -> list[Notification]:
        """The subserver is gone: what it still had to say is dropped and counted; returns what goes up now."""
        kept = [waiting for waiting in self._waiting if waiting.lasting]
        self.dropped += len(self._waiting) - len(kept)
        self._waiting = deque(kept)
        self._waiting_bytes = sum(len(waiting.raw) for waiting in kept)
        return self.take(now)

    def _pop(self) -> bytes:
        raw = self._waiting.popleft().raw
        self._waiting_bytes -= len(raw)
        return raw

    def _overflow(self, now: float) -> Notification:
        since_told, self._told, self._told_at = self.dropped - self._told, self.dropped, now
        return Notification(OVERFLOW, {SOURCE: self.source, "dropped": since_told, "dropped_total": self.dropped})
