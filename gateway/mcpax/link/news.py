"""What a child has yet to tell its parent: notifications in order, bounded, one link's worth. Knows nothing of how they are told."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from mcpax.core.notify import LIST_CHANGED
from mcpax.core.subserver import Notification

OUTBOX_NOTIFICATIONS = 1000
"""News that wait for a slow parent; then the oldest goes. A list that changed is asked for anew, so no state is lost."""


class News:
    def __init__(self) -> None:
        self._pending: deque[Notification] = deque(maxlen=OUTBOX_NOTIFICATIONS)
        self._wake = asyncio.Event()

    def hear(self, notification: Notification) -> None:
        if notification == LIST_CHANGED and LIST_CHANGED in self._pending:
            return
        self._pending.append(notification)
        self._wake.set()

    async def tell_all(self, tell: Callable[[Notification], Awaitable[None]]) -> None:
        """Until cancelled, or until telling fails."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._pending:
                await tell(self._pending.popleft())
