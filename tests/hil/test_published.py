"""The images that ship: each keeps to the draft's budget, and the README says what they take."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from hil.__main__ import main
from hil.places import ROOT

CELLS = 9
STACK, RAM = 6, 7
"""Columns that are measured while an image runs; on the micro:bit they differ by some bytes from one run to the next."""

pytestmark = pytest.mark.slow


def rows(table: str) -> list[list[str]]:
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("|")]
    return [line for line in lines if len(line) == CELLS and line[2] in ("A", "B")]


@pytest.mark.req("AX-B.2-1")
def test_every_image_keeps_to_the_budget_and_the_readme_tells_its_size(tmp_path: Path) -> None:
    """On the images that `scripts/test` has built: their sections, and the deepest stack while the emulated chip is put to work."""
    done = CliRunner().invoke(main, ["footprint", "--no-build", "--markdown", "-o", str(tmp_path / "footprint.json")])
    assert done.exit_code == 0, done.output
    measured = rows(done.output)
    published = rows((ROOT / "README.md").read_text().partition("<!-- footprint -->")[2].partition("<!-- /footprint -->")[0])
    assert len([row for row in measured if row[2] == "B" and row[8] != "none"]) == 9  # three applications on AVR, M0+ and MSP430
    for row in (*measured, *published):
        if row[0] == "microbit":
            row[STACK] = row[RAM] = "about"
    assert published == measured, "paste what `scripts/footprint --markdown` prints into the README"
