"""Clients that hold a session (revisions up to 2025-11-25), and telling them something they did not ask for.

Later revisions have no sessions; their clients open `subscriptions/listen` instead (see `mcp_server`). The SDK keeps a client's
connection to itself, so this is the one module that reaches into its private parts. Knows nothing of tools or HTTP.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import Any, get_args

from mcp.server import ServerRequestContext
from mcp.server.connection import Connection
from mcp_types import EmptyResult, LoggingLevel, NotificationParams, SetLevelRequestParams

from mcpax.core.notify import LIST_CHANGED, Notifier
from mcpax.core.subserver import Json, Notification

OUTBOX_NOTIFICATIONS = 256
"""How much a client that reads slowly may be behind; then the oldest is dropped. Lists are asked for anew, so no state is lost."""

EVENT_LEVEL: LoggingLevel = "info"
_LEVELS: tuple[LoggingLevel, ...] = get_args(LoggingLevel)
_LEVEL_STATE = "mcpax.log_level"
_JOINED_STATE = "mcpax.joined"

Context = ServerRequestContext[Any, Any]


def _connection(ctx: Context) -> Connection:
    # A ServerSession lives for one message. Only its connection outlives the request and says when the client has gone, and the SDK
    # offers no public way to it.
    return ctx.session._connection


class Sessions:
    """Passes the core's notifications to every client that holds a session, each at its own pace."""

    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier

    async def joined(self, ctx: Context, _: NotificationParams) -> None:
        """`notifications/initialized`: from here on the client may be told things."""
        connection = _connection(ctx)
        if _JOINED_STATE in connection.state:
            return  # said again; it is told everything already
        connection.state[_JOINED_STATE] = True
        outbox = _Outbox(connection)
        connection.exit_stack.callback(self._notifier.subscribe(outbox.put))
        connection.exit_stack.push_async_callback(outbox.close)

    async def set_level(self, ctx: Context, params: SetLevelRequestParams) -> EmptyResult:
        """`logging/setLevel`: events are told as log messages, and the client may turn them off."""
        _connection(ctx).state[_LEVEL_STATE] = params.level
        return EmptyResult()


class _Outbox:
    """What one client has yet to be told. Bounded, because a client may stop reading."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._pending: deque[Notification] = deque(maxlen=OUTBOX_NOTIFICATIONS)
        self._wake = asyncio.Event()
        self._sender = asyncio.create_task(self._send_all())

    def put(self, notification: Notification) -> None:
        if notification == LIST_CHANGED and LIST_CHANGED in self._pending:
            return
        self._pending.append(notification)
        self._wake.set()

    async def _send_all(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._pending:
                await self._send(self._pending.popleft())

    async def _send(self, notification: Notification) -> None:
        if notification == LIST_CHANGED:
            await self._connection.send_tool_list_changed()
        elif self._wants_events():
            await self._connection.notify("notifications/message", _as_log_message(notification))

    def _wants_events(self) -> bool:
        lowest = self._connection.state.get(_LEVEL_STATE, _LEVELS[0])
        return _LEVELS.index(EVENT_LEVEL) >= _LEVELS.index(lowest)

    async def close(self) -> None:
        self._sender.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._sender


def _as_log_message(notification: Notification) -> Json:
    """Plain MCP has no notification for events of a device; a log message is the one that every client may receive."""
    return {
        "level": EVENT_LEVEL,
        "logger": str(notification.params.get("x-mcpax-source", "mcpax")),
        "data": {"method": notification.method, "params": notification.params},
    }
