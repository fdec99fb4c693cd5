"""A board's line in a test's own hands: any bytes out, whole messages back, without a gateway in between.

Opens the port as the gateway does, exclusively and without resetting an Arduino. A board takes what it is sent in order, so to see that
something is *not* answered one asks a heartbeat behind it (`responses_before_heartbeat`) and waits for no time to pass.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import struct
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import serial

from hil.frames import FrameLog
from mcpax.bridge.maps.model import DeviceMap, ToolMap
from mcpax.bridge.transports.uart import (
    BITS_PER_BYTE,
    MIN_SILENCE_S,
    RESET_PULSE_S,
    SILENCE_BYTES,
    explain_open_error,
    keep_dtr_on_close,
)
from mcpax.bridge.wire.dialect import dialect_for
from mcpax.bridge.wire.framing import BREAK_OFF
from mcpax.bridge.wire.messages import Heartbeat, Message, Response, WireError

PATIENCE_S = 5.0
"""For an answer. An Arduino's bootloader alone takes two seconds before the firmware listens."""
ASK_AGAIN_S = 0.5
ASK_AGAIN_RESTARTED_S = 0.1
"""While it starts, a board does not hear: it is no sign that the line is slow."""
LATE = 10
"""How many times longer than on a wire a pause within a frame may be before it is given up: an emulated board waits for a core."""
SEQUENCES = 256
_DTR = struct.pack("I", termios.TIOCM_DTR)

_T = TypeVar("_T")


class LineError(Exception):
    """The line cannot be used, or the board does not answer on it."""


