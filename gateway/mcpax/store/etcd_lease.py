"""A lease as its holder may rely on it: by its own clock, and with a margin before etcd could give to another what was under it.

Once it counts as over it never counts as valid again, whatever etcd says later. Knows nothing of what is held under it, and takes no other.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from functools import partial

from mcpax.store.etcd_access import EtcdError, LeaseGone
from mcpax.store.etcd_client import EtcdClient

Clock = Callable[[], float]

RENEWALS_PER_TTL = 3
RETRIES_PER_TTL = 12
MIN_MARGIN_S = 0.5
TICK_S = 0.001
"""Timers may fire a little early: wait no shorter than this, or the last moment is many."""

CLOCK: Clock = partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic
"""Goes on while the machine sleeps, which Linux's monotonic clock does not, and etcd's does."""


def margin_s(ttl_s: float) -> float:
    """How long before etcd's own end the holder stops.

    Covers a call that was checked and is on its way, and an etcd leader that was cut off: for up to an election time-out (1 s unless set
    otherwise) it may go on renewing what its successor counts already.
    """
    return max(MIN_MARGIN_S, ttl_s / 6)


class Lease:
    def __init__(self, client: EtcdClient, lease: int, ttl_s: float, asked_at: float, clock: Clock) -> None:
        self.id = lease
        self._client = client
        self._clock = clock
        self._ttl_s = ttl_s
        self._valid_until = self._end(asked_at)
        self._ended = asyncio.Event()

    @classmethod
    async def take(cls, client: EtcdClient, ttl_s: int, clock: Clock = CLOCK) -> Lease:
        asked_at = clock()
        granted = await client.grant(ttl_s)
        return cls(client, granted.lease, granted.ttl_s, asked_at, clock)

    def _end(self, asked_at: float) -> float:
        # From when it was asked for, not answered: etcd began to count somewhere in between.
        return asked_at + self._ttl_s - margin_s(self._ttl_s)

    @property
    def is_valid(self) -> bool:
        return self._clock() < self._valid_until

    def end(self) -> None:
        """Somebody has learnt that etcd no longer knows it."""
        self._valid_until = float("-inf")
        self._ended.set()

    async def keep(self) -> str:
        """Renew it for as long as that works; then return why it is over."""
        pause_s = self._ttl_s / RENEWALS_PER_TTL
        trouble = "this process stood still"
        while (left_s := self._valid_until - self._clock()) > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), max(min(pause_s, left_s), TICK_S))
            if not self.is_valid:
                break
            try:
                # Whoever holds something must hear at once when the time is over, not when a request has timed out.
                async with asyncio.timeout(self._valid_until - self._clock()):
                    await self._renew()
                pause_s = self._ttl_s / RENEWALS_PER_TTL
            except LeaseGone:
                self.end()
            except (EtcdError, TimeoutError) as error:
                trouble = str(error) or trouble
                pause_s = self._ttl_s / RETRIES_PER_TTL
        return "etcd no longer knows it" if self._ended.is_set() else f"not renewed in time: {trouble}"

    async def _renew(self) -> None:
        asked_at = self._clock()
        self._ttl_s = await self._client.keep_alive(self.id)
        if self.is_valid:
            self._valid_until = self._end(asked_at)
