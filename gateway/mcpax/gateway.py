"""The gateway put together: store, aggregator, bridge, front. Starts them, and stops them in the right order.

The only module that knows all the parts; none of them knows it.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable

import structlog

from mcpax.bridge.bridge import Bridge
from mcpax.clustering import Clustering
from mcpax.config import MAP_UNUSED, MAP_UNUSED_HINT, Config
from mcpax.core.aggregator import Aggregator
from mcpax.core.ownership import Alone
from mcpax.front.guard import Access, check_listen
from mcpax.front.http import build_app, open_listener, serve_http
from mcpax.front.stdio import serve_stdio
from mcpax.linking import DOORS, Linking, server_tls, voucher
from mcpax.name_codec import NameStyle
from mcpax.store.sqlite import Store

log = structlog.get_logger("mcpax.gateway")

DRAIN_S = 5.0


class Gateway:
    """Use `async with gateway.running():` and then serve it to clients."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._store = Store(config.state_dir / "mcpax.db")
        cluster = config.links.cluster
        self._clustering = None if cluster is None else Clustering(cluster, plain=config.links.plain)
        own_id = self._store.aggregator_id() if self._clustering is None else self._clustering.aggregator_id
        self.aggregator = Aggregator(
            config.segment,
            own_id,
            budget=config.budget,
            grace_s=config.grace_s,
            list_ttl_s=config.list_ttl_s,
            own_tools=config.own_tools,
            ownership=Alone(self._store) if self._clustering is None else self._clustering.ownership,
            vouch=voucher(config.links, own_id),
        )
        self.linking = Linking(config.links, self.aggregator, own_id)
        self.bridge = Bridge(config.bindings, self.aggregator, self._store.subserver_id, by_id_dirs=config.by_id_dirs)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Boards are looked for and served; leaving drains calls, then closes boards, then the store."""
        async with contextlib.AsyncExitStack() as stack:
            if self._clustering is not None:
                await stack.enter_async_context(self._clustering.running(self.aggregator))
            await stack.enter_async_context(self._served())
            yield

    @contextlib.asynccontextmanager
    async def _served(self) -> AsyncIterator[None]:
        await self.aggregator.start()
        tasks = [asyncio.create_task(self.aggregator.run()), asyncio.create_task(self.bridge.run()), *self.linking.tasks()]
        log.info("started", segment=self.config.segment, aggregator_id=self.aggregator.id, devices=len(self.config.bindings))
        for name in self.config.unused_maps:
            log.warning("map_unused", map=name, problem=MAP_UNUSED, hint=f"{MAP_UNUSED_HINT}; 'mcpax doctor' shows the ports there are")
        try:
            yield
        finally:
            await self.linking.leave()
            await self.aggregator.close(DRAIN_S)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._store.close()
            log.info("stopped")

    def listen(self) -> socket.socket:
        """Take the configured address. Comes before `running`: what cannot be served should open no port of a board."""
        check_listen(self.config.host, self.config.token)
        return open_listener(self.config.host, self.config.port)

    async def serve_http(self, listener: socket.socket, on_bound: Callable[[int], None]) -> None:
        """Serve MCP and the admin API over HTTP until cancelled."""
        config = self.config
        access = Access(config.token, frozenset(config.allowed_hosts), frozenset(config.allowed_origins), own_doors=DOORS)
        operations = _Operations(self.bridge, self.linking)
        doors = [*self.linking.routes(), *([] if self._clustering is None else [self._clustering.route(self.aggregator)])]
        app = build_app(self.aggregator, access=access, operations=operations, ready=self._ready, more=doors)
        await serve_http(app, listener, on_bound, server_tls(config.links))

    async def serve_stdio(self, style: NameStyle | None) -> None:
        """Serve the one client on stdin and stdout until it closes."""
        await serve_stdio(self.aggregator, style)

    def _ready(self) -> tuple[bool, str]:
        return (True, "") if self.bridge.settled else (False, "the ports have not been looked at yet")


class _Operations:
    """What the bridge and the links tell operators, as the front wants it."""

    def __init__(self, bridge: Bridge, linking: Linking) -> None:
        self.devices = bridge.devices
        self.frames = bridge.frames
        self.tree = linking.tree
        self.links = linking.describe
