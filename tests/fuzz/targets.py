"""Fuzz targets for the decoders: each takes bytes, and fails only if a decoder breaks its word.

The word is: never raise anything but `WireError` where that is allowed, never keep more than a frame's worth, never lose the good frame
behind the bad, and never give out a message that cannot be read back. Targets that end in `_valid` add a right CRC and framing, so that
what is mutated is what lies behind them.

    python -m tests.fuzz.targets NAME [libFuzzer options]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

try:
    import atheris
except ImportError:  # the targets themselves need no fuzzer: Hypothesis runs them, too
    atheris = None

from mcpax.bridge.frames import FrameReader
from mcpax.bridge.maps.load import load_map
from mcpax.bridge.maps.model import ByteOrder, Crc, DeviceMap, Encoding, Field, FieldType
from mcpax.bridge.maps.values import FieldsCodec, ValueFault
from mcpax.bridge.wire import profile_a, profile_b
from mcpax.bridge.wire.dialect import dialect_for
from mcpax.bridge.wire.framing import CobsFraming, Framing, SofFraming
from mcpax.bridge.wire.messages import Event, Heartbeat, Message, Registration, Response, Status, WireError
from mcpax.bridge.wire.payload_a import PayloadCodec

MAPS = Path(__file__).resolve().parents[2] / "device-maps"
MAX_MESSAGE = 96
PROBE = b"\x04\x00\x2aprobe"
"""A good frame with this is sent behind every input."""


def _chunks(data: bytes) -> list[bytes]:
    """Cut where the input itself says: decoders must not care."""
    if not data:
        return []
    cuts = sorted({0, len(data), *(byte % (len(data) + 1) for byte in data[:6])})
    return [data[start:end] for start, end in pairwise(cuts)]


def _framing(framing: Framing, data: bytes) -> None:
    """Any bytes, in any pieces: the same messages, bounded memory, and the frame behind them is found."""
    pieces, whole = framing.decoder(MAX_MESSAGE), framing.decoder(MAX_MESSAGE)
    found = [message for chunk in _chunks(data) for message in pieces.feed(chunk)]
    assert found == whole.feed(data), "what is found depends on how the bytes were cut"
    for message in found:
        assert len(message) <= MAX_MESSAGE
        assert framing.decoder(MAX_MESSAGE).feed(framing.encode(message)) == [message]
    buffer: bytearray = pieces._buffer  # type: ignore[attr-defined]
    assert len(buffer) <= 2 * MAX_MESSAGE + 8, f"{len(buffer)} bytes are kept"
    pieces.silence()
    # Silence ends a frame of Profile A, a zero one of Profile B; then a good frame must get through.
    assert pieces.feed(b"\0" + framing.encode(PROBE))[-1:] == [PROBE], "the good frame behind the bad was lost"


def sof_crc16(data: bytes) -> None:
    _framing(SofFraming(Crc.CRC16), data)


def sof_crc8(data: bytes) -> None:
    _framing(SofFraming(Crc.CRC8), data)


def cobs(data: bytes) -> None:
    _framing(CobsFraming(), data)


def _framed(framing: Framing, data: bytes) -> None:
    """Between garbage, good frames: each is found unless the garbage in front of it swallowed its beginning."""
    noise, _, message = data.partition(b"|")
    if not 3 <= len(message) <= MAX_MESSAGE:
        return
    decoder = framing.decoder(MAX_MESSAGE)
    decoder.feed(noise)
    decoder.silence()
    assert decoder.feed(b"\0" + framing.encode(message) + framing.encode(PROBE))[-2:] == [message, PROBE]


def sof_crc16_valid(data: bytes) -> None:
    _framed(SofFraming(Crc.CRC16), data)


def sof_crc8_valid(data: bytes) -> None:
    _framed(SofFraming(Crc.CRC8), data)


def cobs_valid(data: bytes) -> None:
    _framed(CobsFraming(), data)


def _check_message(message: Message) -> None:
    """What the session may rely on."""
    match message:
        case Response(seq, status):
            assert 0 <= seq <= 255
            assert 0 <= status <= 255
            assert message.payload is None or status == Status.OK
        case Heartbeat():
            assert 1 <= message.boot_id <= 0xFFFF
            assert 1 <= message.window <= 255
            assert 0 <= message.highest_seq <= 255
        case Registration():
            assert len({tool.id for tool in message.tools}) == len(message.tools)
            assert all(1 <= tool.id <= 255 and tool.name for tool in message.tools)
        case Event():
            assert 0 <= message.id <= 255


def profile_a_decode(data: bytes) -> None:
    with suppress(WireError):
        _check_message(profile_a.decode(data))
    with suppress(WireError):
        profile_a.decode_request(data)


def profile_b_decode(data: bytes) -> None:
    with suppress(WireError):
        _check_message(profile_b.decode(data))
    with suppress(WireError):
        profile_b.decode_request(data)


_FIELDS = tuple(Field(f"f{number}", kind, max_len=4) for number, kind in enumerate(FieldType))


def payload_a(data: bytes) -> None:
    """Whatever unpacks must pack to the same bytes, but for TLV, whose order is free."""
    if not data:
        return
    choice, payload = data[0], data[1:]
    encoding = list(Encoding)[choice % 3]
    order = list(ByteOrder)[choice // 3 % 2]
    start = choice // 6 % len(_FIELDS)
    fields = _FIELDS[start : start + 1] if encoding is Encoding.RAW else _FIELDS[start:]
    if encoding is Encoding.RAW and fields[0].type not in (FieldType.TEXT, FieldType.BYTES):
        return
    codec = PayloadCodec(fields, encoding, order)
    try:
        values = codec.unpack(payload)
    except WireError:
        return
    assert len(values) == len(fields)
    with suppress(ValueFault):
        FieldsCodec(fields).from_raw(values)
    if encoding is Encoding.RAW:
        assert codec.pack(values) == payload


def _device(name: str) -> Callable[[bytes], None]:
    device: DeviceMap = load_map(MAPS / f"{name}.toml")
    dialect = dialect_for(device)
    codecs = {tool.id: FieldsCodec(tool.results) for tool in device.tools}
    reader = FrameReader(device)
    events = {event.id: (event, FieldsCodec(event.fields)) for event in device.events}

    def run(data: bytes) -> None:
        """The whole way of an answer, from an intact frame to values by the map; the sniffer sees it, too."""
        for direction in ("rx", "tx"):
            assert reader.read(direction, data)["kind"]
        with suppress(WireError, ValueFault):
            message = dialect.decode(data)
            for tool in device.tools:
                if isinstance(message, Response) and message.status == Status.OK:
                    values = codecs[tool.id].from_raw(dialect.result(tool, message.payload))
                    assert values.keys() == {field.name for field in tool.results}
            if isinstance(message, Event) and message.id in events:
                described, codec = events[message.id]
                assert codec.from_raw(dialect.event(described, message.payload)).keys() == {field.name for field in described.fields}

    return run


def device_a(data: bytes) -> None:
    _DEVICES["relay-board"](data)


def device_b(data: bytes) -> None:
    _DEVICES["valve-actuator"](data)


def device_b_text(data: bytes) -> None:
    _DEVICES["env-sensor"](data)


_DEVICES = {name: _device(name) for name in ("relay-board", "valve-actuator", "env-sensor")}

TARGETS: dict[str, Callable[[bytes], None]] = {
    target.__name__: target
    for target in (
        sof_crc16,
        sof_crc8,
        cobs,
        sof_crc16_valid,
        sof_crc8_valid,
        cobs_valid,
        profile_a_decode,
        profile_b_decode,
        payload_a,
        device_a,
        device_b,
        device_b_text,
    )
}


def seeds() -> list[bytes]:
    """Something of every kind, to begin with."""
    messages = [
        bytes((2, 1, 7, 0, 1, 0, 0, 0, 0)),
        bytes((4, 0, 3, 0x12, 0x34, 1, 1, 1, 2, 3, 4)),
        bytes((5, 1, 0, 9, 0)),
        b"\x01\x01\x09\x01\x01",
    ]
    messages += [profile_b.encode_registration(load_map(MAPS / f"{name}.toml")) for name in ("valve-actuator", "env-sensor")]
    messages += [
        profile_b.encode_heartbeat(3, 4711),
        profile_b.encode_call(3, 1, {0: 7}),
        bytes.fromhex("a30002020705a300186401181902183c"),
    ]
    framings: tuple[Framing, ...] = (SofFraming(Crc.CRC16), SofFraming(Crc.CRC8), CobsFraming())
    framed = [framing.encode(message) for framing in framings for message in messages]
    return [
        *messages,
        *framed,
        b"".join(framed[:4]),
        *(b"\xa5noise|" + message for message in messages),
        *(b"\x00" + message for message in messages),
    ]


def main() -> None:
    name, *options = sys.argv[1:]
    target: Any = TARGETS[name]
    atheris.instrument_func(target)
    atheris.Setup([sys.argv[0], *options], lambda data: target(bytes(data)))
    atheris.Fuzz()


if __name__ == "__main__":
    with atheris.instrument_imports(include=["mcpax.bridge.wire", "mcpax.bridge.maps", "mcpax.bridge.frames", "cobs"]):
        # Instrumented only when imported under this; what this module imported before, it forgets.
        for module in [each for each in sys.modules if each.startswith("mcpax.bridge")]:
            del sys.modules[module]
        sys.modules.pop("tests.fuzz.targets", None)
        from tests.fuzz import targets
    targets.main()
