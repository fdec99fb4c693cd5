"""An allowance that is spent one by one and grows back with time, up to a burst: a token bucket.

Pure: the caller brings the time. Does not know what it is spent on, nor what happens to those that must wait.
"""

from __future__ import annotations


class Allowance:
    def __init__(self, per_s: float, burst: int, now: float) -> None:
        self._per_s = per_s
        self._burst = float(burst)
        self._left = float(burst)
        self._counted_at = now

    def spend(self, now: float) -> bool:
        """Spend one, if there is one."""
        self._left = min(self._burst, self._left + max(0.0, now - self._counted_at) * self._per_s)
        self._counted_at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def wait_s(self) -> float:
        """How long after the last try there is one to spend."""
        return max(0.0, 1 - self._left) / self._per_s
