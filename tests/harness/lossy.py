"""A lossy serial line between a gateway and a board: of its own process, seeded, and keeping a record of the truth.

    gateway ── pty ── [ this process ] ── the board's pty

It knows where frames begin and end, so faults happen to frames: a frame is dropped, damaged by one to three flipped bits or a short
burst, sent twice, or cut in two with a pause between the halves, sometimes longer than the silence that gives up a frame. Each kind is
counted. What the gateway sent and what the board said is written down in order at the clean ends: a board says something for every
call it runs, so that is what really happened, whatever was reported.

    with LossyLine(board.link, by_id / "usb-…", map_file, tmp_path / "record", seed=1) as line:
        …
    line.stats, line.truth()
"""

from __future__ import annotations

import argparse
import contextlib
import heapq
import itertools
import json
import os
import pty
import random
import select
import signal
import struct
import subprocess
import sys
import time
import tty
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from mcpax.bridge.maps.load import load_map
from mcpax.bridge.maps.model import DeviceMap
from mcpax.bridge.wire.dialect import Dialect, dialect_for
from mcpax.bridge.wire.framing import Decoder

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("drop", "corrupt", "twice", "split")
FAULTY = 0.2
"""Of the frames of each direction."""
SHORT_PAUSE_S = (0.0005, 0.004)
LONG_PAUSE_S = (0.025, 0.040)
"""Longer than the silence that gives up a frame: such a frame is lost."""
LONG_PAUSE_PART = 0.1
READ_BYTES = 4096
_RECORD = struct.Struct(">BdH")


class Seen(NamedTuple):
    """A frame at the end where it went in."""

    to_board: bool
    at: float
    message: bytes


class _Direction:
    """Takes a stream apart into frames, and lets something happen to some of them."""

    def __init__(self, decoder: Decoder, rate: float, dice: random.Random, send: Callable[[float, bytes], None]) -> None:
        self._decoder = decoder
        self._raw = bytearray()
        self.rate = rate
        self._dice = dice
        self._send = send
        self.counts: Counter[str] = Counter()
        self.free_at = 0.0

    def feed(self, data: bytes) -> list[bytes]:
        """Pass on what came in, one frame at a time, with the bytes in front of it."""
        found = []
        for byte in data:
            self._raw.append(byte)
            for message in self._decoder.feed(bytes((byte,))):
                self._pass(bytes(self._raw))
                self._raw.clear()
                found.append(message)
        return found

    def _pass(self, frame: bytes) -> None:
        self.counts["frames"] += 1
        dice, now = self._dice, max(time.monotonic(), self.free_at)
        if dice.random() >= self.rate:
            self._put(now, frame)
            return
        kind = dice.choice(KINDS)
        self.counts[kind] += 1
        if kind == "corrupt":
            self._put(now, _damaged(frame, dice))
        elif kind == "twice":
            self._put(now, frame + frame)
        elif kind == "split":
            cut = dice.randrange(1, len(frame))
            pause = dice.uniform(*(LONG_PAUSE_S if dice.random() < LONG_PAUSE_PART else SHORT_PAUSE_S))
            self._put(now, frame[:cut])
            self._put(now + pause, frame[cut:])

    def _put(self, at: float, data: bytes) -> None:
        self.free_at = max(self.free_at, at)  # nothing overtakes on a line
        self._send(self.free_at, data)


