"""UART: a serial port on the event loop, through pyserial-asyncio.

Owns the port, its framing and its pace. A port is taken exclusively, without resetting an Arduino unless asked to, and a device that
does not read, or writes faster than its line could carry, costs nobody else anything. Knows nothing of what messages mean.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import termios
import time
from typing import Any

import serial
import serial_asyncio

from mcpax.bridge.transport import Receiver, WireLimits
from mcpax.bridge.wire.framing import BREAK_OFF, Framing

BITS_PER_BYTE = 10
"""8N1: a start bit, eight of data, a stop bit."""
MAX_UNSENT_BYTES = 4096
"""A board that stops reading gets nothing more until it reads again."""
SILENCE_BYTES = 20
MIN_SILENCE_S = 0.02
"""A frame that is begun and then interrupted for longer than this is given up (docs/wire-format.md §1.1)."""
FLOOD_FACTOR = 16
"""How many times faster than its baud rate a port may deliver for long; USB ports ignore the baud rate, but not by this much."""
FLOOD_BURST_BYTES = 65536
RESET_PULSE_S = 0.05


class PortError(Exception):
    """The port cannot be used; says which, why and what to do."""


async def open_uart(path: str, baud: int, framing: Framing, max_message: int, *, reset_on_open: bool = False) -> UartTransport:
    """Open a port, or raise `PortError`."""
    port = await asyncio.to_thread(_open, path, baud, reset_on_open)
    transport = UartTransport(framing, max_message, baud)
    loop = asyncio.get_running_loop()
    transport.attach(serial_asyncio.SerialTransport(loop, transport, port))
    return transport


def _open(path: str, baud: int, reset_on_open: bool) -> serial.Serial:
    try:
        port = serial.Serial(path, baud, exclusive=True, timeout=0, write_timeout=0)
    except (OSError, ValueError) as error:
        raise PortError(explain_open_error(path, error)) from error
    try:
        fcntl.ioctl(port.fileno(), termios.TIOCEXCL)
        keep_dtr_on_close(port.fileno())
        with contextlib.suppress(ValueError, OSError):
            port.set_low_latency_mode(True)  # an FTDI chip otherwise holds short answers back for 16 ms
        if reset_on_open:
            pulse_dtr(port)
        port.reset_input_buffer()
    except (OSError, termios.error) as error:
        port.close()
        raise PortError(explain_open_error(path, error)) from error
    return port


def explain_open_error(path: str, error: Exception) -> str:
    """The reason in plain words, with what to do."""
    text = str(error)
    match getattr(error, "errno", None):
        case 2:
            return f"{path}: no such port. Is the board plugged in?"
        case 13:
            return f"{path}: permission denied. Add the user to the group dialout (sudo usermod -aG dialout USER) and log in again."
        case 16:
            return f"{path}: in use. Another program has the port open; 'mcpax doctor' tells which."
        case 11:
            return f"{path}: locked by another program; 'mcpax doctor' tells which."
    return f"{path}: cannot be opened: {text}"


def keep_dtr_on_close(fd: int) -> None:
    """Clear HUPCL: otherwise closing drops DTR, the next open raises it, and that edge resets an Arduino."""
    attributes = termios.tcgetattr(fd)
    attributes[2] &= ~termios.HUPCL
    termios.tcsetattr(fd, termios.TCSANOW, attributes)


def pulse_dtr(port: serial.Serial) -> None:
    with contextlib.suppress(OSError):  # a pty has no such line
        port.dtr = False
        time.sleep(RESET_PULSE_S)
        port.dtr = True


class UartTransport(asyncio.Protocol):
    """One open port."""

    def __init__(self, framing: Framing, max_message: int, baud: int) -> None:
        self.limits = WireLimits(max_message, BITS_PER_BYTE / baud)
        self._framing = framing
        self._decoder = framing.decoder(max_message)
        self.counters = self._decoder.counters
        self._silence_s = max(MIN_SILENCE_S, SILENCE_BYTES * self.limits.byte_s)
        self._loop = asyncio.get_running_loop()
        self._port: Any = None
        self._receiver: Receiver | None = None
        self._silence: asyncio.TimerHandle | None = None
        self._allowance = float(FLOOD_BURST_BYTES)
        self._allowance_at = self._loop.time()
        self._closed = False

    def attach(self, port: serial_asyncio.SerialTransport) -> None:
        self._port = port
        port.pause_reading()

    def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        if self._port is not None:
            self._port.resume_reading()

    def send(self, message: bytes, *, again: bool = False) -> bool:
        if self._closed or self._port is None or self._port.get_write_buffer_size() > MAX_UNSENT_BYTES:
            return False
        self._port.write((BREAK_OFF if again else b"") + self._framing.encode(message))
        return True

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._silence is not None:
            self._silence.cancel()
        if self._port is not None:
            with contextlib.suppress(OSError, termios.error, AttributeError):
                # Closing would wait for unsent bytes to drain, and with it the whole event loop.
                self._port.serial.reset_output_buffer()
                # A pty that its other end keeps open stays exclusive, to nobody, until somebody says so.
                fcntl.ioctl(self._port.serial.fileno(), termios.TIOCNXCL)
            if not self._port.is_closing():  # pyserial-asyncio would close twice, and trip over what is no longer there
                self._port.abort()

    # --- asyncio.Protocol

    def data_received(self, data: bytes) -> None:
        if self._closed or self._receiver is None:
            return
        self._throttle(len(data))
        for message in self._decoder.feed(data):
            self._receiver.message_received(message)
        if self._silence is not None:
            self._silence.cancel()
        self._silence = self._loop.call_later(self._silence_s, self._fell_silent)

    def connection_lost(self, exc: Exception | None) -> None:
        self._port = None
        if not self._closed:
            self._closed = True
            if self._silence is not None:
                self._silence.cancel()
            if self._receiver is not None:
                self._receiver.transport_lost("unplugged" if exc is not None else "port_closed")

    def _fell_silent(self) -> None:
        self._silence = None
        for message in self._decoder.silence():
            if self._receiver is not None:
                self._receiver.message_received(message)

    def _throttle(self, received: int) -> None:
        """Stop reading for a while from a port that delivers more than its line could carry."""
        now = self._loop.time()
        rate = FLOOD_FACTOR / self.limits.byte_s
        self._allowance = min(FLOOD_BURST_BYTES, self._allowance + (now - self._allowance_at) * rate) - received
        self._allowance_at = now
        if self._allowance < 0:
            self._port.pause_reading()
            self._loop.call_later(-self._allowance / rate + 0.01, self._resume)

    def _resume(self) -> None:
        if not self._closed and self._port is not None:
            self._port.resume_reading()
