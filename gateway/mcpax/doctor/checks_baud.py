"""Check of the baud rate: a chip makes it by dividing its clock, and not every rate can be made. Arithmetic only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mcpax.doctor.finding import Finding, ok, warn

TOLERANCE = 0.02
"""Sender and receiver may differ by about 4 % in all before bits are misread; this is one side's half."""
RATES = (9600, 19200, 38400, 57600, 76800, 115200, 125000, 230400, 250000, 460800, 500000, 921600, 1_000_000)


@dataclass(frozen=True, slots=True)
class Chip:
    name: str
    clock_hz: int
    samples_per_bit: int
    max_divisor: int

    def error(self, baud: int) -> float:
        """How far off the nearest rate is that it can make, as a part of one."""
        ideal = self.clock_hz / self.samples_per_bit / baud
        divisor = min(max(1, round(ideal)), self.max_divisor)
        return ideal / divisor - 1


CHIPS = (
    Chip("a 16 MHz AVR (Uno, Nano, Mega)", 16_000_000, 8, 4096),
    Chip("an 8 MHz AVR (Pro Mini, LilyPad)", 8_000_000, 8, 4096),
    Chip("a 16550 with the usual 1.8432 MHz", 1_843_200, 16, 65535),
)
"""Those that only divide by whole numbers. Newer ones (ESP32, RP2040, STM32, SAMD) have fractions and come close enough to any rate."""
COMMON = CHIPS[0]


def check_baud(rates: Iterable[int]) -> list[Finding]:
    return [_check(baud) for baud in sorted(set(rates))]


def nearest_good(baud: int, chip: Chip = COMMON) -> int:
    good = [rate for rate in RATES if abs(chip.error(rate)) <= TOLERANCE]
    return min(good, key=lambda rate: max(rate / baud, baud / rate))


def _check(baud: int) -> Finding:
    check = f"{baud} baud"
    off = [f"{chip.name} makes it {chip.error(baud):+.1%}" for chip in CHIPS if abs(chip.error(baud)) > TOLERANCE]
    if not off:
        return ok(check, "every common chip makes it well enough")
    hint = f"if the board has such a chip and frames are damaged, use {nearest_good(baud)} in the map and in the firmware"
    return warn(check, "; ".join(off), hint)
