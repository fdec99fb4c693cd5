"""A copy of what is in etcd: no event is missed, none is seen twice, whatever happens to the line."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator, AsyncIterator

import pytest

from mcpax.store.etcd_access import EtcdAccess
from mcpax.store.etcd_client import EtcdClient
from mcpax.store.etcd_view import View
from mcpax.store.etcd_wire import Delete, Event, Put, Transaction
from tests.harness.etcd_server import EtcdServer, needs_etcd
from tests.harness.stalling_proxy import StallingProxy
from tests.store.test_etcd_client import PATIENCE_S, compact, put

pytestmark = needs_etcd

WRITES = 300
SEED = 13


class RecordingClient(EtcdClient):
    """Writes down every event that comes."""

    def __init__(self, access: EtcdAccess) -> None:
        super().__init__(access)
        self.events: list[Event] = []

    async def watch(self, prefix: str, after: int) -> AsyncGenerator[tuple[Event, ...]]:
        async with contextlib.aclosing(super().watch(prefix, after)) as batches:
            async for events in batches:
                self.events += events
                yield events


class Watched:
    """A view, and how often it had to read everything."""

    def __init__(self, client: EtcdClient, prefix: str) -> None:
        self.reads = 0
        self._moved = asyncio.Event()
        self.view = View(client, prefix, self._changed)

    def _changed(self, keys: frozenset[str] | None) -> None:
        self.reads += keys is None
        self._moved.set()

    async def until(self, revision: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while self.view.revision < revision:
                self._moved.clear()
                await self._moved.wait()


@pytest.fixture
async def recording(proxy: StallingProxy) -> AsyncIterator[RecordingClient]:
    async with RecordingClient(EtcdAccess((proxy.url,), timeout_s=0.5)) as client:
        yield client


@pytest.fixture
async def watched(recording: RecordingClient, prefix: str) -> AsyncIterator[Watched]:
    watched = Watched(recording, prefix)
    running = asyncio.create_task(watched.view.run())
    yield watched
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


async def test_every_event_is_seen_once_though_the_line_is_cut_again_and_again(
    watched: Watched, recording: RecordingClient, proxy: StallingProxy, client: EtcdClient, prefix: str
) -> None:
    await watched.until((await client.read(prefix)).revision)
    dice = random.Random(SEED)
    written: list[int] = []
    alive: dict[str, int] = {}
    for number in range(WRITES):
        key = f"{prefix}{dice.randrange(40)}"
        if key in alive and dice.random() < 0.4:
            write: Put | Delete = Delete(key, alive.pop(key))
        else:
            write = Put(key, str(number).encode())
        revision = (await client.commit(Transaction((), (write,)))).revision
        written.append(revision)
        if isinstance(write, Put):
            alive[key] = revision
        if number % 60 == 30:
            await watched.until(revision)  # or it would be away the whole time
            proxy.cut()
    await watched.until(written[-1])
    assert proxy.accepted > 5
    assert [event.revision for event in recording.events] == written
    assert watched.reads == 1
    assert dict(watched.view.keys) == (await client.read(prefix)).found


async def test_what_was_compacted_away_meanwhile_is_read_anew(
    etcd: EtcdServer, watched: Watched, proxy: StallingProxy, client: EtcdClient, prefix: str
) -> None:
    gone = await put(client, prefix + "gone")
    await watched.until(gone)
    proxy.stall()
    proxy.cut()
    await client.commit(Transaction((), (Delete(prefix + "gone", gone),)))
    last = await put(client, prefix + "new")
    await compact(etcd, last)
    proxy.go_on()
    await watched.until(last)
    assert list(watched.view.keys) == [prefix + "new"]
    assert watched.reads == 2
    await watched.until(await put(client, prefix + "newer"))  # and it goes on
    assert dict(watched.view.keys) == (await client.read(prefix)).found


async def test_it_starts_before_etcd_can_be_reached(own_etcd: EtcdServer) -> None:
    own_etcd.kill()
    async with EtcdClient(EtcdAccess((own_etcd.url,))) as client:
        watched = Watched(client, "/x/")
        running = asyncio.create_task(watched.view.run())
        own_etcd.start()
        await watched.until(await put(client, "/x/a"))
        running.cancel()
    assert list(watched.view.keys) == ["/x/a"]
