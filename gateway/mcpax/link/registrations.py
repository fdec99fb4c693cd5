"""What a child has registered over one link, and keeping it true: registering, heartbeats, and who is below.

Either the whole subtree is one registration, or every subserver has one of its own. A session that the parent no longer knows is registered
anew on the same link. Knows nothing of the wire, nor when heartbeats are due.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec
import structlog

from mcpax.core.aggregator import Aggregator
from mcpax.core.own_tools import OWN_SEGMENT
from mcpax.core.registration import SUBTREE_IDS, RegistrationRequest
from mcpax.core.registry import Session
from mcpax.core.subserver import Json
from mcpax.errors import ErrorKind, Fault, Outcome, RelayedFault
from mcpax.link import messages
from mcpax.link.caller import Caller
from mcpax.link.introduction import Introduction, LinkRefused
from mcpax.link.parent import AGGREGATOR_ID
from mcpax.link.view import View

log = structlog.get_logger("mcpax.uplink")

GOODBYE_S = 1.0


@dataclass(slots=True)
class _Registered:
    view: View
    request: RegistrationRequest
    session_id: str = ""
    disputed_since: float | None = None
    """Since when the parent knows part of what is below in another place of the tree."""


class _Answer(msgspec.Struct, rename={"aggregator_id": AGGREGATOR_ID}):
    assigned_segment: str
    session_id: str
    aggregator_id: str


class _Identity(msgspec.Struct, rename={"aggregator_id": AGGREGATOR_ID}):
    aggregator_id: str


class Registrations:
    def __init__(self, aggregator: Aggregator, up: Caller, introduction: Introduction) -> None:
        self._aggregator = aggregator
        self._up = up
        self._introduction = introduction
        self._registered: dict[str, _Registered] = {}
        """By subserver id."""
        self._refused: dict[str, str] = {}
        """Why those are not registered that should be, as last told."""
        self._missing = asyncio.Event()
        """What is registered may not be what should be."""
        self._when_agreed: Callable[[], None] | None = None
        self.leaving = False
        self.parent_id: str | None = None

    def view(self, subserver_id: str) -> View:
        """What the parent sees under a registration."""
        registered = self._registered.get(subserver_id)
        if registered is None:
            raise Fault(ErrorKind.UNKNOWN_SESSION, "Nothing is registered here under that id.", outcome=Outcome.NOT_EXECUTED)
        return registered.view

    def shows(self, session: Session) -> bool:
        """Whether it is registered by itself. The aggregator's own tools are about itself, which is not there when others stand alone."""
        return session.segment != OWN_SEGMENT and (session.principal.claims or not self._introduction.among_replicas)

    async def start(self) -> None:
        """Register what should be, for the first time. Raises `Fault`, or `LinkRefused` where asking again is no use."""
        await self._register_missing()

    async def follow(self) -> None:
        """Have registered what should be, until cancelled. Beside the heartbeats: registering takes several ways there and back, and those
        that are registered must not wait for it. Raises as `start`."""
        while True:
            await self._missing.wait()
            self._missing.clear()
            await self._register_missing()

    def when_agreed(self, act: Callable[[], None]) -> None:
        """Once, when the parent has no more to say against what is below us."""
        self._when_agreed = act

    async def beat(self) -> bool:
        """Show that everything registered lives, and who is below it; returns whether the parent agrees. Raises as `start`."""
        if self._introduction.each_on_its_own:
            self._missing.set()  # some may have come, or gone
        registered = [(subserver_id, each) for subserver_id, each in self._registered.items() if each.session_id]
        await asyncio.gather(*(self._beat_for(subserver_id, each) for subserver_id, each in registered))
        agreed = all(each.disputed_since is None for _, each in registered)
        if agreed and self._when_agreed is not None:
            act, self._when_agreed = self._when_agreed, None
            act()
        return agreed

    async def leave(self) -> None:
        """Say goodbye, so that the parent need not wait for us. Never fails: who is not heard is missed soon enough."""
        self.leaving = True
        with contextlib.suppress(Fault, TimeoutError):
            async with asyncio.timeout(GOODBYE_S):
                await asyncio.gather(*(self._deregister(subserver_id) for subserver_id in tuple(self._registered)))

    # --- registering

    async def _register_missing(self) -> None:
        if self.leaving:
            return
        if not self._introduction.each_on_its_own:
            if not self._registered:
                await self._register(self._request_for_subtree(), None)
            return
        here = {each.request.subserver_id: each for each in self._aggregator.registry if self.shows(each)}
        for subserver_id in self._registered.keys() - here.keys():
            with contextlib.suppress(RelayedFault):  # it may be gone there, too
                await self._deregister(subserver_id)
        wanted = []
        for subserver_id, session in here.items():
            request = self._request_for(session)
            known = self._registered.get(subserver_id)
            if known is None or replace(known.request, subtree_ids=request.subtree_ids) != request:
                wanted.append(request)
        await asyncio.gather(*(self._register_one_of_many(request) for request in wanted))

    def _request_for_subtree(self) -> RegistrationRequest:
        told = self._introduction
        return RegistrationRequest(
            told.subserver_id,
            told.segment,
            "native",
            heartbeat_interval_ms=told.heartbeat_ms,
            authority=told.authority,
            capabilities=frozenset({"tools", "notifications"}),
            is_aggregator=True,
            subtree_ids=self._aggregator.registry.subtree_ids(),
        )

    def _request_for(self, session: Session) -> RegistrationRequest:
        told = self._introduction
        return replace(
            session.request,
            heartbeat_interval_ms=told.heartbeat_ms,
            authority=None if told.among_replicas else told.authority,
            authority_proof=None,
            subtree_ids=session.subtree_ids,
            auth_scope=session.scope,
            fence=session.fence if told.among_replicas else 0,
        )

    async def _register_one_of_many(self, request: RegistrationRequest) -> None:
        """One that is refused is no reason to do without the others; it is asked for again with the next heartbeat."""
        try:
            await self._register(request, request.segment)
        except RelayedFault as fault:
            if self._refused.get(request.subserver_id) != fault.message:
                log.warning("registration_refused", segment=request.segment, problem=fault.message)
            self._refused[request.subserver_id] = fault.message
        else:
            self._refused.pop(request.subserver_id, None)

    async def _register(self, request: RegistrationRequest, subserver: str | None) -> None:
        registered = _Registered(View(self._aggregator, request.segment, subserver), request)
        before = self._registered.get(request.subserver_id)
        self._registered[request.subserver_id] = registered  # now: the parent asks for the tools before it answers
        try:
            proven = await self._proven(request)
            answer = messages.read(await self._up.request("mcpax/register", proven.to_json()), _Answer, ErrorKind.CHILD_ERROR)
        except BaseException:
            if before is None:
                del self._registered[request.subserver_id]
            else:
                self._registered[request.subserver_id] = before
            raise
        registered.session_id = answer.session_id
        if self.leaving:
            await self._deregister(request.subserver_id)
        self.parent_id = answer.aggregator_id
        log.info("registered_upstream", segment=answer.assigned_segment, session=answer.session_id, parent=answer.aggregator_id)

    async def _proven(self, request: RegistrationRequest) -> RegistrationRequest:
        """For the right parent, and with a proof made for this very one if we have the means."""
        wanted, prove = self._introduction.parent_id, self._introduction.prove
        if wanted is None and prove is None:
            return request
        parent = messages.read(await self._up.request("mcpax/identity", {}), _Identity, ErrorKind.CHILD_ERROR).aggregator_id
        if wanted not in (None, parent):
            raise LinkRefused(f"the aggregator there is {parent}, and parent_id in [upstream] wants {wanted}")
        if prove is None or request.authority is None:
            return request
        return replace(request, authority_proof=prove(parent, request.subserver_id))

    async def _deregister(self, subserver_id: str) -> None:
        gone = self._registered.pop(subserver_id, None)
        if gone is None or not gone.session_id:
            return  # what is being registered is let go when it is
        await self._up.request("mcpax/deregister", {"session_id": gone.session_id})

    # --- staying

    async def _beat_for(self, subserver_id: str, registered: _Registered) -> None:
        if self._registered.get(subserver_id) is not registered:
            return  # it has left since
        params: Json = {"session_id": registered.session_id}
        ids = self._ids_below(subserver_id)
        if ids != registered.request.subtree_ids:
            params[SUBTREE_IDS] = sorted(ids)
        try:
            await self._up.request("mcpax/heartbeat", params)
            registered.request = replace(registered.request, subtree_ids=ids)
            registered.disputed_since = None
        except RelayedFault as fault:
            if self._registered.get(subserver_id) is not registered:
                return  # it has left, or is being registered anew, and its session ended with that
            if fault.kind is ErrorKind.UNKNOWN_SESSION:
                del self._registered[subserver_id]
                self._missing.set()
            elif fault.kind is ErrorKind.REGISTERED_ELSEWHERE:
                self._disputed(registered, fault.data().get("aggregator_ids"))
            elif fault.kind is ErrorKind.REGISTRATION_CYCLE:
                raise LinkRefused(fault.message) from None
            else:
                raise

    def _ids_below(self, subserver_id: str) -> frozenset[str]:
        """Who is below a registration just now."""
        registry = self._aggregator.registry
        if not self._introduction.each_on_its_own:
            return registry.subtree_ids()
        return frozenset[str]().union(*(each.subtree_ids for each in registry if each.request.subserver_id == subserver_id))

    def _disputed(self, registered: _Registered, elsewhere: object) -> None:
        """Part of our subtree has another place in the tree. Who has just moved here may be let go there in a moment; else we let it go."""
        now = asyncio.get_running_loop().time()
        if registered.disputed_since is None:
            registered.disputed_since = now
        elif now - registered.disputed_since >= self._introduction.heartbeat_s / 2:
            self._let_go_of(elsewhere)

    def _let_go_of(self, elsewhere: object) -> None:
        """We came later."""
        ids = {each for each in elsewhere if isinstance(each, str)} if isinstance(elsewhere, list) else set()
        for session in self._aggregator.registry:
            if session.subtree_ids & ids:
                log.warning("given_up", segment=session.segment, session=session.id, reason="registered elsewhere in the tree")
                self._aggregator.deregister(session.id)
