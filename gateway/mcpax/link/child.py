"""The child's end of one link: registers, keeps its registrations alive, tells what changes, and answers calls.

Knows nothing of how the link came about nor of what to do when it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import msgspec
import structlog
from msgspec import Raw

from mcpax.core.aggregator import Aggregator
from mcpax.core.notify import LIST_CHANGED
from mcpax.core.registration import MISSED_HEARTBEATS, SUBTREE_IDS, RegistrationRequest
from mcpax.core.subserver import Json, Notification, Progress
from mcpax.errors import ErrorKind, Fault
from mcpax.link import tree
from mcpax.link.answerer import Answerer
from mcpax.link.caller import Caller
from mcpax.link.connection import read
from mcpax.link.messages import Direction
from mcpax.link.parent import AGGREGATOR_ID
from mcpax.link.view import CallParams, View
from mcpax.link.wire import Wire

OUTBOX_NOTIFICATIONS = 1000
"""News that wait for a slow parent; then the oldest goes. A list that changed is asked for anew, so no state is lost."""
REGISTER_S = 20.0
GOODBYE_S = 1.0
RETRY_BEATS = 12
"""After so many heartbeats, subservers that the parent refused are tried again."""


class LinkRefused(Exception):
    """The parent will not have us, and asking again soon will not help; says why."""


class Parentage:
    """Under whom this aggregator is just now. One for all links of an aggregator: it has one parent at most (draft §13.4)."""

    def __init__(self) -> None:
        self.parent_id: str | None = None


@dataclass(frozen=True, slots=True)
class Introduction:
    """How a child presents itself."""

    subserver_id: str
    segment: str
    heartbeat_s: float
    authority: str | None = None
    prove: Callable[[str, str], str] | None = None
    """Make a proof of authority for the aggregator of that id, about the subserver of that id."""
    each_on_its_own: bool = False
    """Register every subserver by itself, as if it were the parent's own (draft B.3), instead of the subtree."""


@dataclass(slots=True)
class _Registration:
    view: View
    session_id: str = ""
    told_ids: frozenset[str] = field(default_factory=frozenset)
    disputed_since: float | None = None
    """Since when the parent knows part of the subtree elsewhere."""


class _ListParams(msgspec.Struct, rename={"meta": "_meta"}):
    cursor: str | None = None
    meta: dict[str, object] = {}


class _StatusParams(msgspec.Struct):
    ask_s: float = tree.ASK_S


class _Answer(msgspec.Struct, rename={"aggregator_id": AGGREGATOR_ID}):
    assigned_segment: str
    session_id: str
    aggregator_id: str


class _Identity(msgspec.Struct, rename={"aggregator_id": AGGREGATOR_ID}):
    aggregator_id: str


