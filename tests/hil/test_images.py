"""Images on their emulated chips: what a debug build tells of its memory is true, and an image over budget is found."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hil.__main__ import main
from hil.emulator import KINDS, Emulator
from hil.exercise import exercise
from hil.footprint import load_footprint
from hil.frames import FrameLog
from hil.image_size import elf_size
from hil.line import Line
from hil.measure import CHIPS, Chip, Target
from hil.places import ROOT
from mcpax.bridge.maps.debug import NAME
from mcpax.bridge.maps.load import load_map
from tests.hil.process import build_emulators

COMPILERS = ("make", "cc", "avr-gcc", "avr-objcopy", "arm-none-eabi-gcc", "clang-19", "ld.lld-19", "qemu-system-arm")
MAP = load_map(ROOT / "device-maps/relay-board-b.toml", debug=True)
RELEASE = "uno-relay-board-b"
RAM_BYTES = {"uno": 2048, "l053": 8192, "msp430g2553": 512, "microbit": 16384}
UNWRITTEN_BYTES = 8
"""The emulator counts what the stack pointer has passed, the firmware what was written: the last may be room that nothing was put into."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not all(map(shutil.which, COMPILERS)), reason=f"needs {', '.join(COMPILERS)}"),
]


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with images of our own, apart from those that somebody may be working with."""
    build_emulators()
    folder = tmp_path_factory.mktemp("images")
    environments = [word for env in (*(f"{chip.board}-debug" for chip in CHIPS), RELEASE) for word in ("-e", env)]
    done = subprocess.run(
        [sys.executable, str(ROOT / "firmware/pio/offline"), "run", *environments],
        env=os.environ | {"PLATFORMIO_BUILD_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.board)
def test_the_debug_tool_tells_what_the_emulator_has_seen(chip: Chip, images: Path, tmp_path: Path) -> None:
    image = images / f"{chip.board}-debug/firmware.elf"
    read_memory = MAP.tools[-1]
    assert read_memory.name == NAME
    with (
        Emulator(KINDS[chip.emulator], tmp_path / "port", image=image) as emulator,
        Line(str(emulator.link), MAP, FrameLog(chip.board, MAP)) as line,
    ):
        line.synchronise()
        at_first = line.result(read_memory, line.call(read_memory, []))
        exercise(line, MAP, emulator.press, random.Random(1))
        static_ram, stack_max, ram_free = line.result(read_memory, line.call(read_memory, []))
        seen = emulator.stats()

    assert static_ram == elf_size(image).static_ram
    assert static_ram + stack_max + ram_free == RAM_BYTES[chip.board]
    if seen.stack_max is not None and seen.stack_worst is not None:  # else it looks for changes in RAM itself, and finds the paint
        assert seen.stack_max - UNWRITTEN_BYTES <= stack_max <= seen.stack_max
    assert at_first[1] < stack_max, "a stack that has been deeper is told deeper"


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.board)
def test_the_deepest_stack_is_counted_anew_after_a_reset(chip: Chip, images: Path, tmp_path: Path) -> None:
    image = images / f"{chip.board}-debug/firmware.elf"
    read_memory = MAP.tools[-1]
    with (
        Emulator(KINDS[chip.emulator], tmp_path / "port", image=image) as emulator,
        Line(str(emulator.link), MAP, FrameLog(chip.board, MAP)) as line,
    ):
        exercise(line, MAP, emulator.press, random.Random(1))
        before = line.result(read_memory, line.call(read_memory, []))
        emulator.reset()
        line.wait_for_restart()
        line.synchronise()
        after = line.result(read_memory, line.call(read_memory, []))
    assert after[1] < before[1]
    assert after[2] > before[2]


def footprint_of(image: Path, output: Path, monkeypatch: pytest.MonkeyPatch) -> Result:
    device = load_map(ROOT / "device-maps/relay-board-b.toml")
    monkeypatch.setattr("hil.__main__.targets", lambda: [Target(CHIPS[0], "relay-board-b", device, image)])
    return CliRunner().invoke(main, ["footprint", "--no-build", "--json", "--output", str(output)])


def test_the_command_fails_over_budget_names_the_image_and_says_by_how_much(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The image with 2,048 zeros more in flash than its program needs."""
    good, fat, kept = images / RELEASE / "firmware.elf", tmp_path / "fat.elf", tmp_path / "sub/footprint.json"
    (tmp_path / "padding").write_bytes(bytes(2048))
    add = ["--add-section", f".padding={tmp_path / 'padding'}", "--set-section-flags", ".padding=alloc,load,readonly"]
    subprocess.run(["avr-objcopy", *add, str(good), str(fat)], check=True, capture_output=True)
    code = elf_size(good).code

    refused = footprint_of(fat, kept, monkeypatch)
    assert refused.exit_code == 1
    too_many = code + 2048 - 2047
    said = f"over budget: uno-relay-board-b: code takes {code + 2048} bytes, {too_many} too many: the budget is less than 2048\n"
    assert refused.stderr == said
    assert refused.stdout == kept.read_text(), "what it found is kept and printed all the same"
    [row] = load_footprint(kept)
    assert row["code"] == code + 2048
    assert row["ram"] == row["static ram"] + row["stack"]


def test_an_image_that_is_not_there_or_does_not_run_is_told(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = footprint_of(tmp_path / "none.elf", tmp_path / "out.json", monkeypatch)
    assert (missing.exit_code, missing.stdout) == (1, "")
    assert "none.elf: No such file or directory; build it first" in missing.stderr
    wrong_chip = footprint_of(images / "l053-debug/firmware.elf", tmp_path / "out.json", monkeypatch)
    assert wrong_chip.exit_code == 1
    assert "uno, relay-board-b: avr: " in wrong_chip.stderr
    assert not (tmp_path / "out.json").exists()
