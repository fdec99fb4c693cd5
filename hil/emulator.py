"""The driver of an emulated board's process: one command a line in, one JSON object a line out (docs/hil.md).

A process that dies, hangs or talks nonsense is an error that carries what it last said on stderr; one that hangs is ended, because from
then on nobody could tell which answer belongs to which command. Knows nothing of chips, frames or tests.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from hil.places import ROOT

Json = dict[str, Any]

PATIENCE_S = 10.0
"""For any answer. Nothing takes this long unless it is broken."""
QUIT_S = 3.0
"""To end in order when told so."""
MAX_LINE_BYTES = 1 << 20
STDERR_TAIL_CHARS = 2000

_PROGRAMS = ROOT / "build/emulators"
KINDS: dict[str, tuple[str, ...]] = {
    "avr": (str(_PROGRAMS / "avr"),),
    "msp430": (str(_PROGRAMS / "msp430"),),
    "stm32l0": (sys.executable, "-m", "hil.emulators.stm32l0"),
    "microbit": (sys.executable, "-m", "hil.emulators.microbit"),
    "mcs51": (sys.executable, "-m", "hil.emulators.mcs51"),
    "virtual": (sys.executable, "-m", "hil.emulators.virtual"),
}
"""The commands that run each kind of emulated board."""


class EmulatorError(Exception):
    """An emulated board cannot be used; says which, why, and what it last said."""


class EmulatorRefused(EmulatorError):
    """It did not obey one command, and goes on."""


@dataclass(frozen=True, slots=True)
class Stats:
    """What an emulator counted; None where it cannot know."""

    cycles: int | None = None
    busy_cycles: int | None = None
    """Not asleep."""
    stack_max: int | None = None
    """Bytes below the top of RAM that were ever used."""
    stack_worst: int | None = None
    """The same, had the deepest interrupt come when the program was deepest."""
    rx: int | None = None
    tx: int | None = None
    """Bytes into the chip, and out of it."""
    rx_overruns: int | None = None
    """Bytes lost because the program did not fetch them in time."""
    resets: int | None = None
    watchdog_resets: int | None = None
    turnaround_cycles: int | None = None
    """From the last byte of a request to the first of its answer, in the last exchange."""
    turnaround_cycles_max: int | None = None
    exchange_cycles: int | None = None
    """From the first bit of a request to the last of its answer, in the last exchange: a round trip by the chip's own clock."""
    fault: str | None = None
    """Why the chip stopped, if it did."""

    @classmethod
    def from_json(cls, answer: Json) -> Self:
        return cls(**{field.name: answer.get(field.name) for field in fields(cls)})


class Emulator:
    """One process. `command` is what runs it, without the options that all emulators share."""

    def __init__(
        self,
        command: Sequence[str],
        link: Path,
        *,
        image: Path | None = None,
        seed: int = 1,
        unpaced: bool = False,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.link = link
        self.port = ""
        """The terminal that the link leads to."""
        self._name = " ".join((*(Path(part).name for part in command[:1]), *command[1:]))
        self._command = [*command, "--link", str(link), "--seed", str(seed)]
        self._command += ["--image", str(image)] if image is not None else []
        self._command += ["--unpaced"] if unpaced else []
        self._patience_s = patience_s
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process; never full, unlike a pipe
        self._buffer = b""
        self._turn = threading.Lock()

    @property
    def pid(self) -> int:
        if self._process is None:
            raise EmulatorError(f"{self._name}: is not running")
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> Self:
        try:
            # A session of its own: Ctrl-C at the terminal is for the tests, which then end their boards in order.
            self._process = subprocess.Popen(
                self._command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr, start_new_session=True
            )
        except OSError as error:
            hint = "C emulators are made by: make -C hil/emulators"
            raise EmulatorError(f"{self._name}: cannot be started: {error.strerror}: {self._command[0]}. {hint}") from error
        try:
            ready = self._answer("to start")
            if ready.get("ready") is not True:
                raise self._failure(f"began with {ready}, not with a ready line")
        except EmulatorError:
            self.close()
            raise
        self.port = str(ready.get("port", ""))
        return self

    def tell(self, command: str) -> Json:
        """Give a command and return its answer; raises `EmulatorRefused` if it says no."""
        with self._turn:
            if self._process is None or self._process.stdin is None:
                raise EmulatorError(f"{self._name}: is not running")
            try:
                self._process.stdin.write(f"{command}\n".encode())
                self._process.stdin.flush()
            except OSError:
                raise self._failure(f"ended before {command!r}") from None
            answer = self._answer(f"to {command!r}")
        if answer.get("ok") is not True:
            raise EmulatorRefused(f"{self._name}: {command}: {answer.get('error', answer)}")
        return answer

    def load(self, image: Path) -> None:
        self.tell(f"load {image}")

    def reset(self) -> None:
        self.tell("reset")

    def press(self) -> None:
        """Hold the board's button down, until `release`."""
        self.tell("press")

    def release(self) -> None:
        self.tell("release")

    def power_off(self) -> None:
        self.tell("power off")

    def power_on(self) -> None:
        self.tell("power on")

    def cut(self, after_bytes: int) -> None:
        """Let the power go when so many more bytes have left the chip."""
        self.tell(f"cut {after_bytes}")

    def stats(self, *, anew: bool = False) -> Stats:
        """`anew`: count from zero after this."""
        return Stats.from_json(self.tell("stats reset" if anew else "stats"))

    def peek(self, address: int, length: int) -> bytes:
        return bytes.fromhex(str(self.tell(f"peek {address:#x} {length}")["hex"]))

    def close(self) -> None:
        """End it, in order if it still listens. Safe to call twice."""
        if self._process is None:
            return
        with contextlib.suppress(OSError, ValueError, subprocess.TimeoutExpired):
            self._process.communicate(b"quit\n", timeout=QUIT_S)
        self._kill()
        self._process = None
        self._stderr.close()

    def _kill(self) -> None:
        """The whole session: what an emulator itself has started must not outlive it."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _answer(self, to_what: str) -> Json:
        line = self._line(to_what)
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            self._kill()
            raise self._failure(f"answered {to_what} with {line[:200]!r}, which is no JSON object")
        return answer

    def _line(self, to_what: str) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        stdout = self._process.stdout.fileno()
        deadline = time.monotonic() + self._patience_s
        while b"\n" not in self._buffer:
            readable, _, _ = select.select([stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not readable or len(self._buffer) > MAX_LINE_BYTES:
                self._kill()
                raise self._failure(f"did not answer {to_what} within {self._patience_s:g} s and was ended")
            data = os.read(stdout, 65536)
            if not data:
                raise self._failure(f"ended with exit code {self._process.wait()} instead of answering {to_what}")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _failure(self, what: str) -> EmulatorError:
        self._stderr.seek(0)
        said = self._stderr.read().decode(errors="replace").strip()[-STDERR_TAIL_CHARS:]
        return EmulatorError(f"{self._name}: {what}\n    stderr: {said or '(empty)'}")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
