"""The two checksums, against the shared vectors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpax.bridge.wire.crc import crc8, crc16
from tests.vectors.read import Vector, unhex, vectors

CHECKSUMS = {"crc8": crc8, "crc16": crc16}


@pytest.mark.parametrize("vector", vectors("crc"), ids=str)
def test_vectors(vector: Vector) -> None:
    name, data, checksum = vector.fields
    assert CHECKSUMS[name](unhex(data)) == unhex(checksum)


def test_check_values() -> None:
    assert crc16(b"123456789").hex() == "29b1"
    assert crc8(b"123456789").hex() == "f4"


@given(st.binary(min_size=1, max_size=64), st.data())
def test_any_flipped_bit_shows(data: bytes, draw: st.DataObject) -> None:
    bit = draw.draw(st.integers(0, 8 * len(data) - 1))
    damaged = (int.from_bytes(data, "big") ^ 1 << bit).to_bytes(len(data), "big")
    assert crc8(damaged) != crc8(data)
    assert crc16(damaged) != crc16(data)
