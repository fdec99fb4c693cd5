"""A serial port on the loop: taken exclusively, gently and never at the cost of the loop. On real ptys, through pyserial-asyncio."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import serial

from mcpax.bridge.maps.model import Crc
from mcpax.bridge.transports.uart import (
    FLOOD_BURST_BYTES,
    MAX_UNSENT_BYTES,
    PortError,
    UartTransport,
    _open,
    explain_open_error,
    open_uart,
)
from mcpax.bridge.wire.framing import BREAK_OFF, CobsFraming, Framing, SofFraming

DEADLINE_S = 5.0
FRAMINGS = pytest.mark.parametrize("framing", [SofFraming(Crc.CRC16), SofFraming(Crc.CRC8), CobsFraming()], ids=["crc16", "crc8", "cobs"])
MESSAGE = b"\x02\x01\x07hello"


@dataclass
class Ends:
    """A pty: the board's end as a descriptor, the gateway's as a path."""

    board: int
    slave: int
    path: str

    def unplug(self) -> None:
        for descriptor in (self.board, self.slave):
            with suppress(OSError):
                os.close(descriptor)


@pytest.fixture
def ends() -> Iterator[Ends]:
    board, slave = pty.openpty()
    tty.setraw(slave)
    os.set_blocking(board, False)
    made = Ends(board, slave, os.ttyname(slave))
    yield made
    made.unplug()


@dataclass
class Heard:
    """A receiver that writes down."""

    messages: asyncio.Queue[bytes] = field(default_factory=asyncio.Queue)
    lost: list[str] = field(default_factory=list)
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    def message_received(self, message: bytes) -> None:
        self.messages.put_nowait(message)

    def transport_lost(self, reason: str) -> None:
        self.lost.append(reason)
        self.gone.set()

    async def next(self) -> bytes:
        async with asyncio.timeout(DEADLINE_S):
            return await self.messages.get()


async def opened(ends: Ends, framing: Framing, heard: Heard, baud: int = 115200) -> UartTransport:
    transport = await open_uart(ends.path, baud, framing, 256)
    transport.start(heard)
    return transport


async def read_all(descriptor: int, wanted: int) -> bytes:
    """What the gateway wrote, as the board sees it."""
    got = bytearray()
    readable = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, readable.set)
    try:
        async with asyncio.timeout(DEADLINE_S):
            while len(got) < wanted:
                await readable.wait()
                readable.clear()
                with suppress(BlockingIOError):
                    got += os.read(descriptor, 65536)
    finally:
        loop.remove_reader(descriptor)
    return bytes(got)


@FRAMINGS
async def test_messages_go_both_ways(ends: Ends, framing: Framing) -> None:
    heard = Heard()
    transport = await opened(ends, framing, heard)
    assert transport.send(MESSAGE)
    frame = framing.encode(MESSAGE)
    assert await read_all(ends.board, len(frame)) == frame
    os.write(ends.board, frame)
    assert await heard.next() == MESSAGE
    transport.close()


@FRAMINGS
def test_a_copy_breaks_off_a_frame_whose_end_was_damaged(framing: Framing) -> None:
    """Whatever its last byte became, the damaged frame is never taken for a longer one, and the copy gets through."""
    frame = framing.encode(MESSAGE)
    for damage in set(range(256)) - {frame[-1]}:
        decoder = framing.decoder(256)
        found = decoder.feed(frame[:-1] + bytes((damage,))) + decoder.silence() + decoder.feed(BREAK_OFF + frame)
        assert found == [MESSAGE], f"last byte {damage:#04x}"


@FRAMINGS
async def test_only_a_copy_begins_with_a_break_off(ends: Ends, framing: Framing) -> None:
    transport = await opened(ends, framing, Heard())
    transport.send(MESSAGE)
    transport.send(MESSAGE, again=True)
    expected = framing.encode(MESSAGE) + BREAK_OFF + framing.encode(MESSAGE)
    assert await read_all(ends.board, len(expected)) == expected
    transport.close()


async def test_a_frame_that_stops_half_way_is_given_up_after_silence(ends: Ends) -> None:
    """§1.1: without that, its claimed length would swallow the frames behind it."""
    heard = Heard()
    framing = SofFraming(Crc.CRC16)
    transport = await opened(ends, framing, heard)
    frame = framing.encode(MESSAGE)
    # The beginning of a long frame, and inside it, complete, a short one: only silence tells which it is.
    os.write(ends.board, b"\xa5\x70" + frame)
    assert await heard.next() == MESSAGE
    assert transport.counters.resyncs >= 1
    transport.close()


async def test_a_port_is_taken_exclusively(ends: Ends) -> None:
    transport = await opened(ends, CobsFraming(), Heard())
    with pytest.raises(PortError, match=f"{ends.path}: (locked by another program|in use).*mcpax doctor"):
        await open_uart(ends.path, 115200, CobsFraming(), 256)
    with pytest.raises(serial.SerialException):
        serial.Serial(ends.path, exclusive=True)
    # Programs that do not lock are kept out by the kernel; root passes, so the flag is what can be looked at.
    assert fcntl.ioctl(ends.slave, getattr(termios, "TIOCGEXCL", 0x80045440), b"\0\0\0\0") != b"\0\0\0\0"
    transport.close()


async def test_a_closed_port_can_be_taken_again_at_once(ends: Ends) -> None:
    for _ in range(3):
        transport = await opened(ends, CobsFraming(), Heard())
        transport.close()
        transport.close()
        await asyncio.sleep(0)
        await asyncio.sleep(0)


async def test_a_closed_port_is_open_to_other_users_too(ends: Ends) -> None:
    """Root, and so a test run by root, is let in regardless: look at the flag itself."""
    transport = await open_uart(ends.path, 115200, CobsFraming(), 64)
    assert is_exclusive(ends.slave)
    transport.close()
    assert not is_exclusive(ends.slave)


def is_exclusive(descriptor: int) -> bool:
    get_exclusive = 0x80045440  # TIOCGEXCL, which termios does not name
    return bool(int.from_bytes(fcntl.ioctl(descriptor, get_exclusive, bytes(4)), sys.byteorder))


async def test_closing_does_not_drop_dtr(ends: Ends) -> None:
    """HUPCL would lower DTR at close; the next open raises it, and that edge resets an Arduino."""
    attributes = termios.tcgetattr(ends.slave)
    attributes[2] |= termios.HUPCL
    termios.tcsetattr(ends.slave, termios.TCSANOW, attributes)
    transport = await opened(ends, CobsFraming(), Heard())
    assert not termios.tcgetattr(ends.slave)[2] & termios.HUPCL
    transport.close()


async def test_a_port_that_is_not_there_says_so() -> None:
    with pytest.raises(PortError, match=r"/dev/ttyNONE7: no such port\. Is the board plugged in\?"):
        await open_uart("/dev/ttyNONE7", 115200, CobsFraming(), 256)


def test_a_port_without_permission_says_what_to_do(ends: Ends) -> None:
    """Really refused: in a child that is not root, forked because another user may not be able to read these packages anew."""
    os.chmod(ends.path, 0)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        said = "nothing was refused"
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.seteuid(65534)
            _open(ends.path, 115200, reset_on_open=False)
        except BaseException as error:
            said = str(error)
        os.write(writer, said.encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        assert pipe.read() == (
            f"{ends.path}: permission denied. Add the user to the group dialout (sudo usermod -aG dialout USER) and log in again."
        )


def test_other_errors_keep_their_text() -> None:
    assert explain_open_error("/dev/ttyX", OSError(5, "Input/output error")) == "/dev/ttyX: cannot be opened: [Errno 5] Input/output error"
    assert explain_open_error("/dev/ttyX", OSError(16, "busy")).startswith("/dev/ttyX: in use.")


async def test_a_board_that_does_not_read_stops_neither_the_loop_nor_the_close(ends: Ends) -> None:
    heard = Heard()
    transport = await opened(ends, CobsFraming(), heard)
    loop = asyncio.get_running_loop()
    refused_at = None
    for number in range(1000):
        if not transport.send(bytes(200)):
            refused_at = number
            break
        started = loop.time()
        await asyncio.sleep(0)
        assert loop.time() - started < 0.5, "the loop stood still"
    assert refused_at is not None, "what is not read is not taken in without end"
    assert refused_at * 200 < 8 * MAX_UNSENT_BYTES
    started = loop.time()
    transport.close()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert loop.time() - started < 0.5, "closing waited for bytes that nobody reads"
    assert not transport.send(MESSAGE)
    assert not heard.lost, "who closes need not be told"


async def test_unplugging_is_told_once(ends: Ends) -> None:
    failures: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    heard = Heard()
    transport = await opened(ends, CobsFraming(), heard)
    await asyncio.sleep(0)
    ends.unplug()
    async with asyncio.timeout(DEADLINE_S):
        await heard.gone.wait()
    transport.close()
    await asyncio.sleep(0)
    assert heard.lost == ["unplugged"]
    assert not failures


async def test_unplugging_and_closing_in_the_same_moment_is_no_error(ends: Ends) -> None:
    failures: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    transport = await opened(ends, CobsFraming(), Heard())
    await asyncio.sleep(0)
    ends.unplug()
    assert transport._port is not None
    transport._port._read_ready()  # the loop finds out …
    transport.close()  # … and the session gives up, both before the port is closed
    for _ in range(4):
        await asyncio.sleep(0)
    assert not failures, failures[0]


async def test_a_flood_is_read_no_faster_than_a_line_could_carry(ends: Ends) -> None:
    transport = await opened(ends, CobsFraming(), Heard(), baud=9600)
    loop = asyncio.get_running_loop()
    poured = 0

    def pour() -> None:
        nonlocal poured
        with suppress(BlockingIOError):
            poured += os.write(ends.board, b"\x11" * 4096)

    loop.add_writer(ends.board, pour)
    started = time.monotonic()
    paused = asyncio.Event()
    pause = transport._port.pause_reading

    def pausing() -> None:
        pause()
        paused.set()

    transport._port.pause_reading = pausing
    async with asyncio.timeout(DEADLINE_S):
        await paused.wait()
    loop.remove_writer(ends.board)
    in_pty = 64 * 1024
    assert poured < FLOOD_BURST_BYTES + 16 * 960 * (time.monotonic() - started) + in_pty
    transport.close()


def test_a_file_that_is_no_port_is_refused(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("not a tty")
    with pytest.raises(PortError, match="cannot be opened"):
        asyncio.run(open_uart(str(plain), 115200, CobsFraming(), 256))
