"""Replicas of one aggregator as real programs over a real etcd, and children that register with them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx

from tests.harness.etcd_server import EtcdServer, free_port

TOKEN = "0123456789abcdef0123456789abcdef"
TTL_S = 2
CONFIG = """
[gateway]
segment = "cloud"
listen = "127.0.0.1:{port}"
state_dir = "state-{port}"
own_tools = false
[cluster]
name = "cloud"
etcd = ["{etcd}"]
prefix = "{prefix}"
url = "ws://127.0.0.1:{port}"
token_file = "token"
ttl_s = {ttl_s}
[[child]]
name = "plant"
token_file = "token"
"""


class Replica:
    """One `mcpax serve`."""

    def __init__(self, directory: Path, etcd: EtcdServer, prefix: str) -> None:
        self.port = free_port()
        self._config = directory / f"replica-{self.port}.toml"
        self._log = directory / f"replica-{self.port}.log"
        (directory / "token").write_text(TOKEN)
        self._config.write_text(CONFIG.format(port=self.port, etcd=etcd.url, prefix=prefix, ttl_s=TTL_S))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def link_url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/mcpax/link"

    def start(self) -> None:
        command = [sys.executable, "-m", "mcpax", "serve", "--config", str(self._config), "--log-json", "--log-level", "debug"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=dict(os.environ))

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(20)
            self._process = None

    def names(self) -> set[str]:
        """What it lists; nothing while it cannot be asked."""
        with contextlib.suppress(httpx.TransportError):
            return set(httpx.get(f"{self.url}/admin/routes", timeout=5).json())
        return set()

    def problems(self) -> set[str]:
        """Why some of its children are degraded."""
        sessions = httpx.get(f"{self.url}/admin/status", timeout=5).json()["sessions"]
        return {session["reason"] for session in sessions if session["state"] == "degraded"}


@contextlib.contextmanager
def replicas(directory: Path, etcd: EtcdServer, prefix: str, number: int) -> Iterator[list[Replica]]:
    made = [Replica(directory, etcd, prefix) for _ in range(number)]
    try:
        for replica in made:
            replica.start()
        yield made
    finally:
        for replica in made:
            replica.kill()
