"""The notifications of all subservers, each in a flow of its own, and the timers that let pass what had to wait.

A flow belongs to a place in the namespace and outlives the session there, so that coming back is no way around the limits and what was
dropped stays counted; only so many of those left behind are remembered. Does not know who listens above, nor how flows decide.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from mcpax.core.flow import DEFAULT_LIMITS, MIN_WAIT_S, Flow, FlowLimits
from mcpax.core.registry import RegistryListener, Session
from mcpax.core.source import SOURCE, source_of
from mcpax.core.subserver import Notification
from mcpax.names import dotted

LEFT_REMEMBERED = 256
"""Flows whose session has ended. When the oldest is forgotten, its count stays in the total."""


@dataclass(frozen=True, slots=True)
class FlowCount:
    source: str
    dropped: int
    buffered: int


class Flows(RegistryListener):
    def __init__(
        self, root: str, publish: Callable[[Notification], None], clock: Callable[[], float], limits: FlowLimits = DEFAULT_LIMITS
    ) -> None:
        self._root = root
        self._publish = publish
        self._clock = clock
        self._limits = limits
        self._flows: dict[str, Flow] = {}
        self._left: dict[str, None] = {}
        """Segments without a session, the longest left first."""
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._dropped_by_forgotten = 0

    @property
    def dropped(self) -> int:
        """Since the start, by all."""
        return self._dropped_by_forgotten + sum(flow.dropped for flow in self._flows.values())

    def counts(self) -> list[FlowCount]:
        """Each place that has dropped something or has something waiting."""
        counts = [FlowCount(flow.source, flow.dropped, flow.buffered) for flow in self._flows.values()]
        return sorted((count for count in counts if count.dropped or count.buffered), key=lambda count: count.source)

    def emit(self, session: Session, notification: Notification) -> None:
        """Pass on what a subserver tells, named after where it came from."""
        source = source_of(self._root, session.request, notification.params.get(SOURCE))
        self._offer(session, Notification(notification.method, {**notification.params, SOURCE: source}), lasting=False)

    def emit_about(self, session: Session, notification: Notification) -> None:
        """Tell something of a subserver, in line with what it told itself. The end of its session does not take it back."""
        source = dotted((self._root, session.segment))
        self._offer(session, Notification(notification.method, {**notification.params, SOURCE: source}), lasting=True)

    def added(self, session: Session) -> None:
        self._left.pop(session.segment, None)
        if session.segment not in self._flows:
            self._flows[session.segment] = Flow(dotted((self._root, session.segment)), self._limits, self._clock())

    def removed(self, session: Session) -> None:
        segment, flow = session.segment, self._flows[session.segment]
        self._stop_timer(segment)
        self._pass_on(segment, flow, flow.end(self._clock()))
        self._left[segment] = None
        if len(self._left) > LEFT_REMEMBERED:
            self._forget(next(iter(self._left)))

    def close(self) -> None:
        for segment in tuple(self._timers):
            self._stop_timer(segment)

    def _offer(self, session: Session, notification: Notification, *, lasting: bool) -> None:
        flow = self._flows[session.segment]
        self._pass_on(session.segment, flow, flow.offer(notification, self._clock(), lasting=lasting))

    def _wake(self, segment: str) -> None:
        self._timers.pop(segment, None)
        flow = self._flows[segment]
        self._pass_on(segment, flow, flow.take(self._clock()))

    def _pass_on(self, segment: str, flow: Flow, passing: list[Notification]) -> None:
        for notification in passing:
            self._publish(notification)
        wait_s = flow.wait_s(self._clock())
        if wait_s is None:
            return
        loop = asyncio.get_running_loop()
        due, timer = loop.time() + wait_s, self._timers.get(segment)
        if timer is None or timer.when() > due + MIN_WAIT_S:
            self._stop_timer(segment)
            self._timers[segment] = loop.call_at(due, self._wake, segment)

    def _stop_timer(self, segment: str) -> None:
        timer = self._timers.pop(segment, None)
        if timer is not None:
            timer.cancel()

    def _forget(self, segment: str) -> None:
        del self._left[segment]
        self._stop_timer(segment)
        flow = self._flows.pop(segment)
        self._dropped_by_forgotten += flow.dropped + flow.buffered
