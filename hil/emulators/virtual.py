"""A virtual board (firmware/virtual) behind the same commands as the chips: the library compiled for this machine.

The "image" is the virtual board's program, which has a terminal of its own; what passes between it and the host passes through here. There
is no chip, so cycles, stack and memory are not known. Quick to start: good for testing the rig itself.
"""

from __future__ import annotations

import contextlib
import os
import random
import select
import signal
import subprocess
import tty
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hil.emulators.board import NEVER, BoardError, Chip, Stats, main

BAUD = 115_200
READ_BYTES = 4096
START_S = 5.0
MAX_SEED = 0xFFFF_FFFF
HINT = "a virtual board is made by: make -C firmware virtual"


class _Program:
    """A virtual board's program, running."""

    def __init__(self, image: Path, seed: int, baud: int) -> None:
        self.image = image
        command = [str(image.resolve()), "--baud", str(baud), "--seed", str(seed)]
        try:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        except OSError as error:
            raise BoardError(f"{image}: cannot be run: {error.strerror}; {HINT}") from error
        assert self._process.stdout is not None
        readable, _, _ = select.select([self._process.stdout], [], [], START_S)
        terminal = self._process.stdout.readline().strip() if readable else ""
        if not terminal.startswith("/dev/"):
            self._process.kill()
            self._process.communicate()
            raise BoardError(f"{image}: does not start as a virtual board does; {HINT}")
        self.line = os.open(terminal, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        tty.setraw(self.line)

    def reset(self) -> None:
        self._process.send_signal(signal.SIGUSR1)

    def end(self) -> None:
        os.close(self.line)
        self._process.kill()  # power does not ask
        self._process.communicate()


class VirtualChip(Chip):
    hungry = True

    def __init__(self, unpaced: bool) -> None:
        super().__init__()
        self._baud = 0 if unpaced else BAUD
        self._seeds = random.Random(1)
        self._image: Path | None = None
        self._program: _Program | None = None

    def descriptors(self) -> Sequence[int]:
        return () if self._program is None else (self._program.line,)

    def receive(self, data: bytes, now: float) -> None:  # noqa: ARG002 - the program keeps the pace itself
        if self._program is not None:
            with contextlib.suppress(BlockingIOError):
                self.counts.rx += os.write(self._program.line, data)

    def run(self, now: float) -> float:  # noqa: ARG002
        with contextlib.suppress(OSError):  # nothing to read, or the program has just ended
            for byte in b"" if self._program is None else os.read(self._program.line, READ_BYTES):
                if self._program is not None:  # the power may go with any byte
                    self.counts.tx += 1
                    self.transmit(byte)
        return NEVER

    def load(self, image: Path) -> None:
        self._started(image).end()
        self._image = image

    def reset(self) -> None:
        if self._program is not None and self._program.image == self._image:
            self._program.reset()
        else:
            self._begin()

    def power_on(self, noise: random.Random) -> None:
        self._seeds = noise
        self._begin()

    def power_off(self) -> None:
        if self._program is not None:
            self._program.end()
            self._program = None

    def peek(self, address: int, length: int) -> bytes:  # noqa: ARG002
        raise BoardError("a virtual board has no memory to look into; use an emulated chip")

    def measured(self) -> Stats:
        return replace(self.counts, rx_overruns=None)

    def forget_stack(self) -> None:
        """There is none."""

    def _begin(self) -> None:
        self.power_off()
        if self._image is not None:
            self._program = self._started(self._image)

    def _started(self, image: Path) -> _Program:
        return _Program(image, self._seeds.randint(1, MAX_SEED), self._baud)


if __name__ == "__main__":
    main(VirtualChip, __doc__.splitlines()[0] if __doc__ else "")
