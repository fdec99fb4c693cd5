"""Are the vectors themselves right? Held against other people's CBOR, COBS and CRC, and against the gateway's own codecs."""

import binascii
from functools import cache
from pathlib import Path

import cbor2
import pytest
from cobs import cobs

from mcpax.bridge.maps.load import load_map
from mcpax.bridge.maps.model import Crc, DeviceMap
from mcpax.bridge.wire.crc import crc8, crc16
from mcpax.bridge.wire.dialect import dialect_for
from mcpax.bridge.wire.framing import CobsFraming, Framing, SofFraming
from mcpax.bridge.wire.messages import Event, Heartbeat, Registration, Response
from tests.vectors.read import Vector, messages, unhex, vectors

MAPS = Path(__file__).with_name("maps")
FRAMINGS: dict[str, Framing] = {"sof-crc8": SofFraming(Crc.CRC8), "sof-crc16": SofFraming(Crc.CRC16), "cobs": CobsFraming()}


def bitwise_crc8(data: bytes) -> bytes:
    crc = 0
    for bit in (byte >> shift & 1 for byte in data for shift in range(7, -1, -1)):
        crc = (crc << 1 & 0xFF) ^ (0x07 if (crc >> 7) ^ bit else 0)
    return bytes((crc,))


def plain_crc16(data: bytes) -> bytes:
    return binascii.crc_hqx(data, 0xFFFF).to_bytes(2, "big")


@pytest.mark.parametrize("vector", vectors("crc"), ids=str)
def test_checksum(vector: Vector) -> None:
    name, data, checksum = vector.fields
    reference, own = (bitwise_crc8, crc8) if name == "crc8" else (plain_crc16, crc16)
    assert reference(unhex(data)) == own(unhex(data)) == unhex(checksum)


@pytest.mark.parametrize("vector", vectors("frame"), ids=str)
def test_frame(vector: Vector) -> None:
    framing, _, message, frame = vector.fields
    if framing == "cobs":
        assert cobs.encode(unhex(message) + plain_crc16(unhex(message))) + b"\0" == unhex(frame)
    else:
        size = len(unhex(message))
        length = bytes((size,)) if size < 0x80 else bytes((0x80 | size >> 8, size & 0xFF))
        checksum = bitwise_crc8 if framing == "sof-crc8" else plain_crc16
        assert b"\xa5" + length + unhex(message) + checksum(length + unhex(message)) == unhex(frame)
    assert FRAMINGS[framing].encode(unhex(message)) == unhex(frame)
    assert FRAMINGS[framing].decoder(400).feed(unhex(frame)) == [unhex(message)]


@pytest.mark.req("AX-B.1-1")
@pytest.mark.parametrize("bytewise", [False, True], ids=["at once", "byte by byte"])
@pytest.mark.parametrize("vector", vectors("stream"), ids=str)
def test_stream(vector: Vector, bytewise: bool) -> None:
    framing, largest, _, stream, expected = vector.fields
    decoder = FRAMINGS[framing].decoder(int(largest))
    found = []
    for number, part in enumerate(stream.replace("-", "").split("~")):
        if number > 0:
            found += decoder.silence()
        data = bytes.fromhex(part)
        for chunk in (data[i : i + 1] for i in range(len(data))) if bytewise else [data]:
            found += decoder.feed(chunk)
    assert found == messages(expected)


@cache
def device_of(stub: str) -> DeviceMap:
    return load_map(MAPS / f"vector-{stub.split('/', maxsplit=1)[0]}.toml")


@pytest.mark.parametrize("vector", vectors("boot", "in", "event"), ids=str)
def test_the_gateway_understands_what_a_stub_says(vector: Vector) -> None:
    device = device_of(vector.fields[0])
    dialect = dialect_for(device)
    said = dialect.framing.decoder(dialect.max_message).feed(unhex(vector.fields[3]))
    assert bool(said) == (vector.fields[3] != "-")
    for message in said:
        if device.profile == "B":
            assert cbor2.dumps(cbor2.loads(message), canonical=True) == message or b"\xfa" in message
        decoded = dialect.decode(message)
        assert isinstance(decoded, Response | Heartbeat | Registration | Event)
        if isinstance(decoded, Heartbeat | Registration):
            assert decoded.map_hash == device.hash
        if isinstance(decoded, Event):
            event = next(event for event in device.events if event.id == decoded.id)
            assert dialect.event(event, decoded.payload) in ([513], ["oh", -2])
