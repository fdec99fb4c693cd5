"""Which process has a file or a TCP port, as /proc tells it.

Sees only what the user may see: without root, other users' processes stay unknown. Every path is below a root, so that tests can show
a machine of their own making. Knows nothing of serial ports.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LISTEN = "0A"
"""State of a listening socket in /proc/net/tcp."""


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    program: str

    def __str__(self) -> str:
        return f"{self.program} (pid {self.pid})"


def holders(root: Path, file: str) -> list[Process]:
    """The processes that have this file open; `file` as it is named when links are followed."""
    return [process for process, targets in _open_files(root) if file in targets and not _made(file, targets)]


def _made(file: str, targets: set[str]) -> bool:
    """Whoever has the other end of a pseudo terminal does not hold it: it is what is there, a virtual board or an emulator."""
    return file.startswith("/dev/pts/") and any(target.endswith("/ptmx") for target in targets)


def listeners(root: Path, port: int) -> list[Process]:
    """The processes that listen on this TCP port."""
    sockets = {f"socket:[{inode}]" for inode in _listening(root, port)}
    return [process for process, targets in _open_files(root) if targets & sockets]


def running(root: Path, program: str) -> list[Process]:
    """The processes of this name."""
    return [process for process in _processes(root) if process.program == program]


def _processes(root: Path) -> Iterator[Process]:
    for directory in sorted(root.glob("proc/[0-9]*")):
        try:
            yield Process(int(directory.name), (directory / "comm").read_text().strip())
        except (OSError, ValueError):
            continue  # it has ended in the meantime


def _open_files(root: Path) -> Iterator[tuple[Process, set[str]]]:
    for process in _processes(root):
        try:
            yield process, set(_targets(root / f"proc/{process.pid}/fd"))
        except OSError:
            continue  # another user's, or ended


def _targets(directory: Path) -> Iterator[str]:
    for fd in directory.iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed since
            yield str(fd.readlink())


def _listening(root: Path, port: int) -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        try:
            lines = (root / "proc/net" / table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            columns = line.split()
            if columns[3] == LISTEN and int(columns[1].rpartition(":")[2], 16) == port:
                yield columns[9]
