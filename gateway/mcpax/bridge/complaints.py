"""What a board does wrong, told in the log without letting the board fill it.

A board decides how often it errs, and a line of log costs a thousand times what an error costs the board. Knows nothing of boards.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

EVERY_S = 1.0
"""At most one line of a kind in this time; the next says how many were left out."""


class Complaints:
    def __init__(self, log: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._clock = clock
        self._quiet_until: dict[str, float] = {}
        self._left_out: dict[str, int] = {}

    def warn(self, event: str, **details: Any) -> None:
        """`event` is one of a few fixed names: each is limited on its own."""
        now = self._clock()
        if now < self._quiet_until.get(event, 0.0):
            self._left_out[event] = self._left_out.get(event, 0) + 1
            return
        self._quiet_until[event] = now + EVERY_S
        left_out = self._left_out.pop(event, 0)
        self._log.warning(event, **details, **({"left_out_before": left_out} if left_out else {}))
