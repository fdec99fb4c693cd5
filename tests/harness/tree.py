"""A whole tree on this machine: N levels of the real program, virtual boards at the lowest, and how to use it.

    scripts/tree N [--json] [--boards DIR]      until Ctrl-C
    scripts/tree N --check                      calls a tool through all levels with the MCP SDK's client, prints one line of JSON, exits

Only puts things together: levels from `levels`, boards and the check as `mcpax demo` has them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from mcpax.bridge.maps.load import load_map
from mcpax.cli.client import MCP_PATH, Target
from mcpax.cli.client_text import heading, indented
from mcpax.cli.demo_check import check_with_sdk
from mcpax.cli.output import FAULT_EXIT, Failure, json_option, print_json
from mcpax.cli.running import run_until_signal
from mcpax.cli.virtual_boards import VirtualBoard, find_boards, keep_running
from mcpax.words import counted
from tests.harness.levels import Level, LevelDown, Running, free_ports, running, segments, until, until_one_ends

ROOT = Path(__file__).resolve().parents[2]
MAPS = ROOT / "device-maps"
MAX_LEVELS = 32
"""Far beyond any real tree. Names with more levels would come near the 255 characters that the draft allows."""
START_S = 20.0
LEVEL_S = 5.0
"""Patience until all is listed at the root, and how much more for each level: each is a Python program that has to load."""
BAUD = 115200


@dataclass(frozen=True, slots=True)
class Tree:
    levels: list[Running]
    tools: list[str]
    """As the root names them."""

    @property
    def url(self) -> str:
        return self.levels[0].level.url

    def to_json(self) -> dict[str, Any]:
        return {
            "url": self.url,
            "mcp_url": f"{self.url}{MCP_PATH}",
            "levels": [{"segment": each.level.segment, "url": each.level.url, "pid": each.pid} for each in self.levels],
            "tools": self.tools,
        }


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("levels", type=click.IntRange(1, MAX_LEVELS))
@click.option("--boards", type=click.Path(path_type=Path), default=ROOT / "build/virtual", help="Where virtual boards are. [build/virtual]")
@click.option("--check", is_flag=True, help="Call a tool through all levels, print one line of JSON, exit.")
@json_option
def main(*, levels: int, boards: Path, check: bool, as_json: bool) -> None:
    """Run a tree of LEVELS aggregators with virtual boards at the lowest, and say how to use it."""
    if check:
        _check(levels, boards)
        return
    try:
        run_until_signal(_show(levels, boards, as_json))
    except LevelDown as down:
        raise Failure(str(down)) from None


async def _show(levels: int, boards: Path, as_json: bool) -> None:
    async with grown(levels, boards) as tree:
        if as_json:
            print_json(tree.to_json())
        else:
            _tell(tree)
        await until_one_ends(tree.levels)


def _check(levels: int, boards: Path) -> None:
    """One line of JSON on stdout whatever happens."""
    started = time.monotonic()
    report: dict[str, object] = {"ok": False, "error": "interrupted"}

    async def run() -> None:
        nonlocal report
        async with grown(levels, boards) as tree:
            way = [each.level.segment for each in tree.levels]
            report = {"ok": True, "url": f"{tree.url}{MCP_PATH}", "levels": way, **await check_with_sdk(tree.url)}

    try:
        run_until_signal(run())
    except Exception as error:
        report = {"ok": False, "error": str(error) or repr(error)}
    click.echo(json.dumps({**report, "elapsed_s": round(time.monotonic() - started, 3)}, ensure_ascii=False))
    if not report["ok"]:
        raise SystemExit(FAULT_EXIT)


@contextlib.asynccontextmanager
async def grown(count: int, directory: Path) -> AsyncIterator[Tree]:
    """The tree, once its root lists every tool of every board. Ended from the aggregators to the boards, so that none seems lost."""
    boards = find_boards(directory)
    if not boards:
        raise Failure(f"no virtual boards in {directory}", "scripts/tree builds them; or: make -C firmware virtual")
    names = segments(count)
    async with contextlib.AsyncExitStack() as stack:
        private = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mcpax-tree-")))
        ports = private / "by-id"
        ports.mkdir()
        plugged = [asyncio.create_task(keep_running(board, ports, BAUD, _say)) for board in boards]
        stack.push_async_callback(_unplug, plugged)
        levels = [Level(name, port, private / name) for name, port in zip(names, free_ports(count), strict=True)]
        lowest = Level(names[-1], levels[-1].port, private / names[-1], _with_boards(boards, ports))
        started = await stack.enter_async_context(running([*levels[:-1], lowest]))
        expected = {".".join((*names, board.name, tool.name)) for board in boards for tool in load_map(MAPS / f"{board.name}.toml").tools}
        root = Target(levels[0].url)

        async def all_listed() -> bool:
            return expected <= await asyncio.to_thread(_names, root)

        await until(started, all_listed, "the boards' tools at the root", START_S + LEVEL_S * count)
        yield Tree(started, sorted(expected))


def _with_boards(boards: list[VirtualBoard], ports: Path) -> str:
    """What the lowest level needs to find them; a map says by itself which port its board has."""
    maps = [str(MAPS / f"{board.name}.toml") for board in boards]
    return f"maps = {json.dumps(maps)}\nby_id_dirs = {json.dumps([str(ports)])}\n"


def _names(root: Target) -> set[str]:
    """None while it is not up yet."""
    try:
        return {tool["name"] for tool in root.tools()}
    except Failure:
        return set()


async def _unplug(boards: list[asyncio.Task[None]]) -> None:
    for board in boards:
        board.cancel()
    await asyncio.gather(*boards, return_exceptions=True)


def _tell(tree: Tree) -> None:
    way = " → ".join(each.level.segment for each in tree.levels)
    heading(f"{way}: the root is at {tree.url}{MCP_PATH} with {counted(len(tree.tools), 'tool')}. Ctrl-C ends all of it.")
    example = next((name for name in tree.tools if name.endswith(".read_climate")), tree.tools[0])
    heading("\nTry, in another shell:")
    indented(
        f'export PATH={ROOT}/.venv/bin:"$PATH" MCPAX_URL={tree.url}\n'
        f"mcpax tree\nmcpax tools\nmcpax call {example}\nmcpax devices --url {tree.levels[-1].level.url}"
    )


def _say(text: str) -> None:
    click.echo(text, err=True)


if __name__ == "__main__":
    main(prog_name="scripts/tree")
