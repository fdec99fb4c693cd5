"""Aggregators one below the other, each a process with a configuration, a state directory and link tokens of its own, on loopback.

For `scripts/tree` and for benchmarks, which must not share a process with what they measure. Knows nothing of what is below the lowest.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

SERVE = ("-m", "mcpax", "serve")
LOOK_EVERY_S = 0.1
END_S = 10.0
"""A level that has not ended this long after it was asked to is ended by force."""
LOG_LINES = 15


class LevelDown(Exception):
    """A level has ended by itself, or the tree did not come up in time; says which, and what its log says."""


@dataclass(frozen=True, slots=True)
class Level:
    """One aggregator, not started yet."""

    segment: str
    port: int
    directory: Path
    more: str = ""
    """Configuration besides what makes it a level."""
    program: Sequence[str] = SERVE

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.directory / "log"


@dataclass(slots=True)
class Running:
    level: Level
    process: asyncio.subprocess.Process = field(repr=False)

    @property
    def pid(self) -> int:
        return self.process.pid

    def check(self) -> None:
        if self.process.returncode is not None:
            raise LevelDown(f"{self.level.segment} ended with exit code {self.process.returncode}; its log ends:\n{_tail(self.level.log)}")


def segments(levels: int) -> list[str]:
    """From the root down: cloud, region, edge; with more levels the regions have numbers, with fewer they go first."""
    regions = [f"region-{number}" for number in range(1, levels - 1)] if levels > 3 else ["region"] * (levels - 2)
    return [*(["cloud"] if levels > 1 else []), *regions, "edge"]


def free_ports(count: int) -> list[int]:
    """Chosen together, so that none is given twice. Another program may still take one before it is used; it has not been seen to."""
    with contextlib.ExitStack() as stack:
        return [stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1] for _ in range(count)]


def configure(levels: Sequence[Level]) -> None:
    """Write what each needs to serve, and to register with the one before it."""
    for level in levels:
        level.directory.mkdir()
        (level.directory / "mcpax.toml").write_text(_serving(level))
    for above, below in pairwise(levels):
        token = secrets.token_urlsafe(32)
        for level, name in ((above, "child.token"), (below, "upstream.token")):
            (level.directory / name).write_text(token)
        with (below.directory / "mcpax.toml").open("a") as config:
            config.write(f'[upstream]\nurl = "ws://127.0.0.1:{above.port}"\ntoken_file = "upstream.token"\n')
        with (above.directory / "mcpax.toml").open("a") as config:
            config.write(f'[[child]]\nname = "{below.segment}"\nsegment = "{below.segment}"\ntoken_file = "child.token"\n')


def _serving(level: Level) -> str:
    return f'[gateway]\nsegment = "{level.segment}"\nlisten = "127.0.0.1:{level.port}"\nstate_dir = "state"\n{level.more}'


@contextlib.asynccontextmanager
async def running(levels: Sequence[Level]) -> AsyncIterator[list[Running]]:
    """All of them, started together: a child that comes before its parent dials again."""
    configure(levels)
    started: list[Running] = []
    try:
        for level in levels:
            process = await start(level.log, *level.program, "--config", str(level.directory / "mcpax.toml"))
            started.append(Running(level, process))
        yield started
    finally:
        await asyncio.gather(*(end(each.process) for each in started))


async def start(log: Path, *arguments: str) -> asyncio.subprocess.Process:
    """A Python program in the background; what it says goes to the log."""
    with log.open("wb") as output:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            process_group=0,  # Ctrl-C is for whoever started it, who ends things in order
        )


async def end(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), END_S)
    except TimeoutError:
        process.kill()
        await process.wait()


async def until_one_ends(tree: Sequence[Running]) -> None:
    """Wait for ever, or raise `LevelDown`."""
    ends = [asyncio.ensure_future(each.process.wait()) for each in tree]
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for end in ends:
            end.cancel()
    for each in tree:
        each.check()


async def until(tree: Sequence[Running], is_so: Callable[[], Awaitable[bool]], what: str, patience_s: float) -> None:
    """Wait for something that no level tells of by itself. Raises `LevelDown`."""
    try:
        async with asyncio.timeout(patience_s):
            while not await is_so():
                for each in tree:
                    each.check()
                await asyncio.sleep(LOOK_EVERY_S)
    except TimeoutError:
        logs = "\n".join(f"--- {each.level.segment}\n{_tail(each.level.log)}" for each in tree)
        raise LevelDown(f"{what}: not within {patience_s:g} s\n{logs}") from None


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-LOG_LINES:])
