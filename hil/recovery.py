"""Bringing a wedged board back: reset, then power, then firmware, then give up and say all that was tried.

Wedged is a board that does not answer a heartbeat, or answers with the hash of another map. Knows nothing of tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hil.boards import Board, BoardError
from hil.line import PATIENCE_S, Line, LineError
from hil.rig import LACKING, Capability

Check = Callable[[Board], str]
"""What is wrong with a board, in words; empty if nothing."""


class BoardWedged(Exception):
    """Nothing brought the board back; the message is the report."""


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    result: str
    """Empty: after this the board was well."""

    def __str__(self) -> str:
        return f"{self.name}: {self.result or 'the board answers'}"


def problem_of(board: Board, patience_s: float = PATIENCE_S) -> str:
    """Asks the board itself."""
    try:
        with Line(board.port, board.map, board.log) as line:
            heartbeat = line.heartbeat(0, patience_s=patience_s)
    except LineError as error:
        return str(error)
    if heartbeat.map_hash not in (None, board.map.hash):
        return f"runs firmware of another map: its hash is {heartbeat.map_hash:08x}, the map's {board.map.hash:08x}"
    return ""


def ensure_well(board: Board, check: Check = problem_of) -> list[Step]:
    """Returns what had to be done, nothing for a board that was well; raises `BoardWedged` if nothing helped."""
    steps = [Step("first look", check(board))]
    remedies = (
        ("reset", Capability.RESET, board.reset),
        ("power cycle", Capability.POWER, lambda: _power_cycle(board)),
        ("flash again", Capability.FLASH, board.flash),
    )
    for name, capability, remedy in remedies:
        if not steps[-1].result:
            return steps[1:]
        if capability not in board.spec.capabilities:
            steps.append(Step(name, f"not possible: {LACKING[capability]}"))
            continue
        try:
            remedy()
        except BoardError as error:
            steps.append(Step(name, str(error)))
            continue
        steps.append(Step(name, check(board)))
    if not steps[-1].result:
        return steps[1:]
    tried = "\n".join(f"    {number}. {step}" for number, step in enumerate(steps, 1))
    hint = "Look at the board itself: power, cable, and whether its firmware is for this chip."
    raise BoardWedged(f"{board.name} is wedged, and nothing helped:\n{tried}\n{hint}")


def _power_cycle(board: Board) -> None:
    board.power_off()
    board.power_on()
