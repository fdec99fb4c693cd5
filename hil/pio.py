"""PlatformIO on the firmware, from elsewhere: its build and its upload, and what it said when they fail. Knows nothing of boards."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click

from mcpax.cli.output import Failure

TOLD_LINES = 25
"""Of its output, when it fails: the reason is at the end."""
USED = re.compile(r"^(RAM|Flash):.*\(used (\d+) bytes", re.MULTILINE)
UNREACHABLE = re.compile("HTTPClientError|InternetConnectionError|UnknownPackageError")
"""How PlatformIO calls it when it cannot get a platform or a compiler."""
NO_HANDLER = re.compile(r"undefined (?:reference to [`'\"]?|symbol: )mcpax_tool_(\w+)")
"""How the linkers of GCC and of LLVM call it."""
OF_DEBUG_BUILDS = "read_memory"


@dataclass(frozen=True, slots=True)
class Pio:
    command: tuple[str, ...]
    folder: Path

    def build(self, env: str) -> str:
        """What the image takes, in words; empty if that was not said."""
        used = dict(USED.findall(self._run(env, "build", (), "")))
        return f"{used['Flash']} bytes of flash, {used['RAM']} of RAM" if len(used) == 2 else ""

    def upload(self, env: str, port: str | None, page: str) -> None:
        """`port` None: PlatformIO looks for the board itself. `page`: what to read when it fails."""
        where = ("--upload-port", port) if port else ()
        self._run(env, "upload", ("--target", "upload", *where), f"; {page} tells what the board needs")

    def _run(self, env: str, step: str, options: tuple[str, ...], advice: str) -> str:
        command = [*self.command, "run", "--project-dir", str(self.folder), "--environment", env, *options]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode == 0:
            return done.stdout
        for line in done.stdout.strip().splitlines()[-TOLD_LINES:]:
            click.echo(f"    {line}", err=True)
        if UNREACHABLE.search(done.stdout):
            raise Failure(f"{env}: PlatformIO could not get its packages", "where its registry cannot be reached: --offline")
        if missing := sorted(set(NO_HANDLER.findall(done.stdout))):
            raise _without_handler(env, missing)
        raise Failure(f"{env}: {step} failed", f"PlatformIO's own words are above{advice}")


def _without_handler(env: str, tools: list[str]) -> Failure:
    if tools == [OF_DEBUG_BUILDS]:
        board = env.partition("-")[0]
        hint = f"take debug = true out of the map, or build with that tool: scripts/flash {board} debug"
        return Failure(f"{env}: the map says debug = true, and this is no debug build", hint)
    handlers = ", ".join(f"uint8_t mcpax_tool_{tool}(const mcpax_value *args, mcpax_value *results)" for tool in tools)
    have = f"the map has a tool {tools[0]}" if len(tools) == 1 else f"the map has tools {', '.join(tools)}"
    return Failure(f"{env}: {have}, and the example has no handler for it", f"add to it: {handlers}")


def find_pio(folder: Path, *, offline: bool) -> Pio:
    """The user's own, else ours; `offline`: with the compilers of Debian."""
    if offline:
        return Pio((sys.executable, str(folder / "pio/offline")), folder)
    found = shutil.which("pio") or shutil.which("pio", path=Path(sys.executable).parent)
    if found is None:
        raise Failure("pio was not found", "install PlatformIO (pip install platformio), or use Debian's compilers: --offline")
    return Pio((found,), folder)