class Line:
    def __init__(self, port: str, device: DeviceMap, log: FrameLog) -> None:
        self._dialect = dialect_for(device)
        self._decoder = self._dialect.framing.decoder(self._dialect.max_message)
        self._log = log
        self._name = f"{log.board} on {port}"
        self._byte_s = BITS_PER_BYTE / device.port.baud
        self._silence_s = LATE * max(MIN_SILENCE_S, SILENCE_BYTES * self._byte_s)
        self._free_at = 0.0
        """When the line will have carried all that was sent."""
        self._heard: list[Message] = []
        self.seq = 0
        """Of the last call."""
        self.boot_id = 0
        try:
            self._port = serial.Serial(port, device.port.baud, exclusive=True, timeout=0)
            keep_dtr_on_close(self._port.fileno())
            self._port.reset_input_buffer()
        except (OSError, termios.error) as error:
            raise LineError(explain_open_error(port, error)) from error

    # --- to the board

    def send(self, message: bytes, *, after_noise: bool = False) -> None:
        """One message in a proper frame; `after_noise`: what stands before it on the line is ended first, as the gateway does."""
        self._log.add("tx", message)
        self._write((BREAK_OFF if after_noise else b"") + self.framed(message))

    def send_raw(self, data: bytes) -> None:
        self._log.add_raw(data)
        self._write(data)

    def framed(self, message: bytes) -> bytes:
        return self._dialect.framing.encode(message)

    def call_message(self, tool: ToolMap, raw: Sequence[Any], seq: int) -> bytes:
        return self._dialect.call(tool, seq, raw)

    # --- from the board

    def receive(self, wanted: Callable[[Message], _T | None], what: str, patience_s: float = PATIENCE_S) -> _T:
        """The first message that is wanted; those before it are forgotten."""
        found = self._until(wanted, time.monotonic() + patience_s)
        if found is None:
            raise LineError(f"{self._name}: {what}: nothing within {patience_s:g} s")
        return found

    def heartbeat(self, boot_id: int | None = None, *, patience_s: float = PATIENCE_S, ask_again_s: float = ASK_AGAIN_S) -> Heartbeat:
        """The board's answer to a heartbeat, asked again until it comes."""
        deadline = time.monotonic() + patience_s
        message = self._dialect.heartbeat(self.seq, self.boot_id if boot_id is None else boot_id)
        while time.monotonic() < deadline:
            self.send(message, after_noise=True)
            heartbeat = self._until(_as_heartbeat, min(deadline, self._free_at + ask_again_s))
            if heartbeat is not None:
                return heartbeat
        raise LineError(f"{self._name}: no answer to a heartbeat within {patience_s:g} s")

    def synchronise(self) -> Heartbeat:
        """Agree with the board on its boot and on sequences, as docs/wire-format.md §5 has it."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            heartbeat = self.heartbeat()
            if heartbeat.boot_id == self.boot_id and heartbeat.synchronised:
                self.seq = heartbeat.highest_seq
                return heartbeat
            self.boot_id = heartbeat.boot_id
        raise LineError(f"{self._name}: answers heartbeats and does not synchronise within {PATIENCE_S:g} s")

    def wait_for_restart(self) -> Heartbeat:
        """Until the board is in another boot than the one that is known. Does not synchronise with it."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            heartbeat = self.heartbeat(ask_again_s=ASK_AGAIN_RESTARTED_S)
            if heartbeat.boot_id != self.boot_id:
                self.boot_id = heartbeat.boot_id
                return heartbeat
        raise LineError(f"{self._name}: still in boot {self.boot_id}, {PATIENCE_S:g} s after its restart")

    def call(self, tool: ToolMap, raw: Sequence[Any]) -> Response:
        """A new call."""
        self.seq = (self.seq + 1) % SEQUENCES
        return self.ask(self.call_message(tool, raw, self.seq), self.seq)

    def ask(self, message: bytes, seq: int) -> Response:
        """Whatever is answered to this message, sent again until it is: on a busy machine a line to an emulated board loses bytes, too."""
        deadline = time.monotonic() + PATIENCE_S
        again = False
        while time.monotonic() < deadline:
            self.send(message, after_noise=again)
            response = self._until(
                lambda heard: heard if isinstance(heard, Response) and heard.seq == seq else None,
                min(deadline, self._free_at + ASK_AGAIN_S),
            )
            if response is not None:
                return response
            again = True
        raise LineError(f"{self._name}: answer to call {seq}: nothing within {PATIENCE_S:g} s")

    def result(self, tool: ToolMap, response: Response) -> list[Any]:
        return self._dialect.result(tool, response.payload)

    def responses_before_heartbeat(self) -> list[Response]:
        """What the board answers to all that was sent up to now; events are no answers."""
        responses: list[Response] = []

        def gather(message: Message) -> bool | None:
            if isinstance(message, Response):
                responses.append(message)
            return isinstance(message, Heartbeat) or None

        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            self.send(self._dialect.heartbeat(self.seq, self.boot_id), after_noise=True)
            if self._until(gather, min(deadline, self._free_at + ASK_AGAIN_S)):
                return responses
        raise LineError(f"{self._name}: silent since it was sent something it should have survived")

    def _until(self, wanted: Callable[[Message], _T | None], deadline: float) -> _T | None:
        while True:
            while self._heard:
                found = wanted(self._heard.pop(0))
                if found is not None:
                    return found
            if time.monotonic() >= deadline:
                return None
            self._listen(deadline)

    def _listen(self, deadline: float) -> None:
        wait_s = max(0.0, min(self._silence_s, deadline - time.monotonic()))
        try:
            readable, _, _ = select.select([self._port.fileno()], [], [], wait_s)
            messages = self._decoder.feed(self._port.read(4096)) if readable else self._decoder.silence()
        except (OSError, termios.error) as error:
            raise LineError(f"{self._name}: lost: {error}") from error
        for message in messages:
            self._log.add("rx", message)
            with contextlib.suppress(WireError):  # stands in the log as unreadable
                self._heard.append(self._dialect.decode(message))

    def _write(self, data: bytes) -> None:
        try:
            self._port.write(data)
        except (OSError, termios.error) as error:
            raise LineError(f"{self._name}: cannot be written to: {error}") from error
        self._free_at = max(self._free_at, time.monotonic()) + len(data) * self._byte_s

    def close(self) -> None:
        with contextlib.suppress(OSError, termios.error):
            # A pty that its other end keeps open stays exclusive, to nobody, until somebody says so.
            fcntl.ioctl(self._port.fileno(), termios.TIOCNXCL)
        self._port.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def pulse_reset(port: str) -> None:
    """Press the reset button of a board whose DTR line is one, also while the gateway or a test has its port open."""
    own = _own_descriptor(port)
    try:
        fd = os.open(port, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK) if own is None else os.dup(own)
    except OSError as error:
        raise LineError(explain_open_error(port, error)) from error
    try:
        fcntl.ioctl(fd, termios.TIOCMBIC, _DTR)
        time.sleep(RESET_PULSE_S)
        fcntl.ioctl(fd, termios.TIOCMBIS, _DTR)
    except OSError as error:
        raise LineError(f"{port}: its DTR line cannot be moved: {error.strerror}. Give the board another reset command, or none") from error
    finally:
        os.close(fd)


def _own_descriptor(port: str) -> int | None:
    """Of the port, if this process has it open: exclusive ports cannot be opened twice, and who runs the tests runs the gateway."""
    device = os.path.realpath(port)
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # one that has been closed meanwhile
            if os.readlink(link) == device:
                return int(link.name)
    return None


def _as_heartbeat(message: Message) -> Heartbeat | None:
    return message if isinstance(message, Heartbeat) else None
