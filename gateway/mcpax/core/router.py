"""From a name that a client used to the subserver that owns the tool, and the answer back (draft §5.2, §7.2, §7.3).

Every call takes the same steps: resolve, check route and cursor, check presence and budget, set the deadline, hand down.
Knows nothing of how a subserver does its work nor of how the client asked.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

import structlog

from mcpax.core.catalog import Catalog, Route
from mcpax.core.subserver import Call, Json, Progress
from mcpax.errors import ErrorKind, Fault, Outcome
from mcpax.name_codec import NameStyle, render
from mcpax.names import MAX_NAME_CHARS, InvalidName, QualifiedName, dotted, qualified

log = structlog.get_logger("mcpax.router")

BACKSTOP_S = 0.5
"""A subserver keeps its own deadline and answers truthfully; after this much more the router stops waiting for one that does not."""
RETRY_DEGRADED_MS = 5000
ROUTE_META = "x-mcpax-route"
CURSOR_META = "x-mcpax-cursor"


class Router:
    def __init__(self, segment: str, catalog: Catalog, clock: Callable[[], float]) -> None:
        self._segment = segment
        self._catalog = catalog
        self._clock = clock

    async def call(
        self,
        printed: str,
        arguments: Mapping[str, Any],
        meta: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
    ) -> Json:
        """Run a tool by any of its printed names; returns the MCP result object or raises `Fault`."""
        route = self._catalog.resolve(printed)
        if route is None:
            raise self._not_found(printed)
        way, cursor = check_route(meta or {}, route, self._segment)
        session = route.session
        if session.degraded:
            raise degraded(route)
        if route.tool.quarantined:
            raise Fault(
                ErrorKind.TOOL_DISABLED,
                f"{dotted(route.name)} is quarantined: {route.tool.quarantined}",
                outcome=Outcome.NOT_EXECUTED,
            )
        now = self._clock()
        session.meter.spend(route.capability, now)
        session.calls += 1
        timeout_s = route.capability.timeout_s
        call = Call(
            path=route.tool.path,
            arguments=arguments,
            deadline=None if timeout_s is None else now + timeout_s,
            route=way,
            cursor=cursor + 1,  # ours is the segment at the cursor; the subserver's is the next
            progress=progress,
        )
        started = time.perf_counter()
        try:
            async with asyncio.timeout(None if timeout_s is None else timeout_s + BACKSTOP_S):
                result = await session.subserver.call(call)
        except TimeoutError:
            raise Fault(
                ErrorKind.DEVICE_TIMEOUT,
                f"{dotted(route.name)} did not answer within {timeout_s} s ({route.capability.latency_class}).",
                outcome=Outcome.UNKNOWN,
            ) from None
        latency_ms = round((time.perf_counter() - started) * 1000, 3)
        log.debug("called", tool=dotted(route.name), session=session.id, latency_ms=latency_ms)
        return {**result, "_meta": {**result.get("_meta", {}), "x-mcpax-latency-ms": latency_ms}}

    def _not_found(self, printed: str) -> Fault:
        names = [render(route.name, style) for route in self._catalog.routes() for style in NameStyle]
        near = get_close_matches(printed, names, n=1) if len(printed) <= MAX_NAME_CHARS else []
        return Fault(
            ErrorKind.TOOL_NOT_FOUND,
            f"Unknown tool: {printed[:300]}",
            hint=f"Did you mean {near[0]}?" if near else "tools/list names the tools there are.",
            outcome=Outcome.NOT_EXECUTED,
        )


def degraded(route: Route) -> Fault:
    """Draft §13.2."""
    session = route.session
    since = session.degraded_since
    return Fault(
        ErrorKind.TOOL_DEGRADED,
        "tool_degraded",
        hint=f"{dotted(route.name)} is listed but its board cannot be reached ({session.degraded_reason}).",
        outcome=Outcome.NOT_EXECUTED,
        retry_after_ms=RETRY_DEGRADED_MS,
        details={
            "reason": "subserver_unreachable",
            "since": since.isoformat(timespec="seconds").replace("+00:00", "Z") if since else None,
        },
    )


def check_route(meta: Mapping[str, Any], route: Route, segment: str) -> tuple[QualifiedName, int]:
    """The whole way from the root to the tool, and our place on it.

    A caller that states a route and cursor must mean this aggregator; one that states neither is a plain client, and the way begins here.
    """
    stated, cursor = meta.get(ROUTE_META), meta.get(CURSOR_META)
    if stated is None and cursor is None:
        return route.name, 0
    if not isinstance(stated, list) or type(cursor) is not int:
        raise _wrong(f"{ROUTE_META} must be an array of segments and {CURSOR_META} an integer; both or neither.")
    if not 0 <= cursor < len(stated) or stated[cursor] != segment:
        raise _wrong(f"{CURSOR_META} {cursor} does not point at {segment!r} in {ROUTE_META} {stated!r:.300}.")
    if tuple(stated[cursor:]) != route.name:
        raise _wrong(f"{ROUTE_META} {stated!r:.300} does not lead to {dotted(route.name)}.")
    return _checked_way(stated), cursor


def _checked_way(stated: list[Any]) -> QualifiedName:
    try:
        return qualified(stated)
    except (InvalidName, TypeError) as error:
        raise _wrong(f"{ROUTE_META}: {error}.") from None


def _wrong(message: str) -> Fault:
    return Fault(ErrorKind.INVALID_PARAMS, message, outcome=Outcome.NOT_EXECUTED)
