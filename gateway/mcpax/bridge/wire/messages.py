"""What a stub and a gateway say to each other, free of any profile's bytes (docs/wire-format.md §2).

Values here are as the stub sent them: decoded, and not yet believed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from mcpax.bridge.maps.model import FieldType
from mcpax.errors import Outcome

FLAG_SYNCHRONISED = 0x01
MAX_WINDOW = 64
"""More calls outstanding than this, and old sequences could no longer be told from new ones."""
FIRST_HANDLER_STATUS = 64
"""From here on a status is the handler's own error code."""


class Type(IntEnum):
    """TYPE byte of Profile A, method of Profile B."""

    CALL = 1
    RESPONSE = 2
    REGISTRATION = 3
    HEARTBEAT = 4
    EVENT = 5


class Status(IntEnum):
    OK = 0
    UNKNOWN_TOOL = 1
    BAD_ARGUMENTS = 2
    OUT_OF_RANGE = 3
    BUSY = 4
    UNSYNCHRONISED = 5
    RESPONSE_LOST = 6
    RESULT_TOO_LARGE = 7


_RAN = {Status.OK, Status.RESPONSE_LOST, Status.RESULT_TOO_LARGE}


def outcome_of(status: int) -> Outcome:
    """Did the call run, by the stub's own word?"""
    if status >= FIRST_HANDLER_STATUS or status in _RAN:
        return Outcome.EXECUTED
    return Outcome.NOT_EXECUTED if status in set(Status) else Outcome.UNKNOWN


def status_name(status: int) -> str:
    if status >= FIRST_HANDLER_STATUS:
        return f"device error {status}"
    return Status(status).name.lower() if status in set(Status) else f"reserved status {status}"


class WireError(Exception):
    """An intact frame whose content makes no sense."""


class HiddenFrame(Exception):
    """A call whose bytes contain another frame, which a damaged line would let loose (docs/wire-format.md §1.1)."""


@dataclass(frozen=True, slots=True)
class Response:
    seq: int
    status: int
    payload: Any
    """Result in the profile's own form: bytes, or a map of field numbers. None unless the status is ok."""
    tool: int | None = None
    """Profile A repeats the tool id; Profile B does not."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    highest_seq: int
    boot_id: int
    synchronised: bool
    window: int
    map_hash: int | None


@dataclass(frozen=True, slots=True)
class AnnouncedTool:
    id: int
    name: str
    args: tuple[tuple[str, FieldType], ...]
    results: tuple[tuple[str, FieldType], ...]


@dataclass(frozen=True, slots=True)
class AnnouncedEvent:
    id: int
    name: str
    fields: tuple[tuple[str, FieldType], ...]


@dataclass(frozen=True, slots=True)
class Registration:
    map_hash: int
    device: str
    tools: tuple[AnnouncedTool, ...]
    events: tuple[AnnouncedEvent, ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    id: int
    count: int
    payload: Any


Message = Response | Heartbeat | Registration | Event
"""Everything a gateway may hear."""


@dataclass(frozen=True, slots=True)
class CallRequest:
    """What a gateway may say; only a sniffer needs these decoded."""

    seq: int
    tool: int
    payload: Any


@dataclass(frozen=True, slots=True)
class HeartbeatRequest:
    seq: int
    boot_id: int


@dataclass(frozen=True, slots=True)
class AnnounceRequest:
    pass


Request = CallRequest | HeartbeatRequest | AnnounceRequest
