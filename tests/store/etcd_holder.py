"""A process that holds a subserver, for tests that kill or stop it: prints `held`, then answers every line with what it believes."""

from __future__ import annotations

import asyncio
import sys

from mcpax import logs
from mcpax.core.ownership import Claim, Hold
from mcpax.store.etcd import EtcdOwnership
from mcpax.store.etcd_access import EtcdAccess
from mcpax.store.etcd_claims import Keys
from mcpax.store.etcd_client import EtcdClient


async def main(url: str, prefix: str, ttl_s: str, subserver_id: str) -> None:
    lost: list[Hold] = []
    was_lost = asyncio.Event()

    def note(hold: Hold) -> None:
        lost.append(hold)
        was_lost.set()

    logs.configure()
    async with EtcdClient(EtcdAccess((url,))) as client:
        ownership = EtcdOwnership(client, "holder", keys=Keys(prefix), ttl_s=int(ttl_s))
        running = asyncio.create_task(ownership.run())
        hold = await ownership.claim(Claim(subserver_id, "pump"), note)
        print("held", hold.fence, flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            if line == "lost?\n":
                await was_lost.wait()
            print("holds" if ownership.check(hold) else "does not hold", len(lost), flush=True)
        running.cancel()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
