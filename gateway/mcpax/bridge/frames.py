"""Messages on the wire, made readable: tool names and values instead of numbers and bytes. For sniffing, live or from a recording.

Never raises on what it is shown: what cannot be read is shown as bytes with the reason. Only looks; nothing here can touch a call.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from mcpax.bridge.maps.model import DeviceMap, Field
from mcpax.bridge.maps.values import FieldsCodec, ValueFault
from mcpax.bridge.wire.dialect import dialect_for
from mcpax.bridge.wire.messages import (
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
    WireError,
    status_name,
)

Json = dict[str, Any]

MAX_JSON_BITS = 63


class FrameReader:
    """Reads one device's conversation; remembers which tool each sequence was for, because an answer does not say."""

    def __init__(self, device: DeviceMap) -> None:
        self._dialect = dialect_for(device)
        self._tools = {tool.id: tool for tool in device.tools}
        self._events = {event.id: event for event in device.events}
        self._asked: dict[int, int] = {}

    def read(self, direction: str, message: bytes) -> Json:
        """One message as plain data, ready for JSON."""
        try:
            if direction == "tx":
                return self._request(self._dialect.decode_request(message))
            return self._message(self._dialect.decode(message))
        except WireError as error:
            return {"kind": "unreadable", "reason": str(error)}

    def _request(self, request: Request) -> Json:
        match request:
            case CallRequest(seq, tool_id, payload):
                self._asked[seq] = tool_id
                tool = self._tools.get(tool_id)
                values = self._values(tool.args, lambda: self._dialect.args(tool, payload), payload) if tool else _plain(payload)
                return {"kind": "call", "seq": seq, "tool": tool.name if tool else tool_id, "arguments": values}
            case HeartbeatRequest(seq, boot_id):
                return {"kind": "heartbeat", "seq": seq, "boot_id": boot_id}
            case AnnounceRequest():
                return {"kind": "announce"}

    def _message(self, message: Message) -> Json:
        match message:
            case Response(seq, status, payload, tool_id):
                tool = self._tools.get(tool_id or self._asked.get(seq, 0))
                read: Json = {"kind": "response", "seq": seq, "tool": tool.name if tool else tool_id, "status": status_name(status)}
                if status == Status.OK:
                    read["result"] = (
                        self._values(tool.results, lambda: self._dialect.result(tool, payload), payload) if tool else _plain(payload)
                    )
                return read
            case Heartbeat():
                return {
                    "kind": "heartbeat",
                    "seq": message.highest_seq,
                    "boot_id": message.boot_id,
                    "synchronised": message.synchronised,
                    "window": message.window,
                    "map_hash": None if message.map_hash is None else f"{message.map_hash:08x}",
                }
            case Registration():
                return {
                    "kind": "registration",
                    "name": message.device,
                    "map_hash": f"{message.map_hash:08x}",
                    "tools": {tool.name: tool.id for tool in message.tools},
                }
            case Event(event_id, count, payload):
                event = self._events.get(event_id)
                values = self._values(event.fields, lambda: self._dialect.event(event, payload), payload) if event else _plain(payload)
                return {"kind": "event", "event": event.name if event else event_id, "count": count, "data": values}

    def _values(self, fields: tuple[Field, ...], unpack: Callable[[], list[Any]], payload: Any) -> Any:
        try:
            return FieldsCodec(fields).from_raw(unpack())
        except (WireError, ValueFault) as error:
            return {"unreadable": _plain(payload), "reason": str(error)}


def _plain(value: Any) -> Any:
    """Anything a board may have sent, as JSON can carry it."""
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {str(_plain(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if isinstance(value, int) and value.bit_length() > MAX_JSON_BITS:
        return hex(value)  # as decimal digits Python would refuse to print it, as a number JSON to carry it
    return value if isinstance(value, str | int | float | bool | None) else repr(value)
