"""The board's plug: a pseudo terminal and the symbolic link under which the host finds it.

The link is there as long as the board is plugged in. Knows nothing of what the bytes mean nor of when they are due.
"""

from __future__ import annotations

import contextlib
import os
import tty
from pathlib import Path

READ_BYTES = 512
"""At most so many bytes are taken from the host ahead of the line; the rest waits in the kernel, and the host with it."""


class Terminal:
    """A raw pseudo terminal. Its other end stays open, so the host may close it and come again."""

    def __init__(self, link: Path) -> None:
        self._link = link
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        os.set_blocking(self._master, False)
        self.port = os.ttyname(self._slave)

    def fileno(self) -> int:
        return self._master

    def plug(self) -> None:
        """Make the link; whoever had the name before loses it in one step, so that it never dangles in between."""
        temporary = self._link.with_name(f"{self._link.name}.{os.getpid()}")
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(self.port)
        temporary.rename(self._link)

    def unplug(self) -> None:
        """Remove the link, unless another board has taken it over."""
        with contextlib.suppress(OSError):
            if os.readlink(self._link) == self.port:
                self._link.unlink()

    def read(self) -> bytes:
        """What the host has written, at most `READ_BYTES`."""
        try:
            return os.read(self._master, READ_BYTES)
        except BlockingIOError:
            return b""

    def write(self, data: bytes) -> None:
        """To the host. If it does not read, bytes are lost as on a real line."""
        with contextlib.suppress(BlockingIOError):
            os.write(self._master, data)
