"""How long to wait before trying again: longer each time up to a limit, and never in step with others who wait for the same."""

from __future__ import annotations

import asyncio
import random

FIRST_S = 0.1
LIMIT_S = 1.0
"""A store that is back is needed at once: until then nobody can register. Asking once a second costs it nothing."""


class Backoff:
    def __init__(self, first_s: float = FIRST_S, limit_s: float = LIMIT_S) -> None:
        self._first_s = first_s
        self._limit_s = limit_s
        self._next_s = first_s

    def reset(self) -> None:
        self._next_s = self._first_s

    async def wait(self) -> None:
        pause_s, self._next_s = self._next_s, min(2 * self._next_s, self._limit_s)
        await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))
