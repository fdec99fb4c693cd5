"""Who is registered: segments, sessions, heartbeats, presence. One set of rules for boards and remote children.

Presence goes active → degraded → removed. Time comes from outside: `sweep` is called by whoever owns the clock, and says when it wants to
be called next. Knows nothing of tool names beyond handing a session's tools on (see `catalog`), and nothing of transports.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import structlog

from mcpax.capability import AuthScope, LatencyClass
from mcpax.core.admission import Bid, check_segment_of, check_subtree, check_takeover, check_tools
from mcpax.core.budget import BudgetMeter
from mcpax.core.ownership import Claim, Hold, Ownership
from mcpax.core.principal import LOCAL, Principal
from mcpax.core.registration import MISSED_HEARTBEATS, Budget, RegistrationRequest, RegistrationResponse
from mcpax.core.subserver import Subserver, Tool
from mcpax.errors import ErrorKind, Fault
from mcpax.names import MAX_NAME_CHARS, dotted

log = structlog.get_logger("mcpax.registry")

GRACE_S = 300.0
"""How long degraded tools stay listed (draft §13.2)."""

Vouch = Callable[[RegistrationRequest, Principal, bool], str | None]
"""Judge the authority that a request claims: (request, who, whether its tools change anything). Returns the one that is accepted, None for
no claim, or raises `Fault`."""


@dataclass(slots=True)
class Session:
    """One registration, from `register` to removal."""

    id: str
    request: RegistrationRequest
    subserver: Subserver
    tools: tuple[Tool, ...]
    meter: BudgetMeter
    registered_at: datetime
    last_heard: float
    degraded_at: float | None = None
    degraded_since: datetime | None = None
    degraded_reason: str = ""
    calls: int = field(default=0)
    left: bool = False
    """It was deregistered: it is gone because somebody said so, and not lost."""
    principal: Principal = LOCAL
    subtree_ids: frozenset[str] = frozenset()
    hold: Hold | None = None
    fence: int = 0
    """Of its hold, here or at the replica that has it."""
    authority: str | None = None
    """The one that was accepted; None: nothing was claimed, or nothing proven."""
    slowed_to: LatencyClass = LatencyClass.REALTIME
    """The quickest class that the way to it allows, as measured."""

    @property
    def scope(self) -> AuthScope:
        """The most that may be asked of its tools: what it registered for, within what its principal has."""
        return self.request.auth_scope.at_most(self.principal.scope)

    @property
    def segment(self) -> str:
        return self.request.segment

    @property
    def degraded(self) -> bool:
        return self.degraded_at is not None


class RegistryListener:
    """What the registry tells; the catalog listens."""

    def added(self, session: Session) -> None: ...

    def changed(self, session: Session) -> None: ...

    def removed(self, session: Session) -> None: ...


class Listeners(RegistryListener):
    """Several as one, told in the order given."""

    def __init__(self, *listeners: RegistryListener) -> None:
        self._listeners = listeners

    def added(self, session: Session) -> None:
        for listener in self._listeners:
            listener.added(session)

    def changed(self, session: Session) -> None:
        for listener in self._listeners:
            listener.changed(session)

    def removed(self, session: Session) -> None:
        for listener in self._listeners:
            listener.removed(session)


class Registry:
    def __init__(
        self,
        segment: str,
        listener: RegistryListener,
        *,
        clock: Callable[[], float],
        now: Callable[[], datetime],
        budget: Budget | None = None,
        grace_s: float = GRACE_S,
        own_id: str = "",
        ownership: Ownership | None = None,
        vouch: Vouch | None = None,
        released: Callable[[Hold], None] = lambda _: None,
    ) -> None:
        """`own_id`: this aggregator's, which must never appear below it. `released` is told of every hold that a session leaves behind."""
        self._own_id = own_id
        self._ownership = ownership
        self._vouch = vouch
        self._released = released
        self._segment = segment
        self._listener = listener
        self._clock = clock
        self._now = now
        self._budget = budget or Budget()
        self._grace_s = grace_s
        self._by_segment: dict[str, Session] = {}
        self._by_id: dict[str, Session] = {}

    def __iter__(self) -> Iterator[Session]:
        return iter(tuple(self._by_segment.values()))

    def get(self, session_id: str) -> Session | None:
        return self._by_id.get(session_id)

    async def register(self, request: RegistrationRequest, subserver: Subserver, principal: Principal = LOCAL) -> RegistrationResponse:
        """Take a subserver in, with a fresh listing of its tools. The same subserver coming back takes its segment over."""
        self._check_place(request, principal, None)
        tools = self._checked(await subserver.list_tools(), request)
        authority = self._judged(request, principal, tools)
        hold = await self._claim(request, principal, authority)
        fence = request.fence if hold is None else hold.fence
        try:
            self._check_place(request, principal, fence)
        except Fault:
            self._let_go(hold)
            raise
        session = Session(
            id=secrets.token_hex(16),
            request=request,
            subserver=subserver,
            tools=tools,
            meter=BudgetMeter(self._budget),
            registered_at=self._now(),
            last_heard=self._clock(),
            principal=principal,
            subtree_ids=request.subtree_ids,
            hold=hold,
            fence=fence,
            authority=authority,
        )
        for previous in self._displaced_by(request):
            self._drop(previous)
        self._take_over(session)
        self._by_segment[session.segment] = session
        self._by_id[session.id] = session
        self._listener.added(session)
        log.info(
            "registered",
            segment=session.segment,
            session=session.id,
            tools=len(tools),
            transport=request.transport_class,
            principal=principal.name,
        )
        return RegistrationResponse(session.segment, session.id, request.heartbeat_deadline_ms, self._budget)

    def _judged(self, request: RegistrationRequest, principal: Principal, tools: Sequence[Tool]) -> str | None:
        """The authority that is accepted for these tools, or `Fault`."""
        if self._vouch is None:
            return request.authority
        return self._vouch(request, principal, any(tool.capability.mutable for tool in tools))

    async def _claim(self, request: RegistrationRequest, principal: Principal, authority: str | None) -> Hold | None:
        if self._ownership is None or not principal.claims:
            return None
        return await self._ownership.claim(Claim(request.subserver_id, request.segment, authority), self._lost)

    def _lost(self, hold: Hold) -> None:
        """Another aggregator serves it now, or may: ours ends at once."""
        for session in self:
            if session.hold == hold:
                self.degrade(session.id, "ownership_lost")

    def _check_place(self, request: RegistrationRequest, principal: Principal, fence: int | None) -> None:
        """May it take this place? Asked before its tools are listed, and again after, when its fence is known: another may have come."""
        check_segment_of(principal, request.segment)
        check_subtree(request.subtree_ids, self._own_id, self._others(request.subserver_id))
        for session in self._displaced_by(request):
            check_takeover(Bid(session.request, session.principal, session.fence), Bid(request, principal, fence))

    def _displaced_by(self, request: RegistrationRequest) -> list[Session]:
        return [each for each in self if each.request.subserver_id == request.subserver_id or each.segment == request.segment]

    def _others(self, subserver_id: str) -> frozenset[str]:
        """Every aggregator that is below another subserver than this. Those that cannot be reached may be elsewhere by now."""
        others = (each for each in self if each.request.subserver_id != subserver_id and not each.degraded)
        return frozenset[str]().union(*(each.subtree_ids for each in others))

    def heartbeat(self, session_id: str) -> None:
        session = self._known(session_id)
        if not self.owns(session):
            raise Fault(ErrorKind.UNKNOWN_SESSION, "This session's place may be another's by now.", hint="Register again.")
        if session.degraded and session.subtree_ids & self._others(session.request.subserver_id):
            self._drop(session)  # part of what was below it has found another place meanwhile
            self._known(session_id)
        session.last_heard = self._clock()
        if session.degraded:
            session.degraded_at = session.degraded_since = None
            session.degraded_reason = ""
            self._listener.changed(session)
            log.info("recovered", segment=session.segment, session=session_id)

    def owns(self, session: Session) -> bool:
        """Whether it is certainly ours to serve. Asked before every call."""
        return session.hold is None or self._ownership is None or self._ownership.check(session.hold)

    def degrade(self, session_id: str, reason: str) -> None:
        """Its link is gone: keep the tools listed for the grace period, but say so. Another replica may have it meanwhile."""
        session = self._by_id.get(session_id)
        if session is None or session.degraded:
            return
        session.degraded_at = self._clock()
        session.degraded_since = self._now()
        session.degraded_reason = reason
        self._listener.changed(session)
        log.warning("degraded", segment=session.segment, session=session_id, reason=reason, grace_s=self._grace_s)
        self._let_go(session.hold)

    def subtree_ids(self) -> frozenset[str]:
        """Every aggregator below this one, and itself. Those that cannot be reached may be elsewhere by now."""
        return frozenset({self._own_id}).union(*(session.subtree_ids for session in self if not session.degraded))

    def _take_over(self, session: Session) -> None:
        """Whoever is below a session now is no longer below one that cannot be reached (draft §13.3)."""
        for lost in self:
            if lost.degraded and lost is not session and lost.subtree_ids & session.subtree_ids:
                self._drop(lost)
                log.warning("removed", segment=lost.segment, session=lost.id, reason="moved")

    def update_subtree(self, session_id: str, ids: frozenset[str]) -> None:
        """An aggregator below tells anew who is below it. One that has us below itself is taken out at once (draft §5.3)."""
        session = self._known(session_id)
        if ids == session.subtree_ids:
            return
        try:
            check_subtree(ids, self._own_id, self._others(session.request.subserver_id))
        except Fault as fault:
            if fault.kind is ErrorKind.REGISTRATION_CYCLE:
                self._drop(session)
                log.warning("removed", segment=session.segment, session=session_id, reason="registration_cycle")
            raise
        session.subtree_ids = ids
        self._take_over(session)
        self._listener.changed(session)

    def slowed(self, session_id: str, floor: LatencyClass) -> None:
        """The way to it was measured: its tools are at least this slow. Never taken back within a session."""
        session = self._by_id.get(session_id)
        if session is not None and session.slowed_to.at_least(floor) is not session.slowed_to:
            session.slowed_to = floor
            self._listener.changed(session)
            log.info("slowed", segment=session.segment, session=session_id, latency_class=str(floor))

    def deregister(self, session_id: str) -> None:
        session = self._known(session_id)
        session.left = True
        self._drop(session)
        log.info("deregistered", session=session_id)

    async def relist(self, session_id: str) -> None:
        """Ask again what tools there are; called when the merged list has aged."""
        session = self._known(session_id)
        tools = self._checked(await session.subserver.list_tools(), session.request)
        if session.authority is None:
            self._judged(session.request, session.principal, tools)  # again: they may do more than those it came with
        if tools != session.tools and self._by_id.get(session_id) is session:
            session.tools = tools
            self._listener.changed(session)

    def sweep(self) -> float | None:
        """Degrade the silent, remove the long degraded. Returns seconds to the next time something is due, if anything is."""
        now = self._clock()
        due: list[float] = []
        for session in tuple(self._by_segment.values()):
            deadline_s = session.request.heartbeat_deadline_ms / 1000
            if not session.degraded and deadline_s and now >= session.last_heard + deadline_s:
                self.degrade(session.id, "heartbeat_timeout")
            if session.degraded_at is not None:
                gone_at = self._gone_at(session, session.degraded_at)
                if now >= gone_at:
                    self._drop(session)
                    log.warning("removed", segment=session.segment, session=session.id, reason=session.degraded_reason)
                    continue
                due.append(gone_at)
            elif deadline_s:
                due.append(session.last_heard + deadline_s)
        return max(0.0, min(due) - now) if due else None

    def _gone_at(self, session: Session, degraded_at: float) -> float:
        """A lost board stays listed for the grace period. A lost aggregator's subtree may be coming back elsewhere in the tree, which must
        agree about it within three heartbeats (draft §13.3): two after its link broke, or when the third is missed."""
        grace_ends = degraded_at + self._grace_s
        interval_s = session.request.heartbeat_interval_ms / 1000
        if not (session.request.is_aggregator and interval_s):
            return grace_ends
        missed_at = session.last_heard + MISSED_HEARTBEATS * interval_s
        return min(grace_ends, missed_at, degraded_at + (MISSED_HEARTBEATS - 1) * interval_s)

    def _known(self, session_id: str) -> Session:
        session = self._by_id.get(session_id)
        if session is None:
            raise Fault(ErrorKind.UNKNOWN_SESSION, "No such session.", hint="Register again: sessions end when heartbeats are missed.")
        return session

    def _drop(self, session: Session) -> None:
        self._by_id.pop(session.id, None)
        if self._by_segment.get(session.segment) is session:
            del self._by_segment[session.segment]
        self._listener.removed(session)
        self._let_go(session.hold)

    def _let_go(self, hold: Hold | None) -> None:
        if hold is not None:
            self._released(hold)

    def _checked(self, tools: Sequence[Tool], request: RegistrationRequest) -> tuple[Tool, ...]:
        if request.is_aggregator:
            tools = self._short_enough(tools, request)
        check_tools(tools, request, self._segment)
        return tuple(tools)

    def _short_enough(self, tools: Sequence[Tool], request: RegistrationRequest) -> Sequence[Tool]:
        """Without those whose names are too long here. An aggregator cannot know that, and one subserver must not silence its others."""
        room = MAX_NAME_CHARS - len(dotted((self._segment, request.segment, "")))
        kept = [tool for tool in tools if len(dotted(tool.path)) <= room]
        if len(kept) < len(tools):
            reason = f"their names have more than {MAX_NAME_CHARS} characters here"
            log.warning("tools_left_out", segment=request.segment, count=len(tools) - len(kept), reason=reason)
        return kept
