"""One device's way of speaking: its profile, bound to its map.

The session above deals in tools, raw values and messages and does not know which profile is spoken; the framing below deals in bytes and
does not know what they mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from mcpax.bridge.maps.model import DeviceMap, EventMap, Profile, ToolMap
from mcpax.bridge.wire import profile_a, profile_b
from mcpax.bridge.wire.framing import CobsFraming, Framing, SofFraming
from mcpax.bridge.wire.messages import HiddenFrame, Message, Request
from mcpax.bridge.wire.payload_a import PayloadCodec

ENVELOPE_BYTES = 64
"""What a message may have besides its payload; generous, it only bounds memory."""
REGISTRATION_BYTES = 1024
"""Largest registration taken from a board: twice the draft's budget for its schema table."""


class Dialect(Protocol):
    framing: Framing
    max_message: int
    """Largest message that is taken from the board."""
    announces: bool
    """The board can describe itself."""

    def call(self, tool: ToolMap, seq: int, raw: Sequence[Any]) -> bytes:
        """Raises `HiddenFrame` if these bytes must not be sent."""
        ...

    def heartbeat(self, seq: int, boot_id: int) -> bytes: ...

    def announce_request(self) -> bytes: ...

    def decode(self, message: bytes) -> Message: ...

    def decode_request(self, message: bytes) -> Request: ...

    def args(self, tool: ToolMap, payload: Any) -> list[Any]: ...

    def result(self, tool: ToolMap, payload: Any) -> list[Any]: ...

    def event(self, event: EventMap, payload: Any) -> list[Any]: ...


class DialectA:
    announces = False

    def __init__(self, device: DeviceMap) -> None:
        framing = SofFraming(device.frame.crc)
        self.framing: Framing = framing
        self._hides_frame = framing.hides_frame
        self.max_message = profile_a.HEADER_BYTES + 1 + max(device.frame.max_payload, 8)
        order = device.frame.byte_order
        self._args = {tool.id: PayloadCodec(tool.args, tool.encoding, order) for tool in device.tools}
        self._results = {tool.id: PayloadCodec(tool.results, tool.encoding, order) for tool in device.tools}
        self._events = {event.id: PayloadCodec(event.fields, event.encoding, order) for event in device.events}

    def call(self, tool: ToolMap, seq: int, raw: Sequence[Any]) -> bytes:
        message = profile_a.encode_call(seq, tool.id, self._args[tool.id].pack(raw))
        if self._hides_frame(message):
            raise HiddenFrame
        return message

    def heartbeat(self, seq: int, boot_id: int) -> bytes:
        return profile_a.encode_heartbeat(seq, boot_id)

    def announce_request(self) -> bytes:
        raise NotImplementedError("a Profile A board cannot describe itself")

    def decode(self, message: bytes) -> Message:
        return profile_a.decode(message)

    def decode_request(self, message: bytes) -> Request:
        return profile_a.decode_request(message)

    def args(self, tool: ToolMap, payload: Any) -> list[Any]:
        return self._args[tool.id].unpack(payload)

    def result(self, tool: ToolMap, payload: Any) -> list[Any]:
        return self._results[tool.id].unpack(payload)

    def event(self, event: EventMap, payload: Any) -> list[Any]:
        return self._events[event.id].unpack(payload)


class DialectB:
    announces = True

    def __init__(self, device: DeviceMap) -> None:
        self.framing: Framing = CobsFraming()
        self.max_message = max(device.frame.max_payload + ENVELOPE_BYTES, REGISTRATION_BYTES)

    def call(self, tool: ToolMap, seq: int, raw: Sequence[Any]) -> bytes:
        return profile_b.encode_call(seq, tool.id, profile_b.pack(tool.args, raw))

    def heartbeat(self, seq: int, boot_id: int) -> bytes:
        return profile_b.encode_heartbeat(seq, boot_id)

    def announce_request(self) -> bytes:
        return profile_b.encode_announce_request()

    def decode(self, message: bytes) -> Message:
        return profile_b.decode(message)

    def decode_request(self, message: bytes) -> Request:
        return profile_b.decode_request(message)

    def args(self, tool: ToolMap, payload: Any) -> list[Any]:
        return profile_b.unpack(tool.args, payload)

    def result(self, tool: ToolMap, payload: Any) -> list[Any]:
        return profile_b.unpack(tool.results, payload)

    def event(self, event: EventMap, payload: Any) -> list[Any]:
        return profile_b.unpack(event.fields, payload)


def dialect_for(device: DeviceMap) -> Dialect:
    return DialectA(device) if device.profile is Profile.A else DialectB(device)
