"""How many bytes the fields of a call, a response or an event take at most, as `docs/wire-format.md` §4 lays them out.

Knows lengths only; the bytes themselves are made in `bridge.wire`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcpax.bridge.maps.model import Encoding, Field, FieldType, Profile

STATUS_BYTES = 1
"""A Profile A response payload starts with its status."""

_FIXED = {
    FieldType.BOOL: 1,
    FieldType.U8: 1,
    FieldType.I8: 1,
    FieldType.U16: 2,
    FieldType.I16: 2,
    FieldType.U32: 4,
    FieldType.I32: 4,
    FieldType.F32: 4,
}


def payload_size(profile: Profile, encoding: Encoding, fields: Sequence[Field]) -> int:
    """Bytes at most, without the status byte of a Profile A response."""
    if profile is Profile.B:
        return 1 + sum(1 + _cbor_size(field) for field in fields)  # map header; field number and value
    tag_and_length = 2 if encoding is Encoding.TLV else 0
    return sum(tag_and_length + struct_size(field) for field in fields)


def struct_size(field: Field) -> int:
    """Bytes of one value in a Profile A struct."""
    return _FIXED.get(field.type) or field.max_len or 0


def _cbor_size(field: Field) -> int:
    """Upper bound of one CBOR item: its head, and what follows."""
    if field.max_len is not None:
        return _cbor_head(field.max_len) + field.max_len
    if field.type is FieldType.BOOL:
        return 1
    if field.type is FieldType.F32:
        return 5
    low, high = field.raw_range or (0, 0)
    return _cbor_head(max(high, -1 - low))


def _cbor_head(number: int) -> int:
    """A head carries its number in itself below 24, else in 1, 2 or 4 bytes."""
    return next((size for limit, size in ((24, 1), (0x100, 2), (0x1_0000, 3)) if number < limit), 5)
