"""One replica of a cluster put together from the configuration: ownership shared through etcd, and links to the other replicas.

Knows the store and the links; neither knows it.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import uuid
from collections.abc import AsyncIterator, Mapping

from starlette.routing import WebSocketRoute

from mcpax.config_links import Cluster
from mcpax.core.aggregator import Aggregator
from mcpax.core.principal import REPLICA, Principal
from mcpax.core.subserver import Json
from mcpax.link.endpoint import REPLICA_PATH, Endpoint, Pass
from mcpax.link.parent import ParentEnd
from mcpax.link.redial import Target
from mcpax.link.replicas import Replicas
from mcpax.link.wire import Wire
from mcpax.linking import peer_names, tls_for, with_path
from mcpax.store.etcd import EtcdOwnership
from mcpax.store.etcd_access import EtcdAccess
from mcpax.store.etcd_claims import Keys
from mcpax.store.etcd_client import EtcdClient

CLUSTERS = uuid.UUID("8a2a6a5e-6f3b-5a0e-9d0c-2a6f6f0a9b41")
"""Namespace of the ids that clusters' names stand for."""
BEATS_PER_TTL = 3


class Clustering:
    def __init__(self, cluster: Cluster, *, plain: bool) -> None:
        self._cluster = cluster
        self._plain = plain
        self._replica_id = secrets.token_hex(8)
        self._client = EtcdClient(EtcdAccess(cluster.etcd, ca=cluster.etcd_ca))
        self._replicas: Replicas | None = None
        self.aggregator_id = str(uuid.uuid5(CLUSTERS, cluster.name))
        """The same for all replicas: to everybody else they are one."""
        self.ownership = EtcdOwnership(
            self._client,
            self._replica_id,
            url=cluster.url,
            keys=Keys(cluster.prefix, cluster.name),
            ttl_s=cluster.ttl_s,
            replicas_changed=self._changed,
        )

    def _changed(self, replicas: Mapping[str, str]) -> None:
        if self._replicas is not None:
            self._replicas.changed(replicas)

    @contextlib.asynccontextmanager
    async def running(self, aggregator: Aggregator) -> AsyncIterator[None]:
        """Take part while the block runs; then give everything back at once."""
        self._replicas = Replicas(aggregator, self._replica_id, self._cluster.ttl_s / BEATS_PER_TTL, self._target)
        owning = asyncio.create_task(self.ownership.run())
        try:
            yield
        finally:
            await self._replicas.close()
            await self.ownership.close()
            owning.cancel()
            await asyncio.gather(owning, return_exceptions=True)
            await self._client.close()

    def route(self, aggregator: Aggregator) -> WebSocketRoute:
        """The door for the other replicas."""
        clock = asyncio.get_running_loop().time

        async def serve(wire: Wire, principal: Principal) -> str:
            return await ParentEnd(aggregator, wire, principal, clock).run()

        return Endpoint([Pass(REPLICA, self._cluster.token)], serve, peer_names, allow_plain=self._plain).route(REPLICA_PATH)

    def _target(self, url: str) -> Target:
        return Target(with_path(url, REPLICA_PATH), self._cluster.token, tls_for(url, self._cluster.ca, None, None, plain=self._plain))

    def describe(self) -> Json:
        return {} if self._replicas is None else self._replicas.describe()
