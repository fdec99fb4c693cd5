"""What a field takes: its range and units in words, and the arithmetic of scales and binary32 that both directions share.

Knows one field at a time and converts nothing; see `wrap` and `unwrap`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Decimal

from mcpax.bridge.maps.model import Field, FieldType

MAX_F32: float = struct.unpack(">f", b"\x7f\x7f\xff\xff")[0]
_F32 = struct.Struct("f")


class Unfit(ValueError):
    """One value does not fit its field; which field that is, is known further up."""


def value_range(field: Field) -> tuple[float, float]:
    """Smallest and largest value of a number, in the unit that people see."""
    if field.type is FieldType.F32:
        return (-MAX_F32 if field.min is None else field.min), (MAX_F32 if field.max is None else field.max)
    low, high = field.raw_range or (0, 0)
    if not field.scaled:
        return low, high
    present = scaler(field.scale)
    return present(low), present(high)


def allowed(field: Field) -> str:
    """In words, what a field takes."""
    if field.enum is not None:
        return f"one of {', '.join(field.enum)}"
    if field.type is FieldType.BOOL:
        return "true or false"
    if field.type in (FieldType.TEXT, FieldType.BYTES):
        kind = "text" if field.type is FieldType.TEXT else "base64"
        return f"{kind} of {'exactly' if field.exact_len else 'at most'} {field.max_len} bytes"
    kind = "number" if field.scaled or field.type is FieldType.F32 else "integer"
    low, high = value_range(field)
    return f"{kind} from {low:.10g} to {high:.10g} {field.unit}".rstrip()


def check_length(length: int, field: Field) -> None:
    """Of text and bytes."""
    limit = field.max_len or 0
    if length > limit or (field.exact_len and length != limit):
        raise Unfit(f"{length} bytes given; allowed: {allowed(field)}")


def scaler(scale: float) -> Callable[[int], float]:
    """raw × scale with the decimals of the scale: 2137 × 0.01 is 21.37 and not 21.370000000000001."""
    exponent = Decimal(repr(scale)).normalize().as_tuple().exponent
    decimals = max(0, -exponent) if isinstance(exponent, int) else 0
    return lambda raw: round(raw * scale, decimals)


def to_f32(value: float) -> float:
    rounded: float = _F32.unpack(_F32.pack(value))[0]
    return rounded


def shortest(value: float) -> float:
    """The shortest decimal that is this binary32 number: 0.1, not 0.10000000149011612. Nine digits always do."""
    for digits in (6, 7, 8):
        candidate = float(f"{value:.{digits}g}")
        if abs(candidate) <= MAX_F32 and to_f32(candidate) == value:
            return candidate
    return float(f"{value:.9g}")
