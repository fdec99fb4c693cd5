"""From a name that a client used to the subserver that owns the tool, and the answer back (draft §5.2, §7.2, §7.3).

Every call takes the same steps: resolve, check route and cursor, check presence and budget, set the deadline, hand down.
Knows nothing of how a subserver does its work nor of how the client asked.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

import structlog

from mcpax.core.catalog import Catalog, Route
from mcpax.core.registry import Session
from mcpax.core.results import with_meta
from mcpax.core.subserver import Call, Json, Progress
from mcpax.errors import ErrorKind, Fault, Outcome
from mcpax.name_codec import NameStyle, render
from mcpax.names import MAX_NAME_CHARS, InvalidName, QualifiedName, dotted, qualified

BACKSTOP_S = 0.5
"""A subserver keeps its own deadline and answers truthfully; after this much more the router stops waiting for one that does not."""
RETRY_DEGRADED_MS = 5000
ROUTE_META = "x-mcpax-route"
CURSOR_META = "x-mcpax-cursor"
LATENCY_META = "x-mcpax-latency-ms"
MOST_COMPARED = 1000
"""Tools up to which an unknown name is compared with the known ones: it is for people who mistype, and costs time for each."""


class Router:
    def __init__(
        self, segment: str, catalog: Catalog, clock: Callable[[], float], owns: Callable[[Session], bool] = lambda _: True
    ) -> None:
        """`owns`: whether a session is still ours to serve, where several replicas might."""
        self._owns = owns
        self._segment = segment
        self._catalog = catalog
        self._clock = clock
        self._log = structlog.get_logger("mcpax.router").bind()
        self._traces = self._log.is_enabled_for(logging.DEBUG)
        """Asked once: where nobody listens, a call must not pay for it."""

    async def call(
        self,
        printed: str,
        arguments: Mapping[str, Any],
        meta: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
    ) -> Json:
        """Run a tool by any of its printed names, for a client; returns the MCP result object or raises `Fault`."""
        route = self._catalog.resolve(printed)
        if route is None:
            raise self._not_found(printed)
        way, cursor = check_way(meta or {}, self._segment, route.name[1:]) or (route.name, 0)
        started = time.perf_counter()
        # Ours is the segment at the cursor; the subserver's is the next.
        result = await self.dispatch(route, arguments, way=way, cursor=cursor + 1, progress=progress)
        return with_meta(result, {LATENCY_META: round((time.perf_counter() - started) * 1000, 3)})

    async def dispatch(
        self,
        route: Route,
        arguments: Mapping[str, Any],
        *,
        way: QualifiedName,
        cursor: int,
        within_s: float | None = None,
        progress: Progress | None = None,
    ) -> Json:
        """Hand a call to the subserver that owns the tool; its result comes back as it is.

        `within_s`: how long the caller waits, if it said.
        """
        session = route.session
        if session.degraded or not self._owns(session):
            raise degraded(route)
        if route.tool.quarantined:
            raise Fault(
                ErrorKind.TOOL_DISABLED,
                f"{dotted(route.name)} is quarantined: {route.tool.quarantined}",
                outcome=Outcome.NOT_EXECUTED,
            )
        if not session.scope.allows(route.capability.needed_scope):
            raise Fault(
                ErrorKind.PERMISSION_DENIED,
                f"{dotted(route.name)} needs scope {route.capability.needed_scope}; its subserver is registered for {session.scope} only.",
                outcome=Outcome.NOT_EXECUTED,
            )
        timeout_s = shorter(route.capability.timeout_s, within_s)
        if timeout_s is not None and timeout_s <= 0:
            raise Fault(ErrorKind.DEVICE_TIMEOUT, f"No time is left for {dotted(route.name)}.", outcome=Outcome.NOT_EXECUTED)
        now = self._clock()
        session.meter.spend(route.capability, now)
        session.calls += 1
        if self._traces:
            self._log.debug("dispatched", subserver=session.request.subserver_id, fence=session.fence, owned=session.principal.claims)
        call = Call(
            path=route.tool.path,
            arguments=arguments,
            deadline=None if timeout_s is None else now + timeout_s,
            route=way,
            cursor=cursor,
            progress=progress,
        )
        try:
            async with asyncio.timeout(None if timeout_s is None else timeout_s + BACKSTOP_S):
                return await session.subserver.call(call)
        except TimeoutError:
            raise Fault(
                ErrorKind.DEVICE_TIMEOUT,
                f"{dotted(route.name)} did not answer within {timeout_s} s ({route.capability.latency_class}).",
                outcome=Outcome.UNKNOWN,
            ) from None

    def _not_found(self, printed: str) -> Fault:
        near: list[str] = []
        if len(printed) <= MAX_NAME_CHARS and len(self._catalog) <= MOST_COMPARED:
            near = get_close_matches(printed, [render(route.name, style) for route in self._catalog.routes() for style in NameStyle], n=1)
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
        hint=f"{dotted(route.name)} is listed but what it is on cannot be reached ({session.degraded_reason}).",
        outcome=Outcome.NOT_EXECUTED,
        retry_after_ms=RETRY_DEGRADED_MS,
        details={
            "reason": "subserver_unreachable",
            "since": since.isoformat(timespec="seconds").replace("+00:00", "Z") if since else None,
        },
    )


def shorter(one: float | None, other: float | None) -> float | None:
    """Of two time limits; None is none."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def check_way(meta: Mapping[str, Any], segment: str, below: QualifiedName) -> tuple[QualifiedName, int] | None:
    """The whole way from the root to the tool and our place on it, as the caller states them; None if it states neither.

    A stated way must mean us, by the segment that the caller knows us by, and lead on to the tool.
    """
    stated, cursor = meta.get(ROUTE_META), meta.get(CURSOR_META)
    if stated is None and cursor is None:
        return None
    if not isinstance(stated, list) or type(cursor) is not int:
        raise _wrong(f"{ROUTE_META} must be an array of segments and {CURSOR_META} an integer; both or neither.")
    if not 0 <= cursor < len(stated) or stated[cursor] != segment:
        raise _wrong(f"{CURSOR_META} {cursor} does not point at {segment!r} in {ROUTE_META} {stated!r:.300}.")
    if tuple(stated[cursor + 1 :]) != below:
        raise _wrong(f"{ROUTE_META} {stated!r:.300} does not lead to {dotted(below)}.")
    return _checked_way(stated), cursor


def _checked_way(stated: list[Any]) -> QualifiedName:
    try:
        return _qualified_once(tuple(stated))
    except (InvalidName, TypeError) as error:
        raise _wrong(f"{ROUTE_META}: {error}.") from None


@lru_cache(maxsize=1024)
def _qualified_once(stated: QualifiedName) -> QualifiedName:
    """Calls take the same ways again and again, and checking every segment at every hop costs more the deeper the tree."""
    return qualified(stated)


def _wrong(message: str) -> Fault:
    return Fault(ErrorKind.INVALID_PARAMS, message, outcome=Outcome.NOT_EXECUTED)
