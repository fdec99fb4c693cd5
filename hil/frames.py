"""The log of frames that went over a board's line, and the round trips that can be read from it.

Frames have the form that the gateway's own sniffing gives them, whoever spoke to the board. Knows nothing of ports or time's passing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from mcpax.bridge.frames import FrameReader
from mcpax.bridge.maps.model import DeviceMap
from mcpax.bridge.transports.uart import BITS_PER_BYTE
from mcpax.bridge.wire.dialect import dialect_for

Json = dict[str, Any]


class FrameLog:
    """Everything that was said to and by one board, in order."""

    def __init__(self, board: str, device: DeviceMap) -> None:
        self.board = board
        self.device = device
        self.frames: list[Json] = []
        self._reader = FrameReader(device)

    def add(self, direction: str, message: bytes) -> None:
        """A message, `tx` to the board or `rx` from it."""
        self.take({**self._envelope(direction, message), **self._reader.read(direction, message)})

    def add_raw(self, data: bytes) -> None:
        """Bytes to the board that are no frame."""
        self.take({**self._envelope("tx", data), "kind": "raw", "bytes": len(data)})

    def take(self, frame: Json) -> None:
        """A frame that somebody else has read."""
        self.frames.append(frame)

    def _envelope(self, direction: str, message: bytes) -> Json:
        time = datetime.now(UTC).isoformat(timespec="microseconds")
        return {"time": time, "device": self.board, "direction": direction, "message": message.hex()}


@dataclass(frozen=True, slots=True)
class RoundTrip:
    board: str
    ms: float
    wire_ms: float
    """What the bytes of question and answer alone take at the line's speed; nothing can be quicker."""


def round_trips(log: FrameLog) -> list[RoundTrip]:
    """One for each call that was sent once and answered; an answer to a copy proves nothing about time."""
    asked: dict[int, list[Json]] = {}
    found = []
    for frame in log.frames:
        if frame["kind"] == "call" and frame["direction"] == "tx":
            asked.setdefault(frame["seq"], []).append(frame)
        elif frame["kind"] == "response" and frame["direction"] == "rx":
            calls = asked.pop(frame["seq"], [])
            if len(calls) == 1:
                found.append(RoundTrip(log.board, _ms_between(calls[0], frame), wire_ms(log.device, (calls[0], frame))))
    return found


def wire_ms(device: DeviceMap, frames: Iterable[Json]) -> float:
    framing = dialect_for(device).framing
    size = sum(len(framing.encode(bytes.fromhex(frame["message"]))) for frame in frames)
    return 1000 * size * BITS_PER_BYTE / device.port.baud


def _ms_between(first: Json, second: Json) -> float:
    return 1000 * (datetime.fromisoformat(second["time"]) - datetime.fromisoformat(first["time"])).total_seconds()