class ChildEnd:
    def __init__(self, aggregator: Aggregator, wire: Wire, introduction: Introduction, parentage: Parentage) -> None:
        self._aggregator = aggregator
        self._wire = wire
        self._introduction = introduction
        self._parentage = parentage
        self._log = structlog.get_logger("mcpax.uplink")
        self._registrations: dict[str, _Registration] = {}
        """By subserver id."""
        self._news: deque[Notification] = deque(maxlen=OUTBOX_NOTIFICATIONS)
        self._wake = asyncio.Event()
        self._interval_ms = int(introduction.heartbeat_s * 1000)
        self._leaving = False
        self.parent_id: str | None = None
        self._up = Caller(Direction.UP, wire.send)
        self._down = Answerer(
            Direction.DOWN,
            wire.send,
            {
                "tools/list": self._list,
                "tools/call": self._call,
                "ping": self._pong,
                "mcpax/parent": self._parent,
                "mcpax/status": self._status,
            },
        )

    async def run(self, registered: Callable[[], None] = lambda: None) -> str:
        """Register and serve until the link ends; returns why. Raises `LinkRefused`."""
        unsubscribe = self._aggregator.notifier.subscribe(self._hear)
        reading = asyncio.ensure_future(read(self._wire, {Direction.UP: self._up, Direction.DOWN: self._down}))
        serving = asyncio.ensure_future(self._serve(registered))
        reason = "stopped"
        try:
            await asyncio.wait((reading, serving), return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                reason = reading.result()
                return reason
            reason = serving.result()
            return reason
        finally:
            unsubscribe()
            if self.parent_id is not None and self._parentage.parent_id == self.parent_id:
                self._parentage.parent_id = None
            self._up.close(reason)
            self._down.close()
            for task in (reading, serving):
                task.cancel()
            await asyncio.gather(reading, serving, return_exceptions=True)

    async def _serve(self, registered: Callable[[], None]) -> str:
        try:
            async with asyncio.timeout(REGISTER_S):
                await self._register_all()
        except TimeoutError:
            return f"the parent did not register us within {REGISTER_S:g} s"
        except Fault as fault:
            if fault.kind is ErrorKind.LINK_LOST or fault.code == ErrorKind.SERVER_DRAINING.value.code:
                return fault.message  # it goes away, which says nothing of how it is when it comes back
            raise LinkRefused(fault.text()) from None
        registered()
        beating = asyncio.ensure_future(self._beat())
        telling = asyncio.ensure_future(self._tell())
        try:
            await asyncio.wait((beating, telling), return_when=asyncio.FIRST_COMPLETED)
            done = beating if beating.done() else telling
            return done.result()
        finally:
            for task in (beating, telling):
                task.cancel()
            await asyncio.gather(beating, telling, return_exceptions=True)

    # --- upward: registering

    async def _register_all(self) -> None:
        if self._introduction.each_on_its_own:
            await self._follow_subservers()
        else:
            await self._register(self._request_for_subtree(), None)

    def _request_for_subtree(self) -> RegistrationRequest:
        told = self._introduction
        return RegistrationRequest(
            told.subserver_id,
            told.segment,
            "native",
            heartbeat_interval_ms=self._interval_ms,
            authority=told.authority,
            capabilities=frozenset({"tools", "notifications"}),
            is_aggregator=True,
            subtree_ids=self._aggregator.registry.subtree_ids(),
        )

    async def _follow_subservers(self) -> None:
        """Have registered exactly those that are here."""
        here = {session.request.subserver_id: session for session in self._aggregator.registry}
        for subserver_id in self._registrations.keys() - here.keys():
            gone = self._registrations.pop(subserver_id, None)
            if gone is not None:
                await self._deregister(gone)
        for subserver_id, session in here.items():
            if subserver_id not in self._registrations:
                request = replace(
                    session.request,
                    heartbeat_interval_ms=self._interval_ms,
                    authority=self._introduction.authority,
                    authority_proof=None,
                    subtree_ids=session.subtree_ids,
                    auth_scope=session.scope,
                )
                try:
                    await self._register(request, session.segment)
                except Fault as fault:
                    if fault.kind is ErrorKind.LINK_LOST:
                        raise
                    # The others are not to suffer for it; it is tried again later.
                    self._log.warning("refused_upstream", segment=session.segment, problem=fault.message)

    async def _register(self, request: RegistrationRequest, subserver: str | None) -> None:
        registration = _Registration(View(self._aggregator, request.segment, subserver), told_ids=request.subtree_ids)
        self._registrations[request.subserver_id] = registration
        try:
            answer = msgspec.json.decode(await self._up.request("mcpax/register", (await self._proven(request)).to_json()), type=_Answer)
        except BaseException:
            del self._registrations[request.subserver_id]
            raise
        registration.session_id = answer.session_id
        self.parent_id = self._parentage.parent_id = answer.aggregator_id
        self._log.info("registered_upstream", segment=answer.assigned_segment, session=answer.session_id, parent=answer.aggregator_id)

    async def _proven(self, request: RegistrationRequest) -> RegistrationRequest:
        """With a proof made for this very parent, if we have the means."""
        prove = self._introduction.prove
        if prove is None or request.authority is None:
            return request
        parent = msgspec.json.decode(await self._up.request("mcpax/identity", {}), type=_Identity)
        return replace(request, authority_proof=prove(parent.aggregator_id, request.subserver_id))

    async def deregister(self) -> None:
        """Say goodbye, so that the parent need not wait for us. Never fails: who is not heard is missed soon enough."""
        self._leaving = True
        with contextlib.suppress(Fault, TimeoutError):
            async with asyncio.timeout(GOODBYE_S):
                for registration in tuple(self._registrations.values()):
                    await self._deregister(registration)

    async def _deregister(self, registration: _Registration) -> None:
        try:
            await self._up.request("mcpax/deregister", {"session_id": registration.session_id})
        except Fault as fault:
            if fault.code != ErrorKind.UNKNOWN_SESSION.value.code:  # else it is gone, which is what was wanted
                raise

    # --- upward: staying

    async def _beat(self) -> str:
        interval_s = self._introduction.heartbeat_s
        beats = 0
        while True:
            await asyncio.sleep(interval_s)
            beats += 1
            try:
                async with asyncio.timeout(MISSED_HEARTBEATS * interval_s):
                    await self._beat_once()
                if self._introduction.each_on_its_own and beats % RETRY_BEATS == 0 and not self._leaving:
                    await self._follow_subservers()
            except TimeoutError:
                return "the parent does not answer heartbeats"
            except Fault as fault:
                return f"heartbeat refused: {fault.message}"

    async def _beat_once(self) -> bool:
        """Returns whether the parent agrees with all that is below us."""
        agreed = True
        for subserver_id, registration in tuple(self._registrations.items()):
            if self._leaving or not registration.session_id or self._registrations.get(subserver_id) is not registration:
                continue  # on its way in or out
            params: Json = {"session_id": registration.session_id}
            ids = self._ids_of(subserver_id)
            if ids != registration.told_ids:
                params[SUBTREE_IDS] = sorted(ids)
            try:
                await self._up.request("mcpax/heartbeat", params)
                registration.told_ids = ids
                if registration.disputed_since is not None:
                    registration.disputed_since = None
                    self._hear(LIST_CHANGED)  # which was not told while it was disputed
            except Fault as fault:
                if fault.code == ErrorKind.REGISTERED_ELSEWHERE.value.code:
                    agreed = False
                    self._disputed(registration, fault.data().get("aggregator_ids"))
                elif fault.code == ErrorKind.REGISTRATION_CYCLE.value.code:
                    raise LinkRefused(fault.message) from None
                else:
                    raise
        return agreed

    def _disputed(self, registration: _Registration, elsewhere: object) -> None:
        """Part of our subtree has another place in the tree. Who has just moved here may be let go there in a moment; else we let it go."""
        now = asyncio.get_running_loop().time()
        if registration.disputed_since is None:
            registration.disputed_since = now
        elif now - registration.disputed_since >= self._introduction.heartbeat_s / 2:
            self._give_up(elsewhere)

    def _ids_of(self, subserver_id: str) -> frozenset[str]:
        """Who is below a registration just now."""
        if not self._introduction.each_on_its_own:
            return self._aggregator.registry.subtree_ids()
        return frozenset[str]().union(
            *(session.subtree_ids for session in self._aggregator.registry if session.request.subserver_id == subserver_id)
        )

    def _give_up(self, elsewhere: object) -> None:
        """We came later."""
        if not isinstance(elsewhere, list):
            return
        for session in self._aggregator.registry:
            if session.subtree_ids & {each for each in elsewhere if isinstance(each, str)}:
                self._log.warning("given_up", segment=session.segment, session=session.id, reason="registered elsewhere in the tree")
                self._aggregator.deregister(session.id)

    # --- upward: news

    def _hear(self, notification: Notification) -> None:
        if notification == LIST_CHANGED and LIST_CHANGED in self._news:
            return
        self._news.append(notification)
        self._wake.set()

    async def _tell(self) -> str:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._news:
                try:
                    await self._tell_one(self._news.popleft())
                except Fault as fault:
                    return fault.message

    async def _tell_one(self, notification: Notification) -> None:
        if self._leaving:
            return
        if notification == LIST_CHANGED:
            if self._introduction.each_on_its_own:
                await self._follow_subservers()
            if not await self._beat_once():  # the subtree may have changed with the list
                return
        params = notification.params
        if "x-mcpax-source" in params:
            params = {**params, "x-mcpax-source": self._known_source(str(params["x-mcpax-source"]))}
        await self._up.notify(notification.method, params)

    def _known_source(self, source: str) -> str:
        """As the parent knows us: by the segment we registered under, or not at all."""
        below = source.partition(".")[2]
        return below if self._introduction.each_on_its_own else ".".join(filter(None, (self._introduction.segment, below)))

    # --- downward

    async def _list(self, params: Raw, _: Progress) -> Json:
        told = msgspec.json.decode(params, type=_ListParams)
        return self._view(str(told.meta.get("x-mcpax-registration", ""))).page(told.cursor)

    async def _call(self, params: Raw, progress: Progress) -> Json:
        told = msgspec.json.decode(params, type=CallParams)
        return await self._view(told.meta.registration).call(told, progress)

    def _view(self, subserver_id: str) -> View:
        registration = self._registrations.get(subserver_id)
        if registration is None:
            raise Fault(ErrorKind.UNKNOWN_SESSION, "Nothing is registered here under that id.")
        return registration.view

    async def _pong(self, _params: Raw, _: Progress) -> Json:
        return {}

    async def _parent(self, _params: Raw, _: Progress) -> Json:
        return {"parent_id": self._parentage.parent_id}

    async def _status(self, params: Raw, _: Progress) -> Json:
        ask_s = msgspec.json.decode(params, type=_StatusParams).ask_s
        return await tree.tree(self._aggregator, max(tree.MIN_ASK_S, min(ask_s, tree.ASK_S)))
