"""One face for emulated and real boards: a port for whoever talks to it, and hands for firmware, reset button and plug.

What a board cannot do stands in its capabilities; asking for it all the same is an error. Knows nothing of tests or leases.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from hil.build import how_to_build
from hil.control import ControlSocket, Json, control_path
from hil.emulator import KINDS, Emulator, EmulatorError, Stats
from hil.frames import FrameLog
from hil.line import LineError, pulse_reset
from hil.places import PORTS, ROOT
from hil.rig import DTR, LACKING, BoardSpec, Capability
from mcpax.bridge.maps.model import DeviceMap

COMMAND_PATIENCE_S = 180.0
"""For a flash command, which may build first, on a small computer."""
PORT_PATIENCE_S = 15.0
"""For the port of a real board to come back after power on: USB takes its time."""
LOOK_EVERY_S = 0.05
TOLD_CHARS = 2000


class BoardError(Exception):
    """A board did not do what it was told; says which, what, and what was said meanwhile."""


class Board(ABC):
    """A board that is held; leaving its `with` block gives it back."""

    def __init__(self, spec: BoardSpec, *, fresh: bool) -> None:
        self.spec = spec
        self.fresh = fresh
        """It has just been given its firmware: flashing it again would change nothing."""
        self.log = FrameLog(spec.name, spec.map)
        """All that is said on its line, by whoever speaks."""
        self.recovery: list[str] = []
        """What had to be done before it answered; empty as a rule."""

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def map(self) -> DeviceMap:
        return self.spec.map

    @property
    @abstractmethod
    def port(self) -> str:
        """What the gateway is to open."""

    @abstractmethod
    def flash(self, image: Path | None = None) -> None:
        """None: the firmware that belongs on it."""

    @abstractmethod
    def reset(self) -> None: ...

    @abstractmethod
    def power_off(self) -> None: ...

    @abstractmethod
    def power_on(self) -> None: ...

    @abstractmethod
    def cut(self, after_bytes: int) -> None:
        """Let its power go by itself when so many more bytes have left it."""

    @abstractmethod
    def stats(self) -> Stats | None:
        """None if nobody counts."""

    def close(self) -> None:  # noqa: B027 - of a real board nothing is ours to end
        """End what was started for it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class EmulatedBoard(Board):
    def __init__(self, spec: BoardSpec, *, seed: int = 1, directory: Path = PORTS) -> None:
        super().__init__(spec, fresh=True)
        self._link = directory / f"usb-mcpax_{spec.name}-if00"
        self._seed = seed
        self._emulator = self._started()
        self._control = ControlSocket(control_path(self._link), self._obey)

    @property
    def port(self) -> str:
        return str(self._link)

    @property
    def pid(self) -> int:
        """Of its emulator."""
        return self._emulator.pid

    def flash(self, image: Path | None = None) -> None:
        """Also the way back for a board whose emulator has ended."""
        if not self._emulator.alive:
            self._emulator.close()
            self._emulator = self._started()
            if image is None:
                return
        self._do(lambda: self._emulator.load(_existing(self.spec, image or self.spec.image)))

    def reset(self) -> None:
        self._do(self._emulator.reset)

    def power_off(self) -> None:
        self._do(self._emulator.power_off)

    def power_on(self) -> None:
        self._do(self._emulator.power_on)

    def cut(self, after_bytes: int) -> None:
        self._do(lambda: self._emulator.cut(after_bytes))

    def stats(self) -> Stats | None:
        try:
            return self._emulator.stats()
        except EmulatorError as error:
            raise BoardError(f"{self.name}: {error}") from error

    def peek(self, address: int, length: int) -> bytes:
        """Its RAM, while it runs."""
        try:
            return self._emulator.peek(address, length)
        except EmulatorError as error:
            raise BoardError(f"{self.name}: {error}") from error

    def close(self) -> None:
        self._control.close()
        self._emulator.close()

    def _started(self) -> Emulator:
        self._link.parent.mkdir(parents=True, exist_ok=True)
        image = _existing(self.spec, self.spec.image)
        emulator = Emulator(KINDS[self.spec.emulator or ""], self._link, image=image, seed=self._seed)
        self._do(emulator.start)
        return emulator

    def _do(self, action: Callable[[], object]) -> None:
        try:
            action()
        except EmulatorError as error:
            raise BoardError(f"{self.name}: {error}") from error

    def _obey(self, command: str) -> Json:
        return self._emulator.tell(command)


