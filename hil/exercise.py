"""Takes a board through everything that its map allows and much that it forbids, for whoever measures it meanwhile.

Asserts nothing: whether the answers are right is for the rig's tests. What is random is where in the board's work a byte comes in.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

from hil.line import SEQUENCES, Line
from hil.values import EDGES, out_of_range, valid, wrong_type
from mcpax.bridge.maps.model import DeviceMap, Profile, ToolMap
from mcpax.bridge.transports.uart import BITS_PER_BYTE
from mcpax.bridge.wire import profile_a, profile_b
from mcpax.bridge.wire.messages import Event, Message, Registration

DISTURBED_CALLS = 25
"""Of each tool."""
WORK_S = 0.0005
"""A call is read and run in less, and the first byte of its answer sent."""
DISTURBANCE = bytes(12)
"""Zeros, which are no part of a frame in either profile; fewer than a board keeps while it works."""
LONG_FRAME = bytes(range(1, 256))


def exercise(line: Line, device: DeviceMap, press: Callable[[], None], dice: random.Random) -> None:
    """Leaves the board well, with its button down: `press` is not asked to let go."""
    line.synchronise()
    _announce(line, device)
    for tool in device.tools:
        _call(line, device, tool)
    _unknown_tools(line, device)
    _damaged_frames(line, device)
    if device.events:
        press()
        line.receive(_as_event, "an event when its button is pressed")
    for tool in device.tools:
        for _ in range(DISTURBED_CALLS):
            _disturbed_call(line, tool, device.port.baud, dice)


def _announce(line: Line, device: DeviceMap) -> None:
    if device.profile is Profile.B:
        line.send(profile_b.encode_announce_request())
        line.receive(_as_registration, "its registration")


def _call(line: Line, device: DeviceMap, tool: ToolMap) -> None:
    """With what it takes, each once more, and with what it refuses."""
    for edge in EDGES:
        line.call(tool, valid(tool, edge))
        line.ask(line.call_message(tool, valid(tool, edge), line.seq), line.seq)
    for refused in out_of_range(tool, device.profile):
        line.call(tool, refused.raw)
    for refused in wrong_type(tool) if device.profile is Profile.B else ():
        line.ask(_call_message(line, device, tool.id, dict(enumerate(refused.raw))), line.seq)


def _unknown_tools(line: Line, device: DeviceMap) -> None:
    nothing: Any = b"" if device.profile is Profile.A else {}
    for tool_id in (0, max(tool.id for tool in device.tools) + 1, 0xFF):
        line.ask(_call_message(line, device, tool_id, nothing), line.seq)


def _damaged_frames(line: Line, device: DeviceMap) -> None:
    good = line.framed(line.call_message(device.tools[0], valid(device.tools[0], EDGES[-1]), (line.seq + 1) % SEQUENCES))
    for at in range(len(good)):
        line.send_raw(good[:at] + bytes((good[at] ^ 0xFF,)) + good[at + 1 :])
    line.send_raw(line.framed(LONG_FRAME))
    line.responses_before_heartbeat()


def _disturbed_call(line: Line, tool: ToolMap, baud: int, dice: random.Random) -> None:
    """While it works on a call, more bytes come in: an interrupt each, at any moment."""
    line.seq = (line.seq + 1) % SEQUENCES
    call = line.call_message(tool, valid(tool, EDGES[-1]), line.seq)
    line.send(call)
    # Bytes right behind the call would always meet the same instructions: they come once the line has been idle for a random moment.
    time.sleep(len(line.framed(call)) * BITS_PER_BYTE / baud + dice.uniform(0, WORK_S))
    line.send_raw(DISTURBANCE)
    line.ask(call, line.seq)  # a copy, in case that the disturbance met the call itself


def _call_message(line: Line, device: DeviceMap, tool_id: int, payload: Any) -> bytes:
    line.seq = (line.seq + 1) % SEQUENCES
    encode = profile_a.encode_call if device.profile is Profile.A else profile_b.encode_call
    return encode(line.seq, tool_id, payload)


def _as_event(message: Message) -> Event | None:
    return message if isinstance(message, Event) else None


def _as_registration(message: Message) -> Registration | None:
    return message if isinstance(message, Registration) else None
