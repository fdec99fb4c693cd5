"""What a device map says, as plain data.

A `DeviceMap` is already checked: whoever holds one may rely on it (`load` makes them, and refuses faulty files).
Knows nothing of TOML, JSON Schema, C or the wire; those are derived from it in their own modules.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from mcpax.capability import Capability

MAX_FIELDS = 8
"""Arguments or results per tool: a stub decodes them into a fixed array."""


class Profile(StrEnum):
    A = "A"
    B = "B"


class FieldType(StrEnum):
    """In the order of their type codes on the wire."""

    BOOL = "bool"
    U8 = "u8"
    U16 = "u16"
    U32 = "u32"
    I8 = "i8"
    I16 = "i16"
    I32 = "i32"
    F32 = "f32"
    TEXT = "text"
    BYTES = "bytes"

    @property
    def code(self) -> int:
        return list(FieldType).index(self)

    @property
    def integer_range(self) -> tuple[int, int] | None:
        return _INTEGER_RANGE.get(self)


_INTEGER_RANGE: dict[FieldType, tuple[int, int]] = {
    FieldType.U8: (0, 0xFF),
    FieldType.U16: (0, 0xFFFF),
    FieldType.U32: (0, 0xFFFF_FFFF),
    FieldType.I8: (-0x80, 0x7F),
    FieldType.I16: (-0x8000, 0x7FFF),
    FieldType.I32: (-0x8000_0000, 0x7FFF_FFFF),
}


class Encoding(StrEnum):
    """How a Profile A payload is laid out. Profile B has CBOR and ignores this."""

    STRUCT = "struct"
    TLV = "tlv"
    RAW = "raw"


class Crc(StrEnum):
    CRC8 = "crc8"
    CRC16 = "crc16"


class ByteOrder(StrEnum):
    LITTLE = "little"
    BIG = "big"


@dataclass(frozen=True, slots=True)
class Field:
    """One argument, result or event value. min, max and default are in the unit that people see, not raw."""

    name: str
    type: FieldType
    description: str = ""
    unit: str = ""
    min: float | None = None
    max: float | None = None
    scale: float = 1.0
    """Value of one raw step: value = raw x scale. 1 means the raw number is the value."""
    enum: Mapping[str, int] | None = None
    """Labels that people see, and the raw number each stands for."""
    default: Any = None
    max_len: int | None = None
    """Bytes at most, for text and bytes."""
    exact_len: bool = False
    """True: `max_len` bytes, no fewer. The loader sets it for bytes in a Profile A struct, which has no room for a length."""

    @property
    def scaled(self) -> bool:
        return self.scale != 1.0

    @property
    def raw_range(self) -> tuple[int, int] | None:
        """Smallest and largest raw integer that type, limits and enum allow; None for what is not an integer on the wire."""
        if self.type.integer_range is None:
            return None
        low, high = self.type.integer_range
        if self.enum is not None:
            return max(low, min(self.enum.values())), min(high, max(self.enum.values()))
        # The small slack forgives binary fractions: 0.3 / 0.1 is 2.9999999999999996.
        if self.min is not None:
            low = max(low, math.ceil(self.min / self.scale - 1e-6))
        if self.max is not None:
            high = min(high, math.floor(self.max / self.scale + 1e-6))
        return low, high


@dataclass(frozen=True, slots=True)
class ToolMap:
    id: int
    name: str
    description: str
    capability: Capability
    args: tuple[Field, ...] = ()
    results: tuple[Field, ...] = ()
    encoding: Encoding = Encoding.STRUCT
    title: str = ""


@dataclass(frozen=True, slots=True)
class EventMap:
    id: int
    name: str
    description: str = ""
    fields: tuple[Field, ...] = ()
    encoding: Encoding = Encoding.STRUCT


@dataclass(frozen=True, slots=True)
class PortMatch:
    """Which serial port this device is on. Every stated part must match; patterns are shell globs."""

    by_id: str | None = None
    """Name under /dev/serial/by-id."""
    vid: int | None = None
    pid: int | None = None
    serial: str | None = None
    glob: str | None = None
    """Path pattern, for ports without USB identity, e.g. /dev/ttyTHS*."""


@dataclass(frozen=True, slots=True)
class PortMap:
    match: PortMatch | None = None
    baud: int = 115200
    heartbeat_ms: int = 5000
    deadman_ms: int = 0
    """Silence of the gateway after which the board goes to its safe state by itself; 0 if it has none."""
    reset_on_open: bool = False
    """True: let opening the port toggle DTR, which resets an Arduino."""
    turnaround_ms: int = 20
    """What the board needs at most between the last byte of a quick call and the first of its answer."""


@dataclass(frozen=True, slots=True)
class FrameMap:
    """Profile A framing; `max_payload` also bounds what is accepted from a Profile B board."""

    crc: Crc = Crc.CRC16
    byte_order: ByteOrder = ByteOrder.LITTLE
    max_payload: int = 512


@dataclass(frozen=True, slots=True)
class DeviceMap:
    name: str
    """A valid segment: the default place of the device in the namespace, and what a Profile B board calls itself."""
    profile: Profile
    version: str
    description: str = ""
    debug: bool = False
    """The last of the tools is the one that debug builds alone have (`debug`)."""
    port: PortMap = field(default_factory=PortMap)
    frame: FrameMap = field(default_factory=FrameMap)
    tools: tuple[ToolMap, ...] = ()
    events: tuple[EventMap, ...] = ()

    def contract(self) -> dict[str, Any]:
        """What both ends of the wire must agree on. Texts for people are left out: mending a description needs no reflash."""
        contract: dict[str, Any] = {
            "device": self.name,
            "profile": str(self.profile),
            "tools": [
                {"id": t.id, "name": t.name, "args": [_wire(f) for f in t.args], "results": [_wire(f) for f in t.results]}
                for t in self.tools
            ],
            "events": [{"id": e.id, "name": e.name, "fields": [_wire(f) for f in e.fields]} for e in self.events],
        }
        if self.profile is Profile.A:
            contract["frame"] = {"crc": str(self.frame.crc), "byte_order": str(self.frame.byte_order)}
            contract["encodings"] = {str(t.id): str(t.encoding) for t in self.tools}
            contract["event_encodings"] = {str(e.id): str(e.encoding) for e in self.events}
        return contract

    @property
    def hash(self) -> int:
        """The 32-bit map hash that the firmware carries."""
        canonical = json.dumps(self.contract(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return int.from_bytes(hashlib.sha256(canonical.encode()).digest()[:4], "big")


def _wire(f: Field) -> dict[str, Any]:
    wire: dict[str, Any] = {"name": f.name, "type": str(f.type)}
    if f.scaled:
        wire["scale"] = f.scale
    if f.enum is not None:
        wire["enum"] = dict(f.enum)
    for key in ("min", "max"):
        bound = getattr(f, key)
        if bound is not None:
            wire[key] = float(bound)
    if f.max_len is not None:
        wire["max_len"] = f.max_len
    return wire
