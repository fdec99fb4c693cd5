"""What a stub may be sent, at random from a seed: calls as they should be, calls that are nearly so, and nonsense in intact frames.

Deals in bytes for the line. What the answers ought to be is for others to know.
"""

from __future__ import annotations

import random
import struct
from collections import deque
from collections.abc import Sequence
from typing import Any

import cbor2

from mcpax.bridge.maps.model import DeviceMap, Field, FieldType, Profile, ToolMap
from mcpax.bridge.wire.dialect import dialect_for
from mcpax.bridge.wire.messages import Heartbeat, Type, WireError

REMEMBERED = 4
"""Frames that may be sent again."""
ASK_EVERY = 16
"""Frames: then it asks for the stub's highest sequence, from which a damaged frame may have led it astray."""
LONGEST_NONSENSE = 90
"""Bytes; more than any small map's buffer holds."""
NEARLY = 0.15
"""Of the arguments are not as they should be."""
WRONG_ITEMS: tuple[Any, ...] = (None, True, False, "", "text", b"", b"bytes", [], [1, 2], {}, {0: 1}, 1.5, 1 << 40, -(1 << 40))
HEADER_BYTES = 3
"""Of a Profile A message: type, tool, sequence."""
NUMBER_HEADS = ((0x18, 1), (0x19, 2), (0x1A, 4), (0x1B, 8))
"""Initial bytes of CBOR numbers that follow in so many bytes."""


