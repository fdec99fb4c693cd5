"""The way down where the parent dials: keeps a link to a child that cannot, or must not, dial out. Knows nothing of configuration files."""

from __future__ import annotations

from collections.abc import Callable

from mcpax.core.aggregator import Aggregator
from mcpax.core.principal import Principal
from mcpax.core.subserver import Json
from mcpax.link.parent import ParentEnd
from mcpax.link.redial import Redialler, Target
from mcpax.link.wire import Wire


class Downlink:
    def __init__(self, aggregator: Aggregator, target: Target, principal: Principal, clock: Callable[[], float]) -> None:
        self._aggregator = aggregator
        self._principal = principal
        self._clock = clock
        self._redialler = Redialler((target,), self._serve)

    async def run(self) -> None:
        """Until cancelled."""
        await self._redialler.run()

    async def _serve(self, wire: Wire) -> str:
        self._redialler.connected()
        return await ParentEnd(self._aggregator, wire, self._principal, self._clock).run()

    def describe(self) -> Json:
        state = self._redialler.state
        return {"child": self._principal.name, "url": state.url, "connected": state.connected, "problem": state.problem}
