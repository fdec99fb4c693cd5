"""The page that a run leaves: everything that was found is on it, for everybody, and nothing has to be loaded."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

from hil.__main__ import main
from hil.frames import FrameLog, RoundTrip, round_trips
from hil.histogram import histogram, summary
from hil.report import page
from hil.results import BoardRow, ResultRow, Results, ResultsError, load, save
from mcpax.bridge.maps.load import load_map
from mcpax.bridge.wire.dialect import dialect_for
from tests.virtual import MAPS

VOID = {"meta", "br", "hr", "img", "input", "link"}
UNO = BoardRow("uno", "ATmega328P", "valve-actuator", "B", 115200, "emulated (avr)")
NUCLEO = BoardRow("nucleo", "STM32L053", "env-sensor", "B", 9600, "real, on /dev/ttyACM0")
HEARTBEAT = {"time": "2026-07-01T12:00:00.000001+00:00", "device": "uno", "direction": "rx", "message": "a50102", "kind": "unreadable"}
RESULTS = Results(
    "2026-07-01T12:00:00+00:00",
    "hil/rig.toml",
    7,
    [UNO, NUCLEO],
    [
        ResultRow("its tools are listed", ["uno"], "passed", 0.5, round_trips=[RoundTrip("uno", 2.5, 2.0), RoundTrip("uno", 6.0, 2.0)]),
        ResultRow("its tools are listed", ["nucleo"], "skipped", 0.0, reason="nucleo: no power switch"),
        ResultRow(
            "noise does nothing", ["uno"], "failed", 1.5, "assert <b>1</b> == 2", ["uno: reset: ok"], [], [HEARTBEAT], {"uno": {"rx": 77}}
        ),
        ResultRow("all at once", ["uno", "nucleo"], "error", 0.1, reason="uno is wedged"),
    ],
)


class Page(HTMLParser):
    """Reads the page as a browser would, and fails where it would have to guess."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.rows and {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data


@pytest.fixture
def text(tmp_path: Path) -> str:
    return page(RESULTS, tmp_path / "none.json")


def test_each_board_and_test_has_its_cell(text: str) -> None:
    head, *rows = Page(text).rows
    assert head == ["Test", "uno", "nucleo"]
    assert [[row[0], *(cell[:1] for cell in row[1:])] for row in rows[:3]] == [
        ["its tools are listed", "✓", "–"],
        ["noise does nothing", "✗", ""],
        ["all at once", "!", "!"],
    ]
    assert rows[0][2] == "–skipped: nucleo: no power switch", "the sign alone says nothing to who cannot see it"


def test_each_board_is_described(text: str) -> None:
    assert ["nucleo", "STM32L053", "env-sensor", "B", "9,600", "real, on /dev/ttyACM0"] in Page(text).rows


def test_the_verdict_counts_everything(text: str) -> None:
    assert "1 passed, 1 failed, 1 errors, 1 skipped" in text
    assert 'class="verdict failed"' in text
    well = replace(RESULTS, tests=RESULTS.tests[:1])
    assert 'class="verdict passed">1 passed' in page(well, Path("none"))


def test_a_failure_shows_what_was_said_on_the_line(text: str) -> None:
    assert "assert &lt;b&gt;1&lt;/b&gt; == 2" in text, "what a test prints is text, never markup"
    assert "On the line of uno" in text
    assert "a5 01 02" in text
    assert "rx 77" in text
    assert "noise does nothing: uno: reset: ok" in text


def test_nothing_has_to_be_loaded_and_nothing_runs(text: str) -> None:
    read = Page(text)
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in read.attributes}
    assert not re.search(r"url\(|@import|https?:", text)
    assert not [name for _, given in read.attributes for name in given if name in ("src", "href") or name.startswith("on")]


def test_it_is_made_for_everybody(text: str) -> None:
    read = Page(text)
    assert ("html", {"lang": "en"}) in read.attributes
    assert any(tag == "meta" and given.get("name") == "viewport" for tag, given in read.attributes)
    assert "prefers-color-scheme: dark" in text
    for tag, given in read.attributes:
        if tag == "svg":
            assert given["role"] == "img"
            assert given["aria-label"]
        if tag == "th":
            assert given["scope"] in ("row", "col")
        if given.get("class") == "scroll":
            assert given["tabindex"] == "0", "what scrolls must be reachable by keyboard"


