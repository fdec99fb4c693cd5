"""A copy of the source tree to work in by hand: emulated boards held by `scripts/hil up`, `scripts/flash`, a gateway, edited files.

Its boards, ports and images are its own, so whoever uses those of the source tree meanwhile is not disturbed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cli.conftest import serve
from tests.hil.process import PROGRAMS, ROOT, build_emulators

PATIENCE_S = 300.0
COPIED = ("boards", "device-maps", "firmware", "hil")
NOBODY = "http://127.0.0.1:1"
"""Where no gateway is."""


@dataclass(frozen=True)
class Workplace:
    root: Path

    @property
    def ports(self) -> Path:
        return self.root / "build/hil/ports"

    def port(self, board: str) -> Path:
        return self.ports / f"usb-mcpax_{board}-if00"

    def flash(self, *arguments: str, url: str = NOBODY) -> subprocess.CompletedProcess[str]:
        """What scripts/flash does once everything is installed."""
        return self.python("-m", "hil.flash", *arguments, MCPAX_URL=url)

    def build(self, *environments: str) -> None:
        done = self.python("firmware/pio/offline", "run", *(f"--environment={env}" for env in environments))
        assert done.returncode == 0, done.stdout + done.stderr

    def python(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PLATFORMIO_", "MCPAX_"))}
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.root,
            env={**inherited, "MCPAX": f"'{sys.executable}' -m mcpax", **environment},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    @contextlib.contextmanager
    def up(self, boards: Sequence[str]) -> Iterator[None]:
        """Those boards of the rig, kept running."""
        with subprocess.Popen([sys.executable, "-m", "hil", "up", *boards], cwd=self.root, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                for _ in boards:
                    assert process.stdout.readline(), "hil up ended"
                yield
            finally:
                process.terminate()

    @contextlib.contextmanager
    def gateway(self, devices: str, online: int = 0, maps: str = "device-maps") -> Iterator[str]:
        """A gateway that finds boards in `ports`, with these [[device]] entries; yields its URL."""
        config = self.root / "mcpax.toml"
        config.write_text(
            f'[gateway]\nlisten = "127.0.0.1:0"\nstate_dir = "state"\nby_id_dirs = ["build/hil/ports"]\nmaps = ["{maps}"]\n{devices}'
        )
        with serve(config, online) as url:
            yield url


def make_workplace(root: Path) -> Workplace:
    build_emulators()
    for folder in COPIED:
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "gateway").symlink_to(ROOT / "gateway")
    (root / "build").mkdir()
    (root / "build/emulators").symlink_to(PROGRAMS)
    return Workplace(root)
