"""From a value as a caller gives it in JSON to the raw value for the wire, one maker of converters per field type.

Callers err, so every refusal says what was given and what is allowed. Knows nothing of the other fields of a call.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Mapping
from typing import Any

from mcpax.bridge.maps.limits import Unfit, allowed, check_length, scaler, to_f32, value_range
from mcpax.bridge.maps.model import Field, FieldType
from mcpax.documents.faults import shown

RawValue = bool | int | float | str | bytes

STEP_SLACK = 1e-5
"""Part of a step that is forgiven: 0.3 / 0.1 is 2.9999999999999996, and the quotient of a u32 is off by up to a millionth."""


def wrapper(field: Field) -> Callable[[Any], RawValue]:
    if field.enum is not None:
        return _label_to_number(field, field.enum)
    if field.type is FieldType.BOOL:
        return flag
    if field.type is FieldType.TEXT:
        return text(field)
    if field.type is FieldType.BYTES:
        return _base64_to_bytes(field)
    if field.type is FieldType.F32:
        return _number_to_f32(field)
    return _number_to_steps(field) if field.scaled else _integer(field)


def _label_to_number(field: Field, enum: Mapping[str, int]) -> Callable[[Any], RawValue]:
    def convert(value: Any) -> RawValue:
        if not isinstance(value, str) or value not in enum:
            raise Unfit(f"{shown(value)} is not allowed; allowed: {allowed(field)}")
        return enum[value]

    return convert


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Unfit(f"{shown(value)} is not allowed; allowed: true or false")
    return value


def _integer(field: Field) -> Callable[[Any], int]:
    low, high = value_range(field)

    def convert(value: Any) -> int:
        if type(value) is not int and not (type(value) is float and value.is_integer()):
            raise Unfit(f"{shown(value)} is not an integer; allowed: {allowed(field)}")
        if not low <= value <= high:
            raise Unfit(f"{shown(value)} is out of range; allowed: {allowed(field)}")
        return int(value)

    return convert


def _in_range(field: Field) -> Callable[[Any], float]:
    low, high = value_range(field)

    def check(value: Any) -> float:
        if type(value) is not float and type(value) is not int:
            raise Unfit(f"{shown(value)} is not a number; allowed: {allowed(field)}")
        if not low <= value <= high:  # NaN is in no range
            raise Unfit(f"{shown(value)} is out of range; allowed: {allowed(field)}")
        return value

    return check


def _number_to_steps(field: Field) -> Callable[[Any], int]:
    """A value between two steps is refused, not rounded: nobody asked for the other value, and the call may be irreversible."""
    check, scale, present = _in_range(field), field.scale, scaler(field.scale)

    def convert(value: Any) -> int:
        steps = check(value) / scale
        nearest = round(steps)
        if abs(steps - nearest) > STEP_SLACK:
            below, above = present(math.floor(steps)), present(math.ceil(steps))
            raise Unfit(f"{shown(value)} is between two steps of {scale:g}; nearest: {below:.10g} and {above:.10g} {field.unit}".rstrip())
        return nearest

    return convert


def _number_to_f32(field: Field) -> Callable[[Any], float]:
    check = _in_range(field)
    return lambda value: to_f32(check(value))


def text(field: Field) -> Callable[[Any], str]:
    def convert(value: Any) -> str:
        if not isinstance(value, str):
            raise Unfit(f"{shown(value)} is not text; allowed: {allowed(field)}")
        try:
            length = len(value.encode())
        except UnicodeEncodeError:
            raise Unfit("half a surrogate pair is not text") from None
        check_length(length, field)
        if "\0" in value:
            raise Unfit("text must not contain the zero character: it ends text on a board")
        return value

    return convert


def _base64_to_bytes(field: Field) -> Callable[[Any], bytes]:
    def convert(value: Any) -> bytes:
        if not isinstance(value, str):
            raise Unfit(f"{shown(value)} is not base64 text; allowed: {allowed(field)}")
        try:
            data = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            raise Unfit(f"{shown(value)} is not base64; allowed: {allowed(field)}") from None
        check_length(len(data), field)
        return data

    return convert
