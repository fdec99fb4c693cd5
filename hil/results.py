"""What a run of the rig found, as plain data that goes to a JSON file and comes back for the report. Judges nothing."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hil.frames import RoundTrip
from hil.rig import BoardSpec

Json = dict[str, Any]

FRAMES_KEPT = 400
"""Of a failed test, the last ones: what led to the failure stands there."""


@dataclass(frozen=True, slots=True)
class BoardRow:
    name: str
    chip: str
    app: str
    profile: str
    baud: int
    how: str
    """`emulated (avr)`, or the port of a real one."""


@dataclass(frozen=True, slots=True)
class ResultRow:
    test: str
    boards: list[str]
    outcome: str
    """passed, failed, error (before or after the test itself) or skipped."""
    seconds: float
    reason: str = ""
    """Of a skip in words, of a failure the traceback."""
    recovery: list[str] = field(default_factory=list)
    """What had to be done before boards answered at all."""
    round_trips: list[RoundTrip] = field(default_factory=list)
    frames: list[Json] = field(default_factory=list)
    """Of a failure."""
    stats: dict[str, Json] = field(default_factory=dict)
    """By board, of a failure."""


@dataclass(frozen=True, slots=True)
class Results:
    started: str
    rig: str
    seed: int
    boards: list[BoardRow]
    tests: list[ResultRow]


class ResultsError(Exception):
    """The file is not what a run leaves; says which and what to do."""


def board_row(spec: BoardSpec) -> BoardRow:
    how = f"emulated ({spec.emulator})" if spec.emulator is not None else f"real, on {spec.port}"
    return BoardRow(spec.name, spec.chip, spec.app, str(spec.map.profile), spec.map.port.baud, how)


def save(results: Results, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.new")
    temporary.write_text(json.dumps(asdict(results), ensure_ascii=False, indent=1), encoding="utf-8")
    temporary.replace(path)


def load(path: Path) -> Results:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        boards = [BoardRow(**row) for row in found.pop("boards")]
        tests = [_test(row) for row in found.pop("tests")]
        return Results(boards=boards, tests=tests, **found)
    except OSError as error:
        raise ResultsError(f"{path}: {error.strerror}. Run the tests first: pytest hil") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ResultsError(f"{path}: not the results of a run ({error}). Run the tests again: pytest hil") from error


def _test(row: Json) -> ResultRow:
    return ResultRow(**{**row, "round_trips": [RoundTrip(**each) for each in row["round_trips"]]})
