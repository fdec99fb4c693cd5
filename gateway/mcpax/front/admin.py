"""JSON for operators and for our own command line: routes, devices, status, and the live stream of frames.

Only reads. What it cannot know from the core it asks of `Operations`, which the bridge implements: this side does not know bridges.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

import mcpax
from mcpax.core.aggregator import Aggregator
from mcpax.core.registry import Session
from mcpax.core.subserver import Json
from mcpax.names import dotted


class Operations(Protocol):
    """What the devices' side tells an operator."""

    def devices(self) -> Sequence[Json]:
        """One object per device; its key "segment" is what `frames` takes."""
        ...

    def frames(self, device: str | None) -> AsyncIterator[Json]:
        """Frames as they pass, of one device or of all, until the iterator is closed."""
        ...

    async def tree(self) -> Json:
        """This aggregator and everything below it."""
        ...

    def links(self) -> Json:
        """The aggregator above, and those that we dial."""
        ...


class NoDevices:
    """The `Operations` of an aggregator without bridges."""

    def devices(self) -> Sequence[Json]:
        return ()

    async def frames(self, device: str | None) -> AsyncIterator[Json]:  # noqa: ARG002
        return
        yield {}

    async def tree(self) -> Json:
        return {}

    def links(self) -> Json:
        return {}


class Admin:
    def __init__(self, aggregator: Aggregator, operations: Operations) -> None:
        self._aggregator = aggregator
        self._operations = operations
        self._started = time.monotonic()
        self._closing = asyncio.Event()

    def routes(self) -> list[Route]:
        return [
            Route("/admin/routes", self.table),
            Route("/admin/devices", self.devices),
            Route("/admin/status", self.status),
            Route("/admin/tree", self.tree),
            Route("/admin/frames", self.frames),
        ]

    async def table(self, _: Request) -> Response:
        """The routing table (draft §7.1)."""
        return _json({dotted(route.name): route.to_json() for route in self._aggregator.catalog.routes()})

    async def devices(self, _: Request) -> Response:
        return _json(list(self._operations.devices()))

    async def status(self, _: Request) -> Response:
        return _json(
            {
                "segment": self._aggregator.segment,
                "aggregator_id": self._aggregator.id,
                "version": mcpax.__version__,
                "uptime_s": round(time.monotonic() - self._started, 3),
                "tools": len(self._aggregator.catalog),
                "sessions": [_session(session) for session in self._aggregator.registry],
            }
        )

    async def tree(self, _: Request) -> Response:
        return _json({**await self._operations.tree(), "links": self._operations.links()})

    async def frames(self, request: Request) -> Response:
        device = request.query_params.get("device")
        known = [str(each["segment"]) for each in self._operations.devices()]
        if device is not None and device not in known:
            hint = f"Known devices: {', '.join(sorted(known))}." if known else "No device is connected."
            return JSONResponse({"error": "unknown_device", "message": f"No device {device[:100]!r}.", "hint": hint}, 404)
        return StreamingResponse(self._lines(self._operations.frames(device)), media_type="application/x-ndjson")

    async def _lines(self, frames: AsyncIterator[Json]) -> AsyncIterator[bytes]:
        """Until the client hangs up, or `close`."""
        closing = asyncio.ensure_future(self._closing.wait())
        frame = asyncio.ensure_future(anext(frames, None))
        try:
            while True:
                await asyncio.wait((frame, closing), return_when=asyncio.FIRST_COMPLETED)
                if not frame.done() or (read := frame.result()) is None:
                    return
                yield msgspec.json.encode(read) + b"\n"
                frame = asyncio.ensure_future(anext(frames, None))
        finally:
            closing.cancel()
            frame.cancel()

    def close(self) -> None:
        """End the open streams: they would end by themselves only with their clients."""
        self._closing.set()


def _session(session: Session) -> Json:
    since = session.degraded_since or session.registered_at
    return {
        "segment": session.segment,
        "session_id": session.id,
        "subserver_id": session.request.subserver_id,
        "transport": session.request.transport_class,
        "state": "degraded" if session.degraded else "active",
        "reason": session.degraded_reason,
        "since": since.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "tools": len(session.tools),
        "calls": session.calls,
    }


def _json(value: object) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")
