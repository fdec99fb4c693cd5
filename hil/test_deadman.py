"""The dead man's switch on chips: a valve stays open as long as a gateway is heard, and closes by itself when it is not.

Whoever asks the board renews its lease, so the valve's position is read in the emulated chip's RAM.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from hil.boards import Board, EmulatedBoard
from hil.gateway import until
from hil.plugin import GatewayWith

APP = "valve-actuator"
OPEN, CLOSED = 100, 0
"""%"""
TRAVEL_S = 2.5
"""From one to the other."""
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


@pytest.fixture
def position(board: Board) -> Callable[[], int]:
    """The valve's, without a word to the board."""
    if board.spec.app != APP or not isinstance(board, EmulatedBoard) or board.spec.emulator == "virtual":
        pytest.skip(f"needs an emulated chip with {APP}")
    address, emulated = address_of(board.spec.image, POSITION), board
    return lambda: emulated.peek(address, 1)[0]


@pytest.mark.slow
async def test_the_valve_stays_open_while_the_gateway_lives_and_then_closes(
    board: Board, position: Callable[[], int], gateway_with: GatewayWith
) -> None:
    port = board.map.port
    async with gateway_with([board]) as running:
        await running.call(board.name, "move_valve", {"position": OPEN})
        await until(lambda: position() == OPEN, lambda: f"the valve opens; it is at {position()} %")
        enough = _heartbeats(board) + port.deadman_ms // port.heartbeat_ms + 2
        await until(lambda: _heartbeats(board) >= enough, lambda: "heartbeats for longer than the lease")
        assert position() == OPEN, "heartbeats did not renew the lease"
    began = time.monotonic()
    await until(lambda: position() == CLOSED, lambda: f"the valve closes; it is at {position()} %")
    # The gateway was last heard at its last heartbeat, not at its end.
    assert time.monotonic() - began > (port.deadman_ms - port.heartbeat_ms) / 1000 + TRAVEL_S - 0.1, "it closed before the lease was over"

    async with gateway_with([board]) as running:
        read = await running.call(board.name, "read_valve", {})
        assert (read["position"], read["flow"]) == (CLOSED, 0)
        await running.call(board.name, "move_valve", {"position": OPEN})
        await until(lambda: position() == OPEN, lambda: f"the valve opens again; it is at {position()} %")


def _heartbeats(board: Board) -> int:
    """That the board has answered."""
    return sum(frame["kind"] == "heartbeat" and frame["direction"] == "rx" for frame in board.log.frames)
