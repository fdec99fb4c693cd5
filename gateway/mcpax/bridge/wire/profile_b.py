"""Profile B messages: one CBOR map each (docs/wire-format.md §2.2 and §3). Knows nothing of framing, sequences' meaning or limits."""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, NoReturn

import cbor2

from mcpax.bridge.maps.model import DeviceMap, Field, FieldType
from mcpax.bridge.wire.messages import (
    FLAG_SYNCHRONISED,
    MAX_WINDOW,
    AnnouncedEvent,
    AnnouncedTool,
    AnnounceRequest,
    CallRequest,
    Event,
    Heartbeat,
    HeartbeatRequest,
    Message,
    Registration,
    Request,
    Response,
    Status,
    Type,
    WireError,
)

JSONRPC = 2
MAX_DEPTH = 8
"""Registration nests five deep; nothing honest nests deeper than this."""
MAX_NAME_CHARS = 63


class Key(IntEnum):
    JSONRPC = 0
    METHOD = 1
    ID = 2
    TOOL = 3
    ARGS = 4
    RESULT = 5
    ERROR = 6
    MAP_HASH = 7
    BOOT_ID = 8
    FLAGS = 9
    TOOLS = 10
    DEVICE = 11
    WINDOW = 12
    COUNT = 13
    EVENTS = 14


class _Binary32(float):
    """A float that goes out as binary32, the only width a stub needs to know."""


def _encode_binary32(encoder: cbor2.CBOREncoder, value: _Binary32) -> None:
    encoder.write(b"\xfa" + struct.pack(">f", value))


def _dumps(message: dict[int, Any]) -> bytes:
    return cbor2.dumps({int(key): value for key, value in message.items()}, encoders={_Binary32: _encode_binary32})


def pack(fields: Sequence[Field], raw: Sequence[Any]) -> dict[int, Any]:
    """Raw values to the map of field numbers."""
    return {
        number: _Binary32(value) if field.type is FieldType.F32 else value
        for number, (field, value) in enumerate(zip(fields, raw, strict=True))
    }


def unpack(fields: Sequence[Field], payload: Any) -> list[Any]:
    """The map of field numbers to raw values in order; every field exactly once, nothing else."""
    if not isinstance(payload, dict):
        raise WireError(f"expected a map of {len(fields)} fields, got {type(payload).__name__}")
    if payload.keys() != set(range(len(fields))):
        raise WireError(f"expected fields {list(range(len(fields)))}, got {', '.join(sorted(map(_shown, payload)))}")
    return [payload[number] for number in range(len(fields))]


def encode_call(seq: int, tool: int, args: Mapping[int, Any]) -> bytes:
    return _dumps({Key.JSONRPC: JSONRPC, Key.METHOD: int(Type.CALL), Key.ID: seq, Key.TOOL: tool, Key.ARGS: args})


def encode_heartbeat(seq: int, boot_id: int) -> bytes:
    return _dumps({Key.JSONRPC: JSONRPC, Key.METHOD: int(Type.HEARTBEAT), Key.ID: seq, Key.BOOT_ID: boot_id})


def encode_announce_request() -> bytes:
    return _dumps({Key.JSONRPC: JSONRPC, Key.METHOD: int(Type.REGISTRATION)})


def encode_registration(device: DeviceMap) -> bytes:
    """The constant message that a stub made from this map announces itself with."""

    def described(fields: Sequence[Field]) -> list[list[Any]]:
        return [[field.name, field.type.code] for field in fields]

    message: dict[int, Any] = {
        Key.JSONRPC: JSONRPC,
        Key.METHOD: int(Type.REGISTRATION),
        Key.MAP_HASH: device.hash,
        Key.TOOLS: [[tool.id, tool.name, described(tool.args), described(tool.results)] for tool in device.tools],
        Key.DEVICE: device.name,
    }
    if device.events:
        message[Key.EVENTS] = [[event.id, event.name, described(event.fields)] for event in device.events]
    return _dumps(message)


def _refuse_tag(*_: Any) -> NoReturn:
    raise WireError("a CBOR tag that builds an object has no place here")


_REFUSED_TAGS = dict.fromkeys((28, 29, 35, 36), _refuse_tag)
"""Shared references, regular expressions, MIME messages: the ones that cost more than their bytes."""


def _shown(value: Any) -> str:
    """A value for a message, cut short; a bignum of thousands of digits is one that Python refuses to print."""
    try:
        return f"{value!r:.60}"
    except ValueError:
        return f"a {type(value).__name__} too long to print"


def _loads(message: bytes) -> dict[Any, Any]:
    stream = io.BytesIO(message)
    try:
        decoded = cbor2.CBORDecoder(stream, max_depth=MAX_DEPTH, allow_duplicate_keys=False, semantic_decoders=_REFUSED_TAGS).decode()
    except WireError:
        raise
    except Exception as error:  # whatever a hostile stub provokes in the library, it is this one message that is bad
        raise WireError(f"not CBOR: {error}") from error
    if not isinstance(decoded, dict):
        raise WireError(f"expected a CBOR map, got {type(decoded).__name__}")
    if stream.tell() != len(message):
        raise WireError(f"{len(message) - stream.tell()} bytes behind the CBOR map")
    _integer(decoded, Key.JSONRPC, JSONRPC, low=JSONRPC)
    return decoded


