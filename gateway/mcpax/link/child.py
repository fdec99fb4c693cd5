"""The child's end of one link: registers, stays registered, tells what changes, and answers calls.

Knows nothing of how the link came about nor of what to do when it ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
from msgspec import Raw

from mcpax.core.aggregator import Aggregator
from mcpax.core.notify import LIST_CHANGED
from mcpax.core.registration import MISSED_HEARTBEATS
from mcpax.core.source import SOURCE
from mcpax.core.subserver import Json, Notification, Progress
from mcpax.errors import ErrorKind, Fault
from mcpax.link import messages, tree
from mcpax.link.answerer import Answerer
from mcpax.link.caller import Caller
from mcpax.link.connection import read
from mcpax.link.introduction import Introduction, LinkRefused, Parentage
from mcpax.link.messages import Direction
from mcpax.link.news import News
from mcpax.link.registrations import Registrations
from mcpax.link.view import CallParams
from mcpax.link.wire import Wire

REGISTER_S = 20.0
GOING_AWAY = (ErrorKind.LINK_LOST.value.code, ErrorKind.SERVER_DRAINING.value.code)


class _ListParams(msgspec.Struct, rename={"meta": "_meta"}):
    cursor: str | None = None
    meta: dict[str, object] = {}


class _StatusParams(msgspec.Struct):
    ask_s: float = tree.ASK_S


class ChildEnd:
    def __init__(self, aggregator: Aggregator, wire: Wire, introduction: Introduction, parentage: Parentage) -> None:
        self._aggregator = aggregator
        self._wire = wire
        self._introduction = introduction
        self._parentage = parentage
        self._news = News()
        self._up = Caller(Direction.UP, wire.send)
        self._registrations = Registrations(aggregator, self._up, introduction)
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
        unsubscribe = self._aggregator.notifier.subscribe(self._news.hear)
        reading = asyncio.ensure_future(read(self._wire, {Direction.UP: self._up, Direction.DOWN: self._down}))
        serving = asyncio.ensure_future(self._serve(registered))
        reason = "stopped"
        try:
            await asyncio.wait((reading, serving), return_when=asyncio.FIRST_COMPLETED)
            reason = (reading if reading.done() else serving).result()
            return reason
        finally:
            unsubscribe()
            if self._parentage.parent_id == self._registrations.parent_id:
                self._parentage.parent_id = None
            self._up.close(reason)
            self._down.close()
            for task in (reading, serving):
                task.cancel()
            await asyncio.gather(reading, serving, return_exceptions=True)

    async def leave(self) -> None:
        """Deregister for good; calls under way are still answered."""
        await self._registrations.leave()

    # --- upward

    async def _serve(self, registered: Callable[[], None]) -> str:
        try:
            async with asyncio.timeout(REGISTER_S):
                await self._registrations.start()
        except TimeoutError:
            return f"the parent did not register us within {REGISTER_S:g} s"
        except Fault as fault:
            if fault.code in GOING_AWAY:
                return fault.message  # which says nothing of how it is when it comes back
            raise LinkRefused.by(fault) from None
        if not self._introduction.among_replicas:
            self._parentage.parent_id = self._registrations.parent_id
        registered()
        beating = asyncio.ensure_future(self._beat())
        telling = asyncio.ensure_future(self._news.tell_all(self._tell))
        following = asyncio.ensure_future(self._registrations.follow())
        work = (beating, telling, following)
        try:
            done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
            done.pop().result()
        except TimeoutError:
            return "the parent does not answer heartbeats"
        except Fault as fault:
            return f"the parent refuses us: {fault.message}"
        finally:
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)
        return "stopped"

    async def _beat(self) -> None:
        interval_s = self._introduction.heartbeat_s
        while True:
            await asyncio.sleep(interval_s)
            async with asyncio.timeout(MISSED_HEARTBEATS * interval_s):
                await self._registrations.beat()

    async def _tell(self, notification: Notification) -> None:
        if self._registrations.leaving:
            return
        if notification == LIST_CHANGED and not await self._registrations.beat():  # who is below may have changed with the list
            self._registrations.when_agreed(lambda: self._news.hear(LIST_CHANGED))
            return
        params = notification.params
        if SOURCE in params:
            if not self._shows(str(params[SOURCE])):
                return
            params = {**params, SOURCE: self._known_as(str(params[SOURCE]))}
        await self._up.notify(notification.method, params)

    def _shows(self, source: str) -> bool:
        """What another replica told us is not told back to it."""
        if not self._introduction.among_replicas:
            return True
        segment = source.partition(".")[2].partition(".")[0]
        return any(each.segment == segment and self._registrations.shows(each) for each in self._aggregator.registry)

    def _known_as(self, source: str) -> str:
        """As the parent knows us: by the segment we registered under, or not at all."""
        below = source.partition(".")[2]
        return below if self._introduction.each_on_its_own else ".".join(filter(None, (self._introduction.segment, below)))

    # --- downward

    async def _list(self, params: Raw, _: Progress) -> Json:
        told = messages.read(params, _ListParams)
        return self._registrations.view(str(told.meta.get("x-mcpax-registration", ""))).page(told.cursor)

    async def _call(self, params: Raw, progress: Progress) -> Json:
        told = messages.read(params, CallParams)
        return await self._registrations.view(told.meta.registration).call(told, progress)

    async def _pong(self, _params: Raw, _: Progress) -> Json:
        return {}

    async def _parent(self, _params: Raw, _: Progress) -> Json:
        return {"parent_id": None if self._introduction.among_replicas else self._parentage.parent_id}

    async def _status(self, params: Raw, _: Progress) -> Json:
        ask_s = messages.read(params, _StatusParams).ask_s
        return await tree.tree(self._aggregator, max(tree.MIN_ASK_S, min(ask_s, tree.ASK_S)))