def test_ink_stands_out_from_paper_in_light_and_dark(text: str) -> None:
    """WCAG AA: a contrast of 4.5 to 1 for text."""
    for theme in re.findall(r":root \{(.*?)\}", text, re.DOTALL):
        colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})", theme))
        for ink, papers in {
            "ink": ("page", "card"),
            "quiet": ("page", "card"),
            "good": ("good-wash",),
            "bad": ("bad-wash",),
            "skip": ("skip-wash",),
        }.items():
            for paper in papers:
                assert _contrast(colours[ink], colours[paper]) >= 4.5, f"{ink} on {paper}"


def test_round_trips_are_shown_against_the_wire(text: str) -> None:
    told = summary(RESULTS.tests[0].round_trips)
    assert (told.count, told.median_ms, told.wire_ms, told.within_limit) == (2, 4.25, 2.0, 0.5)
    assert "2 round trips, median 2.12 times the wire time, 50% within 1.3 times" in text
    assert text.count("<svg") == 1, "a board without round trips has no picture"


def test_the_bars_are_all_of_the_round_trips() -> None:
    trips = [RoundTrip("uno", 2.0 * ratio, 2.0) for ratio in (0.1, 1.0, 1.01, 1.29, 1.31, 99.0)]
    counts = [int(count) for count in re.findall(r"<title>(\d+) at", histogram("uno", trips))]
    assert sum(counts) == len(trips)
    assert histogram("uno", trips).count('class="bar late"') == 2


@pytest.mark.parametrize(
    ("footprint", "shown"),
    [
        (None, "Not measured yet"),
        ("not JSON", "Not measured yet"),
        ({"rows": [{"target": "avr", "code": 1612}]}, "1,612"),
        (
            [{"target": "avr", "app": "valve-actuator", "code": 1612, "budget": {"code": 2048}}, {"target": "mcs51", "note": "<none>"}],
            "2,048",
        ),
    ],
)
def test_footprints_are_shown_if_there_are_any(footprint: object, shown: str, tmp_path: Path) -> None:
    file = tmp_path / "footprint.json"
    if footprint is not None:
        file.write_text(footprint if isinstance(footprint, str) else json.dumps(footprint))
    text = page(RESULTS, file)
    Page(text)
    assert shown in text


def test_results_come_back_as_they_were_left(tmp_path: Path) -> None:
    save(RESULTS, tmp_path / "sub/results.json")
    assert load(tmp_path / "sub/results.json") == RESULTS


@pytest.mark.parametrize("content", [None, "", "[]", "{}", '{"boards": [{}], "tests": []}'])
def test_what_is_no_result_is_told(content: str | None, tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ResultsError, match=r"results\.json: .*pytest hil"):
        load(file)
    told = CliRunner().invoke(main, ["report", "--results", str(file)])
    assert told.exit_code == 1
    assert "pytest hil" in told.output


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    save(RESULTS, tmp_path / "results.json")
    output = tmp_path / "out/report.html"
    told = CliRunner().invoke(main, ["report", "--results", str(tmp_path / "results.json"), "--output", str(output)])
    assert told.output.strip() == str(output)
    assert output.read_text().startswith("<!doctype html>")


def test_round_trips_are_read_from_the_log() -> None:
    """Only calls that were sent once and answered; the wire time counts every byte of both frames."""
    device = load_map(MAPS / "relay-board.toml")
    dialect, log = dialect_for(device), FrameLog("uno", device)
    tool = device.tools[4]
    call, other = dialect.call(tool, 1, [b"abc"]), dialect.call(tool, 2, [b"abc"])
    answer = bytes((2, tool.id, 1, 0)) + b"abc"
    for direction, message in (("tx", call), ("rx", answer), ("tx", other), ("tx", other), ("rx", bytes((2, tool.id, 2, 0)) + b"abc")):
        log.add(direction, message)
    (trip,) = round_trips(log)
    size = len(dialect.framing.encode(call)) + len(dialect.framing.encode(answer))
    assert trip.wire_ms == pytest.approx(size * 10 / 115.2)
    assert trip.ms >= 0


def _contrast(one: str, other: str) -> float:
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    red, green, blue = (
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in (int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4))
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
