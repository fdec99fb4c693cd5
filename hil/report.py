"""One HTML page of a run: board × test, round trips, footprints, and of every failure what was said on the line.

The page stands alone: no scripts, nothing to load. Judges nothing that the run has not judged.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from hil.footprint import columns, load_footprint
from hil.frames import RoundTrip
from hil.histogram import LIMIT, histogram, summary
from hil.results import BoardRow, ResultRow, Results
from mcpax.cli.frame_text import frame_text

STYLE = Path(__file__).with_name("report.css")
SIGNS = {"passed": "✓", "failed": "✗", "error": "!", "skipped": "–"}
BAD = ("failed", "error")


def page(results: Results, footprint: Path) -> str:
    sections = (
        _head(results),
        _failures(results),
        _recoveries(results),
        _matrix(results),
        _round_trips(results),
        _footprint(footprint),
        _boards(results),
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Rig report: {escape(_verdict(results)[1])}</title>
<style>
{STYLE.read_text(encoding="utf-8")}</style>
</head>
<body>
<main>
{"".join(sections)}</main>
</body>
</html>
"""


def _verdict(results: Results) -> tuple[str, str]:
    """The class and the words."""
    counts = Counter(test.outcome for test in results.tests)
    words = ", ".join(f"{counts[outcome]} {'errors' if outcome == 'error' else outcome}" for outcome in SIGNS if counts[outcome])
    return ("failed" if any(counts[outcome] for outcome in BAD) else "passed"), words or "no test has run"


def _head(results: Results) -> str:
    kind, words = _verdict(results)
    return (
        f'<h1>Rig report</h1>\n<p><span class="verdict {kind}">{escape(words)}</span></p>\n'
        f'<p class="quiet">{len(results.boards)} boards of {escape(results.rig)}, begun {escape(results.started)}, '
        f"seed {results.seed}.</p>\n"
    )


# --- Board × test


def _matrix(results: Results) -> str:
    used = {name for test in results.tests for name in test.boards}
    boards = [board for board in results.boards if board.name in used]
    titles = list(dict.fromkeys(test.test for test in results.tests))
    found = {(test.test, name): test for test in results.tests for name in test.boards}
    head = "".join(f'<th scope="col">{escape(board.name)}</th>' for board in boards)
    rows = "".join(
        f'<tr><th scope="row">{escape(title)}</th>{"".join(_cell(found.get((title, board.name))) for board in boards)}</tr>\n'
        for title in titles
    )
    return (
        '<h2 id="matrix">Boards and tests</h2>\n'
        '<p class="quiet">✓ passed, ✗ failed, ! could not be judged, – skipped, empty: not run.</p>\n'
        '<div class="scroll" role="region" aria-labelledby="matrix" tabindex="0"><table class="matrix">\n'
        f'<thead><tr><th scope="col">Test</th>{head}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n'
    )


def _cell(test: ResultRow | None) -> str:
    if test is None:
        return "<td></td>"
    why = f": {test.reason}" if test.outcome == "skipped" else ""
    title = f"{test.outcome}{why}, {test.seconds:.2f} s"
    sign = f'<span aria-hidden="true">{SIGNS[test.outcome]}</span><span class="hidden">{escape(test.outcome + why)}</span>'
    return f'<td class="outcome {test.outcome}" title="{escape(title)}">{sign}</td>'


# --- Round trips


def _round_trips(results: Results) -> str:
    trips: dict[str, list[RoundTrip]] = {}
    for test in results.tests:
        for trip in test.round_trips:
            trips.setdefault(trip.board, []).append(trip)
    cards = "".join(_card(board, trips[board.name]) for board in results.boards if trips.get(board.name))
    note = (
        '<p class="quiet">From handing a call to the port to its whole answer, through the gateway, '
        "over the time that the bytes of both take on the line: "
        f"nothing can be quicker than 1×, and {LIMIT:g}× plus the firmware's own cycles is the aim. "
        "Calls that were sent more than once do not count.</p>\n"
    )
    return (
        f'<h2>Round trips</h2>\n{note}<div class="cards">{cards}</div>\n' if cards else "<h2>Round trips</h2>\n<p>None were measured.</p>\n"
    )


