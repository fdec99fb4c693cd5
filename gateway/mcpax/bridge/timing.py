"""When to send an unanswered call again: from the line's speed and from what round trips took.

The time that bytes need on the wire is known; what comes on top (the board's own time, USB latency) is measured as in RFC 6298 and
estimated until then. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

MIN_MARGIN_S = 0.008
"""Never less than this above the expected round trip: a scheduler's hiccup must not look like a loss."""
MAX_TIMEOUT_S = 2.0
MAX_DOUBLINGS = 10
_SMOOTHING = 1 / 8
_DEVIATION_SMOOTHING = 1 / 4


@dataclass(slots=True)
class RoundTripEstimator:
    """Keeps the smoothed excess of round trips over their wire time."""

    byte_s: float
    turnaround_s: float
    excess_s: float | None = None
    deviation_s: float = 0.0

    def measured(self, round_trip_s: float, bytes_both_ways: int) -> None:
        """Take a sample; only from calls that were sent once, because an answer to a copy proves nothing about time."""
        excess = max(0.0, round_trip_s - bytes_both_ways * self.byte_s)
        if self.excess_s is None:
            self.excess_s, self.deviation_s = excess, excess / 2
            return
        self.deviation_s += _DEVIATION_SMOOTHING * (abs(excess - self.excess_s) - self.deviation_s)
        self.excess_s += _SMOOTHING * (excess - self.excess_s)

    def timeout_s(self, bytes_both_ways: int, attempt: int) -> float:
        """How long to wait for an answer after the given attempt (1 is the first); doubles with each."""
        wire = bytes_both_ways * self.byte_s
        on_top = self.turnaround_s if self.excess_s is None else self.excess_s + 4 * self.deviation_s
        doublings = min(attempt - 1, MAX_DOUBLINGS)
        return min((wire + on_top + MIN_MARGIN_S) * 2.0**doublings, MAX_TIMEOUT_S)
