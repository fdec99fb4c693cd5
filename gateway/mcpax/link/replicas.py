"""Among replicas of one aggregator: each shows the others the subservers that it serves, so that a call may come in anywhere.

Keeps a link to every other replica that lives, as the shared store tells. Does not know how that store works, nor who serves what: fences
decide.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import structlog

from mcpax.core.aggregator import Aggregator
from mcpax.core.subserver import Json
from mcpax.link.child import ChildEnd
from mcpax.link.introduction import Introduction, Parentage
from mcpax.link.redial import Redialler, Target
from mcpax.link.wire import Wire

log = structlog.get_logger("mcpax.replicas")


class Replicas:
    def __init__(self, aggregator: Aggregator, own_id: str, heartbeat_s: float, target: Callable[[str], Target]) -> None:
        """`target`: how to dial the replica of that URL."""
        self._aggregator = aggregator
        self._own_id = own_id
        self._introduction = Introduction(own_id, aggregator.segment, heartbeat_s, each_on_its_own=True, among_replicas=True)
        self._target = target
        self._links: dict[str, asyncio.Task[None]] = {}
        """By URL: one that was killed and started again is known by two ids until the store forgets the first, and needs one link."""
        self._urls: dict[str, str] = {}

    def changed(self, replicas: Mapping[str, str]) -> None:
        """Those that live now, by id."""
        others = {replica: url for replica, url in replicas.items() if replica != self._own_id}
        urls = set(others.values())
        for url in self._links.keys() - urls:
            log.info("replica_gone", url=url)
            self._links.pop(url).cancel()
        for url in urls - self._links.keys():
            log.info("replica_found", url=url)
            self._links[url] = asyncio.ensure_future(self._keep(self._target(url)))
        self._urls = others

    async def _keep(self, target: Target) -> None:
        async def serve(wire: Wire) -> str:
            return await ChildEnd(self._aggregator, wire, self._introduction, Parentage()).run(redialler.connected)

        redialler = Redialler((target,), serve, heartbeat_s=self._introduction.heartbeat_s)
        await redialler.run()

    async def close(self) -> None:
        for link in self._links.values():
            link.cancel()
        await asyncio.gather(*self._links.values(), return_exceptions=True)
        self._links.clear()

    def describe(self) -> Json:
        return {"own_id": self._own_id, "others": dict(self._urls)}
