"""The parent's end of one link: registrations, heartbeats and news come in, calls go out.

A session belongs to the link that opened it: nobody who learns its id can speak for it. When the link ends, whoever waits for an answer is
told first; only then does the namespace change. Knows nothing of how the link came about, nor of who proved what.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import structlog
from msgspec import Raw

from mcpax.capability import LatencyClass
from mcpax.core.aggregator import Aggregator
from mcpax.core.notify import LIST_CHANGED
from mcpax.core.principal import Principal
from mcpax.core.registration import SUBTREE_IDS, RegistrationRequest, parse_subtree_ids
from mcpax.core.subserver import Json, Notification, Progress
from mcpax.errors import ErrorKind, Fault
from mcpax.link import messages
from mcpax.link.answerer import Answerer
from mcpax.link.caller import Caller
from mcpax.link.connection import read
from mcpax.link.messages import Direction
from mcpax.link.remote import RemoteSubserver
from mcpax.link.wire import Wire
from mcpax.nesting import MAX_DEPTH, too_deep

REGISTER_S = 10.0
"""A child that asks to be registered and then does not list its tools in this time is refused."""
MAX_REGISTRATIONS = 256
RELIST_EVERY_S = 0.05
"""A child whose list changes all the time is asked no more often than this."""
RELIST_AGAIN_S = 0.5
"""After it could not be listed. It told of a change once, and does not tell again."""
RELIST_PAUSE = 4
"""Times as long as listing took; a long list that changes all the time takes a fifth of our time at most."""
AGGREGATOR_ID = "x-mcpax-aggregator-id"


class _SessionParams(msgspec.Struct, rename={"subtree_ids": SUBTREE_IDS}):
    session_id: str
    subtree_ids: list[str] | None = None


@dataclass(slots=True)
class _Registered:
    remote: RemoteSubserver
    segment: str
    stale: bool = False
    relisting: asyncio.Task[None] | None = None
    measuring: asyncio.Task[None] | None = None


class ParentEnd:
    def __init__(self, aggregator: Aggregator, wire: Wire, principal: Principal, clock: Callable[[], float]) -> None:
        self._aggregator = aggregator
        self._wire = wire
        self._principal = principal
        self._clock = clock
        self._sessions: dict[str, _Registered] = {}
        self._registering = 0
        self._log = structlog.get_logger("mcpax.link").bind(child=principal.name)
        self._down = Caller(Direction.DOWN, wire.send)
        self._up = Answerer(
            Direction.UP,
            wire.send,
            {
                "mcpax/register": self._register,
                "mcpax/heartbeat": self._heartbeat,
                "mcpax/deregister": self._deregister,
                "mcpax/identity": self._identity,
            },
            self._notified,
        )

    async def run(self) -> str:
        """Until the link ends; returns why."""
        reason = "stopped"
        try:
            reason = await read(self._wire, {Direction.UP: self._up, Direction.DOWN: self._down})
        finally:
            self._down.close(reason)
            self._up.close()
            # Those who wait run before this goes on: a failed call must not find a changed namespace first.
            await asyncio.sleep(0)
            for session_id, registered in self._sessions.items():
                for task in (registered.relisting, registered.measuring):
                    if task is not None:
                        task.cancel()
                self._aggregator.degrade(session_id, "link_lost")
            self._log.info("link_ended", reason=reason, registrations=len(self._sessions))
        return reason

    async def _register(self, params: Raw, _: Progress) -> Json:
        try:
            request = RegistrationRequest.parse(messages.read(params, dict[str, Any]))
            if len(self._sessions) + self._registering >= MAX_REGISTRATIONS:
                raise Fault(ErrorKind.INVALID_PARAMS, f"{MAX_REGISTRATIONS} registrations are the most that one link may have.")
            self._registering += 1
            try:
                async with asyncio.timeout(REGISTER_S):
                    return await self._take_in(request)
            except TimeoutError:
                raise Fault(ErrorKind.DEVICE_TIMEOUT, f"Its tools were not listed within {REGISTER_S:g} s.") from None
            finally:
                self._registering -= 1
        except Fault as fault:
            self._log.warning("registration_refused", error=fault.kind.wire_name, problem=fault.message)
            raise

    async def _take_in(self, request: RegistrationRequest) -> Json:
        remote = RemoteSubserver(self._down, request, self._clock)
        parent = await remote.parent_id()
        if parent not in (None, self._aggregator.id):
            raise Fault(ErrorKind.REGISTERED_ELSEWHERE, "This subserver says that it has another parent.", retry_after_ms=5000)
        response = await self._aggregator.register(request, remote, self._principal)
        self._forget_replaced()
        self._sessions[response.session_id] = _Registered(remote, response.assigned_segment)
        self._measure(response.session_id)
        return {**response.to_json(), AGGREGATOR_ID: self._aggregator.id}

    def _forget_replaced(self) -> None:
        self._sessions = {each: known for each, known in self._sessions.items() if self._aggregator.registry.get(each) is not None}

    async def _heartbeat(self, params: Raw, _: Progress) -> Json:
        told = messages.read(params, _SessionParams)
        self._known(told.session_id)
        ids = None if told.subtree_ids is None else parse_subtree_ids(told.subtree_ids)
        self._aggregator.heartbeat(told.session_id)  # first: it lives, also where what it says of its subtree is refused
        if ids is not None:
            self._aggregator.registry.update_subtree(told.session_id, ids)
        self._measure(told.session_id)
        return {}

    async def _deregister(self, params: Raw, _: Progress) -> Json:
        told = messages.read(params, _SessionParams)
        self._known(told.session_id)
        del self._sessions[told.session_id]
        self._aggregator.deregister(told.session_id)
        return {}

    async def _identity(self, _params: Raw, _: Progress) -> Json:
        return {AGGREGATOR_ID: self._aggregator.id}

    def _known(self, session_id: str) -> _Registered:
        registered = self._sessions.get(session_id)
        if registered is None:
            elsewhere = self._aggregator.registry.get(session_id) is not None
            self._log.warning("session_refused", session=session_id[:64], reason="another link's" if elsewhere else "there is none")
            raise Fault(ErrorKind.UNKNOWN_SESSION, "No such session on this link.", hint="Register again.")
        return registered

    # --- news from the child

    def _notified(self, method: str, params: Raw) -> None:
        try:
            told = messages.read(params, dict[str, Any])
        except Fault:
            return
        if too_deep(told):
            self._log.warning("notification_refused", method=method[:100], problem=f"nested more than {MAX_DEPTH} deep")
            return
        if method == LIST_CHANGED.method:
            for session_id in self._sessions:
                self._relist(session_id)
            return
        source = told.get("x-mcpax-source")
        segment = source.partition(".")[0] if isinstance(source, str) else None
        for session_id, registered in self._sessions.items():
            if segment == registered.segment or len(self._sessions) == 1:
                self._aggregator.emit(session_id, Notification(method, told))
                return

    def _relist(self, session_id: str) -> None:
        registered = self._sessions[session_id]
        registered.stale = True
        if registered.relisting is None or registered.relisting.done():
            registered.relisting = asyncio.ensure_future(self._relist_while_stale(session_id, registered))

    async def _relist_while_stale(self, session_id: str, registered: _Registered) -> None:
        while registered.stale:
            registered.stale = False
            started = self._clock()
            if await self._aggregator.relist(session_id):
                await asyncio.sleep(max(RELIST_EVERY_S, RELIST_PAUSE * (self._clock() - started)))
            else:
                registered.stale = True
                await asyncio.sleep(RELIST_AGAIN_S)

    # --- how far away it is

    def _measure(self, session_id: str) -> None:
        registered = self._sessions[session_id]
        if registered.measuring is None or registered.measuring.done():
            registered.measuring = asyncio.ensure_future(self._measured(session_id, registered.remote))

    async def _measured(self, session_id: str, remote: RemoteSubserver) -> None:
        with contextlib.suppress(Fault):  # the link's end says more
            self._aggregator.registry.slowed(session_id, floor_for(await remote.ping()))


def floor_for(round_trip_s: float) -> LatencyClass:
    """The quickest class of which the way alone takes less than half the time (draft §9.2)."""
    for latency_class in LatencyClass:
        if latency_class.timeout_s is None or round_trip_s < latency_class.timeout_s / 2:
            return latency_class
    return LatencyClass.BATCH
