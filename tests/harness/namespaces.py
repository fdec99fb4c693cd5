"""Two machines on one: network namespaces with a cable between them. What runs in one reaches the other by its address, and nothing else.

with two_machines() as (cloud, edge):
    Program(["serve", …], by=cloud.exec)
    edge.connect(cloud.address, 8720)

Needs root and iproute2. Knows nothing of what runs there.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

CLONE_NEWNET = 0x40000000
PATIENCE_S = 20.0
_count = itertools.count()

T = TypeVar("T")


class NoNamespaces(Exception):
    """They cannot be made here; says why."""


@dataclass(frozen=True, slots=True)
class Machine:
    namespace: str
    address: str

    @property
    def exec(self) -> list[str]:
        """What to put before a command to run it there."""
        return ["ip", "netns", "exec", self.namespace]

    def connect(self, address: str, port: int) -> socket.socket:
        return self._there(lambda: socket.create_connection((address, port), PATIENCE_S))

    def listen(self, port: int) -> socket.socket:
        return self._there(lambda: socket.create_server((self.address, port)))

    def _there(self, make: Callable[[], T]) -> T:
        """A socket belongs to where its thread was when it was made, so one moves there for it, and ends."""
        made: list[T] = []
        failed: list[BaseException] = []

        def run() -> None:
            try:
                _move(self.namespace)
                made.append(make())
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if failed:
            raise failed[0]
        return made[0]


def _move(namespace: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    with Path(f"/run/netns/{namespace}").open() as there:
        if libc.setns(there.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NoNamespaces(f"ip {' '.join(words)}: {done.stderr.strip()}")


@contextlib.contextmanager
def two_machines() -> Iterator[tuple[Machine, Machine]]:
    """Raises `NoNamespaces`."""
    if shutil.which("ip") is None:
        raise NoNamespaces("no ip: install iproute2")
    if os.geteuid() != 0:
        raise NoNamespaces("only root can make network namespaces")
    number = f"{os.getpid()}-{next(_count)}"
    machines = Machine(f"mcpax-{number}-a", "10.77.0.1"), Machine(f"mcpax-{number}-b", "10.77.0.2")
    with contextlib.ExitStack() as stack:
        for machine in machines:
            _ip("netns", "add", machine.namespace)
            stack.callback(_ip, "netns", "del", machine.namespace)  # and with it its end of the cable, and so the cable
            _ip("-n", machine.namespace, "link", "set", "lo", "up")
        one, other = (machine.namespace for machine in machines)
        _ip("-n", one, "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", other)
        for machine in machines:
            _ip("-n", machine.namespace, "addr", "add", f"{machine.address}/24", "dev", "cable")
            _ip("-n", machine.namespace, "link", "set", "cable", "up")
        yield machines
