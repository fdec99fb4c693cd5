"""Virtual boards as processes: which there are, and keeping them running.

A virtual board is the firmware library on a pseudo terminal (firmware/virtual). Each appears under a name like those that udev gives to
USB serial ports, in a directory of its own, so that the gateway finds it the way it finds a real one. Knows nothing of the gateway.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

RESTART_EVERY_S = 1.0
"""A board that dies at once, again and again, must not keep the machine busy."""


@dataclass(frozen=True, slots=True)
class VirtualBoard:
    name: str
    """Of the program, and of the device map that it was made from."""
    program: Path

    @property
    def port_name(self) -> str:
        return f"usb-mcpax_{self.name}_0001-if00"


def find_boards(directory: Path) -> list[VirtualBoard]:
    """Every program in a directory is one; an absent directory has none."""
    if not directory.is_dir():
        return []
    return [VirtualBoard(path.name, path) for path in sorted(directory.iterdir()) if path.is_file() and os.access(path, os.X_OK)]


async def keep_running(board: VirtualBoard, directory: Path, baud: int, say: Callable[[str], None]) -> None:
    """Run until cancelled, and tell when the board had to be started again."""
    loop = asyncio.get_running_loop()
    while True:
        not_before = loop.time() + RESTART_EVERY_S
        ended = await _run(board, directory / board.port_name, baud)
        say(f"virtual board {board.name} {_in_words(ended)}; starting it again")
        await asyncio.sleep(not_before - loop.time())


async def _run(board: VirtualBoard, link: Path, baud: int) -> int:
    process = await asyncio.create_subprocess_exec(
        board.program,
        *("--link", str(link), "--baud", str(baud)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        process_group=0,  # Ctrl-C is for us: boards go last, after the gateway has closed their ports
    )
    try:
        return await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _in_words(code: int) -> str:
    return f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
