"""A place for one board: finds its port, opens it, serves the board on it, and starts over when it is lost.

Lives as long as the gateway. Backs off from a port that does not work, and forgets the back-off as soon as something is plugged in anew.
Knows nothing of what boards say.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable
from datetime import UTC, datetime

import structlog

from mcpax.bridge.counters import DeviceCounters
from mcpax.bridge.device import GATEWAY_STOPPED, Binding, Device, Registered, Upstream
from mcpax.bridge.frames import FrameReader, Json
from mcpax.bridge.ports import Port
from mcpax.bridge.toolset import Toolset
from mcpax.bridge.transports.uart import PortError, UartTransport, open_uart
from mcpax.bridge.wire.dialect import dialect_for

FIRST_BACKOFF_S = 0.25
MAX_BACKOFF_S = 5.0
MAX_BACKOFF_ONLINE_S = 1.0
"""The same for a board that was online: a loose plug, not a wrong port. It is to be back within two seconds of its port."""
STABLE_S = 10.0
"""A board that was served for this long starts over without back-off."""

Watcher = Callable[[Json], None]


class Slot:
    def __init__(self, binding: Binding, upstream: Upstream, identify: Callable[[str], str]) -> None:
        self.binding = binding
        self.counters = DeviceCounters()
        self._upstream = upstream
        self._identify = identify
        """From the identity of the hardware to its stable subserver id."""
        self._toolset = Toolset(binding.map)
        self._dialect = dialect_for(binding.map)
        self._reader = FrameReader(binding.map)
        self._log = structlog.get_logger("mcpax.slot").bind(device=binding.segment)
        self._device: Device | None = None
        self._transport: UartTransport | None = None
        self._port: Port | None = None
        self._problem = "no such port"
        self._backoff_s = FIRST_BACKOFF_S
        self._not_before = 0.0
        self._last_plugged = ""
        self._task: asyncio.Task[None] | None = None
        self._watchers: list[Watcher] = []
        self._predecessor: Registered | None = None
        """What the last board here was registered as: a spare board takes its place."""

    @property
    def busy(self) -> bool:
        """Has a port, or is about to."""
        return self._task is not None and not self._task.done()

    @property
    def device_path(self) -> str | None:
        """The port it holds, so that no other slot takes it."""
        return self._port.device if self.busy and self._port else None

    def offer(self, port: Port | None) -> None:
        """The port that matches now, if any; taken unless it failed a moment ago."""
        if self.busy:
            return
        if port is None:
            self._problem = "no such port"
            self._last_plugged = ""
            return
        plugged = _plugged(port)
        if plugged != self._last_plugged:
            self._backoff_s, self._not_before = FIRST_BACKOFF_S, 0.0
        loop = asyncio.get_running_loop()
        if loop.time() < self._not_before:
            return
        self._last_plugged = plugged
        self._port = port
        self._task = loop.create_task(self._serve(port))

    async def _serve(self, port: Port) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            reason = await self._serve_board(port)
            level = "info" if reason == GATEWAY_STOPPED else "warning"
            getattr(self._log, level)("board_lost", port=port.path, reason=reason)
            self._problem = f"lost: {reason}"
        except PortError as error:
            self._log.warning("port_failed", port=port.path, reason=str(error), retry_s=self._backoff_s)
            self._problem = str(error)
        except Exception as error:
            # One board's trouble must never end the gateway; a bug shows here, with its trace.
            self._log.exception("slot_failed", port=port.path)
            self._problem = f"internal error: {error!r}"
        finally:
            came_online = self._device is not None and self._device.came_online
            self._device = self._transport = None
            if loop.time() - started > STABLE_S:
                self._backoff_s = FIRST_BACKOFF_S
            limit_s = MAX_BACKOFF_ONLINE_S if came_online else MAX_BACKOFF_S
            self._not_before = loop.time() + min(self._backoff_s, limit_s) * random.uniform(0.8, 1.2)
            self._backoff_s = min(2 * self._backoff_s, limit_s)

    async def _serve_board(self, port: Port) -> str:
        settings = self.binding.map.port
        # Before the port is taken, because it may fail.
        subserver_id = self._identify(f"{self.binding.segment}|{self.binding.map.name}|{port.identity}")
        transport = await open_uart(
            port.path, settings.baud, self._dialect.framing, self._dialect.max_message, reset_on_open=settings.reset_on_open
        )
        self._log.info("port_open", port=port.path, baud=settings.baud)
        self.counters.connects += 1
        self._transport = transport
        self._device = Device(
            self.binding,
            self._toolset,
            transport,
            self._upstream,
            self.counters,
            subserver_id=subserver_id,
            predecessor=self._predecessor,
            tap=self._tap,
        )
        try:
            return await self._device.run()
        finally:
            self._predecessor = self._device.registered_as or self._predecessor
            transport.close()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    # --- for operators

    def describe(self) -> Json:
        device, port = self._device, self._port
        online = device is not None and device.online
        return {
            "segment": self.binding.segment,
            "map": self.binding.map.name,
            "map_version": self.binding.map.version,
            "map_hash": f"{self.binding.map.hash:08x}",
            "profile": str(self.binding.map.profile),
            "state": "online" if online else "connecting" if device is not None else "absent",
            "problem": "" if online else (device.problem if device is not None else self._problem),
            "port": port.path if port is not None and self.busy else None,
            "baud": self.binding.map.port.baud,
            "boot_id": device.boot_id if device is not None else None,
            "counters": self.counters.to_json(),
            "framing": _framing(self._transport),
        }

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """See every message from now on; returns the way to stop."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    def _tap(self, direction: str, message: bytes) -> None:
        # Decoding is for watchers only: nobody pays for sniffing that nobody does.
        if self._watchers:
            frame = {
                "time": datetime.now(UTC).isoformat(timespec="microseconds"),
                "device": self.binding.segment,
                "direction": direction,
                "message": message.hex(),
                **self._reader.read(direction, message),
            }
            for watcher in tuple(self._watchers):
                watcher(frame)


def _plugged(port: Port) -> str:
    """Changes when a board is plugged in again, even at the same path."""
    try:
        status = os.stat(port.device)
    except OSError:
        return ""
    return f"{port.device}:{status.st_ino}:{status.st_ctime_ns}"  # reading and writing a port touches its other times only


def _framing(transport: UartTransport | None) -> Json:
    if transport is None:
        return {}
    counters = transport.counters
    return {
        "frames": counters.frames,
        "crc_errors": counters.crc_errors,
        "oversize": counters.oversize,
        "resyncs": counters.resyncs,
    }
