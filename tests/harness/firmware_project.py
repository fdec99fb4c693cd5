"""Copies of the firmware's project, to change something in and build: the source tree and its images stay as they are.

Built by PlatformIO with the compilers of this machine, as scripts/pio-offline does. Knows nothing of boards.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 300.0
COMPILERS = ("make", "cc", "avr-gcc", "arm-none-eabi-gcc", "clang-19", "ld.lld-19", "msp430mcu-config", "avrdude")
needs_compilers = pytest.mark.skipif(not all(map(shutil.which, COMPILERS)), reason=f"needs {', '.join(COMPILERS)}")


@dataclass(frozen=True)
class FirmwareProject:
    """A copy of what a build needs."""

    root: Path

    def pio(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(self.root / "firmware/pio/offline"), *arguments]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PLATFORMIO_")}
        variables = inherited | {"MCPAX": f"'{sys.executable}' -m mcpax"} | environment
        return subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=PATIENCE_S)

    def run(self, *arguments: str, **environment: str) -> str:
        done = self.pio("run", *arguments, **environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def built(self, env: str, name: str = "firmware.elf") -> Path:
        return self.root / "build/pio" / env / name

    def map_file(self, name: str) -> Path:
        return self.root / f"device-maps/{name}.toml"

    def change_map(self, name: str, what: str, into: str) -> None:
        """Wherever it stands in the map; that it stands there is asserted."""
        before = self.map_file(name).read_text()
        assert what in before, f"{name}.toml has no {what!r}"
        self.map_file(name).write_text(before.replace(what, into))


def copy_project(root: Path) -> FirmwareProject:
    """Over one that is there already, what has not changed is not built again."""
    ignored = shutil.ignore_patterns("__pycache__")
    for folder in ("firmware", "device-maps", "boards", "tests/firmware", "tests/vectors"):
        shutil.copytree(ROOT / folder, root / folder, ignore=ignored, dirs_exist_ok=True)
    gateway = root / "gateway"
    if not gateway.is_symlink():
        gateway.symlink_to(ROOT / "gateway")
    return FirmwareProject(root)
