"""Watches a chaos run from outside, and writes down what it sees: who holds what in etcd, and what each replica lists. Judges nothing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping

import msgspec

from mcpax.store.etcd_access import EtcdAccess, EtcdError
from mcpax.store.etcd_client import EtcdClient
from tests.bench.soak import Client
from tests.chaos.journal import Journal
from tests.chaos.load import ask

LIST_EVERY_S = 0.1
LIST_S = 5.0
RESUME_S = 0.05


async def watch_holds(etcd: str, prefix: str, journal: Journal) -> None:
    """Every change of a hold, in etcd's order, from the first on; resumed where etcd went away. Until cancelled."""
    client = EtcdClient(EtcdAccess((etcd,)))
    below = f"{prefix}holds/"
    seen = 0
    try:
        while True:
            with contextlib.suppress(EtcdError, TimeoutError):
                async with contextlib.aclosing(client.watch(below, seen)) as batches:
                    async for events in batches:
                        for event in events:
                            seen = event.revision
                            holder = None if event.now is None else msgspec.json.decode(event.now.value)["holder"]
                            journal.write(subserver=event.key.removeprefix(below), revision=event.revision, holder=holder)
            await asyncio.sleep(RESUME_S)
    finally:
        await client.close()


async def list_tools(ports: Mapping[str, int], journal: Journal) -> None:
    """What every replica lists, again and again until cancelled."""
    await asyncio.gather(*(_list_one(replica, port, journal) for replica, port in ports.items()))


async def _list_one(replica: str, port: int, journal: Journal) -> None:
    while True:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
            async with asyncio.timeout(LIST_S):
                client = await Client.open(port)
                try:
                    tools = (await ask(client, "tools/list", {}))["result"]["tools"]
                finally:
                    client.close()
            degraded = [each["name"] for each in tools if each["_meta"]["x-mcpax-capability"]["availability"] == "degraded"]
            journal.write(replica=replica, names=sorted(each["name"] for each in tools), degraded=sorted(degraded))
        await asyncio.sleep(LIST_EVERY_S)
