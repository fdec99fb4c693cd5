"""Boards that lie, flood, hang and cheat: each in a process of its own, on a real pty, through the real wire modules.

An attack is a class: it begins as an honest stub, and overrides what it does wrong. `ATTACKS` names them all.

    with HostileBoard("FloodEvents", "valve-actuator", directory) as board:
        …  board.binding, and whatever there is to do without it
        board.prepared()
        board.begin()
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pty
import random
import subprocess
import sys
import tty
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

import cbor2

from mcpax.bridge.device import Binding
from mcpax.bridge.maps.load import load_map
from mcpax.bridge.maps.model import DeviceMap, Field, FieldType, PortMatch, Profile, ToolMap
from mcpax.bridge.wire.dialect import dialect_for
from mcpax.bridge.wire.messages import AnnounceRequest, CallRequest, HeartbeatRequest, Status, Type, WireError
from mcpax.bridge.wire.profile_b import Key, encode_registration
from tests.harness.model_stub import StubWriter

ROOT = Path(__file__).resolve().parents[2]
MAPS = ROOT / "device-maps"
CHUNK = 4096
BURST = 64
"""Frames written at a time in a flood: as much as the pty takes, again and again."""

_ZERO: dict[FieldType, Any] = {FieldType.BOOL: False, FieldType.F32: 0.0, FieldType.TEXT: "", FieldType.BYTES: b""}


def plain_value(field: Field) -> Any:
    """Some raw value that the map allows."""
    limits = field.raw_range
    if limits is not None:
        return max(limits[0], min(0, limits[1]))
    return b"\0" * (field.max_len or 0) if field.exact_len else _ZERO[field.type]


class Honest:
    """A stub that keeps to the rules, near enough; attacks override what they do wrong."""

    boot_id = 4711
    window = 1

    def __init__(self, device: DeviceMap, port: int) -> None:
        self.device = device
        self.tools = {tool.id: tool for tool in device.tools}
        self.is_b = device.profile is Profile.B
        self.writer = StubWriter(device)
        self.dialect = dialect_for(device)
        self.decoder = self.dialect.framing.decoder(4096)
        self.port = port
        self.synchronised = False
        self.highest = 0
        self.calls = 0
        self._out = bytearray()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(port, self._readable)

    # --- bytes

    def _readable(self) -> None:
        with contextlib.suppress(BlockingIOError):
            for message in self.decoder.feed(os.read(self.port, CHUNK)):
                self.received(message)

    def send(self, *messages: bytes) -> None:
        self.send_raw(b"".join(self.dialect.framing.encode(message) for message in messages))

    def send_raw(self, data: bytes) -> None:
        self._out += data
        self._writable()

    def _writable(self) -> None:
        try:
            while self._out:
                del self._out[: os.write(self.port, self._out)]
            self._loop.remove_writer(self.port)
        except BlockingIOError:
            self._loop.add_writer(self.port, self._writable)

    # --- messages

    def start(self) -> None:
        self.send(self.registration() if self.is_b else self.heartbeat())

    def received(self, message: bytes) -> None:
        with contextlib.suppress(WireError):
            match self.dialect.decode_request(message):
                case CallRequest() as call:
                    self.highest = call.seq
                    self.calls += 1
                    self.on_call(call, self.tools[call.tool])
                case HeartbeatRequest(seq, boot_id):
                    self.on_heartbeat(seq, boot_id)
                case AnnounceRequest():
                    self.on_announce()

    def on_heartbeat(self, seq: int, boot_id: int) -> None:
        if boot_id == self.boot_id and not self.synchronised:
            self.synchronised = True
            self.highest = seq
        self.send(self.heartbeat())

    def on_announce(self) -> None:
        self.send(self.registration())

    def on_call(self, call: CallRequest, tool: ToolMap) -> None:
        self.send(self.answer(call, tool))

    def heartbeat(self) -> bytes:
        return self.writer.heartbeat(self.highest, self.boot_id, synchronised=self.synchronised, window=self.window)

    def registration(self) -> bytes:
        return self.writer.registration()

    def answer(self, call: CallRequest, tool: ToolMap) -> bytes:
        return self.writer.response(call.seq, tool.id, Status.OK, self.values(tool))

    def values(self, tool: ToolMap) -> list[Any]:
        return [plain_value(field) for field in tool.results]


# --- answers that are wrong


class WrongType(Honest):
    def answer(self, call: CallRequest, tool: ToolMap) -> bytes:
        if self.is_b:
            return _cbor({Key.JSONRPC: 2, Key.ID: call.seq, Key.RESULT: dict.fromkeys(range(len(tool.results)), "seven")})
        return bytes((Type.RESPONSE, tool.id, call.seq, Status.OK)) + b"\0"


class OutOfRange(Honest):
    def values(self, tool: ToolMap) -> list[Any]:
        return [255] + [plain_value(field) for field in tool.results[1:]]


class MissingField(Honest):
    def answer(self, call: CallRequest, tool: ToolMap) -> bytes:
        return _cbor({Key.JSONRPC: 2, Key.ID: call.seq, Key.RESULT: dict(enumerate(self.values(tool)[:-1]))})


class ExtraField(Honest):
    def answer(self, call: CallRequest, tool: ToolMap) -> bytes:
        return _cbor({Key.JSONRPC: 2, Key.ID: call.seq, Key.RESULT: dict(enumerate([*self.values(tool), 1]))})


class NotANumber(Honest):
    """A float where an integer belongs, and one that JSON cannot carry."""

    def answer(self, call: CallRequest, tool: ToolMap) -> bytes:
        return _cbor({Key.JSONRPC: 2, Key.ID: call.seq, Key.RESULT: dict.fromkeys(range(len(tool.results)), float("nan"))})


class Bignum(Honest):
    def answer(self, call: CallRequest, tool: ToolMap) -> bytes:
        return _cbor({Key.JSONRPC: 2, Key.ID: call.seq, Key.RESULT: dict.fromkeys(range(len(tool.results)), 2**250)})


class NotBytes(Honest):
    """An answer that is no CBOR map at all."""

    def answer(self, call: CallRequest, tool: ToolMap) -> bytes:  # noqa: ARG002
        return bytes((call.seq, 0x9F, 0xFF, 0x00))


class BadUtf8(Honest):
    def answer(self, call: CallRequest, tool: ToolMap) -> bytes:  # noqa: ARG002
        return b"\xa3\x00\x02\x02" + cbor2.dumps(call.seq) + b"\x05\xa1\x00\x62\xc3\x28"


class Tags(Honest):
    """Shared references that refer to themselves, and a regular expression."""

    def answer(self, call: CallRequest, tool: ToolMap) -> bytes:  # noqa: ARG002
        nasty = (b"\xd8\x1c\x81\xd8\x1d\x00", b"\xd8\x23\x64(a+)")[self.calls % 2]
        return b"\xa3\x00\x02\x02" + cbor2.dumps(call.seq) + b"\x05\xa1\x00" + nasty


class DeepNesting(Honest):
    def answer(self, call: CallRequest, tool: ToolMap) -> bytes:  # noqa: ARG002
        return b"\xa3\x00\x02\x02" + cbor2.dumps(call.seq) + b"\x05" + b"\x81" * 500 + b"\x00"


class OtherTool(Honest):
    def answer(self, call: CallRequest, tool: ToolMap) -> bytes:
        other = next(each for each in self.tools.values() if each.id != tool.id)
        return self.writer.response(call.seq, other.id, Status.OK, self.values(other))


class UnknownTool(Honest):
    def answer(self, call: CallRequest, tool: ToolMap) -> bytes:  # noqa: ARG002
        return bytes((Type.RESPONSE, 200, call.seq, Status.OK))


class WrongSequence(Honest):
    def answer(self, call: CallRequest, tool: ToolMap) -> bytes:
        return self.writer.response((call.seq + 7) % 256, tool.id, Status.OK, self.values(tool))


class NoStatus(Honest):
    def answer(self, call: CallRequest, tool: ToolMap) -> bytes:
        return bytes((Type.RESPONSE, tool.id, call.seq))


class ReservedStatus(Honest):
    def answer(self, call: CallRequest, tool: ToolMap) -> bytes:
        return self.writer.response(call.seq, tool.id, 33)


# --- answers that do not come, or too late


class NeverAnswers(Honest):
    def on_call(self, call: CallRequest, tool: ToolMap) -> None: ...


class AnswersLate(Honest):
    """The first call is answered when its caller has long gone, with a value that belongs to nobody else."""

    def __init__(self, device: DeviceMap, port: int) -> None:
        super().__init__(device, port)
        self._late_for: int | None = None

    def on_call(self, call: CallRequest, tool: ToolMap) -> None:
        if self._late_for is None:
            self._late_for = call.seq
            late = self.writer.response(call.seq, tool.id, Status.OK, self.late_values(tool))
            self._loop.call_later(0.6, self.send, late)
        elif call.seq != self._late_for:
            self.send(self.answer(call, tool))

    def late_values(self, tool: ToolMap) -> list[Any]:
        return [1 if index == 0 else plain_value(field) for index, field in enumerate(tool.results)]


class NeverReads(Honest):
    """Says hello, and then reads nothing any more: what is written to it stays in the way."""

    def on_call(self, call: CallRequest, tool: ToolMap) -> None:  # noqa: ARG002
        self._loop.remove_reader(self.port)


class HalfFrame(Honest):
    """Half an answer, then silence; the whole answer only when asked again, and again: Profile B's half spoils the frame behind it."""

    def on_call(self, call: CallRequest, tool: ToolMap) -> None:
        frame = self.dialect.framing.encode(self.answer(call, tool))
        self.send_raw(frame[: len(frame) // 2] if self.calls % 3 == 1 else frame)


class UnsynchronisedForever(Honest):
    def on_heartbeat(self, seq: int, boot_id: int) -> None:  # noqa: ARG002
        self.send(self.heartbeat())


class UnsynchronisedCalls(Honest):
    def answer(self, call: CallRequest, tool: ToolMap) -> bytes:
        return self.writer.response(call.seq, tool.id, Status.UNSYNCHRONISED)


class AlternatingBoots(Honest):
    """Another boot with every word."""

    boots = 1

    def on_heartbeat(self, seq: int, boot_id: int) -> None:  # noqa: ARG002
        self.send(self.next_boot(synchronised=True))

    def next_boot(self, *, synchronised: bool) -> bytes:
        self.boots = self.boots % 60_000 + 1
        return self.writer.heartbeat(self.highest, self.boots, synchronised=synchronised, window=1)


class AlternatingBootsUnsynchronised(AlternatingBoots):
    def on_heartbeat(self, seq: int, boot_id: int) -> None:  # noqa: ARG002
        self.send(self.next_boot(synchronised=False))


# --- floods: as fast as the port takes it


class Flood(Honest):
    """Answers honestly when it comes to that, and writes without end."""

    def start(self) -> None:
        super().start()
        self._loop.add_writer(self.port, self._writable)

    def _writable(self) -> None:
        if len(self._out) < CHUNK:
            self._out += self.water()
        with contextlib.suppress(BlockingIOError):
            del self._out[: os.write(self.port, self._out)]

    def water(self) -> bytes:
        raise NotImplementedError

    def frames(self, message: bytes) -> bytes:
        return self.dialect.framing.encode(message) * BURST


class FloodGarbage(Flood):
    def water(self) -> bytes:
        return random.randbytes(CHUNK)


class FloodZeros(Flood):
    def water(self) -> bytes:
        return b"\0" * CHUNK


class FloodStarts(Flood):
    """Nothing but beginnings of frames."""

    def water(self) -> bytes:
        return b"\xa5\x30" * (CHUNK // 2)


class FloodHeartbeats(Flood):
    def water(self) -> bytes:
        return self.frames(self.heartbeat())


class FloodEvents(Flood):
    def water(self) -> bytes:
        event = self.device.events[0]
        if self.is_b:
            return self.frames(_cbor({Key.JSONRPC: 2, Key.METHOD: int(Type.EVENT), Key.TOOL: event.id, Key.RESULT: {0: 1}, Key.COUNT: 1}))
        return self.frames(bytes((Type.EVENT, event.id, 0, 1, 0)))


class FloodBadEvents(Flood):
    def water(self) -> bytes:
        event = self.device.events[0]
        if self.is_b:
            return self.frames(
                _cbor({Key.JSONRPC: 2, Key.METHOD: int(Type.EVENT), Key.TOOL: event.id, Key.RESULT: {0: "no"}, Key.COUNT: 1})
            )
        return self.frames(bytes((Type.EVENT, event.id, 0)))


class FloodResponses(Flood):
    def water(self) -> bytes:
        tool = self.device.tools[0]
        return self.frames(self.writer.response(99, tool.id, Status.BUSY))


class FloodNonsense(Flood):
    """Intact frames without meaning."""

    def water(self) -> bytes:
        return self.frames(b"\xff\xff\xff")


class FloodRegistrations(Flood):
    def water(self) -> bytes:
        return self.frames(self.registration())


class HugeLength(Flood):
    """Frames that claim to be larger than anything, and bytes to go with it."""

    def water(self) -> bytes:
        return b"\xa5\xff\xff" + b"\x11" * CHUNK if not self.is_b else b"\x11" * CHUNK


# --- registrations


class ManyTools(Honest):
    def registration(self) -> bytes:
        return _registration(self.device, tools=[[number, f"t{number}", [], []] for number in range(1, 256)])


class HugeRegistration(Honest):
    def registration(self) -> bytes:
        return _registration(self.device, tools=[[1, "x" * 100_000, [], []]])


class DuplicateIds(Honest):
    def registration(self) -> bytes:
        return _registration(self.device, tools=[[1, "read_valve", [], []], [1, "again", [], []]])


class OtherMap(Honest):
    """Firmware built from another version of the map."""

    def registration(self) -> bytes:
        tools = cbor2.loads(encode_registration(self.device))[Key.TOOLS]
        tools[2][2] = [["volume", FieldType.U32.code]]
        return _registration(self.device, tools=tools, map_hash=0x12345678)

    def heartbeat(self) -> bytes:
        return self.writer.heartbeat(self.highest, self.boot_id, synchronised=self.synchronised, window=1, map_hash=0x12345678)


class ExtraTool(Honest):
    """Hand-written firmware, without a map hash, that can do more than the map knows."""

    def registration(self) -> bytes:
        tools = [*cbor2.loads(encode_registration(self.device))[Key.TOOLS], [77, "self_destruct", [], []]]
        return _registration(self.device, tools=tools, map_hash=0)


def _registration(device: DeviceMap, *, tools: list[Any], map_hash: int | None = None) -> bytes:
    message = cbor2.loads(encode_registration(device))
    message[int(Key.TOOLS)] = tools
    message[int(Key.MAP_HASH)] = device.hash if map_hash is None else map_hash
    return _cbor(message)


def _cbor(message: dict[int, Any]) -> bytes:
    return cbor2.dumps({int(key): value for key, value in message.items()})


ATTACKS: dict[str, type[Honest]] = {
    name: attack for name, attack in globals().items() if isinstance(attack, type) and issubclass(attack, Honest) and attack is not Flood
}


class HostileBoard:
    """A hostile board in its own process, seen from the test."""

    started: ClassVar[int] = 0

    def __init__(self, attack: str, device: str, directory: Path) -> None:
        self.map = load_map(MAPS / f"{device}.toml")
        self.link = directory / f"usb-hostile_{device}_{attack}"
        self.segment = "hostile"
        self._arguments = [attack, str(MAPS / f"{device}.toml"), str(self.link)]
        self._process: subprocess.Popen[str] | None = None

    @property
    def binding(self) -> Binding:
        return Binding(self.segment, self.map, PortMatch(by_id=self.link.name))

    def __enter__(self) -> Self:
        """Its process starts; there is no board yet."""
        command = [sys.executable, "-m", "tests.harness.hostile", *self._arguments]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def prepared(self) -> None:
        """Wait until it only waits for `begin`: from here on it costs nothing."""
        self._hear("prepared")

    def begin(self) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write("begin\n")
        self._process.stdin.flush()
        self._hear("ready")

    def end(self) -> None:
        assert self._process is not None
        if self._process.poll() is None:
            self._process.terminate()
            self._process.communicate(timeout=10)
        self.link.unlink(missing_ok=True)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.end()

    def _hear(self, word: str) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == f"{word}\n", "the hostile board did not start"


async def _main(attack: str, map_file: str, link: str) -> None:
    device = load_map(Path(map_file))
    print("prepared", flush=True)
    if not sys.stdin.readline():
        return
    master, slave = pty.openpty()
    tty.setraw(slave)
    os.set_blocking(master, False)
    board = ATTACKS[attack](device, master)
    os.symlink(os.ttyname(slave), link)
    board.start()
    print("ready", flush=True)
    # Ends with the test: when it goes, so does its end of standard input.
    gone = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), gone.set)
    await gone.wait()


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
