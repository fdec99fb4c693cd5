"""A copy of all keys below a prefix, kept current by watching etcd: resumed after every interruption, read anew where that is impossible.

While etcd cannot be reached it shows what was last known. Knows nothing of what the keys mean.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from types import MappingProxyType

import structlog

from mcpax.store.backoff import Backoff
from mcpax.store.etcd_access import Compacted, EtcdError
from mcpax.store.etcd_client import EtcdClient
from mcpax.store.etcd_wire import Event, KeyValue

Changed = Callable[[frozenset[str] | None], None]
"""Called after the copy has changed at these keys; None: it was read anew, and anything may have changed."""


class View:
    def __init__(self, client: EtcdClient, prefix: str, changed: Changed) -> None:
        self._client = client
        self._prefix = prefix
        self._changed = changed
        self._found: dict[str, KeyValue] = {}
        self.keys: Mapping[str, KeyValue] = MappingProxyType(self._found)
        self.revision = 0
        """All that happened below the prefix up to here has been seen. 0: nothing was read yet."""
        self._log = structlog.get_logger("mcpax.store")

    async def run(self) -> None:
        backoff = Backoff()
        while True:
            try:
                if self.revision == 0:
                    await self._read()
                await self._watch(backoff)
            except Compacted:
                self.revision = 0
            except EtcdError as error:
                self._log.warning("etcd_watch_lost", reason=str(error))
                await backoff.wait()

    async def _read(self) -> None:
        read = await self._client.read(self._prefix)
        self._found.clear()
        self._found.update(read.found)
        self.revision = read.revision
        self._changed(None)

    async def _watch(self, backoff: Backoff) -> None:
        async with contextlib.aclosing(self._client.watch(self._prefix, self.revision)) as batches:
            async for events in batches:
                backoff.reset()
                if events:
                    self._apply(events)

    def _apply(self, events: tuple[Event, ...]) -> None:
        for event in events:
            if event.now is None:
                self._found.pop(event.key, None)
            else:
                self._found[event.key] = event.now
        # Not the revision in the answer's header: while catching up, that is ahead of the events that have come.
        self.revision = events[-1].revision
        self._changed(frozenset(event.key for event in events))