def _card(board: BoardRow, trips: list[RoundTrip]) -> str:
    told = summary(trips)
    return (
        f'<section class="card"><h3>{escape(board.name)}</h3>\n'
        f'<p class="quiet">{told.count} calls at {board.baud} baud. Median {told.median_ms:.2f} ms, 95 % within {told.p95_ms:.2f} ms; '
        f"wire {told.wire_ms:.2f} ms. {told.within_limit:.0%} within {LIMIT:g}×.</p>\n{histogram(board.name, trips)}</section>\n"
    )


# --- Footprints and boards


def _footprint(path: Path) -> str:
    rows = load_footprint(path)
    if not rows:
        return "<h2>Footprint</h2>\n<p>Not measured yet: <code>scripts/footprint</code> does.</p>\n"
    note = '<p class="quiet">Bytes, from the linked images and measured on the emulators.</p>\n'
    return _table("footprint", "Footprint", note, rows)


def _boards(results: Results) -> str:
    return _table("boards", "Boards", "", [asdict(board) for board in results.boards])


def _table(name: str, title: str, note: str, rows: list[dict[str, Any]]) -> str:
    names = columns(rows)
    numeric = {name for name in names if all(isinstance(row.get(name, 0), int | float) for row in rows)}
    head = "".join(f'<th scope="col"{_number(name in numeric)}>{escape(name)}</th>' for name in names)
    body = "".join(f"<tr>{''.join(_value(row.get(name), name in numeric) for name in names)}</tr>\n" for row in rows)
    return (
        f'<h2 id="{name}">{title}</h2>\n{note}<div class="scroll" role="region" aria-labelledby="{name}" tabindex="0"><table>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n"
    )


def _number(is_number: bool) -> str:
    return ' class="number"' if is_number else ""


def _value(value: Any, is_number: bool) -> str:
    if value is None:
        return "<td></td>"
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return f"<td{_number(is_number)}>{escape(text)}</td>"


# --- Failures


def _failures(results: Results) -> str:
    bad = [test for test in results.tests if test.outcome in BAD]
    return ("<h2>Failures</h2>\n" if bad else "") + "".join(_failure(test, open_first=test is bad[0]) for test in bad)


def _failure(test: ResultRow, *, open_first: bool) -> str:
    stats = "\n".join(f"{board}: {_stats(counted)}" for board, counted in test.stats.items() if counted)
    parts = [f"<h3>What failed</h3>\n<pre>{escape(test.reason)}</pre>\n"]
    if stats:
        parts.append(f"<h3>What the board counted</h3>\n<pre>{escape(stats)}</pre>\n")
    for board, frames in groupby(sorted(test.frames, key=_device), key=_device):
        lines = "\n".join(frame_text(frame, with_hex=True) for frame in frames)
        parts.append(f"<h3>On the line of {escape(board)}</h3>\n<pre>{escape(click.unstyle(lines))}</pre>\n")
    where = escape(f"{test.test} on {', '.join(test.boards)}")
    return f"<details{' open' if open_first else ''}><summary>{where}</summary><div>{''.join(parts)}</div></details>\n"


def _stats(counted: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in counted.items() if value is not None)


def _device(frame: dict[str, Any]) -> str:
    return str(frame["device"])


def _recoveries(results: Results) -> str:
    steps = list(dict.fromkeys(f"{test.test}: {step}" for test in results.tests for step in test.recovery))
    if not steps:
        return ""
    return f"<h2>Boards that had to be brought back</h2>\n<ul>{''.join(f'<li>{escape(step)}</li>' for step in steps)}</ul>\n"
