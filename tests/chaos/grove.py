"""The tree of a chaos run: two replicas of the root over a real etcd, two regions below them, three leaves; every node a process.

Every way between two of them, and from each replica to etcd, is a line that can fail. Knows nothing of when anything does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

from tests.bench.soak import Client
from tests.chaos import journal, leaf
from tests.chaos.line import Line
from tests.harness.etcd_server import EtcdServer, free_port

HEARTBEAT_S = 1.0
TTL_S = 3
"""Of etcd's leases: three heartbeats, as the product's own defaults have it."""
PREFIX = "/mcpax/"
REPLICAS = ("cloud-a", "cloud-b")
REGIONS = ("north", "south")
LEAVES = {"pier": "north", "quay": "north", "mill": "south"}
"""Each under its region."""
PATIENCE_S = 30.0
TOKEN = "0123456789abcdef0123456789abcdef"

GATEWAY = """
[gateway]
segment = "{segment}"
listen = "127.0.0.1:{port}"
state_dir = "{name}-state"
own_tools = false
"""
CLUSTER = """
[cluster]
name = "cloud"
etcd = ["http://127.0.0.1:{etcd}"]
prefix = "{prefix}"
url = "ws://127.0.0.1:{own}"
token_file = "token"
ttl_s = {ttl_s}
"""
UPSTREAM = """
[upstream]
url = "ws://127.0.0.1:{first}"
backups = {backups}
token_file = "token"
heartbeat_ms = {heartbeat_ms}
"""
CHILDREN = """
[[child]]
name = "below"
token_file = "token"
"""


def truth() -> list[str]:
    """The tools that there are, as a client at the root knows them."""
    return sorted(f"cloud.{region}.{name}.{leaf.SEGMENT}.{tool}" for name, region in LEAVES.items() for tool in leaf.TOOLS)


class Node:
    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        self.port = free_port()
        self.config = directory / f"{name}.toml"
        self._log = directory / journal.NODE_LOG.format(name)
        if name in LEAVES:
            self._arguments = ["-m", "tests.chaos.leaf", str(self.config), str(directory / f"{name}.ledger")]
        else:
            self._arguments = ["-m", "mcpax", "serve", "--config", str(self.config), "--log-json", "--log-level", "debug"]
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """Returns when it answers."""
        self._process = self._spawn()
        async with asyncio.timeout(PATIENCE_S):
            while not await self._answers():
                assert self._process.poll() is None, f"{self.name} ended by itself: see {self._log}"
                await asyncio.sleep(0.02)

    def _spawn(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            command = [sys.executable, *self._arguments]
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=dict(os.environ))

    async def _answers(self) -> bool:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            client = await Client.open(self.port)
            try:
                return bool((await client.request("GET", "/healthz"))[1])
            finally:
                client.close()
        return False

    def signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    async def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)
            self._process = None


class Grove:
    def __init__(self, directory: Path) -> None:
        self.etcd = EtcdServer(directory / "etcd")
        self.nodes = {name: Node(name, directory) for name in (*REPLICAS, *REGIONS, *LEAVES)}
        etcd_port = urlsplit(self.etcd.url).port
        assert etcd_port is not None
        ends = {
            **{(replica, "etcd"): etcd_port for replica in REPLICAS},
            **{(replica, other): self.nodes[other].port for replica in REPLICAS for other in REPLICAS if other != replica},
            **{(region, replica): self.nodes[replica].port for region in REGIONS for replica in REPLICAS},
            **{(name, region): self.nodes[region].port for name, region in LEAVES.items()},
        }
        self.lines = {ends: Line(f"{ends[0]}→{ends[1]}", port) for ends, port in ends.items()}

    @contextlib.asynccontextmanager
    async def grown(self) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for line in self.lines.values():
                await stack.enter_async_context(line.open())
            self._configure()
            stack.callback(self.etcd.kill)
            await asyncio.to_thread(self.etcd.start)
            for node in self.nodes.values():
                stack.push_async_callback(node.kill)
            await asyncio.gather(*(node.start() for node in self.nodes.values()))
            yield

    def _configure(self) -> None:
        for name, node in self.nodes.items():
            node.config.write_text(self._text(name, node))
        (node.config.parent / "token").write_text(TOKEN)

    def _text(self, name: str, node: Node) -> str:
        text = GATEWAY.format(name=name, port=node.port, segment="cloud" if name in REPLICAS else name)
        if name in REPLICAS:
            other = next(each for each in REPLICAS if each != name)
            ports = {"etcd": self.lines[name, "etcd"].port, "own": self.lines[other, name].port}
            return text + CLUSTER.format(prefix=PREFIX, ttl_s=TTL_S, **ports) + CHILDREN
        parents = REPLICAS if name in REGIONS else (LEAVES[name],)
        if name == REGIONS[1]:
            parents = parents[::-1]  # so that both replicas serve a child of their own
        first, *backups = [self.lines[name, parent].port for parent in parents]
        urls = json.dumps([f"ws://127.0.0.1:{port}" for port in backups])
        text += UPSTREAM.format(first=first, backups=urls, heartbeat_ms=int(HEARTBEAT_S * 1000))
        return text + (CHILDREN if name in REGIONS else "")
