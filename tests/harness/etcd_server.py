"""A real etcd for tests: its own process on loopback, on free ports, with its data in a directory that outlives a restart.

Knows nothing of what is kept in it.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest

PATIENCE_S = 20.0
READY = re.compile(rb"ready to serve|serving .*client")
needs_etcd = pytest.mark.skipif(shutil.which("etcd") is None, reason="needs etcd (Debian: etcd-server); scripts/test installs it")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class EtcdServer:
    def __init__(self, directory: Path, *options: str, scheme: str = "http") -> None:
        self.url = f"{scheme}://127.0.0.1:{free_port()}"
        peers = f"http://127.0.0.1:{free_port()}"
        self._command = [
            "etcd",
            *("--name=test", f"--data-dir={directory}", "--log-level=info"),
            *(f"--listen-client-urls={self.url}", f"--advertise-client-urls={self.url}"),
            *(f"--listen-peer-urls={peers}", f"--initial-advertise-peer-urls={peers}", f"--initial-cluster=test={peers}"),
            *("--heartbeat-interval=10", "--election-timeout=100"),  # it elects itself sooner, and grants leases of a second
            *options,
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns when it serves."""
        environment = {"PATH": os.environ.get("PATH", os.defpath)}  # and no ETCD_ variable of whoever runs the tests
        process = subprocess.Popen(self._command, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, env=environment)
        self._process = process
        ready = threading.Event()
        said: list[bytes] = []

        def listen() -> None:
            assert process.stdout is not None
            for line in process.stdout:  # to its end: a full pipe would halt etcd
                said.append(line)
                del said[:-50]
                if READY.search(line):
                    ready.set()

        threading.Thread(target=listen, daemon=True).start()
        if not ready.wait(PATIENCE_S):
            self.kill()
            raise AssertionError("etcd did not start:\n" + b"".join(said).decode(errors="replace"))

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """As a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE_S)
            self._process = None