def _damaged(frame: bytes, dice: random.Random) -> bytes:
    damaged = bytearray(frame)
    if dice.random() < 0.5:
        for bit in dice.sample(range(len(frame) * 8), dice.randint(1, 3)):
            damaged[bit // 8] ^= 1 << bit % 8
    else:
        start = dice.randrange(len(frame))
        for at in range(start, min(start + dice.randint(1, 2), len(frame))):
            damaged[at] ^= dice.randint(1, 255)
    return bytes(damaged)


class _Line:
    """The process: two ends, a queue of bytes that are on their way, and commands on standard input."""

    def __init__(self, device: DeviceMap, board: str, link: Path, record: Path, *, seed: str, rate: float) -> None:
        dialect = dialect_for(device)
        self._board = os.open(board, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        tty.setraw(self._board)
        self._gateway, slave = pty.openpty()
        tty.setraw(slave)  # stays open: the gateway may close its end and come again
        os.set_blocking(self._gateway, False)
        self._link = link
        self._record = record.open("wb")
        self._order = itertools.count()
        self._queue: list[tuple[float, int, int, bytes]] = []
        self._to_board = self._direction(dialect, f"{seed}/to board", rate, self._board)
        self._to_gateway = self._direction(dialect, f"{seed}/to gateway", rate, self._gateway)
        temporary = link.with_name(f"{link.name}.{os.getpid()}")
        temporary.symlink_to(os.ttyname(slave))
        temporary.rename(link)

    def _direction(self, dialect: Dialect, seed: str, rate: float, target: int) -> _Direction:
        def send(at: float, data: bytes) -> None:
            heapq.heappush(self._queue, (at, next(self._order), target, data))

        return _Direction(dialect.framing.decoder(max(dialect.max_message, 1024)), rate, random.Random(seed), send)

    def run(self) -> None:
        print("ready", flush=True)
        ends = [self._board, self._gateway, sys.stdin.fileno()]
        with contextlib.suppress(OSError):  # an end is gone: so is the line
            while True:
                wait = max(0.0, self._queue[0][0] - time.monotonic()) if self._queue else None
                readable, _, _ = select.select(ends, [], [], wait)
                if sys.stdin.fileno() in readable and not self._obey():
                    break
                if self._gateway in readable:
                    for message in self._to_board.feed(os.read(self._gateway, READ_BYTES)):
                        self._write_down(True, message)
                if self._board in readable:
                    for message in self._to_gateway.feed(os.read(self._board, READ_BYTES)):
                        self._write_down(False, message)
                self._deliver()
        self._link.unlink(missing_ok=True)
        self._record.close()

    def _deliver(self) -> None:
        while self._queue and self._queue[0][0] <= time.monotonic():
            _, _, target, data = heapq.heappop(self._queue)
            with contextlib.suppress(BlockingIOError):
                os.write(target, data)

    def _write_down(self, to_board: bool, message: bytes) -> None:
        self._record.write(_RECORD.pack(to_board, time.monotonic(), len(message)) + message)

    def _obey(self) -> bool:
        command, *values = sys.stdin.readline().split() or ["end"]
        if command == "rate":
            self._to_board.rate = self._to_gateway.rate = float(values[0])
        self._record.flush()
        print(json.dumps({"to_board": self._to_board.counts, "to_gateway": self._to_gateway.counts}), flush=True)
        return command != "end"


class LossyLine:
    """A lossy line in its own process, seen from the test."""

    def __init__(self, board: Path, link: Path, map_file: Path, record: Path, *, seed: int, rate: float = FAULTY) -> None:
        self.link = link
        self.seed = seed
        self.stats: dict[str, dict[str, int]] = {}
        self._record = record
        self._arguments = [str(map_file), os.path.realpath(board), str(link), str(seed), str(rate), str(self._record)]
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.harness.lossy", *self._arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n", "the lossy line did not start"
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._process is not None
        with contextlib.suppress(OSError, ValueError):
            self.tell("end")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.communicate(timeout=5)
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.communicate()

    def tell(self, command: str) -> dict[str, dict[str, int]]:
        """`rate X` changes the part of frames that suffer; anything else only asks for the counts."""
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        self.stats = json.loads(self._process.stdout.readline())
        return self.stats

    def faults(self) -> Counter[str]:
        """Both directions together, by kind."""
        total: Counter[str] = Counter()
        for counts in self.stats.values():
            total.update(counts)
        return total

    def truth(self) -> Iterator[Seen]:
        """What the gateway sent, and what the board said, in order."""
        data = self._record.read_bytes()
        at = 0
        while at + _RECORD.size <= len(data):
            to_board, when, size = _RECORD.unpack_from(data, at)
            at += _RECORD.size
            yield Seen(bool(to_board), when, data[at : at + size])
            at += size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("map", "board", "link", "seed", "rate", "record"):
        parser.add_argument(name)
    given: Any = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    _Line(load_map(Path(given.map)), given.board, Path(given.link), Path(given.record), seed=given.seed, rate=float(given.rate)).run()


if __name__ == "__main__":
    main()
