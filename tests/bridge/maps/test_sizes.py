"""The size of a payload is that of the longest message the wire modules make of it, neither more nor less."""

from typing import Any

import pytest

from mcpax.bridge.maps.model import ByteOrder, Encoding, Field, FieldType, Profile
from mcpax.bridge.maps.sizes import payload_size
from mcpax.bridge.wire.payload_a import PayloadCodec
from mcpax.bridge.wire.profile_b import encode_call, pack

WORST: list[tuple[Field, Any]] = [
    (Field("x", FieldType.BOOL), True),
    (Field("x", FieldType.U8), 255),
    (Field("x", FieldType.U8, max=23), 23),
    (Field("x", FieldType.U8, max=24), 24),
    (Field("x", FieldType.U16), 65535),
    (Field("x", FieldType.U16, max=255), 255),
    (Field("x", FieldType.U16, max=256), 256),
    (Field("x", FieldType.U32), 0xFFFF_FFFF),
    (Field("x", FieldType.U32, max=65535), 65535),
    (Field("x", FieldType.U32, max=65536), 65536),
    (Field("x", FieldType.I8), -128),
    (Field("x", FieldType.I16), -32768),
    (Field("x", FieldType.I16, min=-24, max=5), -24),
    (Field("x", FieldType.I16, min=-25, max=5), -25),
    (Field("x", FieldType.I32), -(2**31)),
    (Field("x", FieldType.U16, enum={"a": 1, "b": 300}), 300),
    (Field("x", FieldType.F32), 0.5),
    (Field("x", FieldType.TEXT, max_len=23), "x" * 23),
    (Field("x", FieldType.TEXT, max_len=24), "x" * 24),
    (Field("x", FieldType.BYTES, max_len=255), bytes(255)),
    (Field("x", FieldType.BYTES, max_len=256), bytes(256)),
]


@pytest.mark.parametrize(("field", "raw"), WORST)
def test_profile_b(field: Field, raw: Any) -> None:
    without = len(encode_call(0, 1, {}))
    for fields, values in (([field], [raw]), ([field] * 8, [raw] * 8)):
        taken = len(encode_call(0, 1, pack(fields, values))) - without
        assert payload_size(Profile.B, Encoding.STRUCT, fields) == 1 + taken  # the head of the empty map is in both


@pytest.mark.parametrize(("field", "raw"), WORST[:-1])  # the loader refuses the last for tlv
@pytest.mark.parametrize("encoding", [Encoding.STRUCT, Encoding.TLV])
def test_profile_a(field: Field, raw: Any, encoding: Encoding) -> None:
    fields = [field, Field("y", FieldType.U16)]
    assert payload_size(Profile.A, encoding, fields) == len(PayloadCodec(fields, encoding, ByteOrder.BIG).pack([raw, 1]))
