"""Telling those above what happened below: list changes, coalesced, and subservers' own notifications, in order.

Knows nothing of sessions, clients or transports; whoever wants to hear subscribes a callback.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from mcpax.core.subserver import Notification

log = structlog.get_logger("mcpax.notify")

COALESCE_S = 0.05
"""Changes closer together than this are told once: a board that flaps must not cause a storm."""

LIST_CHANGED = Notification("notifications/tools/list_changed")

Listener = Callable[[Notification], None]


class Notifier:
    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._pending: asyncio.TimerHandle | None = None

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Returns the way to unsubscribe."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def list_changed(self) -> None:
        if self._pending is None:
            self._pending = asyncio.get_running_loop().call_later(COALESCE_S, self._flush)

    def publish(self, notification: Notification) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(notification)
            except Exception:  # one listener's bug must not keep the others from hearing
                log.exception("listener_failed", method=notification.method)

    def _flush(self) -> None:
        self._pending = None
        self.publish(LIST_CHANGED)

    def close(self) -> None:
        if self._pending is not None:
            self._pending.cancel()
            self._pending = None
