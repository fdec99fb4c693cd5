"""The small interface between a stub session and the wire it runs over.

A transport carries whole messages and owns its framing; the session owns their meaning. Adding a transport is one module that
provides this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from mcpax.bridge.wire.framing import FramingCounters


@dataclass(frozen=True, slots=True)
class WireLimits:
    max_message: int
    """Bytes of the largest message it takes."""
    byte_s: float
    """Seconds that one byte of a message takes on the wire; 0 where that is not what costs time."""


class Receiver(Protocol):
    """Who listens to a transport."""

    def message_received(self, message: bytes) -> None: ...

    def transport_lost(self, reason: str) -> None:
        """Called once; nothing can be sent or will be received any more."""
        ...


class Transport(Protocol):
    limits: WireLimits
    counters: FramingCounters

    def start(self, receiver: Receiver) -> None:
        """Begin to deliver."""
        ...

    def send(self, message: bytes, *, again: bool = False) -> bool:
        """Hand a message to the wire. False: not a byte of it was or will be sent. `again` marks a copy of one sent before."""
        ...

    def close(self) -> None:
        """Give the wire back at once; what was not sent is dropped."""
        ...
