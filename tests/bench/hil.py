"""Round trip of a call to chips at 9600 and 115200 baud, next to the time its bytes need on the wire and the firmware needs to answer.

    scripts/bench hil [--json] [--calls N]

The boards are emulated and paced: no byte is on the line for less than its time. Three columns: by the chip's own clock, at the port on a
bare line, and at the port by way of the gateway. Passes when each median is within 1.3 x the wire time plus the firmware's own cycles. What
the last two have above the first is this machine's: emulator, terminal and gateway. Real-time priority, where it may be had, keeps others
on the machine out of that.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import random
import select
import statistics
import sys
import tempfile
import termios
import time
import tty
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import structlog

from hil.boards import Board, EmulatedBoard
from hil.emulator import Stats
from hil.frames import RoundTrip, round_trips
from hil.gateway import gateway_on
from hil.histogram import LIMIT
from hil.line import SEQUENCES, Line
from hil.rig import BoardSpec
from mcpax.bridge.maps.load import load_map
from mcpax.bridge.transports.uart import BITS_PER_BYTE
from mcpax.bridge.wire.dialect import Dialect, dialect_for
from mcpax.bridge.wire.messages import Response
from tests.harness.firmware_project import ROOT, FirmwareProject, copy_project

BUILDS = ROOT / "build/bench-hil"
BAUDS = (9600, 115200)
APP, SHIPPED_BAUD = "valve-actuator", 115200
TOOL, ARGUMENTS = "move_valve", {"position": 40}
WARM_UP_CALLS = 5
IDLE_S = (0.0, 0.025)
"""Between calls, at random: an emulated chip ticks every 25 ms, and calls are to meet it anywhere."""
ANSWER_S = 5.0
PRIORITY = 10


@dataclass(frozen=True)
class Chip:
    board: str
    emulator: str
    hertz: int
    """Of the core, as its port sets it."""

    def median_ms(self, cycles: Iterable[int | None]) -> float:
        return 1000 * statistics.median(count for count in cycles if count is not None) / self.hertz


CHIPS = (Chip("uno", "avr", 16_000_000), Chip("l053", "stm32l0", 16_000_000), Chip("msp430g2553", "msp430", 16_000_000))


@dataclass(frozen=True)
class Row:
    board: str
    baud: int
    bytes: int
    wire_ms: float
    firmware_ms: float
    """From the last byte of a call in the UART to the first of its answer."""
    chip_ms: float
    line_ms: float
    gateway_ms: float
    allowed_ms: float

    @property
    def ok(self) -> bool:
        return max(self.chip_ms, self.line_ms, self.gateway_ms) <= self.allowed_ms


def project_at(baud: int) -> FirmwareProject:
    """The firmware's project with another speed in its map, built."""
    project = copy_project(BUILDS / str(baud))
    if baud != SHIPPED_BAUD:
        project.change_map(APP, f"baud = {SHIPPED_BAUD}\n", f"baud = {baud}\n")
    project.run(*(word for chip in CHIPS for word in ("-e", f"{chip.board}-{APP}")))
    return project


@contextmanager
def board_with(project: FirmwareProject, chip: Chip) -> Iterator[EmulatedBoard]:
    file, env = project.map_file(APP), f"{chip.board}-{APP}"
    spec = BoardSpec(chip.board, chip.board, APP, load_map(file), file, project.built(env), env, emulator=chip.emulator)
    with tempfile.TemporaryDirectory() as folder, EmulatedBoard(spec, directory=Path(folder)) as board:
        yield board


# --- On the bare line


def exchange(port: int, dialect: Dialect, call: bytes, seq: int) -> tuple[float, int]:
    """Seconds from the call to its whole answer, and the bytes of both. Nothing is decoded meanwhile but the frame's end."""
    question = dialect.framing.encode(call)
    decoder = dialect.framing.decoder(dialect.max_message)
    count = len(question)
    began = time.perf_counter()
    os.write(port, question)
    while select.select([port], [], [], ANSWER_S)[0]:
        data = os.read(port, 4096)
        took = time.perf_counter() - began
        count += len(data)
        for message in decoder.feed(data):
            answer = dialect.decode(message)
            if isinstance(answer, Response) and answer.seq == seq:
                return took, count
    raise SystemExit(f"call {seq} was not answered within {ANSWER_S:g} s")


