"""Leases: a board is held by one at a time, across processes, and is free again when its holder ends, however that happens.

The lock is the kernel's, on an open file, so nothing is ever left locked. The file also says who holds it, for those who wait, and who
held it last, so that a holder knows whether the board is still as they left it. Knows nothing of boards.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

LOOK_EVERY_S = 0.05
PATIENCE_S = 900.0
"""For a board. Long: another's whole test run may have to end first, and is named meanwhile."""
SHARED = 0o666
"""Of a lease's file: those who wait read in it, and the next holder writes."""

_THIS_RUN = secrets.token_hex(8)
"""Process ids come again; this does not."""


@dataclass(frozen=True, slots=True)
class Holder:
    pid: int
    run: str
    what: str
    """For what: the test, or the command."""
    since: str

    def __str__(self) -> str:
        return f"{self.what} (process {self.pid}, since {self.since})"


class LeaseError(Exception):
    """The board cannot be held; says why, and what to do."""


class LeaseTimeout(LeaseError):
    """It was not free in time; says who holds it."""


@dataclass(frozen=True, slots=True)
class Lease:
    name: str
    undisturbed: bool
    """The last holder was this very process: the board is as it was left."""
    descriptor: int
    """The open file. A process that inherits it holds the board, too, until it ends."""


@contextlib.contextmanager
def lease(
    directory: Path, name: str, what: str, *, patience_s: float = PATIENCE_S, waiting: Callable[[str], None] = lambda _: None
) -> Iterator[Lease]:
    """Hold a board while the block runs. `waiting` is told, once for each, whom we wait for."""
    fd = _opened(directory, name)
    try:
        _lock(fd, name, what, patience_s, waiting)
        last = _holder(fd)
        me = Holder(os.getpid(), _THIS_RUN, what, datetime.now(UTC).isoformat(timespec="seconds"))
        os.ftruncate(fd, 0)
        os.pwrite(fd, json.dumps(asdict(me)).encode(), 0)
        yield Lease(name, undisturbed=last is not None and last.run == me.run, descriptor=fd)
    finally:
        os.close(fd)


def _opened(directory: Path, name: str) -> int:
    """The lease's file, for whoever shares the folder: the one who makes it lets all others write to it, whatever their umask."""
    path = directory / f"{name}.lock"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        while True:
            # Not both at once: in a folder like /tmp the kernel refuses O_CREAT for a file that is there and another's.
            with contextlib.suppress(FileNotFoundError):
                return os.open(path, os.O_RDWR | os.O_CLOEXEC)
            with contextlib.suppress(FileExistsError):
                fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_CREAT | os.O_EXCL, SHARED)
                os.fchmod(fd, SHARED)
                return fd
    except OSError as error:
        raise LeaseError(
            f"{name} cannot be held: {path}: {error.strerror}. All who use the bench must be able to write to its lease_dir: "
            f"chmod 1777 {directory}"
        ) from None


def _lock(fd: int, name: str, what: str, patience_s: float, waiting: Callable[[str], None]) -> None:
    deadline = time.monotonic() + patience_s
    told: Holder | None = None
    while True:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        holder = _holder(fd)
        if holder is not None and holder != told:
            told = holder
            waiting(f"{what} waits for {name}, held by {holder}")
        if time.monotonic() > deadline:
            raise LeaseTimeout(f"{name} was not free within {patience_s:g} s; held by {holder or 'somebody unknown'}. Wait, or end that.")
        time.sleep(LOOK_EVERY_S)


def _holder(fd: int) -> Holder | None:
    """Who is written down; None in the moment before somebody is."""
    try:
        return Holder(**json.loads(os.pread(fd, 4096, 0)))
    except (ValueError, TypeError):
        return None
