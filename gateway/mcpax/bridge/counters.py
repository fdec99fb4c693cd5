"""What is counted for each device, and the round-trip percentiles. Plain numbers, bounded, no I/O."""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, dataclass, field
from typing import Any

ROUND_TRIPS_KEPT = 512


@dataclass(slots=True)
class DeviceCounters:
    calls: int = 0
    answered: int = 0
    sent: int = 0
    """Messages handed to the wire, copies included."""
    received: int = 0
    retries: int = 0
    timeouts: int = 0
    duplicates_suppressed: int = 0
    """Answers to copies of a call: each is a second execution that did not happen."""
    reboots: int = 0
    refused_messages: int = 0
    """Intact frames whose content made no sense."""
    refused_results: int = 0
    """Answers that did not keep to the map."""
    events: int = 0
    events_dropped: int = 0
    """Not read: the map does not know them, or there were too many. What the aggregator drops, it counts itself."""
    connects: int = 0
    round_trips_s: deque[float] = field(default_factory=lambda: deque(maxlen=ROUND_TRIPS_KEPT))

    def to_json(self) -> dict[str, Any]:
        counts = asdict(self)
        del counts["round_trips_s"]
        return {**counts, "round_trip_ms": percentiles_ms(self.round_trips_s)}


def percentiles_ms(samples_s: deque[float]) -> dict[str, float]:
    """Median, 95th and 99th percentile of what was kept, in milliseconds."""
    if not samples_s:
        return {}
    ordered = sorted(samples_s)
    last = len(ordered) - 1
    return {name: round(ordered[round(part * last)] * 1000, 3) for name, part in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))}