def line_trips(board: Board, calls: int, dice: random.Random) -> tuple[list[RoundTrip], list[Stats]]:
    """The round trips, and what the emulator counted in each."""
    tool = next(tool for tool in board.map.tools if tool.name == TOOL)
    with Line(board.port, board.map, board.log) as line:
        seq = line.synchronise().highest_seq
    port = os.open(board.port, os.O_RDWR | os.O_NOCTTY)
    try:
        tty.setraw(port, termios.TCSANOW)
        dialect, trips, counted = dialect_for(board.map), [], []
        for number in range(WARM_UP_CALLS + calls):
            seq = (seq + 1) % SEQUENCES
            time.sleep(dice.uniform(*IDLE_S))
            took, count = exchange(port, dialect, dialect.call(tool, seq, list(ARGUMENTS.values())), seq)
            stats = board.stats()
            assert stats is not None
            if number >= WARM_UP_CALLS:
                trips.append(RoundTrip(board.name, 1000 * took, 1000 * count * BITS_PER_BYTE / board.map.port.baud))
                counted.append(stats)
        return trips, counted
    finally:
        os.close(port)


# --- By way of the gateway


async def gateway_trips(board: Board, calls: int, dice: random.Random) -> list[RoundTrip]:
    async with gateway_on([board]) as running:
        for _ in range(WARM_UP_CALLS):
            await running.call(board.name, TOOL, ARGUMENTS)
        board.log.frames.clear()
        for _ in range(calls):
            await asyncio.sleep(dice.uniform(*IDLE_S))
            await running.call(board.name, TOOL, ARGUMENTS)
    return round_trips(board.log)


# --- Both


def measure(chip: Chip, baud: int, project: FirmwareProject, calls: int) -> Row:
    dice = random.Random(baud)
    with board_with(project, chip) as board:
        on_line, counted = line_trips(board, calls, dice)
        by_gateway = asyncio.run(gateway_trips(board, calls, dice))
    wire_ms = statistics.median(trip.wire_ms for trip in on_line)
    firmware_ms = chip.median_ms(stats.turnaround_cycles for stats in counted)
    return Row(
        board=chip.board,
        baud=baud,
        bytes=round(wire_ms * baud / BITS_PER_BYTE / 1000),
        wire_ms=wire_ms,
        firmware_ms=firmware_ms,
        chip_ms=chip.median_ms(stats.exchange_cycles for stats in counted),
        line_ms=statistics.median(trip.ms for trip in on_line),
        gateway_ms=statistics.median(trip.ms for trip in by_gateway),
        allowed_ms=LIMIT * wire_ms + firmware_ms,
    )


def take_priority() -> bool:
    """Also for the emulators that are started from now on; needs root, or the right to it."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))
    except PermissionError:
        return False
    return True


def to_json(row: Row) -> dict[str, Any]:
    rounded = {name: round(value, 3) if isinstance(value, float) else value for name, value in asdict(row).items()}
    return {**rounded, "ok": row.ok}


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench hil")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--calls", type=int, default=200)
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))  # writing would be measured too
    projects = {baud: project_at(baud) for baud in BAUDS}
    real_time = take_priority()
    rows = [measure(chip, baud, project, options.calls) for baud, project in projects.items() for chip in CHIPS]
    if options.json:
        print(json.dumps({"calls": options.calls, "limit": LIMIT, "real_time": real_time, "rows": [to_json(row) for row in rows]}))
    else:
        print(f"{options.calls} calls each, medians in ms, {'with' if real_time else 'without'} real-time priority")
        print(f"{'board':12} {'baud':>6} {'bytes':>5} {'wire':>8} {'firmware':>8} {'chip':>8} {'line':>8} {'gateway':>8} {'allowed':>8}")
        for row in rows:
            print(
                f"{row.board:12} {row.baud:6} {row.bytes:5} {row.wire_ms:8.3f} {row.firmware_ms:8.3f} {row.chip_ms:8.3f}"
                f" {row.line_ms:8.3f} {row.gateway_ms:8.3f} {row.allowed_ms:8.3f}  {'ok' if row.ok else 'OVER'}"
            )
    return 0 if all(row.ok for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
