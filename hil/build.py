"""The firmware that an emulated board starts with: how it is built, and building it where there is none. Never builds one anew."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence

from hil.places import ROOT
from hil.rig import BoardSpec

TOLD_CHARS = 2000
MCS51 = ROOT / "build/mcs51"


class BuildError(Exception):
    """The firmware does not build; has the compiler's words."""


def how_to_build(spec: BoardSpec) -> str:
    """In the words of a shell; empty if nothing here makes it."""
    if spec.emulator == "virtual":
        return "make -C firmware virtual"
    if spec.image.parent == MCS51:
        return "make -C firmware mcs51"
    return f"scripts/pio-offline run -e {spec.env}" if spec.env else ""


def build_missing(specs: Sequence[BoardSpec], say: Callable[[str], None]) -> None:
    for spec in specs:
        how = how_to_build(spec)
        if spec.emulator is None or spec.image.exists() or not how:
            continue
        say(f"building the firmware of {spec.name}: {how}")
        # What runs this has all that is needed, so the script's own look for it is left out.
        pio = [sys.executable, "firmware/pio/offline", "run", "-e", spec.env]
        done = subprocess.run(
            how.split() if how.startswith("make ") else pio,
            cwd=ROOT,
            env={"MCPAX": f"'{sys.executable}' -m mcpax", **os.environ},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise BuildError(f"{spec.name}: its firmware does not build: {how}\n{done.stdout[-TOLD_CHARS:]}")
