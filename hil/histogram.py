"""Round trips of one board as a small picture: how many took how many times their wire time. Inline SVG; the page gives the colours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from statistics import median, quantiles

from hil.frames import RoundTrip

LIMIT = 1.3
"""Times the wire time: what a round trip may take, before the firmware's own cycles are added (docs/hil.md)."""
BIN = 0.05
FIRST, LAST = 0.9, 2.5
"""Times the wire time; what is outside stands in the outermost bins."""
WIDTH, HEIGHT = 340, 150
LEFT, RIGHT, TOP, BOTTOM = 8, 8, 22, 24
TICKS = (1.0, 1.5, 2.0, 2.5)


@dataclass(frozen=True, slots=True)
class Summary:
    count: int
    median_ms: float
    p95_ms: float
    wire_ms: float
    """Median of the wire times."""
    median_ratio: float
    within_limit: float
    """Part of all."""


def summary(trips: Sequence[RoundTrip]) -> Summary:
    times = [trip.ms for trip in trips]
    ratios = [trip.ms / trip.wire_ms for trip in trips]
    p95 = quantiles(times, n=20)[-1] if len(times) > 1 else times[0]
    within = sum(ratio <= LIMIT for ratio in ratios) / len(ratios)
    return Summary(len(times), median(times), p95, median(trip.wire_ms for trip in trips), median(ratios), within)


def histogram(board: str, trips: Sequence[RoundTrip]) -> str:
    """An `<svg>` element."""
    told = summary(trips)
    words = (
        f"{board}: {told.count} round trips, median {told.median_ratio:.2f} times the wire time, "
        f"{told.within_limit:.0%} within {LIMIT:g} times"
    )
    bins = Counter(_bin(trip.ms / trip.wire_ms) for trip in trips)
    highest = max(bins.values())
    width = (_x(FIRST + BIN) - _x(FIRST)) - 1
    bars = []
    for number, count in sorted(bins.items()):
        height = max(2.0, (HEIGHT - TOP - BOTTOM) * count / highest)
        left = FIRST + number * BIN
        title = f"{count} at {left:.2f} to {left + BIN:.2f} times the wire time"
        kind = "bar" if left < LIMIT - BIN / 2 else "bar late"
        bars.append(
            f'<rect class="{kind}" x="{_x(left):.1f}" y="{HEIGHT - BOTTOM - height:.1f}" width="{width:.1f}" height="{height:.1f}">'
            f"<title>{title}</title></rect>"
        )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(words)}">'
        + "".join(bars)
        + f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM}"/>'
        + "".join(_tick(value) for value in TICKS)
        + _mark(1.0, "wire", "end")
        + _mark(LIMIT, f"{LIMIT:g} × wire", "start")
        + "</svg>"
    )


def _bin(ratio: float) -> int:
    last = round((LAST - FIRST) / BIN) - 1
    return min(max(int((ratio - FIRST) / BIN), 0), last)


def _x(ratio: float) -> float:
    return LEFT + (ratio - FIRST) / (LAST - FIRST) * (WIDTH - LEFT - RIGHT)


def _tick(ratio: float) -> str:
    anchor = "end" if ratio == LAST else "middle"
    return f'<text class="tick" x="{_x(ratio):.1f}" y="{HEIGHT - 8}" text-anchor="{anchor}">{ratio:g}×</text>'


def _mark(ratio: float, label: str, anchor: str) -> str:
    x, aside = _x(ratio), -4 if anchor == "end" else 4
    return (
        f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 10}" y2="{HEIGHT - BOTTOM}"/>'
        f'<text class="tick" x="{x + aside:.1f}" y="{TOP - 6}" text-anchor="{anchor}">{label}</text>'
    )
