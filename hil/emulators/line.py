"""A serial line in real time: bytes go over it one after the other, each taking as long as the baud rate says.

For emulators that know no time on the line themselves. Knows neither end.
"""

from __future__ import annotations

from collections import deque

BITS_PER_BYTE = 10
NEVER = float("inf")


class Line:
    """One direction. Times are seconds of `time.monotonic`."""

    def __init__(self) -> None:
        self._bytes: deque[int] = deque()
        self._byte_s = 0.0
        self._due = NEVER

    def __len__(self) -> int:
        return len(self._bytes)

    @property
    def due(self) -> float:
        """When the next byte is through."""
        return self._due

    def put(self, data: bytes, now: float, baud: float) -> None:
        """Send bytes behind those that are on their way."""
        self._byte_s = BITS_PER_BYTE / baud
        if data and not self._bytes:
            self._due = now + self._byte_s
        self._bytes.extend(data)

    def take(self, now: float) -> int | None:
        """The next byte, if it is through by now."""
        if now < self._due:
            return None
        byte = self._bytes.popleft()
        # Who comes too late makes up for one byte; more at once would be a burst that no line can carry.
        self._due = max(self._due, now - self._byte_s) + self._byte_s if self._bytes else NEVER
        return byte

    def clear(self) -> None:
        self._bytes.clear()
        self._due = NEVER
