"""From a raw value as a board sent it to what people see, one maker of converters per field type.

A board is not trusted: type, range, labels, length and text encoding are all held to the map, and nothing is put right in
silence. Knows nothing of the other fields of a message.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from typing import Any

from mcpax.bridge.maps.limits import MAX_F32, Unfit, allowed, check_length, scaler, shortest, to_f32, value_range
from mcpax.bridge.maps.model import Field, FieldType
from mcpax.bridge.maps.wrap import flag, text
from mcpax.documents.faults import shown


def unwrapper(field: Field) -> Callable[[Any], Any]:
    if field.type is FieldType.BOOL:
        return flag
    if field.type is FieldType.TEXT:
        return _any_to_text(field)
    if field.type is FieldType.BYTES:
        return _bytes_to_base64(field)
    if field.type is FieldType.F32:
        return _f32_to_number(field)
    return _raw_integer(field)


def _raw_integer(field: Field) -> Callable[[Any], Any]:
    low, high = field.raw_range or (0, 0)
    labels = {number: label for label, number in field.enum.items()} if field.enum is not None else None
    present = scaler(field.scale) if field.scaled else None

    def convert(raw: Any) -> Any:
        if type(raw) is not int:  # True is an int to Python, and not to us
            raise Unfit(f"{shown(raw)} is not an integer; allowed: {allowed(field)}")
        if labels is not None:
            if raw not in labels:
                raise Unfit(f"{shown(raw)} stands for none of {', '.join(labels.values())}")
            return labels[raw]
        if not low <= raw <= high:
            raise Unfit(f"raw {shown(raw)} is out of range {low} to {high}; allowed: {allowed(field)}")
        return present(raw) if present is not None else raw

    return convert


def _f32_to_number(field: Field) -> Callable[[Any], float]:
    low, high = value_range(field)
    # The board compares in binary32, where 0.1 is a little more than here.
    low32, high32 = to_f32(low), to_f32(high)

    def convert(raw: Any) -> float:
        if type(raw) is not float:
            raise Unfit(f"{shown(raw)} is not a float; allowed: {allowed(field)}")
        if not math.isfinite(raw) or abs(raw) > MAX_F32 or not low32 <= to_f32(raw) <= high32:
            raise Unfit(f"{shown(raw)} is out of range; allowed: {allowed(field)}")
        return min(max(shortest(to_f32(raw)), low), high)

    return convert


def _any_to_text(field: Field) -> Callable[[Any], str]:
    check = text(field)

    def convert(raw: Any) -> str:
        if isinstance(raw, bytes):
            try:
                raw = raw.decode()
            except UnicodeDecodeError:
                raise Unfit(f"{shown(raw)} is not UTF-8") from None
        return check(raw)

    return convert


def _bytes_to_base64(field: Field) -> Callable[[Any], str]:
    def convert(raw: Any) -> str:
        if not isinstance(raw, bytes):
            raise Unfit(f"{shown(raw)} is not a byte string; allowed: {field.max_len} bytes")
        check_length(len(raw), field)
        return base64.b64encode(raw).decode("ascii")

    return convert
