"""Figures for benchmarks: what the kernel says of a running process, and of a row of measurements the one that 99 of 100 stay below.

Knows nothing of what the process does.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """User and system time of all its threads, to the kernel's tick, which is 10 ms mostly."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / _TICKS_A_SECOND


def fine_cpu_s(pid: int) -> float:
    """Of its first thread alone, to the nanosecond: for work too short for ticks."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def resident_kib(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise SystemExit(f"process {pid} is gone")


def percentile_99(taken: Sequence[float]) -> float:
    return sorted(taken)[math.ceil(0.99 * len(taken)) - 1]