class RealBoard(Board):
    """A board on the bench, moved by the commands of its rig."""

    def __init__(self, spec: BoardSpec, held_by: Sequence[int] = ()) -> None:
        super().__init__(spec, fresh=False)
        self._held_by = held_by

    @property
    def port(self) -> str:
        return self.spec.port or ""

    def flash(self, image: Path | None = None) -> None:
        self._run(Capability.FLASH, self.spec.flash, image)
        self.fresh = True
        self._wait_for_port()

    def reset(self) -> None:
        if self.spec.reset != DTR:
            self._run(Capability.RESET, self.spec.reset)
            return
        try:
            pulse_reset(self.port)
        except LineError as error:
            raise BoardError(f"{self.name}: reset: {error}") from error

    def power_off(self) -> None:
        self._run(Capability.POWER, self.spec.power_off)

    def power_on(self) -> None:
        self._run(Capability.POWER, self.spec.power_on)
        self._wait_for_port()

    def cut(self, after_bytes: int) -> None:  # noqa: ARG002 - no command could do it in time
        raise _cannot(self.spec, Capability.CUT)

    def stats(self) -> Stats | None:
        return None

    def _run(self, capability: Capability, command: str | None, image: Path | None = None) -> None:
        if command is None:
            raise _cannot(self.spec, capability)
        values = {"env": self.spec.env, "port": self.port, "image": str(image or self.spec.image)}
        run_command(self.name, command.format(**{name: shlex.quote(value) for name, value in values.items()}), inherits=self._held_by)

    def _wait_for_port(self) -> None:
        deadline = time.monotonic() + PORT_PATIENCE_S
        while not os.path.exists(self.port):
            if time.monotonic() > deadline:
                raise BoardError(f"{self.name}: its port {self.port} did not come back within {PORT_PATIENCE_S:g} s")
            time.sleep(LOOK_EVERY_S)


def open_board(spec: BoardSpec, *, seed: int = 1, directory: Path = PORTS, held_by: Sequence[int] = ()) -> Board:
    """`held_by`: open files that must stay open as long as anything moves the board."""
    return EmulatedBoard(spec, seed=seed, directory=directory) if spec.emulator is not None else RealBoard(spec, held_by)


def run_command(board: str, command: str, patience_s: float = COMMAND_PATIENCE_S, *, inherits: Sequence[int] = ()) -> None:
    """A command of the rig, by the shell, at the top of the source tree; ended with all it started if it takes too long, or if we are
    told to end. `inherits`: open files that it gets; should we be killed, they stay open until it has ended, too."""
    process = subprocess.Popen(
        command,
        shell=True,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # so Ctrl-C does not reach it
        pass_fds=inherits,
    )
    try:
        said, _ = process.communicate(timeout=patience_s)
        problem = f"exit code {process.returncode}" if process.returncode else ""
    except subprocess.TimeoutExpired:
        said, problem = _killed(process), f"not done within {patience_s:g} s"
    except BaseException:
        _killed(process)  # a flash tool must not go on writing to a board that is given back
        raise
    if problem:
        told = said.decode(errors="replace").strip()[-TOLD_CHARS:]
        raise BoardError(f"{board}: {problem}: {command}\n    {told or '(it said nothing)'}")


def _killed(process: subprocess.Popen[bytes]) -> bytes:
    """With all it started; what it said."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.communicate()[0]


def _cannot(spec: BoardSpec, capability: Capability) -> BoardError:
    return BoardError(f"{spec.name}: {LACKING[capability]}")


def _existing(spec: BoardSpec, image: Path) -> Path:
    if image.exists():
        return image
    how = how_to_build(spec) if image == spec.image else ""
    raise BoardError(f"{spec.name}: there is no firmware {image}{f'; build it with: {how}' if how else ''}")
