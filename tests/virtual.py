"""Virtual boards and a gateway over them, for tests: the real firmware library on pseudo terminals, the real gateway, real sockets.

with VirtualBoard("relay-board", tmp_path) as board:
    async with running_gateway([board], grace_s=1) as running:
        …  running.url, running.gateway, board.reset(), board.press()
"""

from __future__ import annotations

import contextlib
import fcntl
import select
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mcpax.bridge.device import Binding
from mcpax.bridge.maps.load import load_map
from mcpax.bridge.maps.model import DeviceMap, PortMatch
from mcpax.cli.serving import boards_online, serving
from mcpax.config import Config
from mcpax.gateway import Gateway

ROOT = Path(__file__).resolve().parents[1]
MAPS = ROOT / "device-maps"
PROGRAMS = ROOT / "build/virtual"
BOARDS = ("env-sensor", "relay-board", "relay-board-b", "valve-actuator")

START_S = 10.0
ONLINE_S = 20.0
"""Nothing takes this long unless it is broken."""


@cache
def build_boards() -> None:
    """Once per run; make finds nothing to do when they are there. The lock is for test runs side by side."""
    (ROOT / "build").mkdir(exist_ok=True)
    with (ROOT / "build/.virtual.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        built = subprocess.run(["make", "-C", str(ROOT / "firmware"), "virtual"], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr


class VirtualBoard:
    """One board. Its port appears in `directory` under a name like udev's, and may come and go with `start` and `stop`."""

    def __init__(self, name: str, directory: Path, *, number: int = 1, baud: int = 0, seed: int = 1, map: DeviceMap | None = None) -> None:
        self.name = name
        self.map = map or load_map(MAPS / f"{name}.toml")
        self.link = directory / f"usb-mcpax_{name}_{number:04}-if00"
        self.segment = name if number == 1 else f"{name}-{number}"
        self._options = ["--baud", str(baud), "--seed", str(seed), "--number", str(number)]
        self._process: subprocess.Popen[str] | None = None

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def binding(self) -> Binding:
        return Binding(self.segment, self.map, PortMatch(by_id=self.link.name))

    def start(self) -> Self:
        """Plug it in and power it up; returns when it runs."""
        build_boards()
        self._process = subprocess.Popen(
            [PROGRAMS / self.name, "--link", self.link, *self._options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        readable, _, _ = select.select([self._process.stdout], [], [], START_S)
        if not readable or not self._process.stdout.readline().startswith("/dev/"):
            self.stop()
            raise AssertionError(f"the virtual board {self.name} did not start")
        return self

    def reset(self) -> None:
        """Press its reset button."""
        self._running().send_signal(signal.SIGUSR1)

    def press(self) -> None:
        """Let the physical thing happen that it watches: button, heat, blocked motor."""
        self._running().send_signal(signal.SIGUSR2)

    def hang(self) -> None:
        """Let its program hang, until `go_on`."""
        self._running().send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._running().send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Pull it out. Its name goes away with it."""
        if self._process is not None:
            self.go_on()  # a stopped one could not go
            self._process.terminate()
            self._process.communicate(timeout=START_S)
            self._process = None

    def _running(self) -> subprocess.Popen[str]:
        assert self._process is not None, f"{self.name} is not plugged in"
        return self._process

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()


@dataclass(frozen=True, slots=True)
class Running:
    gateway: Gateway
    url: str
    """Of the gateway; MCP is at /mcp below it."""


@contextlib.asynccontextmanager
async def running_gateway(boards: Sequence[VirtualBoard], *, online: bool = True, **config: Any) -> AsyncIterator[Running]:
    """A gateway in this process on a free port, over these boards. `online`: wait until all of them are; `config`: fields of `Config`."""
    with tempfile.TemporaryDirectory(prefix="mcpax-test-") as state_dir:
        defaults = Config(
            own_tools=False,
            port=0,
            state_dir=Path(state_dir),
            by_id_dirs=tuple({board.link.parent for board in boards}),
            bindings=tuple(board.binding for board in boards),
        )
        gateway = Gateway(replace(defaults, **config))
        async with gateway.running(), serving(gateway) as served:
            if online:
                await boards_online(gateway, ONLINE_S)
            yield Running(gateway, served.url)
