"""Aggregators on real sockets of this machine, put together to trees: each accepts children, and may have a parent."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from starlette.websockets import WebSocket

from mcpax.capability import AuthScope
from mcpax.core.aggregator import Aggregator
from mcpax.core.principal import Principal
from mcpax.core.registration import RegistrationRequest
from mcpax.core.subserver import Notification, Subserver
from mcpax.front.guard import Access
from mcpax.front.http import build_app, open_listener, serve_http
from mcpax.link.endpoint import CHILD_PATH, PARENT_PATH, Endpoint, Pass
from mcpax.link.introduction import Introduction, Parentage
from mcpax.link.parent import ParentEnd
from mcpax.link.redial import Target
from mcpax.link.uplink import Uplink
from mcpax.link.wire import Wire

HEARTBEAT_S = 0.2
PATIENCE_S = 20.0
"""Nothing waits this long unless it is broken."""
CLIENT_TOKEN = "the-clients-own-secret"
LINK_TOKEN = "the-links-own-secret-token"


def no_certificate(_: WebSocket) -> frozenset[str]:
    return frozenset()


async def eventually(what: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Wait for something that is told by no event."""
    async with asyncio.timeout(patience_s):
        while not what():  # noqa: ASYNC110 - what is waited for is state of several processes, not one event
            await asyncio.sleep(0.005)


@dataclass
class Node:
    aggregator: Aggregator
    url: str = ""
    uplink: Uplink | None = None
    uplinking: asyncio.Task[None] | None = None
    heard: list[Notification] = field(default_factory=list)
    parentage: Parentage = field(default_factory=Parentage)

    @property
    def link_url(self) -> str:
        return self.url.replace("http", "ws") + CHILD_PATH

    def names(self) -> list[str]:
        return [".".join(route.name) for route in self.aggregator.catalog.routes()]

    async def add(self, segment: str, subserver: Subserver, **more: object) -> str:
        request = RegistrationRequest(str(uuid.uuid4()), segment, "uart_cbor", **more)  # type: ignore[arg-type]
        return (await self.aggregator.register(request, subserver)).session_id

    def join(self, *parents: Node | str, token: str | None = LINK_TOKEN, segment: str | None = None, **more: object) -> Uplink:
        """Start registering with a parent, or the next one when that fails."""
        targets = [Target(parent.link_url if isinstance(parent, Node) else parent, token) for parent in parents]
        introduction = Introduction(self.aggregator.id, segment or self.aggregator.segment, HEARTBEAT_S, **more)  # type: ignore[arg-type]
        self.uplink = Uplink(self.aggregator, targets, introduction, self.parentage)
        self.uplinking = asyncio.create_task(self.uplink.run())
        return self.uplink

    async def leave(self) -> None:
        if self.uplinking is not None:
            self.uplinking.cancel()
            await asyncio.gather(self.uplinking, return_exceptions=True)


def default_passes() -> list[Pass]:
    return [Pass(Principal("any", AuthScope.ADMIN), LINK_TOKEN)]


@contextlib.asynccontextmanager
async def node(segment: str, *, passes: Sequence[Pass] | None = None, port: int = 0, **more: object) -> AsyncIterator[Node]:
    aggregator = Aggregator(segment, str(uuid.uuid4()), **more)  # type: ignore[arg-type]
    clock = asyncio.get_running_loop().time

    async def serve(wire: Wire, principal: Principal) -> str:
        return await ParentEnd(aggregator, wire, principal, clock).run()

    endpoint = Endpoint(default_passes() if passes is None else passes, serve, no_certificate)
    access = Access(CLIENT_TOKEN, own_doors=frozenset({CHILD_PATH, PARENT_PATH}))
    app = build_app(aggregator, access=access, more=[endpoint.route(CHILD_PATH)])
    bound: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve_http(app, open_listener("127.0.0.1", port), bound.set_result))
    sweeping = asyncio.create_task(aggregator.run())
    made = Node(aggregator)
    aggregator.notifier.subscribe(made.heard.append)
    try:
        made.url = f"http://127.0.0.1:{await asyncio.wait_for(bound, PATIENCE_S)}"
        yield made
    finally:
        await made.leave()
        await aggregator.close(0.1)
        for task in (serving, sweeping):
            task.cancel()
        await asyncio.gather(serving, sweeping, return_exceptions=True)


async def joined(child: Node, *parents: Node, **more: object) -> None:
    """Join and wait until the child's tools are at the (first) parent."""
    child.join(*parents, **more)  # type: ignore[arg-type]
    below = {f"{parents[0].aggregator.segment}.{name}" for name in child.names()}
    await eventually(lambda: below <= set(parents[0].names()))


@contextlib.asynccontextmanager
async def chain(*segments: str) -> AsyncIterator[list[Node]]:
    """Nodes of which each is registered with the one before; the first is the root."""
    async with contextlib.AsyncExitStack() as stack:
        nodes: list[Node] = []
        for segment in segments:
            made = await stack.enter_async_context(node(segment))
            if nodes:
                made.join(nodes[-1])
                parent = nodes[-1]
                await eventually(lambda parent=parent, segment=segment: any(s.segment == segment for s in parent.aggregator.registry))  # type: ignore[misc]
            nodes.append(made)
        yield nodes
