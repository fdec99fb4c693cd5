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

from mcpax.core.budget import BudgetMeter
from mcpax.core.registration import Budget, RegistrationRequest, RegistrationResponse
from mcpax.core.subserver import Subserver, Tool
from mcpax.errors import ErrorKind, Fault
from mcpax.names import InvalidName, qualified

log = structlog.get_logger("mcpax.registry")

GRACE_S = 300.0
"""How long degraded tools stay listed (draft §13.2)."""
MAX_TOOLS_PER_SUBSERVER = 4096


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
    ) -> None:
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

    async def register(self, request: RegistrationRequest, subserver: Subserver) -> RegistrationResponse:
        """Take a subserver in, with a fresh listing of its tools. The same subserver coming back takes its segment over."""
        self._check_conflict(request)
        tools = self._checked(await subserver.list_tools(), request)
        self._check_conflict(request)  # again: another may have come while the tools were listed
        session = Session(
            id=secrets.token_hex(16),
            request=request,
            subserver=subserver,
            tools=tools,
            meter=BudgetMeter(self._budget),
            registered_at=self._now(),
            last_heard=self._clock(),
        )
        for previous in self:
            if previous.request.subserver_id == request.subserver_id:
                self._drop(previous)
        self._by_segment[session.segment] = session
        self._by_id[session.id] = session
        self._listener.added(session)
        log.info("registered", segment=session.segment, session=session.id, tools=len(tools), transport=request.transport_class)
        return RegistrationResponse(session.segment, session.id, request.heartbeat_deadline_ms, self._budget)

    def _check_conflict(self, request: RegistrationRequest) -> None:
        """First come, first served. The answer must not name the holder: by its id the segment could be taken over."""
        holder = self._by_segment.get(request.segment)
        if holder is None or holder.request.subserver_id == request.subserver_id:
            return
        raise Fault(
            ErrorKind.NAMESPACE_CONFLICT,
            f"namespace_conflict: segment {request.segment!r} is held by another subserver.",
            hint="The first to register keeps a segment. Choose another one.",
            details={"segment": request.segment},
        )

    def heartbeat(self, session_id: str) -> None:
        session = self._known(session_id)
        session.last_heard = self._clock()
        if session.degraded:
            session.degraded_at = session.degraded_since = None
            session.degraded_reason = ""
            self._listener.changed(session)
            log.info("recovered", segment=session.segment, session=session_id)

    def degrade(self, session_id: str, reason: str) -> None:
        """Its link is gone: keep the tools listed for the grace period, but say so."""
        session = self._by_id.get(session_id)
        if session is None or session.degraded:
            return
        session.degraded_at = self._clock()
        session.degraded_since = self._now()
        session.degraded_reason = reason
        self._listener.changed(session)
        log.warning("degraded", segment=session.segment, session=session_id, reason=reason, grace_s=self._grace_s)

    def deregister(self, session_id: str) -> None:
        session = self._known(session_id)
        session.left = True
        self._drop(session)
        log.info("deregistered", session=session_id)

    async def relist(self, session_id: str) -> None:
        """Ask again what tools there are; called when the merged list has aged."""
        session = self._known(session_id)
        tools = self._checked(await session.subserver.list_tools(), session.request)
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
                if now >= session.degraded_at + self._grace_s:
                    self._drop(session)
                    log.warning("removed", segment=session.segment, session=session.id, reason=session.degraded_reason)
                    continue
                due.append(session.degraded_at + self._grace_s)
            elif deadline_s:
                due.append(session.last_heard + deadline_s)
        return max(0.0, min(due) - now) if due else None

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

    def _checked(self, tools: Sequence[Tool], request: RegistrationRequest) -> tuple[Tool, ...]:
        check_tools(tools, request, self._segment)
        return tuple(tools)


def check_tools(tools: Sequence[Tool], request: RegistrationRequest, root: str) -> None:
    """The rules for names that a subserver may present (draft §4.1, §4.3)."""
    if len(tools) > MAX_TOOLS_PER_SUBSERVER:
        raise Fault(ErrorKind.INVALID_PARAMS, f"{len(tools)} tools, at most {MAX_TOOLS_PER_SUBSERVER} allowed per subserver.")
    seen = set()
    for tool in tools:
        if len(tool.path) != 1 and not request.is_aggregator:
            raise Fault(
                ErrorKind.INVALID_PARAMS,
                f"Tool {'.'.join(tool.path)!r} of {request.segment!r} has more than one level.",
                hint="Only an aggregator adds levels; a leaf server's tool names contain no dot.",
            )
        try:
            qualified((root, request.segment, *qualified(tool.path)))
        except InvalidName as error:
            raise Fault(ErrorKind.INVALID_PARAMS, f"Tool of {request.segment!r}: {error}.") from None
        if tool.path in seen:
            raise Fault(ErrorKind.INVALID_PARAMS, f"Tool {'.'.join(tool.path)!r} of {request.segment!r} is listed twice.")
        seen.add(tool.path)
