"""Framing on a byte stream: messages to frames, and any bytes whatever back to messages (docs/wire-format.md §1).

A decoder never raises and never keeps more than one frame's worth of bytes: damage costs the damaged frame, and a counter tells of it.
Knows nothing of what a message means, and nothing of ports or time: whoever owns the line calls `silence` when it fell silent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from cobs import cobs

from mcpax.bridge.maps.model import Crc
from mcpax.bridge.wire.crc import crc8, crc16

SOF = 0xA5
MIN_LEN = 3
"""TYPE, TOOL_ID and SEQ are always there."""
ONE_BYTE_LEN_LIMIT = 0x80
MAX_LEN = 0x7FFF
BREAK_OFF = b"\xff\0"
"""Before a copy of a frame: ends whatever damaged the first (docs/wire-format.md §1.2). To Profile A it is noise. A zero alone would not
do: a delimiter damaged to 01 stands for one more zero byte, and CRC-16 cannot see zeros behind itself."""


@dataclass(slots=True)
class FramingCounters:
    frames: int = 0
    crc_errors: int = 0
    oversize: int = 0
    resyncs: int = 0
    """Times that bytes had to be skipped to find the next frame."""


class Decoder(Protocol):
    """One direction of one line."""

    counters: FramingCounters

    def feed(self, data: bytes) -> list[bytes]:
        """Take bytes as they come; return the whole, intact messages among them."""
        ...

    def silence(self) -> list[bytes]:
        """The line has been silent for long: give up a frame that was begun, and return what was hidden behind it."""
        ...


class Framing(Protocol):
    """How messages are put on a byte stream."""

    def encode(self, message: bytes) -> bytes: ...

    def decoder(self, max_message: int) -> Decoder: ...


@dataclass(frozen=True, slots=True)
class SofFraming:
    """Profile A: A5, length, message, CRC."""

    crc: Crc = Crc.CRC16

    @property
    def checksum(self) -> Callable[[bytes], bytes]:
        return crc8 if self.crc is Crc.CRC8 else crc16

    @property
    def crc_size(self) -> int:
        return 1 if self.crc is Crc.CRC8 else 2

    def encode(self, message: bytes) -> bytes:
        size = len(message)
        if not MIN_LEN <= size <= MAX_LEN:
            raise ValueError(f"a Profile A message has {MIN_LEN} to {MAX_LEN} bytes, not {size}")
        length = bytes((size,)) if size < ONE_BYTE_LEN_LIMIT else (0x8000 | size).to_bytes(2, "big")
        return bytes((SOF,)) + length + message + self.checksum(length + message)

    def hides_frame(self, message: bytes) -> bool:
        """A whole frame stands within the frame of this message, or begins there and ends in a copy sent after it: should the line damage
        the outer one, the receiver would find the other when it resynchronises."""
        if SOF not in message and len(message) < SOF:  # a longer one may have the A5 in its LEN
            return False
        frame = self.encode(message)
        line = frame + BREAK_OFF + frame
        last = len(frame) - self.crc_size  # from an A5 in the CRC on, BREAK_OFF stands where LEN or TYPE would
        start = frame.find(SOF, 1, last)
        while start >= 0:
            if self._is_frame(line, start):
                return True
            start = frame.find(SOF, start + 1, last)
        return False

    def _is_frame(self, line: bytes, start: int) -> bool:
        """The A5 at `start`, behind which there is more than a frame's head, begins a whole frame."""
        head, size = start + 2, line[start + 1]
        if size >= ONE_BYTE_LEN_LIMIT:
            head, size = head + 1, (size & 0x7F) << 8 | line[head]
            if size < ONE_BYTE_LEN_LIMIT:
                return False
        end = head + size
        if size < MIN_LEN or end + self.crc_size > len(line):
            return False
        return self.checksum(line[start + 1 : end]) == line[end : end + self.crc_size]

    def decoder(self, max_message: int) -> SofDecoder:
        return SofDecoder(self, max_message)


