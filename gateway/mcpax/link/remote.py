"""A child at the far end of a link, as the core sees every subserver. Knows nothing of how the link came about."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from mcpax.core.admission import most_tools
from mcpax.core.registration import RegistrationRequest
from mcpax.core.results import unread
from mcpax.core.router import CURSOR_META, ROUTE_META
from mcpax.core.subserver import Call, Json, Tool
from mcpax.errors import ErrorKind, Fault, Outcome
from mcpax.link import messages, tools
from mcpax.link.caller import Caller
from mcpax.names import dotted
from mcpax.nesting import MAX_DEPTH, raw_too_deep

DEADLINE_META = "x-mcpax-deadline-ms"
"""How long the caller will wait, from when it sent the call: the clocks of two machines need not agree."""
REGISTRATION_META = "x-mcpax-registration"
"""Which of the registrations on a link a request is for."""
HOP_COST_S = 0.01
"""Taken off the time at each hop, so that whoever is below gives up first and can still say what became of the call."""
SMOOTHING = 0.2
MAX_LIST_BYTES = 64 << 20
"""Of all pages together."""
_META = msgspec.json.Decoder(dict[str, Any] | None)


class _Listed(msgspec.Struct):
    tools: list[Any]
    nextCursor: str | None = None


class _Parent(msgspec.Struct):
    parent_id: str | None = None


class RemoteSubserver:
    def __init__(self, caller: Caller, request: RegistrationRequest, clock: Callable[[], float]) -> None:
        self._caller = caller
        self._request = request
        self._clock = clock
        self._for = request.subserver_id
        self.round_trip_s: float | None = None
        """Smoothed."""

    async def list_tools(self) -> Sequence[Tool]:
        """Every page. Stops at the first tool too many: a list without end must not fill the memory."""
        found: list[Tool] = []
        cursor: str | None = None
        size = 0
        most = most_tools(self._request)
        while True:
            params = {"_meta": {REGISTRATION_META: self._for}} | ({} if cursor is None else {"cursor": cursor})
            raw = await self._caller.request("tools/list", params)
            size += memoryview(raw).nbytes
            if size > MAX_LIST_BYTES:
                raise Fault(ErrorKind.INVALID_PARAMS, f"A list of more than {MAX_LIST_BYTES} bytes; no more are allowed per subserver.")
            page = messages.read(raw, _Listed, ErrorKind.CHILD_LIED)
            found += (tools.from_json(each) for each in page.tools)
            if len(found) > most:
                raise Fault(ErrorKind.INVALID_PARAMS, f"More than {most} tools; no more are allowed per subserver.")
            if page.nextCursor is None:
                return found
            if not page.tools or page.nextCursor == cursor:
                raise Fault(ErrorKind.CHILD_LIED, "The pages of tools/list lead nowhere.")
            cursor = page.nextCursor

    async def call(self, call: Call) -> Json:
        meta: Json = {ROUTE_META: call.route, CURSOR_META: call.cursor, REGISTRATION_META: self._for}
        if call.deadline is not None:
            left_s = call.deadline - self._clock() - HOP_COST_S
            if left_s <= (self.round_trip_s or 0.0):
                raise Fault(
                    ErrorKind.DEVICE_TIMEOUT,
                    f"{max(left_s, 0) * 1000:.0f} ms are left for {dotted(call.path)}: too little for the way to it.",
                    outcome=Outcome.NOT_EXECUTED,
                )
            meta[DEADLINE_META] = int(left_s * 1000)
        params = {"name": dotted(call.path), "arguments": call.arguments, "_meta": meta}
        raw = await self._caller.request("tools/call", params, progress=call.progress)
        try:
            if raw_too_deep(bytes(raw)):
                raise Fault(ErrorKind.CHILD_LIED, f"The child's result is nested more than {MAX_DEPTH} deep.", outcome=Outcome.EXECUTED)
            result = unread(raw)
            if "_meta" in result:
                _META.decode(result["_meta"])  # whoever adds to it must be able to read it
        except (msgspec.MsgspecError, RecursionError):
            raise Fault(ErrorKind.CHILD_LIED, "The child's result, or its _meta, is no object.", outcome=Outcome.EXECUTED) from None
        return result

    async def parent_id(self) -> str | None:
        """Under whom it believes to be (draft §13.4)."""
        return messages.read(await self._caller.request("mcpax/parent", {}), _Parent, ErrorKind.CHILD_LIED).parent_id

    async def ping(self) -> float:
        """Measure the way there and back; returns the smoothed figure in seconds."""
        started = time.perf_counter()
        await self._caller.request("ping", {})
        took = time.perf_counter() - started
        self.round_trip_s = took if self.round_trip_s is None else self.round_trip_s + SMOOTHING * (took - self.round_trip_s)
        return self.round_trip_s

    async def status(self, ask_s: float) -> Json:
        """The child's own view of itself and what is below it; it asks its children for `ask_s` at most."""
        return messages.read(await self._caller.request("mcpax/status", {"ask_s": ask_s}), dict[str, Any], ErrorKind.CHILD_LIED)

    async def close(self) -> None:
        await asyncio.sleep(0)  # the link is not this registration's to close
