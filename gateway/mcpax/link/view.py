"""What a child shows its parent under one registration: its whole subtree, or one of its subservers alone (draft B.3).

In the first case the child is a level of the tree and its segment stands in the names. In the second the child stands aside: the parent
sees the subserver as its own. Knows nothing of links; answers with what the aggregator has just now.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from mcpax.core.aggregator import Aggregator
from mcpax.core.catalog import Route
from mcpax.core.results import fault_as_result
from mcpax.core.router import CURSOR_META, ROUTE_META, check_way
from mcpax.core.subserver import Json, Progress
from mcpax.errors import ErrorKind, Fault, Outcome
from mcpax.link import tools
from mcpax.names import QualifiedName, dotted

PAGE_TOOLS = 500
PAGE_BYTES = 1 << 20
"""A page ends with the tool that passes this; the largest possible tool still fits a message."""


class CallMeta(msgspec.Struct, rename={"route": ROUTE_META, "cursor": CURSOR_META, "deadline_ms": "x-mcpax-deadline-ms"}):
    registration: str = msgspec.field(default="", name="x-mcpax-registration")
    route: list[str] | None = None
    cursor: int | None = None
    deadline_ms: Annotated[int, msgspec.Meta(le=1 << 53)] | None = None


class CallParams(msgspec.Struct, rename={"meta": "_meta"}):
    name: str
    arguments: dict[str, Any] = {}
    meta: CallMeta = msgspec.field(default_factory=CallMeta)


class View:
    def __init__(self, aggregator: Aggregator, known_as: str, subserver: str | None = None) -> None:
        """`known_as`: the segment that the parent assigned. `subserver`: the segment of the only one shown; None: all of them."""
        self._aggregator = aggregator
        self._known_as = known_as
        self._subserver = subserver
        self._levels = 1 if subserver is None else 2
        """How many segments of our own names the parent does not see."""

    def page(self, cursor: str | None) -> Json:
        shown: list[msgspec.Raw] = []
        last = ""
        size = 0
        for route in self._after(cursor):
            if len(shown) == PAGE_TOOLS or size > PAGE_BYTES:
                return {"tools": shown, "nextCursor": last}
            path = route.name[self._levels :]
            last = dotted(path)
            told = msgspec.json.encode(tools.to_json(route, path))
            shown.append(msgspec.Raw(told))
            size += len(told)
        return {"tools": shown}

    def _after(self, cursor: str | None) -> Iterator[Route]:
        after = None if cursor is None else tuple(cursor.split("."))
        if self._subserver is None:
            return self._aggregator.catalog.routes(None if after is None else (self._aggregator.segment, *after))
        routes = self._aggregator.catalog.routes_of(self._subserver)
        return routes if after is None else (route for route in routes if route.name[2:] > after)

    async def call(self, params: CallParams, progress: Progress) -> Json:
        """Run a tool for the parent; what the model should read of a failure is a result, as everywhere."""
        path: QualifiedName = tuple(params.name.split("."))
        head = (self._aggregator.segment,) if self._subserver is None else (self._aggregator.segment, self._subserver)
        route = self._aggregator.catalog.route((*head, *path))
        if route is None:
            raise Fault(ErrorKind.TOOL_NOT_FOUND, f"Unknown tool: {params.name[:300]}", outcome=Outcome.NOT_EXECUTED)
        meta = params.meta
        way = check_way({ROUTE_META: meta.route, CURSOR_META: meta.cursor}, self._known_as, path)
        if way is None:
            raise Fault(ErrorKind.INVALID_PARAMS, f"A call on a link states {ROUTE_META} and {CURSOR_META}.", outcome=Outcome.NOT_EXECUTED)
        try:
            return await self._aggregator.forward(
                route,
                params.arguments,
                way=way[0],
                cursor=way[1] + 2 - self._levels,
                within_s=None if meta.deadline_ms is None else meta.deadline_ms / 1000,
                progress=progress,
            )
        except Fault as fault:
            if fault.kind.value.in_result:
                return fault_as_result(fault)
            raise
