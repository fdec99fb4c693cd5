"""The way up: keeps this aggregator registered with a parent, or with a backup when that one is gone.

Knows nothing of configuration files.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcpax.core.aggregator import Aggregator
from mcpax.core.subserver import Json
from mcpax.link.child import ChildEnd
from mcpax.link.introduction import Introduction, Parentage
from mcpax.link.redial import Redialler, Target
from mcpax.link.wire import Wire


class Uplink:
    def __init__(self, aggregator: Aggregator, targets: Sequence[Target], introduction: Introduction, parentage: Parentage) -> None:
        self._aggregator = aggregator
        self._introduction = introduction
        self._parentage = parentage
        self._redialler = Redialler(targets, self._serve, heartbeat_s=introduction.heartbeat_s)
        self._end: ChildEnd | None = None

    async def run(self) -> None:
        """Until cancelled, or left."""
        await self._redialler.run()

    async def _serve(self, wire: Wire) -> str:
        self._end = ChildEnd(self._aggregator, wire, self._introduction, self._parentage)
        try:
            return await self._end.run(self._redialler.connected)
        finally:
            self._end = None

    async def leave(self) -> None:
        """Deregister for good, but answer what is under way. Before the aggregator drains."""
        self._redialler.stop()
        if self._end is not None:
            await self._end.leave()

    def describe(self) -> Json:
        state = self._redialler.state
        return {
            "url": state.url,
            "connected": state.connected,
            "parent_id": self._parentage.parent_id,
            "problem": state.problem,
            "attempts": state.attempts,
            "links": state.links,
        }
