"""Profile A payloads: struct, TLV and raw, in both byte orders."""

import math
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpax.bridge.maps.model import ByteOrder, Encoding, Field, FieldType
from mcpax.bridge.wire.messages import WireError
from mcpax.bridge.wire.payload_a import PayloadCodec

LITTLE, BIG = ByteOrder.LITTLE, ByteOrder.BIG
STRUCT, TLV, RAW = Encoding.STRUCT, Encoding.TLV, Encoding.RAW
MAX_LEN = 6


def field(kind: FieldType, name: str = "x") -> Field:
    return Field(name, kind, max_len=MAX_LEN if kind in (FieldType.TEXT, FieldType.BYTES) else None)


def values(kind: FieldType, encoding: Encoding) -> st.SearchStrategy[Any]:
    if kind.integer_range is not None:
        return st.integers(*kind.integer_range)
    return {
        FieldType.BOOL: st.booleans(),
        FieldType.F32: st.floats(width=32, allow_nan=False),
        FieldType.TEXT: st.text("aé€", max_size=3).filter(lambda text: len(text.encode()) <= MAX_LEN),
        FieldType.BYTES: st.binary(min_size=MAX_LEN if encoding is STRUCT else 0, max_size=MAX_LEN),
    }[kind]


@pytest.mark.req("AX-B.1-3")
@given(st.data(), st.sampled_from([STRUCT, TLV]), st.sampled_from(ByteOrder), st.lists(st.sampled_from(FieldType), max_size=8))
def test_fields_of_every_type_survive_the_way_there_and_back(
    draw: st.DataObject, encoding: Encoding, order: ByteOrder, kinds: list[FieldType]
) -> None:
    raw = [draw.draw(values(kind, encoding)) for kind in kinds]
    codec = PayloadCodec([field(kind) for kind in kinds], encoding, order)
    back = codec.unpack(codec.pack(raw))
    assert back == raw
    assert [type(value) for value in back] == [type(value) for value in raw]


@pytest.mark.req("AX-B.1-3")
@given(st.data(), st.sampled_from([FieldType.TEXT, FieldType.BYTES]))
def test_raw_is_the_whole_payload(draw: st.DataObject, kind: FieldType) -> None:
    value = draw.draw(values(kind, RAW))
    codec = PayloadCodec([field(kind)], RAW, LITTLE)
    assert codec.pack([value]) == (value.encode() if isinstance(value, str) else value)
    assert codec.unpack(codec.pack([value])) == [value]


NUMBERS = [field(FieldType.U16), field(FieldType.I32), field(FieldType.BOOL), field(FieldType.F32)]


@pytest.mark.req("AX-B.1-3")
@pytest.mark.parametrize(
    ("encoding", "order", "fields", "raw", "payload"),
    [
        (STRUCT, LITTLE, NUMBERS, [0x0102, -2, True, 1.5], "0201 feffffff 01 0000c03f"),
        (STRUCT, BIG, NUMBERS, [0x0102, -2, True, 1.5], "0102 fffffffe 01 3fc00000"),
        (TLV, LITTLE, NUMBERS[:2], [0x0102, -2], "01 02 0201 02 04 feffffff"),
        (TLV, BIG, NUMBERS[:2], [0x0102, -2], "01 02 0102 02 04 fffffffe"),
        (STRUCT, LITTLE, [field(FieldType.TEXT), field(FieldType.BYTES)], ["hé", b"\0\1\2\3\4\5"], "68c3a9000000 000102030405"),
        (TLV, LITTLE, [field(FieldType.TEXT), field(FieldType.BYTES)], ["hé", b"\0"], "01 03 68c3a9 02 01 00"),
        (RAW, LITTLE, [field(FieldType.BYTES)], [b"\0\1"], "0001"),
        (RAW, LITTLE, [], [], ""),
        (TLV, LITTLE, [], [], ""),
        (STRUCT, LITTLE, [], [], ""),
    ],
)
def test_layouts(encoding: Encoding, order: ByteOrder, fields: list[Field], raw: list[Any], payload: str) -> None:
    codec = PayloadCodec(fields, encoding, order)
    assert codec.pack(raw) == bytes.fromhex(payload)
    assert codec.unpack(bytes.fromhex(payload)) == raw


def test_tlv_comes_in_any_order() -> None:
    codec = PayloadCodec(NUMBERS[:2], TLV, BIG)
    assert codec.unpack(bytes.fromhex("02 04 fffffffe 01 02 0102")) == [0x0102, -2]


def test_not_a_number_is_passed_on_for_the_map_to_judge() -> None:
    [value] = PayloadCodec([field(FieldType.F32)], STRUCT, LITTLE).unpack(struct.pack("<f", math.nan))
    assert math.isnan(value)


@pytest.mark.parametrize(
    ("encoding", "fields", "payload", "words"),
    [
        (STRUCT, NUMBERS[:1], "01", "expected 2 bytes of result, got 1"),
        (STRUCT, NUMBERS[:1], "010203", "expected 2 bytes of result, got 3"),
        (STRUCT, [], "00", "expected 0 bytes"),
        (RAW, [], "00", "expected 0 bytes"),
        (STRUCT, [field(FieldType.BOOL)], "02", "expected 0 or 1, got 2"),
        (STRUCT, [field(FieldType.TEXT)], "ff0000000000", "not UTF-8: ff"),
        (RAW, [field(FieldType.TEXT)], "ff", "not UTF-8"),
        (TLV, NUMBERS[:1], "01", "byte 0 runs past the end"),
        (TLV, NUMBERS[:1], "01 02 01", "byte 0 runs past the end"),
        (TLV, NUMBERS[:1], "01 02 0102 01", "byte 4 runs past the end"),
        (TLV, NUMBERS[:1], "01 01 01", "x: expected 2 bytes, got 1"),
        (TLV, NUMBERS[:1], "01 03 010203", "x: expected 2 bytes, got 3"),
        (TLV, NUMBERS[:1], "00 02 0102", "tag 0 is unknown"),
        (TLV, NUMBERS[:1], "02 02 0102", "tag 2 is unknown"),
        (TLV, NUMBERS[:1], "01 02 0102 01 02 0102", "tag 1 is unknown or comes twice"),
        (TLV, [field(FieldType.U8, "a"), field(FieldType.U8, "b"), field(FieldType.U8, "c")], "02 01 00", "missing: a, c"),
    ],
)
def test_what_does_not_keep_to_the_layout_is_refused(encoding: Encoding, fields: list[Field], payload: str, words: str) -> None:
    with pytest.raises(WireError, match=words):
        PayloadCodec(fields, encoding, LITTLE).unpack(bytes.fromhex(payload))


@given(st.binary(max_size=40), st.sampled_from(Encoding), st.lists(st.sampled_from(FieldType), max_size=4))
def test_any_bytes_are_values_or_a_wire_error(payload: bytes, encoding: Encoding, kinds: list[FieldType]) -> None:
    codec = PayloadCodec([field(kind) for kind in kinds[: 1 if encoding is RAW else None]], encoding, LITTLE)
    try:
        values_ = codec.unpack(payload)
    except WireError:
        return
    if encoding is not TLV and FieldType.F32 not in kinds:  # which may come in another order, or be one of many NaNs
        assert codec.pack(values_) == payload
