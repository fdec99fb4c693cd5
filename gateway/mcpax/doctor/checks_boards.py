"""Check of the boards themselves: does the one on this port fit its map? Asks it, with the very code that the gateway uses.

Opens ports, so it is for ports that nobody has.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path

from mcpax.bridge.bridge import Bridge
from mcpax.bridge.device import MISFIT, Binding
from mcpax.bridge.frames import Json
from mcpax.core.aggregator import Aggregator
from mcpax.doctor.finding import Finding, fail, ok

PATIENCE_S = 5.0
"""A board that resets when its port is opened sits in its bootloader for up to two seconds."""
LOOK_EVERY_S = 0.05
SEE_DOCTOR = "; 'mcpax doctor' tells which"
"""Ends some problems of ports; whoever reads it here is there already."""


async def ask_boards(bindings: Sequence[Binding], by_id_dirs: Sequence[Path], patience_s: float) -> list[Json]:
    """The state of each board after it had time to answer."""
    if not bindings:
        return []
    bridge = Bridge(bindings, Aggregator("doctor", str(uuid.uuid4())), lambda _: str(uuid.uuid4()), by_id_dirs=by_id_dirs)
    running = asyncio.create_task(bridge.run())
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                while True:
                    if all(map(_decided, bridge.devices())):
                        break
                    await asyncio.sleep(LOOK_EVERY_S)
        return bridge.devices()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def check_boards(devices: Iterable[Json]) -> list[Finding]:
    """From what a gateway, or `ask_boards`, says of the devices."""
    return [_check(device) for device in devices]


def misread(device: Json) -> bool:
    """Nothing, or not everything, that comes from it makes sense."""
    return _silent(device) or device["framing"].get("crc_errors", 0) > 0


def _silent(device: Json) -> bool:
    """Its port is open, and no answer comes."""
    return device["state"] == "connecting" and not _misfit(device)


def _decided(device: Json) -> bool:
    return device["state"] == "online" or _misfit(device)


def _misfit(device: Json) -> bool:
    return str(device["problem"]).startswith(MISFIT)


def _check(device: Json) -> Finding:
    check = f"board {device['segment']}"
    if device["state"] == "online":
        return ok(check, f"answers, and fits the map {device['map']!r}")
    if _misfit(device):
        # One difference a line: there may be many.
        return fail(
            check,
            device["problem"].replace("; ", "\n"),
            "is it the right board on this port? Then build its firmware from this map, or mend the map",
        )
    if _silent(device):
        hint = f"is its firmware an mcpax stub, at {device['baud']} baud? A board with native USB may need reset_on_open = true in [port]"
        return fail(check, f"does not answer: {device['problem']}", hint)
    return fail(check, device["problem"].replace(SEE_DOCTOR, ""), "the checks of its port say more")
