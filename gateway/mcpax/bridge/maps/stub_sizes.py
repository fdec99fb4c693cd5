"""How much room the messages of a stub take at most, and how wide the numbers are that it counts with.

Knows the wire's headers and heads; knows nothing of C.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mcpax.bridge.maps.model import Crc, DeviceMap, Encoding, EventMap, Field, FieldType, Profile, ToolMap
from mcpax.bridge.maps.sizes import STATUS_BYTES, payload_size

# Profile A: TYPE, TOOL_ID, SEQ before every payload.
_A_HEADER = 3
_A_HEARTBEAT_IN = 2
_A_HEARTBEAT_OUT = 8
_A_START = 1

# Profile B: a CBOR key below 24 takes a byte, a number 1, 2, 3 or 5.
_B_ENVELOPE = 1 + 2
"""Map head, jsonrpc."""
_B_METHOD = 2
_B_BYTE = 1 + 2
"""A key with any number up to 255."""
_B_HEARTBEAT_IN = _B_ENVELOPE + _B_METHOD + _B_BYTE + (1 + 3)
"""With sequence and boot id."""
_B_HEARTBEAT_OUT = _B_ENVELOPE + _B_METHOD + _B_BYTE + (1 + 5) + (1 + 3) + 2 + 2
"""With sequence, map hash, boot id, flags and window."""
_B_ERROR = _B_ENVELOPE + _B_BYTE + _B_BYTE
"""With sequence and status."""
_B_WIDEST_HEAD = 5
"""Of an item, the largest integers among them."""
_B_CRC = 2
_COBS_BLOCK = 254
"""Bytes after which COBS needs another code."""


STRINGS = (FieldType.TEXT, FieldType.BYTES)
_WIDE_TYPES = (FieldType.U32, FieldType.I32, FieldType.F32)


def owners_of_outputs(device: DeviceMap) -> tuple[ToolMap | EventMap, ...]:
    """In the order in which a stub has their rows."""
    return (*device.tools, *device.events)


def fields_out(owner: ToolMap | EventMap) -> Sequence[Field]:
    return owner.results if isinstance(owner, ToolMap) else owner.fields


def arguments(device: DeviceMap) -> Iterator[Field]:
    for tool in device.tools:
        yield from tool.args


def outputs(device: DeviceMap) -> Iterator[Field]:
    for owner in owners_of_outputs(device):
        yield from fields_out(owner)


def types(device: DeviceMap) -> set[FieldType]:
    return {field.type for field in (*arguments(device), *outputs(device))}


def value_bits(device: DeviceMap) -> int:
    """Width of the numbers that a stub of this map counts with."""
    return 16 if types(device).isdisjoint(_WIDE_TYPES) else 32


def _a_length(message: int) -> int:
    """Bytes of LEN."""
    return 1 if message < 0x80 else 2


def largest_request(device: DeviceMap) -> int:
    if device.profile is Profile.A:
        payloads = (payload_size(Profile.A, tool.encoding, tool.args) for tool in device.tools)
        return _A_HEADER + max((_A_HEARTBEAT_IN, *payloads))
    calls = (_B_ENVELOPE + _B_METHOD + _B_BYTE + _B_BYTE + 1 + _widest_arguments(tool) for tool in device.tools)
    return max((_B_HEARTBEAT_IN, *calls))


def _widest_arguments(tool: ToolMap) -> int:
    """Room for every integer that CBOR can carry here: one far out of its limits still gets an answer that says so."""
    integers = sum(field.type.integer_range is not None for field in tool.args)
    others = [field for field in tool.args if field.type.integer_range is None]
    return payload_size(Profile.B, tool.encoding, others) + integers * (1 + _B_WIDEST_HEAD)


def receive_room(device: DeviceMap, request: int) -> int:
    """Profile B reads a call before it knows that it is too short, so its buffer has room for every item at its widest."""
    if device.profile is Profile.A:
        return _A_START + _a_length(request) + request + (1 if device.frame.crc is Crc.CRC8 else 2)
    heads = _B_ENVELOPE + _B_METHOD + _B_BYTE + _B_BYTE + 1
    calls = (heads + 1 + sum(1 + _B_WIDEST_HEAD + (field.max_len or 0) for field in tool.args) for tool in device.tools)
    frame = 1 + request + _B_CRC + (request + _B_CRC) // _COBS_BLOCK
    return max((frame + 1, *calls))  # one more marks a frame that is too long


def largest_response(device: DeviceMap) -> int:
    if device.profile is Profile.A:
        return _A_HEADER + STATUS_BYTES + max((0, *(payload_size(Profile.A, tool.encoding, tool.results) for tool in device.tools)))
    return max((_B_ERROR, *(_B_ENVELOPE + _B_BYTE + 1 + _widest_outputs(device, tool.encoding, tool.results) for tool in device.tools)))


def largest_passing(device: DeviceMap) -> int:
    if device.profile is Profile.A:
        payloads = (payload_size(Profile.A, event.encoding, event.fields) for event in device.events)
        return _A_HEADER + max((_A_HEARTBEAT_OUT, STATUS_BYTES, *payloads))
    payloads = (_widest_outputs(device, event.encoding, event.fields) for event in device.events)
    events = (_B_ENVELOPE + _B_METHOD + _B_BYTE + 1 + payload + _B_BYTE for payload in payloads)
    return max((_B_HEARTBEAT_OUT, _B_ERROR, *events))


def _widest_outputs(device: DeviceMap, encoding: Encoding, fields: Sequence[Field]) -> int:
    """Without strings a stub does not check for room, so there must be some even for a number outside its own range."""
    if not types(device).isdisjoint(STRINGS):
        return payload_size(Profile.B, encoding, fields)
    widest_number = 1 + value_bits(device) // 8
    return 1 + len(fields) * (1 + widest_number)
