"""The asking end of one direction of a link: requests out, answers and progress in.

When the link ends, every request that waits fails at once and says that its outcome is not known. Knows nothing of methods.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import structlog
from msgspec import UNSET, Raw

from mcpax.core.subserver import Progress
from mcpax.errors import ErrorKind, Fault, Outcome, RelayedFault
from mcpax.link import messages
from mcpax.link.messages import BadMessage, Direction, Message

log = structlog.get_logger("mcpax.link")

Send = Callable[[str], Awaitable[None]]

MAX_IN_FLIGHT = 512
"""Requests that one link may have waiting for answers; more are refused rather than queued."""
CANCEL_S = 0.1
"""How long telling of a cancellation may take: whoever gave up does not wait for a link that takes nothing."""
CANCELLED = "notifications/cancelled"
PROGRESS = "notifications/progress"


class _Cancel(msgspec.Struct):
    requestId: int


class _Progress(msgspec.Struct):
    progressToken: int
    progress: float
    total: float | None = None
    message: str | None = None


class Waiting:
    """One request on its way."""

    def __init__(self, progress: Progress | None) -> None:
        self.answer: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        self.progress = progress
        self.reporting: asyncio.Task[None] | None = None


class Caller:
    def __init__(self, direction: Direction, send: Send) -> None:
        self._direction = direction
        self._send = send
        self._waiting: dict[int, Waiting] = {}
        self._last_id = 0
        self._closed = ""

    async def request(self, method: str, params: dict[str, Any], *, progress: Progress | None = None) -> Raw:
        """Ask and wait; cancelling the wait cancels the request. Raises `Fault`."""
        if self._closed:
            raise link_lost(self._closed, Outcome.NOT_EXECUTED)
        if len(self._waiting) >= MAX_IN_FLIGHT:
            raise Fault(
                ErrorKind.DEVICE_BUSY,
                f"{MAX_IN_FLIGHT} requests to this subserver wait for answers already.",
                outcome=Outcome.NOT_EXECUTED,
                retry_after_ms=1000,
            )
        self._last_id += 1
        identifier = self._last_id
        if progress is not None:
            params = {**params, "_meta": {**params.get("_meta", {}), "progressToken": identifier}}
        try:
            text = messages.request(self._direction, identifier, method, params)
        except BadMessage as bad:
            raise Fault(ErrorKind.INVALID_PARAMS, f"{method}: {bad!s:.300}.", outcome=Outcome.NOT_EXECUTED) from None
        waiting = self._waiting[identifier] = Waiting(progress)
        try:
            await self._send(text)
            return await waiting.answer
        except asyncio.CancelledError:
            await self._tell_cancelled(identifier)
            raise
        finally:
            del self._waiting[identifier]
            if not waiting.answer.cancel() and not waiting.answer.cancelled():
                waiting.answer.exception()  # seen, also where sending failed first

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Tell; lost with the link."""
        if self._closed:
            return
        try:
            text = messages.notification(self._direction, method, params)
        except BadMessage as bad:
            log.warning("notification_left_out", method=method[:100], problem=str(bad)[:300])
            return
        await self._send(text)

    async def _tell_cancelled(self, identifier: int) -> None:
        if not self._closed:
            with contextlib.suppress(Fault, TimeoutError):
                async with asyncio.timeout(CANCEL_S):
                    await self._send(messages.notification(self._direction, CANCELLED, {"requestId": identifier}))

    def receive(self, message: Message) -> None:
        """An answer, or progress. What answers nothing that was asked is ignored: it may have been cancelled."""
        if message.method is not UNSET:
            if message.method == PROGRESS and message.params is not UNSET:
                self._progressed(message.params)
            return
        waiting = self._waiting.get(message.id) if message.id is not UNSET else None
        if waiting is None or waiting.answer.done():
            return
        if message.error is not UNSET:
            told = message.error
            waiting.answer.set_exception(RelayedFault(told.code, told.message[: messages.MAX_ERROR_CHARS], told.details()))
        elif message.result is not UNSET:
            waiting.answer.set_result(message.result)
        else:
            waiting.answer.set_exception(Fault(ErrorKind.CHILD_LIED, "An answer without result or error.", outcome=Outcome.UNKNOWN))

    def _progressed(self, params: Raw) -> None:
        try:
            told = msgspec.json.decode(params, type=_Progress)
        except (msgspec.MsgspecError, RecursionError):
            return
        waiting = self._waiting.get(told.progressToken)
        if waiting is None or waiting.progress is None:
            return
        if waiting.reporting is None or waiting.reporting.done():
            # Else the one before is still being told: progress may be skipped, it must not pile up.
            waiting.reporting = asyncio.ensure_future(_report(waiting.progress, told))

    def close(self, reason: str) -> None:
        """The link has ended: whoever waits is told, and nobody can ask any more."""
        self._closed = self._closed or reason
        for waiting in self._waiting.values():
            if not waiting.answer.done():
                waiting.answer.set_exception(link_lost(reason, Outcome.UNKNOWN))


async def _report(progress: Progress, told: _Progress) -> None:
    with contextlib.suppress(Exception):  # a client that does not want to hear is no fault of the call
        await progress(told.progress, told.total, told.message)


def parse_cancel(params: Raw) -> int | None:
    """Which request a cancellation means."""
    try:
        return msgspec.json.decode(params, type=_Cancel).requestId
    except (msgspec.MsgspecError, RecursionError):
        return None


def link_lost(reason: str, outcome: Outcome) -> Fault:
    hint = "Read the device's state before you decide." if outcome is Outcome.UNKNOWN else "Try again."
    return Fault(ErrorKind.LINK_LOST, f"The link to the subserver was lost ({reason}).", hint=hint, outcome=outcome)
