"""The aggregator as the front and the subservers see it: one object that ties registry, catalog, router and notifications together.

Knows nothing of HTTP, MCP sessions or serial ports.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import structlog

from mcpax.core.catalog import Catalog, Page, Route
from mcpax.core.flow import DEFAULT_LIMITS, FlowLimits
from mcpax.core.flows import Flows
from mcpax.core.notify import Notifier
from mcpax.core.own_tools import OwnTools, check_not_own, own_request
from mcpax.core.ownership import Hold, Ownership
from mcpax.core.presence import Presence
from mcpax.core.principal import LOCAL, OWN, Principal
from mcpax.core.registration import Budget, RegistrationRequest, RegistrationResponse
from mcpax.core.registry import GRACE_S, Listeners, Registry, Session, Vouch
from mcpax.core.router import Router
from mcpax.core.subserver import Json, Notification, Progress, Subserver
from mcpax.errors import ErrorKind, Fault, Outcome
from mcpax.name_codec import NameStyle
from mcpax.names import QualifiedName, check_segment

log = structlog.get_logger("mcpax.aggregator")

LIST_TTL_S = 60.0
"""How long the merged list is taken as true without asking the subservers again (draft §5.1)."""
RELIST_TIMEOUT_S = 2.0
"""A subserver that takes longer to list its tools keeps the ones it had: a client waits for the answer."""
CHANGED_LIST_TIMEOUT_S = 30.0
"""Nobody waits for a list that a subserver says has changed, and a large one comes in many pages over a slow link."""
IDLE_SWEEP_S = 1.0
CLOSE_TIMEOUT_S = 2.0
"""A subserver that does not close in this time is left behind: stopping must not depend on any one of them."""


class Aggregator:
    def __init__(
        self,
        segment: str,
        aggregator_id: str,
        *,
        budget: Budget | None = None,
        grace_s: float = GRACE_S,
        list_ttl_s: float = LIST_TTL_S,
        ownership: Ownership | None = None,
        vouch: Vouch | None = None,
        flow_limits: FlowLimits = DEFAULT_LIMITS,
        own_tools: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` is the event loop's, because deadlines are told to subservers in its time."""
        self.segment = check_segment(segment)
        self.id = aggregator_id
        self.notifier = Notifier()
        self.catalog = Catalog(segment, self.notifier.list_changed)
        self.flows = Flows(segment, self.notifier.publish, clock, flow_limits)
        presence = Presence(self.flows.emit_about, _now)
        self._ownership = ownership
        self.registry = Registry(
            segment,
            Listeners(self.catalog, self.flows, presence),  # presence last: it speaks through the flows
            clock=clock,
            now=_now,
            budget=budget,
            grace_s=grace_s,
            own_id=aggregator_id,
            ownership=ownership,
            vouch=vouch,
            released=self._release,
        )
        self._own_tools = OwnTools(self.flows) if own_tools else None
        self._router = Router(segment, self.catalog, clock, self.registry.owns)
        self._clock = clock
        self._list_ttl_s = list_ttl_s
        self._listed_at = clock()
        self._relisting: asyncio.Task[None] | None = None
        self._releasing: set[asyncio.Future[None]] = set()
        self._sooner = asyncio.Event()
        """Something may be due earlier than the last sweep said."""
        self._draining = False
        self._in_flight = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def start(self) -> None:
        """Take the aggregator's own tools in, if they are wanted; once, before anybody is served."""
        if self._own_tools is not None:
            await self.registry.register(own_request(), self._own_tools, OWN)

    async def register(self, request: RegistrationRequest, subserver: Subserver, principal: Principal = LOCAL) -> RegistrationResponse:
        self._check_open()
        check_not_own(request)
        try:
            return await self.registry.register(request, subserver, principal)
        finally:
            self._sooner.set()

    def heartbeat(self, session_id: str) -> None:
        self.registry.heartbeat(session_id)

    def degrade(self, session_id: str, reason: str) -> None:
        self.registry.degrade(session_id, reason)
        self._sooner.set()

    def deregister(self, session_id: str) -> None:
        """Take a subserver out, if it is still there."""
        if self.registry.get(session_id) is not None:
            self.registry.deregister(session_id)

    async def list_tools(self, style: NameStyle, cursor: str | None = None) -> Page:
        """One page of the merged list; asks the subservers first if the list has aged."""
        if cursor is None and self._clock() - self._listed_at > self._list_ttl_s:
            await self._relist()
        return self.catalog.page(style, cursor)

    async def call_tool(
        self,
        printed: str,
        arguments: Mapping[str, Any],
        meta: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
    ) -> Json:
        """For a client, by any printed name."""
        with self._counted():
            return await self._router.call(printed, arguments, meta, progress)

    async def forward(
        self,
        route: Route,
        arguments: Mapping[str, Any],
        *,
        way: QualifiedName,
        cursor: int,
        within_s: float | None,
        progress: Progress | None,
    ) -> Json:
        """For an aggregator above, on the way it stated."""
        with self._counted():
            return await self._router.dispatch(route, arguments, way=way, cursor=cursor, within_s=within_s, progress=progress)

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        """Refused while draining; else waited for when it begins."""
        self._check_open()
        self._in_flight += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._idle.set()

    def _release(self, hold: Hold) -> None:
        if self._ownership is not None:
            task = asyncio.ensure_future(self._ownership.release(hold))
            self._releasing.add(task)
            task.add_done_callback(self._releasing.discard)

    def emit(self, session_id: str, notification: Notification) -> None:
        """Pass a subserver's notification upstream, named after where it came from, as soon as its limits allow."""
        session = self.registry.get(session_id)
        if session is not None:
            self.flows.emit(session, notification)

    async def relist(self, session_id: str) -> bool:
        """A subserver says that its tools have changed. Returns whether the list is true again; of one that is gone, nothing is untrue."""
        session = self.registry.get(session_id)
        return session is None or await self._relist_one(session, CHANGED_LIST_TIMEOUT_S)

    async def _relist(self) -> None:
        """Ask every subserver at once; nobody waits for a slow one longer than the time-out, and callers share one round."""
        if self._relisting is None or self._relisting.done():
            self._relisting = asyncio.create_task(self._relist_all())
        await asyncio.shield(self._relisting)

    async def _relist_all(self) -> None:
        await asyncio.gather(*(self._relist_one(session) for session in self.registry if not session.degraded))
        self._listed_at = self._clock()

    async def _relist_one(self, session: Session, timeout_s: float = RELIST_TIMEOUT_S) -> bool:
        try:
            async with asyncio.timeout(timeout_s):
                await self.registry.relist(session.id)
            return True
        except Exception as error:  # whatever one subserver does, the others are listed
            log.warning("relist_failed", segment=session.segment, session=session.id, error=str(error) or type(error).__name__)
            return False

    async def run(self) -> None:
        """Keep presence true until cancelled."""
        while True:
            self._sooner.clear()
            due_s = self.registry.sweep()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(due_s if due_s is not None else IDLE_SWEEP_S, IDLE_SWEEP_S)):
                    await self._sooner.wait()

    async def close(self, drain_s: float = 5.0) -> None:
        """Take no new calls, let the running ones finish, then close the subservers."""
        self._draining = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(drain_s):
                await self._idle.wait()
        sessions = list(self.registry)
        for session in sessions:
            self.registry.deregister(session.id)
        self.flows.close()
        self.notifier.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await asyncio.gather(*(session.subserver.close() for session in sessions), *self._releasing, return_exceptions=True)

    def _check_open(self) -> None:
        if self._draining:
            raise Fault(ErrorKind.SERVER_DRAINING, "The gateway is shutting down.", outcome=Outcome.NOT_EXECUTED, retry_after_ms=5000)


def _now() -> datetime:
    return datetime.now(UTC)
