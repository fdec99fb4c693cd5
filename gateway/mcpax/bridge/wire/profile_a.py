"""Profile A messages: TYPE, TOOL_ID, SEQ, PAYLOAD (docs/wire-format.md §2.1). Knows nothing of framing or of what payloads mean."""

from __future__ import annotations

from mcpax.bridge.wire.messages import (
    FLAG_SYNCHRONISED,
    MAX_WINDOW,
    CallRequest,
    Event,
    Heartbeat,
    HeartbeatRequest,
    Message,
    Request,
    Response,
    Status,
    Type,
    WireError,
)

HEADER_BYTES = 3
_HEARTBEAT_BYTES = 4
_HEARTBEAT_WITH_HASH_BYTES = 8


def encode_call(seq: int, tool: int, payload: bytes) -> bytes:
    return bytes((Type.CALL, tool, seq)) + payload


def encode_heartbeat(seq: int, boot_id: int) -> bytes:
    return bytes((Type.HEARTBEAT, 0, seq)) + boot_id.to_bytes(2, "big")


def decode(message: bytes) -> Message:
    """What a stub said; raises `WireError` for anything else."""
    kind, tool, seq, payload = _split(message)
    if kind == Type.RESPONSE:
        if not payload:
            raise WireError("response without a status byte")
        status = payload[0]
        return Response(seq, status, payload[1:] if status == Status.OK else None, tool)
    if kind == Type.HEARTBEAT:
        if len(payload) not in (_HEARTBEAT_BYTES, _HEARTBEAT_WITH_HASH_BYTES):
            raise WireError(f"heartbeat of {len(payload)} bytes, expected {_HEARTBEAT_BYTES} or {_HEARTBEAT_WITH_HASH_BYTES}")
        boot_id, window = int.from_bytes(payload[:2], "big"), payload[3]
        if not boot_id or not 1 <= window <= MAX_WINDOW:
            raise WireError(f"heartbeat with boot id {boot_id}, window {window}")
        has_hash = len(payload) == _HEARTBEAT_WITH_HASH_BYTES
        return Heartbeat(
            highest_seq=seq,
            boot_id=boot_id,
            synchronised=bool(payload[2] & FLAG_SYNCHRONISED),
            window=window,
            map_hash=int.from_bytes(payload[4:], "big") if has_hash else None,
        )
    if kind == Type.EVENT:
        return Event(tool, seq, payload)
    raise WireError(f"type {kind} is not one a Profile A stub sends")


def decode_request(message: bytes) -> Request:
    """What a gateway said; for a sniffer."""
    kind, tool, seq, payload = _split(message)
    if kind == Type.CALL:
        return CallRequest(seq, tool, payload)
    if kind == Type.HEARTBEAT and len(payload) == 2:
        return HeartbeatRequest(seq, int.from_bytes(payload, "big"))
    raise WireError(f"type {kind} is not one a gateway sends")


def _split(message: bytes) -> tuple[int, int, int, bytes]:
    if len(message) < HEADER_BYTES:
        raise WireError(f"message of {len(message)} bytes")
    return message[0], message[1], message[2], message[HEADER_BYTES:]
