"""The MCP Inspector's command line, installed once per version. Fetching it takes long, so that can begin before it is asked for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

WANTED = Path(__file__).with_name("package.json")
INSTALLED = Path(__file__).resolve().parents[2] / "build" / "node"
STAMP = INSTALLED / "installed"
PROGRAM = INSTALLED / "node_modules" / ".bin" / "mcp-inspector"


def find_node() -> str | None:
    """From the dev extra, not the system's, which may be too old."""
    return shutil.which("node", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))


@dataclass
class Installation:
    node: str
    _npm: subprocess.Popen[str] | None = None

    def begin(self) -> None:
        """Without scripts: it needs none to run, and they are other people's."""
        if self._npm is not None or (STAMP.exists() and STAMP.read_text() == WANTED.read_text()):
            return
        INSTALLED.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(WANTED, INSTALLED / "package.json")
        command = [str(Path(self.node).parent / "npm"), "install", "--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund"]
        self._npm = subprocess.Popen(command, cwd=INSTALLED, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def finish(self) -> Path:
        """The program, once it is there."""
        self.begin()
        if self._npm is not None:
            _, complaints = self._npm.communicate()
            status, self._npm = self._npm.returncode, None
            assert status == 0, complaints
            shutil.copyfile(WANTED, STAMP)
        return PROGRAM

    def drop(self) -> None:
        """Nobody has asked for it."""
        if self._npm is not None:
            self._npm.terminate()
            self._npm.communicate()
            self._npm = None
