"""The bridge: all slots for boards, and the watch over ports that come and go.

Hands each port to the slot whose map means it and never opens a port that no map means. Offers operators what they may see.
Knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import structlog

from mcpax.bridge.complaints import Complaints
from mcpax.bridge.device import Binding, Upstream
from mcpax.bridge.frames import Json
from mcpax.bridge.ports import BY_ID_DIR, Port, matches, scan
from mcpax.bridge.slot import Slot

log = structlog.get_logger("mcpax.bridge")

SCAN_EVERY_S = 0.25
"""How often to look for ports while a board is missing."""
FRAMES_BUFFERED = 1000
"""A sniffer that reads too slowly loses the oldest beyond this many, and is told how many."""


class Bridge:
    def __init__(
        self,
        bindings: Sequence[Binding],
        upstream: Upstream,
        identify: Callable[[str], str],
        *,
        by_id_dirs: Sequence[Path] = (BY_ID_DIR,),
    ) -> None:
        self._slots = {binding.segment: Slot(binding, upstream, identify) for binding in bindings}
        self._by_id_dirs = tuple(by_id_dirs)
        self._globs = sorted({binding.match.glob for binding in bindings if binding.match.glob})
        self._complaints = Complaints(log)
        self._ambiguous: set[str] = set()
        self._settled = False

    @property
    def settled(self) -> bool:
        """The ports have been looked at once; boards that are there have been given to their slots."""
        return self._settled

    async def run(self) -> None:
        """Watch ports until cancelled."""
        try:
            while True:
                if not all(slot.busy for slot in self._slots.values()):
                    await self._look()
                self._settled = True
                await asyncio.sleep(SCAN_EVERY_S)
        finally:
            await asyncio.gather(*(slot.close() for slot in self._slots.values()))

    async def _look(self) -> None:
        try:
            ports = await asyncio.to_thread(scan, self._by_id_dirs, self._globs)
        except Exception as error:  # sysfs changes while it is read; whatever it was, the next look may do better
            self._complaints.warn("scan_failed", reason=repr(error))
            return
        self._assign(ports)

    def _assign(self, ports: list[Port]) -> None:
        held = {slot.device_path for slot in self._slots.values()}
        free = [port for port in ports if port.device not in held]
        for slot in self._slots.values():
            if slot.busy:
                continue
            fitting = [port for port in free if matches(port, slot.binding.match)]
            if len(fitting) > 1 and slot.binding.segment not in self._ambiguous:
                self._ambiguous.add(slot.binding.segment)
                log.warning(
                    "several_ports_match",
                    device=slot.binding.segment,
                    ports=[port.path for port in fitting],
                    hint="The first is taken. Add a [[device]] entry with a narrower match for each board.",
                )
            slot.offer(fitting[0] if fitting else None)
            if fitting and slot.busy:
                free.remove(fitting[0])

    # --- for operators

    def devices(self) -> list[Json]:
        return [slot.describe() for slot in self._slots.values()]

    def frames(self, device: str | None) -> AsyncIterator[Json]:
        """Every message of one device, or of all, from now on. Raises `KeyError` for an unknown device."""
        slots = list(self._slots.values()) if device is None else [self._slots[device]]
        return _watch(slots)


async def _watch(slots: list[Slot]) -> AsyncIterator[Json]:
    queue: asyncio.Queue[Json] = asyncio.Queue(FRAMES_BUFFERED)
    dropped = 0

    def see(frame: Json) -> None:
        nonlocal dropped
        if queue.full():
            queue.get_nowait()
            dropped += 1
        queue.put_nowait(frame)

    stops = [slot.watch(see) for slot in slots]
    try:
        while True:
            frame = await queue.get()
            if dropped:
                yield {"kind": "dropped", "count": dropped}
                dropped = 0
            yield frame
    finally:
        for stop in stops:
            stop()
