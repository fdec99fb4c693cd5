"""Profile A payloads: raw values to bytes and back, as struct, TLV or raw (docs/wire-format.md §4). Knows nothing of frames."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from mcpax.bridge.maps.model import ByteOrder, Encoding, Field, FieldType
from mcpax.bridge.wire.messages import WireError

_NUMBER = {
    FieldType.BOOL: "B",
    FieldType.U8: "B",
    FieldType.U16: "H",
    FieldType.U32: "I",
    FieldType.I8: "b",
    FieldType.I16: "h",
    FieldType.I32: "i",
    FieldType.F32: "f",
}


class PayloadCodec:
    """Packs and unpacks one list of fields; made once per tool."""

    def __init__(self, fields: Sequence[Field], encoding: Encoding, order: ByteOrder) -> None:
        self._fields = tuple(fields)
        self._encoding = encoding
        prefix = "<" if order is ByteOrder.LITTLE else ">"
        self._formats = [struct.Struct(prefix + _NUMBER[f.type]) if f.type in _NUMBER else None for f in self._fields]

    def pack(self, raw: Sequence[Any]) -> bytes:
        parts = [self._value(number, value) for number, value in enumerate(raw)]
        if self._encoding is Encoding.TLV:
            return b"".join(bytes((number + 1, len(part))) + part for number, part in enumerate(parts))
        if self._encoding is Encoding.STRUCT:
            parts = [
                part.ljust(f.max_len or 0, b"\0") if f.type is FieldType.TEXT else part for f, part in zip(self._fields, parts, strict=True)
            ]
        return b"".join(parts)

    def unpack(self, payload: bytes) -> list[Any]:
        if self._encoding is Encoding.TLV:
            return self._unpack_tlv(payload)
        if self._encoding is Encoding.RAW and self._fields:
            return [self._parse(0, payload)]
        sizes = [form.size if form else (f.max_len or 0) for form, f in zip(self._formats, self._fields, strict=True)]
        if sum(sizes) != len(payload):
            raise WireError(f"expected {sum(sizes)} bytes of result, got {len(payload)}")
        values, at = [], 0
        for number, size in enumerate(sizes):
            part = payload[at : at + size]
            if self._fields[number].type is FieldType.TEXT:
                part = part.rstrip(b"\0")
            values.append(self._parse(number, part))
            at += size
        return values

    def _unpack_tlv(self, payload: bytes) -> list[Any]:
        values: dict[int, Any] = {}
        at = 0
        while at < len(payload):
            if at + 2 > len(payload) or at + 2 + payload[at + 1] > len(payload):
                raise WireError(f"TLV element at byte {at} runs past the end of the payload")
            number, size = payload[at] - 1, payload[at + 1]
            if not 0 <= number < len(self._fields) or number in values:
                raise WireError(f"TLV tag {payload[at]} is unknown or comes twice")
            values[number] = self._parse(number, payload[at + 2 : at + 2 + size])
            at += 2 + size
        if len(values) != len(self._fields):
            missing = [f.name for number, f in enumerate(self._fields) if number not in values]
            raise WireError(f"TLV fields missing: {', '.join(missing)}")
        return [values[number] for number in range(len(self._fields))]

    def _value(self, number: int, value: Any) -> bytes:
        form = self._formats[number]
        if form is not None:
            return form.pack(value)
        return value.encode() if isinstance(value, str) else bytes(value)

    def _parse(self, number: int, part: bytes) -> Any:
        field, form = self._fields[number], self._formats[number]
        if form is not None:
            if len(part) != form.size:
                raise WireError(f"{field.name}: expected {form.size} bytes, got {len(part)}")
            value = form.unpack(part)[0]
            if field.type is FieldType.BOOL:
                if value > 1:
                    raise WireError(f"{field.name}: expected 0 or 1, got {value}")
                return bool(value)
            return value
        if field.type is FieldType.BYTES:
            return part
        try:
            return part.decode()
        except UnicodeDecodeError as error:
            raise WireError(f"{field.name}: not UTF-8: {part.hex()}") from error