class SofDecoder:
    """Looks at the bytes from the first A5 on; on any fault it gives up that A5 alone and looks again from the byte after."""

    def __init__(self, framing: SofFraming, max_message: int) -> None:
        self.counters = FramingCounters()
        self._checksum = framing.checksum
        self._crc_size = framing.crc_size
        self._max_message = max_message
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        self._buffer += data
        return self._scan()

    def silence(self) -> list[bytes]:
        messages: list[bytes] = []
        while self._buffer:
            self._skip()
            messages += self._scan()
        return messages

    def _scan(self) -> list[bytes]:
        messages: list[bytes] = []
        buffer = self._buffer
        while True:
            start = buffer.find(SOF)
            if start < 0:
                if buffer:
                    self.counters.resyncs += 1
                buffer.clear()
                return messages
            if start > 0:
                self.counters.resyncs += 1
                del buffer[:start]
            length = self._length()
            if length is None:
                return messages
            size, head = length
            if size < 0:
                self._skip()
                continue
            end = head + size + self._crc_size
            if len(buffer) < end:
                return messages
            body = bytes(buffer[1 : head + size])
            if self._checksum(body) == buffer[head + size : end]:
                messages.append(body[head - 1 :])
                self.counters.frames += 1
                del buffer[:end]
            else:
                self.counters.crc_errors += 1
                self._skip()

    def _length(self) -> tuple[int, int] | None:
        """(bytes of the message, bytes before it) for the frame at the start of the buffer; size -1 if impossible, None if cut off."""
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        size, head = buffer[1], 2
        if size >= ONE_BYTE_LEN_LIMIT:
            if len(buffer) < 3:
                return None
            size, head = (size & 0x7F) << 8 | buffer[2], 3
            if size < ONE_BYTE_LEN_LIMIT:  # the longer form of a length that fits the shorter: not ours
                return -1, head
        if size < MIN_LEN:
            return -1, head
        if size > self._max_message:
            self.counters.oversize += 1
            return -1, head
        return size, head

    def _skip(self) -> None:
        """Give up the first byte; what follows may hold a good frame."""
        self.counters.resyncs += 1
        del self._buffer[:1]


@dataclass(frozen=True, slots=True)
class CobsFraming:
    """Profile B: COBS over message and CRC-16, ended by a zero."""

    def encode(self, message: bytes) -> bytes:
        return bytes(cobs.encode(message + crc16(message))) + b"\0"

    def decoder(self, max_message: int) -> CobsDecoder:
        return CobsDecoder(max_message)


class CobsDecoder:
    """Collects bytes to the next zero."""

    def __init__(self, max_message: int) -> None:
        self.counters = FramingCounters()
        self._max_message = max_message
        body = max_message + 2
        self._max_encoded = body + body // 254 + 1
        self._buffer = bytearray()
        self._overflowed = False

    def feed(self, data: bytes) -> list[bytes]:
        messages: list[bytes] = []
        *ended, rest = data.split(b"\0")
        for part in ended:
            self._collect(part)
            message = self._finish()
            if message is not None:
                messages.append(message)
        self._collect(rest)
        return messages

    def silence(self) -> list[bytes]:
        """Nothing to do: the next zero ends the damaged frame, whenever it comes."""
        return []

    def _collect(self, part: bytes) -> None:
        if len(self._buffer) + len(part) > self._max_encoded:
            self._overflowed = True
            self._buffer.clear()
        if not self._overflowed:
            self._buffer += part

    def _finish(self) -> bytes | None:
        encoded, overflowed = bytes(self._buffer), self._overflowed
        self._buffer.clear()
        self._overflowed = False
        if overflowed:
            self.counters.oversize += 1
            self.counters.resyncs += 1
            return None
        if not encoded:
            return None
        try:
            body = bytes(cobs.decode(encoded))
        except cobs.DecodeError:
            self.counters.resyncs += 1
            return None
        if len(body) < 3 or crc16(body[:-2]) != body[-2:]:
            self.counters.crc_errors += 1
            return None
        if len(body) - 2 > self._max_message:  # the limit above is for the worst case of COBS; without zeros there is room for one more
            self.counters.oversize += 1
            return None
        self.counters.frames += 1
        return body[:-2]
