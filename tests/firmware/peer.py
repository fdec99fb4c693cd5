"""A chip's peer: the same library, map and application, compiled for this machine, to be given what the chip is given (peer/peer.c)."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

from mcpax.bridge.maps.header import render_header
from mcpax.bridge.maps.load import load_map

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests/firmware"
FIRMWARE = ROOT / "firmware"
PEERS = ROOT / "build/peers"
FLAGS = ("-std=gnu99", "-O1", "-g", "-Wall", "-Wextra", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@dataclass(frozen=True)
class Application:
    """What a peer and a chip's image have in common."""

    map: Path
    sources: tuple[Path, ...]
    options: tuple[str, ...] = ()


@cache
def build(application: Application) -> Path:
    folder = PEERS / application.map.stem
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mcpax_map.h").write_text(render_header(load_map(application.map)))
    include = (folder, TESTS / "peer", FIRMWARE / "lib/mcpax/include", FIRMWARE / "lib/mcpax/src", FIRMWARE / "ports")
    sources = (TESTS / "peer/peer.c", *application.sources, *sorted((FIRMWARE / "lib/mcpax/src").glob("*.c")))
    program = folder / "peer"
    command = ["cc", *FLAGS, *application.options, *(f"-I{path}" for path in include), "-o", str(program), *map(str, sources)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return program


@dataclass(frozen=True)
class Reaction:
    sent: bytes
    waiting: int
    """Received bytes of a frame that is not complete."""
    moved: bool
    """A pin was switched on."""


class Peer:
    """One boot of it."""

    def __init__(self, program: Path, boot_id: int) -> None:
        self._process = subprocess.Popen([str(program), str(boot_id)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.at_boot = self._reaction()

    def receive(self, data: bytes) -> Reaction:
        """Bytes, and a tick behind them."""
        return self._happen(f"receive {data.hex()}")

    def silence(self) -> Reaction:
        return self._happen("silence")

    def press(self) -> Reaction:
        return self._happen("press")

    def tick(self, count: int) -> Reaction:
        return self._happen(f"tick {count}")

    def _happen(self, what: str) -> Reaction:
        assert self._process.stdin is not None
        self._process.stdin.write(what + "\n")
        return self._reaction()

    def _reaction(self) -> Reaction:
        assert self._process.stdout is not None
        words = self._process.stdout.readline().split()
        assert words, f"the peer ended with status {self._process.wait()}: its message is above"
        return Reaction(bytes.fromhex(words[0].strip("-")), int(words[1]), words[2] == "1")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.communicate()