def _integer(message: dict[Any, Any], key: Key, high: int, low: int = 0) -> int:
    value = message.get(key)
    if type(value) is not int or not low <= value <= high:
        raise WireError(f"key {int(key)} ({key.name.lower()}) must be an integer from {low} to {high}, got {_shown(value)}")
    return value


def decode(message: bytes) -> Message:
    """What a stub said; raises `WireError` for anything else."""
    decoded = _loads(message)
    if Key.METHOD not in decoded:
        seq = _integer(decoded, Key.ID, 0xFF)
        if Key.ERROR in decoded:
            return Response(seq, _integer(decoded, Key.ERROR, 0xFF, low=1), None)
        if Key.RESULT not in decoded:
            raise WireError("neither a result nor an error")
        return Response(seq, Status.OK, decoded[Key.RESULT])
    method = _integer(decoded, Key.METHOD, 0xFF)
    if method == Type.HEARTBEAT:
        return Heartbeat(
            highest_seq=_integer(decoded, Key.ID, 0xFF),
            boot_id=_integer(decoded, Key.BOOT_ID, 0xFFFF, low=1),
            synchronised=bool(_integer(decoded, Key.FLAGS, 0xFF) & FLAG_SYNCHRONISED),
            window=_integer(decoded, Key.WINDOW, MAX_WINDOW, low=1),
            map_hash=_integer(decoded, Key.MAP_HASH, 0xFFFF_FFFF),
        )
    if method == Type.EVENT:
        return Event(_integer(decoded, Key.TOOL, 0xFF, low=1), _integer(decoded, Key.COUNT, 0xFF), decoded.get(Key.RESULT, {}))
    if method == Type.REGISTRATION:
        return _registration(decoded)
    raise WireError(f"method {method} is not one a stub sends")


def decode_request(message: bytes) -> Request:
    """What a gateway said; for a sniffer."""
    decoded = _loads(message)
    method = _integer(decoded, Key.METHOD, 0xFF)
    if method == Type.CALL:
        return CallRequest(_integer(decoded, Key.ID, 0xFF), _integer(decoded, Key.TOOL, 0xFF), decoded.get(Key.ARGS))
    if method == Type.HEARTBEAT:
        return HeartbeatRequest(_integer(decoded, Key.ID, 0xFF), _integer(decoded, Key.BOOT_ID, 0xFFFF))
    if method == Type.REGISTRATION:
        return AnnounceRequest()
    raise WireError(f"method {method} is not one a gateway sends")


def _registration(decoded: dict[Any, Any]) -> Registration:
    tools, events = decoded.get(Key.TOOLS), decoded.get(Key.EVENTS, [])
    if not isinstance(tools, list) or not isinstance(events, list):
        raise WireError("tools and events must be arrays")
    announced = tuple(AnnouncedTool(*_identity(t, 4), _described(t[2]), _described(t[3])) for t in tools)
    announced_events = tuple(AnnouncedEvent(*_identity(e, 3), _described(e[2])) for e in events)
    for kind, ids in (("tool", [t.id for t in announced]), ("event", [e.id for e in announced_events])):
        if len(set(ids)) != len(ids):
            raise WireError(f"a {kind} id is announced twice")
    return Registration(
        map_hash=_integer(decoded, Key.MAP_HASH, 0xFFFF_FFFF),
        device=_text(decoded.get(Key.DEVICE), "device name"),
        tools=announced,
        events=announced_events,
    )


def _identity(entry: Any, size: int) -> tuple[int, str]:
    if not isinstance(entry, list) or len(entry) != size:
        raise WireError(f"an announced entry is not an array of {size}: {_shown(entry)}")
    if type(entry[0]) is not int or not 1 <= entry[0] <= 0xFF:
        raise WireError(f"id {_shown(entry[0])} is not from 1 to 255")
    return entry[0], _text(entry[1], f"name of {entry[0]}")


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_NAME_CHARS or not value.isprintable():
        raise WireError(f"{what} is not a text of 1 to {MAX_NAME_CHARS} printable characters: {_shown(value)}")
    return value


def _described(entries: Any) -> tuple[tuple[str, FieldType], ...]:
    if not isinstance(entries, list):
        raise WireError("fields must be an array")
    types = list(FieldType)
    described = []
    for entry in entries:
        if not isinstance(entry, list) or len(entry) != 2 or type(entry[1]) is not int or not 0 <= entry[1] < len(types):
            raise WireError(f"a field is not [name, type code]: {_shown(entry)}")
        described.append((_text(entry[0], "field name"), types[entry[1]]))
    return tuple(described)
