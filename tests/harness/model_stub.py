"""A stub in plain Python that follows docs/wire-format.md §5 to the letter, and the line to it, with faults on demand.

The line never reorders, as no serial line does. It works on whole messages: a damaged frame is one that does not arrive. Every run of
the tool is written down, so that a test can compare what was reported with what happened.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import cbor2

from mcpax.bridge.maps.model import DeviceMap, Profile
from mcpax.bridge.transport import Receiver, WireLimits
from mcpax.bridge.wire.dialect import Dialect, dialect_for
from mcpax.bridge.wire.framing import FramingCounters
from mcpax.bridge.wire.messages import FLAG_SYNCHRONISED, AnnounceRequest, CallRequest, HeartbeatRequest, Status, Type
from mcpax.bridge.wire.payload_a import PayloadCodec
from mcpax.bridge.wire.profile_b import Key, encode_registration


@dataclass(frozen=True)
class Answer:
    """What a handler does: the status it ends with, the result's raw values if that is ok, and how long it takes."""

    status: int = Status.OK
    values: tuple[Any, ...] = ()
    takes_s: float = 0.0


Handler = Callable[[int, list[Any]], Answer]
"""Tool id and raw arguments; called once for each run, or for each refusal."""


class StubWriter:
    """A stub's messages as bytes, in either profile."""

    def __init__(self, device: DeviceMap) -> None:
        self._device = device
        self._tools = {tool.id: tool for tool in device.tools}
        self._is_a = device.profile is Profile.A

    def response(self, seq: int, tool: int, status: int, values: Iterable[Any] = ()) -> bytes:
        if self._is_a:
            payload = b""
            if status == Status.OK:
                described = self._tools[tool]
                payload = PayloadCodec(described.results, described.encoding, self._device.frame.byte_order).pack(list(values))
            return bytes((Type.RESPONSE, tool, seq, status)) + payload
        if status == Status.OK:
            return _cbor({Key.JSONRPC: 2, Key.ID: seq, Key.RESULT: dict(enumerate(values))})
        return _cbor({Key.JSONRPC: 2, Key.ID: seq, Key.ERROR: status})

    def heartbeat(self, highest: int, boot_id: int, *, synchronised: bool, window: int, map_hash: int | None = None) -> bytes:
        stated = self._device.hash if map_hash is None else map_hash
        flags = FLAG_SYNCHRONISED if synchronised else 0
        if self._is_a:
            return bytes((Type.HEARTBEAT, 0, highest)) + boot_id.to_bytes(2, "big") + bytes((flags, window)) + stated.to_bytes(4, "big")
        return _cbor(
            {
                Key.JSONRPC: 2,
                Key.METHOD: int(Type.HEARTBEAT),
                Key.ID: highest,
                Key.MAP_HASH: stated,
                Key.BOOT_ID: boot_id,
                Key.FLAGS: flags,
                Key.WINDOW: window,
            }
        )

    def event(self, event_id: int, count: int) -> bytes:
        """One without fields."""
        if self._is_a:
            return bytes((Type.EVENT, event_id, count))
        return _cbor({Key.JSONRPC: 2, Key.METHOD: int(Type.EVENT), Key.TOOL: event_id, Key.RESULT: {}, Key.COUNT: count})

    def registration(self) -> bytes:
        return encode_registration(self._device)


def _cbor(message: dict[int, Any]) -> bytes:
    return cbor2.dumps({int(key): value for key, value in message.items()})


@dataclass(frozen=True)
class Run:
    boot_id: int
    seq: int
    tool: int
    args: tuple[Any, ...]