class RandomFrames:
    """A gateway out of its mind. `seldom`: tools whose work takes so long that they are not called often."""

    def __init__(self, device: DeviceMap, boot_id: int, dice: random.Random, seldom: Sequence[str] = ()) -> None:
        self._device = device
        self._dialect = dialect_for(device)
        self._boot_id = boot_id
        self._dice = dice
        self._weights = [0.1 if tool.name in seldom else 1.0 for tool in device.tools]
        self._seq = 0
        self._count = 0
        self._before: deque[bytes] = deque(maxlen=REMEMBERED)

    def next(self) -> bytes:
        self._count += 1
        if self._count % ASK_EVERY == 0:
            return self._framed(self._dialect.heartbeat(self._seq, self._boot_id))
        makers = (self._call, self._damaged_message, self._nonsense, self._again, self._damaged_frame, self._heartbeat)
        (maker,) = self._dice.choices(makers, weights=(50, 20, 6, 10, 8, 6))
        data = maker()
        self._before.append(data)
        return data

    def heard(self, said: bytes) -> None:
        """What the stub has answered: here it learns where the stub's sequences are."""
        for message in self._dialect.framing.decoder(self._dialect.max_message).feed(said):
            try:
                decoded = self._dialect.decode(message)
            except WireError:
                continue
            if isinstance(decoded, Heartbeat):
                self._seq = decoded.highest_seq

    # --- Kinds of frames

    def _call(self) -> bytes:
        return self._framed(self._call_message())

    def _damaged_message(self) -> bytes:
        """In a frame that is right, so that nothing but the message's reader stands between it and a handler."""
        message = self._heartbeat_message() if self._dice.random() < 0.2 else self._call_message()
        return self._framed(self._damage(message))

    def _nonsense(self) -> bytes:
        return self._framed(self._dice.randbytes(self._dice.randint(0, LONGEST_NONSENSE)))

    def _again(self) -> bytes:
        return self._dice.choice(self._before) if self._before else self._call()

    def _damaged_frame(self) -> bytes:
        return self._damage(self._call())

    def _heartbeat(self) -> bytes:
        if self._device.profile is Profile.B and self._dice.random() < 0.3:
            return self._framed(self._dialect.announce_request())
        return self._framed(self._heartbeat_message())

    # --- Messages

    def _heartbeat_message(self) -> bytes:
        believed = self._dice.choice((self._boot_id, 0, self._boot_id ^ 1, self._dice.randrange(1 << 16)))
        return self._dialect.heartbeat(self._dice.randrange(256), believed)

    def _call_message(self) -> bytes:
        (tool,) = self._dice.choices(self._device.tools, self._weights)
        seq = self._dice.randrange(256) if self._dice.random() < 0.05 else self._seq + 1
        if (seq - self._seq) % 256 < 128:
            self._seq = seq % 256
        tool_id = self._dice.randrange(256) if self._dice.random() < 0.03 else tool.id
        if self._device.profile is Profile.A:
            call = self._dialect.call(tool, seq % 256, [self._right(field) for field in tool.args])
            payload = call[HEADER_BYTES:]
            return bytes((call[0], tool_id, call[2])) + (self._damage(payload) if self._dice.random() < NEARLY else payload)
        head = b"\xa5\x00\x02\x01" + bytes((Type.CALL,)) + b"\x02" + self._number(seq % 256) + b"\x03" + self._number(tool_id)
        return head + b"\x04" + self._arguments(tool)

    def _arguments(self, tool: ToolMap) -> bytes:
        items = [bytes((number,)) + self._item(field) for number, field in enumerate(tool.args)]
        if self._dice.random() < NEARLY / 3:
            items = self._dice.sample(items, self._dice.randint(0, len(items))) + [b"\x07\x00"] * self._dice.randint(0, 1)
        return bytes((0xA0 | len(items),)) + b"".join(items)

    def _item(self, field: Field) -> bytes:
        """An argument in CBOR, mostly the right one."""
        if self._dice.random() < NEARLY:
            return cbor2.dumps(self._dice.choice(WRONG_ITEMS)) if self._dice.random() < 0.5 else self._number(self._any_number(field))
        value = self._right(field)
        if field.type is FieldType.F32:
            return b"\xfa" + struct.pack(">f", value)
        return self._number(value) if isinstance(value, int) and not isinstance(value, bool) else cbor2.dumps(value)

    def _number(self, value: int) -> bytes:
        """A CBOR integer, sometimes wider than it need be."""
        major, number = (0x20, -1 - value) if value < 0 else (0, value)
        fitting = [(head, width) for head, width in NUMBER_HEADS if number < 1 << 8 * width]
        if self._dice.random() < 0.9:
            return cbor2.dumps(value)
        head, width = self._dice.choice(fitting)
        return bytes((major | head,)) + number.to_bytes(width, "big")

    def _right(self, field: Field) -> Any:
        """A raw value that the map allows."""
        if field.raw_range is not None:
            low, high = field.raw_range
            return self._dice.choice((low, high, self._dice.randint(low, high), min(high, max(low, self._dice.randint(0, 30)))))
        if field.type is FieldType.BOOL:
            return self._dice.random() < 0.5
        if field.type is FieldType.F32:
            return self._dice.choice((0.0, 1.0, 1.5, 0.25))
        longest = field.max_len or 0
        length = longest if field.exact_len else self._dice.randint(0, longest)
        return "x" * length if field.type is FieldType.TEXT else self._dice.randbytes(length)

    def _any_number(self, field: Field) -> int:
        """Just outside the limits, or at the edges of what 8, 16 and 32 bits hold."""
        low, high = field.raw_range or (0, 1)
        edges = [limit + step for limit in (low, high, 0, 1 << 8, 1 << 15, 1 << 16, 1 << 31, -(1 << 15), -(1 << 31)) for step in (-1, 0, 1)]
        return self._dice.choice([*edges, (1 << 32) - 1, -(1 << 32), self._dice.randint(-(1 << 32), (1 << 32) - 1)])

    # --- Damage

    def _damage(self, data: bytes) -> bytes:
        changed = bytearray(data)
        for _ in range(self._dice.randint(1, 3)):
            at = self._dice.randint(0, len(changed))
            match self._dice.randrange(5):
                case 0:
                    changed[at : at + 1] = self._dice.randbytes(1)
                case 1:
                    del changed[at : at + 1]
                case 2:
                    changed[at:at] = self._dice.randbytes(1)
                case 3:
                    del changed[at:]
                case 4 if at < len(changed):
                    changed[at] ^= 1 << self._dice.randrange(8)
        return bytes(changed)

    def _framed(self, message: bytes) -> bytes:
        least = HEADER_BYTES if self._device.profile is Profile.A else 0  # with less it would be no frame
        return self._dialect.framing.encode(message.ljust(least, b"\0"))
