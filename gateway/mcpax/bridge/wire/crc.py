"""The two checksums of the wire format (docs/wire-format.md §1.1). Knows nothing of frames."""

from __future__ import annotations

import binascii

CRC16_START = 0xFFFF


def crc16(data: bytes) -> bytes:
    """CRC-16/CCITT-FALSE, big endian."""
    return binascii.crc_hqx(data, CRC16_START).to_bytes(2, "big")


def _crc8_of_byte(byte: int) -> int:
    for _ in range(8):
        byte = (byte << 1) ^ 0x07 if byte & 0x80 else byte << 1
    return byte & 0xFF


_CRC8_TABLE = bytes(_crc8_of_byte(byte) for byte in range(256))


def crc8(data: bytes) -> bytes:
    """CRC-8, polynomial 0x07, start 0."""
    crc = 0
    for byte in data:
        crc = _CRC8_TABLE[crc ^ byte]
    return bytes((crc,))