class ModelStub:
    """§5, in the words of the text. `send` puts a message on the line to the gateway."""

    def __init__(
        self, device: DeviceMap, handler: Handler, send: Callable[[bytes], None], *, window: int = 1, kept: int | None = None
    ) -> None:
        self.writer = StubWriter(device)
        self.runs: list[Run] = []
        self._dialect: Dialect = dialect_for(device)
        self._tools = {tool.id: tool for tool in device.tools}
        self._announces = device.profile is Profile.B
        self._handler = handler
        self._send = send
        self.window = window
        self._kept_count = window if kept is None else kept
        self._inbox: deque[bytes] = deque()
        self._busy: asyncio.TimerHandle | None = None
        self.boot_id = 0
        self.reset(1)

    def reset(self, boot_id: int) -> None:
        """Power on, or the reset button: all memory is gone, and whatever had not been read."""
        assert boot_id != self.boot_id
        if self._busy is not None:
            self._busy.cancel()
            self._busy = None
        self._inbox.clear()
        self.boot_id = boot_id
        self.synchronised = False
        self._highest = 0
        self._accepted = 0
        self._ran: set[int] = set()
        self._kept: dict[int, bytes] = {}

    def announce(self) -> None:
        """What a stub says unasked after boot."""
        self._send(self.writer.registration() if self._announces else self._heartbeat())

    def receive(self, message: bytes) -> None:
        """A stub does one thing at a time: what comes while a handler runs waits in the receive buffer."""
        self._inbox.append(message)
        self._work()

    def _work(self) -> None:
        while self._inbox and self._busy is None:
            request = self._dialect.decode_request(self._inbox.popleft())
            match request:
                case CallRequest():
                    self._call(request)
                case HeartbeatRequest(seq, believed):
                    if believed == self.boot_id and not self.synchronised:
                        self.synchronised = True
                        self._highest = seq
                        self._accepted = 0
                        self._ran.clear()
                        self._kept.clear()
                    self._send(self._heartbeat())
                case AnnounceRequest():
                    self._send(self.writer.registration())

    def _heartbeat(self) -> bytes:
        return self.writer.heartbeat(self._highest, self.boot_id, synchronised=self.synchronised, window=self.window)

    def _call(self, call: CallRequest) -> None:
        if not self.synchronised:
            self._send(self.writer.response(call.seq, call.tool, Status.UNSYNCHRONISED))
            return
        ahead = (call.seq - self._highest) % 256
        if 1 <= ahead <= 127:
            self._highest = call.seq
            self._accepted = min(self._accepted + ahead, 255)
            in_window = {(call.seq - age) % 256 for age in range(self.window)}
            self._ran &= in_window
            self._kept = {seq: kept for seq, kept in self._kept.items() if seq in in_window}
            self._run(call)
            return
        age = (self._highest - call.seq) % 256
        if age >= self.window or age >= self._accepted:
            return
        if call.seq not in self._ran:
            self._run(call)
        elif call.seq in self._kept:
            self._send(self._kept[call.seq])
        else:
            self._send(self.writer.response(call.seq, call.tool, Status.RESPONSE_LOST))

    def _run(self, call: CallRequest) -> None:
        tool = self._tools[call.tool]
        args = self._dialect.args(tool, call.payload)
        answer = self._handler(call.tool, args)
        response = self.writer.response(call.seq, call.tool, answer.status, answer.values)
        if answer.status in (Status.UNKNOWN_TOOL, Status.BAD_ARGUMENTS, Status.OUT_OF_RANGE):
            self._send(response)
            return
        if answer.status != Status.BUSY:
            self.runs.append(Run(self.boot_id, call.seq, call.tool, tuple(args)))
        self._ran.add(call.seq)
        while len(self._kept) >= self._kept_count:
            del self._kept[next(iter(self._kept))]
        self._kept[call.seq] = response
        if answer.takes_s:
            self._busy = asyncio.get_running_loop().call_later(answer.takes_s, self._finished, response)
        else:
            self._send(response)

    def _finished(self, response: bytes) -> None:
        self._busy = None
        self._send(response)
        self._work()


class Fate(StrEnum):
    """What the line does to a message."""

    PASS = "pass"
    DROP = "drop"
    CORRUPT = "corrupt"
    TWICE = "twice"
    LATE = "late"


@dataclass
class Line:
    """One direction. Messages come out in the order they went in."""

    deliver: Callable[[bytes], None]
    latency_s: float = 0.001
    late_s: float = 0.3
    fates: deque[Fate] = field(default_factory=deque)
    """What happens to the next messages; everything passes when there is nothing more."""
    counts: Counter[Fate] = field(default_factory=Counter)
    _free_at: float = 0.0
    _epoch: int = 0

    def put(self, message: bytes) -> None:
        fate = self.fates.popleft() if self.fates else Fate.PASS
        self.counts[fate] += 1
        if fate in (Fate.DROP, Fate.CORRUPT):
            return
        loop = asyncio.get_running_loop()
        # The smallest step that floats can tell apart at these times keeps the order.
        self._free_at = max(self._free_at + 1e-6, loop.time() + (self.late_s if fate is Fate.LATE else self.latency_s))
        loop.call_at(self._free_at, self._arrive, message, 2 if fate is Fate.TWICE else 1, self._epoch)

    def _arrive(self, message: bytes, copies: int, epoch: int) -> None:
        # Both copies at once: §5 relies on a line not to keep one of them back until after a restart. No serial line doubles anything.
        for _ in range(copies):
            if epoch == self._epoch:
                self.deliver(message)

    def cut(self) -> None:
        """What is on the line is lost."""
        self._epoch += 1


class ModelTransport:
    """The gateway's end of a line to a model stub: a `Transport`."""

    def __init__(self, device: DeviceMap, handler: Handler, *, window: int = 1, kept: int | None = None) -> None:
        self.limits = WireLimits(1024, 10 / 115200)
        self.counters = FramingCounters()
        self._receiver: Receiver | None = None
        self.closed = False
        self.stalled = False
        self.sent: list[bytes] = []
        self.watch: Callable[[bytes], None] = lambda _: None
        self.to_gateway = Line(self._arrived)
        self.stub = ModelStub(device, handler, self.to_gateway.put, window=window, kept=kept)
        self.to_stub = Line(self.stub.receive)

    def start(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def send(self, message: bytes, *, again: bool = False) -> bool:  # noqa: ARG002
        if self.closed or self.stalled:
            return False
        self.watch(message)
        self.sent.append(message)
        self.to_stub.put(message)
        return True

    def close(self) -> None:
        self.closed = True

    def lose(self, reason: str = "unplugged") -> None:
        self.closed = True
        if self._receiver is not None:
            self._receiver.transport_lost(reason)

    def _arrived(self, message: bytes) -> None:
        if self._receiver is not None and not self.closed:
            self._receiver.message_received(message)
