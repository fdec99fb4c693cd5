"""The answering end of one direction of a link: requests in, answers and progress out, each request a task of its own.

A cancelled request ends its task and is not answered. When the link ends, all tasks end: nobody would hear their answers. Knows nothing of
what the methods do.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import structlog
from msgspec import UNSET, Raw

from mcpax.core.subserver import Progress
from mcpax.errors import ErrorKind, Fault, Outcome
from mcpax.link import messages
from mcpax.link.caller import CANCELLED, MAX_IN_FLIGHT, PROGRESS, Send, parse_cancel
from mcpax.link.messages import BadMessage, Direction, Message

log = structlog.get_logger("mcpax.link")

NO_PARAMS = Raw(b"{}")
MOST_WAITING = 2 * MAX_IN_FLIGHT
"""Requests whose answers wait to be taken, refusals included. Whoever asks on without listening loses the link."""

OnRequest = Callable[[Raw, Progress], Awaitable[Any]]
"""Answer a request: its parameters, and how to tell progress. Returns the result or raises `Fault`."""
OnNotification = Callable[[str, Raw], None]
"""Hear of anything that wants no answer: its method and parameters."""


class Answerer:
    def __init__(
        self,
        direction: Direction,
        send: Send,
        requests: Mapping[str, OnRequest],
        notified: OnNotification = lambda _method, _params: None,
    ) -> None:
        self._direction = direction
        self._send = send
        self._requests = requests
        self._on_notification = notified
        self._running: dict[int, asyncio.Task[None]] = {}

    def receive(self, message: Message) -> None:
        """Raises `BadMessage` where going on would only pile up."""
        if message.method is UNSET:
            return  # an answer, and this end has asked nothing
        params = NO_PARAMS if message.params is UNSET else message.params
        if message.id is UNSET:
            self._notified(message.method, params)
            return
        if message.id in self._running:
            log.warning("request_id_reused", method=message.method[:100], id=message.id)
            return
        if len(self._running) >= MOST_WAITING:
            raise BadMessage(f"{MOST_WAITING} requests wait for their answers to be taken")
        busy = len(self._running) >= MAX_IN_FLIGHT
        task = asyncio.ensure_future(self._answer(message.id, message.method, params, busy=busy))
        self._running[message.id] = task
        task.add_done_callback(partial(self._ended, message.id))

    def _ended(self, identifier: int, _: object) -> None:
        self._running.pop(identifier, None)

    def _notified(self, method: str, params: Raw) -> None:
        if method == CANCELLED:
            identifier = parse_cancel(params)
            if identifier is not None and identifier in self._running:
                self._running[identifier].cancel()
        else:
            self._on_notification(method, params)

    async def _answer(self, identifier: int, method: str, params: Raw, *, busy: bool) -> None:
        with contextlib.suppress(Fault):  # the link has ended meanwhile
            await self._send(await self._answered(identifier, method, params, busy=busy))

    async def _answered(self, identifier: int, method: str, params: Raw, *, busy: bool) -> str:
        try:
            handler = self._requests.get(method)
            if handler is None:
                raise Fault(ErrorKind.TOOL_NOT_FOUND, f"Unknown method: {method[:100]}", outcome=Outcome.NOT_EXECUTED)
            if busy:
                raise Fault(ErrorKind.DEVICE_BUSY, f"{MAX_IN_FLIGHT} requests are under way.", outcome=Outcome.NOT_EXECUTED)

            async def progress(done: float, total: float | None, text: str | None) -> None:
                told = {"progressToken": identifier, "progress": done, "total": total, "message": text}
                await self._send(messages.notification(self._direction, PROGRESS, {k: v for k, v in told.items() if v is not None}))

            answer = messages.result(self._direction, identifier, await handler(params, progress))
            if size := messages.too_long(answer):
                raise _withheld(size)
            return answer
        except Fault as fault:
            return messages.error(self._direction, identifier, fault)
        except Exception:
            log.exception("request_failed", method=method[:100])
            failed = Fault(ErrorKind.CHILD_ERROR, f"{method[:100]} failed; the log there has the details.", outcome=Outcome.UNKNOWN)
            return messages.error(self._direction, identifier, failed)

    def close(self) -> None:
        for task in tuple(self._running.values()):
            task.cancel()


def _withheld(size: int) -> Fault:
    return Fault(
        ErrorKind.CHILD_ERROR,
        f"The result takes {size} bytes, at most {messages.MAX_MESSAGE_BYTES} pass a link.",
        hint="It ran; its result is withheld. Ask for less.",
        outcome=Outcome.EXECUTED,
    )
