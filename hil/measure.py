"""Which images there are to measure, and measuring them: sizes from the linked image, the stack on the emulated board.

Knows how images are built and run; what is within the budget is judged elsewhere.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hil.budget import DRAFT, Budget, Footprint
from hil.emulator import KINDS, Emulator, EmulatorError
from hil.exercise import exercise
from hil.frames import FrameLog
from hil.image_size import ImageError, ImageSize, elf_size, sdcc_size
from hil.line import Line, LineError
from hil.places import DEFAULT_RIG, ROOT
from hil.rig import load_rig
from mcpax.bridge.maps.load import load_map
from mcpax.bridge.maps.model import DeviceMap, Profile

APPS = ("env-sensor", "relay-board-b", "valve-actuator", "relay-board")
PIO_OFFLINE = ROOT / "firmware/pio/offline"
SDCC_SUMMARY = ".mem"
"""Beside an image of SDCC's."""
TOLD_CHARS = 2000


class MeasureError(Exception):
    """An image cannot be built or measured; says which and why."""


@dataclass(frozen=True, slots=True)
class Chip:
    board: str
    name: str
    emulator: str
    in_draft: bool
    """The draft has a budget for its kind."""


CHIPS = (
    Chip("uno", "ATmega328P", "avr", in_draft=True),
    Chip("l053", "STM32L053", "stm32l0", in_draft=True),
    Chip("msp430g2553", "MSP430G2553", "msp430", in_draft=True),
    Chip("microbit", "nRF51822", "microbit", in_draft=False),
)


@dataclass(frozen=True, slots=True)
class Target:
    """An application on a board."""

    chip: Chip
    app: str
    map: DeviceMap
    image: Path
    env: str = ""
    """PlatformIO environment that makes it; empty if something else does."""

    @property
    def budget(self) -> Budget | None:
        return DRAFT if self.chip.in_draft and self.map.profile is Profile.B else None


def targets() -> list[Target]:
    """All that PlatformIO builds, and of the rig's own boards those that are built otherwise and have been: the 8051."""
    maps = {app: load_map(ROOT / f"device-maps/{app}.toml") for app in APPS}
    found = [_pio_target(chip, app, device) for chip in CHIPS for app, device in maps.items()]
    others = [
        Target(Chip(spec.name, spec.chip, spec.emulator, in_draft=False), spec.app, spec.map, spec.image)
        for spec in load_rig(DEFAULT_RIG).boards
        if spec.emulator is not None and spec.image.with_suffix(SDCC_SUMMARY).exists()
    ]
    return [*found, *others]


def _pio_target(chip: Chip, app: str, device: DeviceMap) -> Target:
    env = f"{chip.board}-{app}"
    return Target(chip, app, device, ROOT / f"build/pio/{env}/firmware.elf", env)


def build(wanted: Sequence[Target]) -> None:
    """What PlatformIO builds, all in one run, with the compilers of this machine."""
    environments = [word for target in wanted if target.env for word in ("-e", target.env)]
    if not environments:
        return
    made = subprocess.run(
        [sys.executable, str(PIO_OFFLINE), "run", *environments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if made.returncode != 0:
        raise MeasureError(f"the firmware does not build:\n{made.stdout[-TOLD_CHARS:]}")


def measure(target: Target, seed: int) -> Footprint:
    try:
        size = image_size(target.image)
        stack = deepest_stack(target.chip.emulator, target.image, target.map, seed)
    except (ImageError, EmulatorError, LineError) as error:
        raise MeasureError(f"{target.chip.board}, {target.app}: {error}") from error
    chip, profile = target.chip, str(target.map.profile)
    return Footprint(chip.board, chip.name, target.app, profile, size.code, size.schema, size.static_ram, stack, target.budget)


def image_size(image: Path) -> ImageSize:
    summary = image.with_suffix(SDCC_SUMMARY)
    return sdcc_size(summary) if summary.exists() else elf_size(image)


def deepest_stack(kind: str, image: Path, device: DeviceMap, seed: int) -> int | None:
    """Bytes, from the start of the program through all that `exercise` does; None if the emulator cannot see it."""
    with tempfile.TemporaryDirectory() as folder, Emulator(KINDS[kind], Path(folder) / "port", image=image, seed=seed) as emulator:
        with Line(str(emulator.link), device, FrameLog(kind, device)) as line:
            exercise(line, device, emulator.press, random.Random(seed))
        stats = emulator.stats()
    if stats.fault is not None:
        raise EmulatorError(f"{image}: the program failed: {stats.fault}")
    return stats.stack_max if stats.stack_worst is None else stats.stack_worst
