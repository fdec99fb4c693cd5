"""A process among the others that share etcd: one lease at a time, always another when it is lost, and a key that says where it is reached.

Knows nothing of what else is put under its lease.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable

import msgspec
import structlog

from mcpax.store.backoff import Backoff
from mcpax.store.etcd_access import EtcdError
from mcpax.store.etcd_claims import Replica
from mcpax.store.etcd_client import EtcdClient
from mcpax.store.etcd_lease import CLOCK, Clock, Lease
from mcpax.store.etcd_wire import Put, Transaction

REMEMBERED_LEASES = 64


class Membership:
    def __init__(self, client: EtcdClient, key: str, *, url: str, ttl_s: int, lost: Callable[[str], None], clock: Clock = CLOCK) -> None:
        self._client = client
        self._key = key
        self._value = msgspec.json.encode(Replica(url, int(time.time())))
        self._ttl_s = ttl_s
        self._lost = lost
        self._clock = clock
        self._usable = asyncio.Event()
        self.lease: Lease | None = None
        self.leases: deque[int] = deque(maxlen=REMEMBERED_LEASES)
        """All that were taken: what is under one of them was put there by this very process, and by no other of the same name."""
        self._log = structlog.get_logger("mcpax.store")

    async def run(self) -> None:
        backoff = Backoff()
        before: Lease | None = None
        while True:
            try:
                lease = await self._join()
            except EtcdError as error:
                self._log.warning("etcd_lease_failed", reason=str(error))
                await backoff.wait()
                continue
            if before is not None:
                # It may have expired, and surely will; others need not wait for that. The new one must not wait for long, either.
                with contextlib.suppress(EtcdError, TimeoutError):
                    async with asyncio.timeout(self._ttl_s / 6):
                        await self._client.revoke(before.id)
            backoff.reset()
            self.lease = before = lease
            self._usable.set()
            reason = await lease.keep()
            self._usable.clear()
            self.lease = None
            self._log.warning("etcd_lease_lost", reason=reason)
            self._lost(reason)

    async def _join(self) -> Lease:
        lease = await Lease.take(self._client, self._ttl_s, self._clock)
        self.leases.append(lease.id)
        await self._client.commit(Transaction((), (Put(self._key, self._value, lease.id),)))
        return lease

    async def usable(self) -> Lease:
        """The lease to put something under; waits while there is none."""
        await self._usable.wait()
        if self.lease is None:
            raise EtcdError("etcd: this process has left. Nothing can be claimed any more.")
        return self.lease

    def unknown(self, lease: Lease) -> None:
        """etcd no longer knows this lease: take another, without waiting for the next renewal to tell the same."""
        lease.end()
        if lease is self.lease:
            self._usable.clear()

    async def leave(self) -> None:
        """Give up the lease, and with it at once all that is under it. Never raises."""
        lease, self.lease = self.lease, None
        if lease is not None:
            with contextlib.suppress(EtcdError):  # it expires
                await self._client.revoke(lease.id)
