"""Transactions that are to be carried out some time: those that failed, and what nobody waits for.

In order, each until it succeeds; it must do no harm twice or late. Knows nothing of what they are for, and forgets them with the process.
"""

from __future__ import annotations

import asyncio

from mcpax.store.backoff import Backoff
from mcpax.store.etcd_access import EtcdError
from mcpax.store.etcd_client import EtcdClient
from mcpax.store.etcd_wire import Transaction


class Leftovers:
    def __init__(self, client: EtcdClient) -> None:
        self._client = client
        self._waiting: asyncio.Queue[Transaction] = asyncio.Queue()

    def add(self, transaction: Transaction) -> None:
        self._waiting.put_nowait(transaction)

    async def run(self) -> None:
        backoff = Backoff()
        while True:
            transaction = await self._waiting.get()
            while not await self._carried_out(transaction):
                await backoff.wait()
            backoff.reset()

    async def _carried_out(self, transaction: Transaction) -> bool:
        try:
            await self._client.commit(transaction)
        except EtcdError:  # the lease and the watch fail by now, too, and say so
            return False
        return True
