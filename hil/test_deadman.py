"""The dead man's switch on chips: a valve stays open as long as a gateway is heard, and closes by itself when it is not.

Whoever asks the board renews its lease, so the valve's position is read in the emulated chip's RAM.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from hil.boards import Board, EmulatedBoard
from hil.frames import FrameLog
from hil.gateway import RunningGateway, until
from hil.line import Line
from hil.plugin import SEED, GatewayWith, taken
from hil.rig import Rig
from mcpax.bridge.transports.uart import BITS_PER_BYTE

APP = "valve-actuator"
OPEN, CLOSED = 100, 0
"""%"""
TRAVEL_S = 2.5
"""From one to the other."""
LATE_S = 1.0
"""What the looking and a busy machine may add."""
FLOOD_BYTES = 64
FLOODED_PART = 0.5
"""Of what the line can carry, at least."""
POSITION = ("valve", "valve.0")
"""The variable of firmware/examples/valve_actuator.c whose first part is the position; a compiler may have taken it apart."""
AVR_RAM = 0x800000
"""Where an AVR's image has the beginning of data memory."""


def address_of(image: Path, names: tuple[str, ...]) -> int:
    with image.open("rb") as file:
        elf = ELFFile(file)
        tables = (section for section in elf.iter_sections() if isinstance(section, SymbolTableSection))
        found = [symbol["st_value"] for table in tables for symbol in table.iter_symbols() if symbol.name in names]
        assert len(found) == 1, f"{image} has {len(found)} variables named {' or '.join(names)}"
        return int(found[0]) - (AVR_RAM if elf["e_machine"] == "EM_AVR" else 0)


@dataclass(frozen=True)
class Valve:
    board: Board
    position: Callable[[], int]
    """Without a word to the board."""

    @property
    def lease_s(self) -> float:
        return self.board.map.port.deadman_ms / 1000

    @property
    def heartbeat_s(self) -> float:
        return self.board.map.port.heartbeat_ms / 1000

    async def open(self, running: RunningGateway) -> None:
        await running.call(self.board.name, "move_valve", {"position": OPEN})
        await self.until(OPEN, "opens")

    async def until(self, position: int, what: str) -> None:
        await until(lambda: self.position() == position, lambda: f"the valve of {self.board.name} {what}; it is at {self.position()} %")

    async def stays_open(self) -> None:
        enough = self._heartbeats() + self.lease_s // self.heartbeat_s + 2
        await until(lambda: self._heartbeats() >= enough, lambda: f"{self.board.name}: heartbeats for longer than the lease")
        assert self.position() == OPEN, f"{self.board.name}: heartbeats did not renew the lease"

    async def closes_in_time(self) -> None:
        began = time.monotonic()
        await self.until(CLOSED, "closes")
        # The gateway was last heard at its last heartbeat, not at its end.
        earliest_s = self.lease_s - self.heartbeat_s + TRAVEL_S - 0.1
        assert time.monotonic() - began > earliest_s, f"{self.board.name}: it closed before the lease was over"

    async def is_found_closed(self, running: RunningGateway) -> None:
        read = await running.call(self.board.name, "read_valve", {})
        assert (read["position"], read["flow"]) == (CLOSED, 0), self.board.name

    def _heartbeats(self) -> int:
        """That the board has answered."""
        return sum(frame["kind"] == "heartbeat" and frame["direction"] == "rx" for frame in self.board.log.frames)


@pytest.fixture
def boards(request: pytest.FixtureRequest, rig: Rig) -> Iterator[list[Board]]:
    """All that have one, at once: a lease takes its time on each."""
    specs = [spec for spec in rig.boards if spec.app == APP and spec.emulator not in (None, "virtual")]
    if not specs:
        pytest.skip(f"needs an emulated chip with {APP}")
    yield from taken(request, rig, specs)


@pytest.fixture
def valves(boards: list[Board]) -> list[Valve]:
    def valve(board: Board) -> Valve:
        assert isinstance(board, EmulatedBoard)
        address = address_of(board.spec.image, POSITION)
        return Valve(board, lambda: board.peek(address, 1)[0])

    return [valve(board) for board in boards]


@pytest.mark.slow
async def test_the_valve_stays_open_while_the_gateway_lives_and_then_closes(
    boards: list[Board], valves: list[Valve], gateway_with: GatewayWith
) -> None:
    async with gateway_with(boards) as running:
        await asyncio.gather(*(valve.open(running) for valve in valves))
        await asyncio.gather(*(valve.stays_open() for valve in valves))
    await asyncio.gather(*(valve.closes_in_time() for valve in valves))

    async with gateway_with(boards) as running:
        await asyncio.gather(*(valve.is_found_closed(running) for valve in valves))
        await asyncio.gather(*(valve.open(running) for valve in valves))


@pytest.mark.slow
async def test_a_flood_neither_holds_a_valve_open_nor_keeps_it_from_closing(
    boards: list[Board], valves: list[Valve], gateway_with: GatewayWith
) -> None:
    """Noise without pause, as fast as the line goes: it is no gateway, and ticks go on."""
    async with gateway_with(boards) as running:
        await asyncio.gather(*(valve.open(running) for valve in valves))
    began = time.monotonic()
    over = threading.Event()
    floods = [asyncio.create_task(asyncio.to_thread(flood, board, over)) for board in boards]
    try:
        await asyncio.gather(*(valve.closes_in_time() for valve in valves))
        latest_s = max(valve.lease_s for valve in valves) + TRAVEL_S + LATE_S
        assert time.monotonic() - began < latest_s, "the flood kept ticks waiting"
    finally:
        over.set()
        sent = await asyncio.gather(*floods)
    for board, count in zip(boards, sent, strict=True):
        assert count > FLOODED_PART * board.map.port.baud / BITS_PER_BYTE * (time.monotonic() - began), f"{board.name} was hardly flooded"


def flood(board: Board, over: threading.Event) -> int:
    """Returns how many bytes went in."""
    dice, sent = random.Random(SEED), 0
    with Line(board.port, board.map, FrameLog(board.name, board.map)) as line:
        while not over.is_set():
            line.send_raw(dice.randbytes(FLOOD_BYTES))  # waits while the line is full
            sent += FLOOD_BYTES
            over.wait(FLOOD_BYTES * BITS_PER_BYTE / board.map.port.baud / 2)
    return sent
