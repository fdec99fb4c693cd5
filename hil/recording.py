"""Keeps what happens in a run of the rig, test by test, for the report. Knows pytest's items and reports, and no fixture."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hil import results
from hil.boards import Board, BoardError
from hil.frames import round_trips
from hil.places import ROOT
from hil.rig import Rig

PASSED = "passed"


class Recorder:
    def __init__(self, rig: Rig, seed: int) -> None:
        self._rig = rig
        self._seed = seed
        self._started = datetime.now(UTC).isoformat(timespec="seconds")
        self._held: dict[str, list[Board]] = {}
        """By test, while it runs."""
        self._found: dict[str, results.ResultRow] = {}

    def holds(self, item: pytest.Item, taken: list[Board]) -> None:
        """A test has got its boards."""
        self._held[item.nodeid] = taken

    def note(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """Setting up, running and clearing away are one test: the first of them that is not well counts."""
        now, before = self._result(item, report), self._found.get(item.nodeid)
        if before is not None:
            first_bad = before if before.outcome != PASSED else now
            now = replace(first_bad, seconds=before.seconds + now.seconds, round_trips=before.round_trips + now.round_trips)
            now = replace(now, recovery=now.recovery or before.recovery)
        self._found[item.nodeid] = now
        if report.when == "teardown":
            self._held.pop(item.nodeid, None)

    def save(self, path: Path) -> None:
        """Unless no test of the rig has run: then the last results stay."""
        if self._found:
            rows = [results.board_row(spec) for spec in self._rig.boards]
            results.save(results.Results(self._started, shown(self._rig.file), self._seed, rows, list(self._found.values())), path)

    def _result(self, item: pytest.Item, report: pytest.TestReport) -> results.ResultRow:
        taken = self._held.get(item.nodeid, [])
        return results.ResultRow(
            test=_title(item),
            boards=[each.name for each in taken] or self._board_names(item),
            outcome=_outcome(report),
            seconds=report.duration,
            reason=_reason(report),
            recovery=[f"{each.name}: {step}" for each in taken for step in each.recovery],
            round_trips=[trip for each in taken for trip in round_trips(each.log)] if _measures(item, report) else [],
            frames=_frames(taken) if report.failed else [],
            stats={each.name: _stats(each) for each in taken} if report.failed else {},
        )

    def _board_names(self, item: pytest.Item) -> list[str]:
        """Of a test that did not get them."""
        spec = _params(item).get("board")
        return [spec.name] if spec is not None else [each.name for each in self._rig.boards]


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def _measures(item: pytest.Item, report: pytest.TestReport) -> bool:
    """Only what a gateway says tells of round trips: a test that talks itself may put anything before its calls."""
    return report.when == "call" and "gateway_with" in getattr(item, "fixturenames", ())


def _outcome(report: pytest.TestReport) -> str:
    if report.failed:
        return "failed" if report.when == "call" else "error"
    return "skipped" if report.skipped else PASSED


def _reason(report: pytest.TestReport) -> str:
    if report.skipped and isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    return report.longreprtext if report.failed else ""


def _frames(taken: list[Board]) -> list[dict[str, Any]]:
    frames = sorted((frame for each in taken for frame in each.log.frames), key=lambda frame: str(frame["time"]))
    return frames[-results.FRAMES_KEPT :]


def _stats(each: Board) -> dict[str, Any]:
    try:
        stats = each.stats()
    except BoardError as error:
        return {"unknown": str(error)}
    return {} if stats is None else asdict(stats)


def _title(item: pytest.Item) -> str:
    """In words, without the board: `test_x[uno-low]` is `x, low`."""
    name = getattr(item, "originalname", item.name).removeprefix("test_").replace("_", " ")
    return ", ".join([name, *(str(value) for key, value in _params(item).items() if key != "board")])


def _params(item: pytest.Item) -> dict[str, Any]:
    callspec = getattr(item, "callspec", None)
    return callspec.params if callspec is not None else {}
