"""`mcpax demo`: the real gateway with virtual boards, ready for any MCP client, without hardware and without configuration.

Only puts things together: boards from `virtual_boards`, the gateway from `mcpax.gateway`, the words from `demo_text`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import click

import mcpax
from mcpax import logs
from mcpax.bridge.device import Binding
from mcpax.bridge.maps.load import load_map
from mcpax.bridge.maps.model import DeviceMap, PortMatch
from mcpax.cli.client import MCP_PATH
from mcpax.cli.demo_text import tell, told_as_json
from mcpax.cli.output import FAULT_EXIT, Failure, json_option, print_json
from mcpax.cli.running import run_until_signal
from mcpax.cli.serving import CANNOT_START, BoardsMissing, Served, boards_online, cannot_listen, serving
from mcpax.cli.virtual_boards import VirtualBoard, find_boards, keep_running
from mcpax.config import Config, load_config
from mcpax.core.subserver import Json
from mcpax.documents.faults import DocumentError
from mcpax.gateway import Gateway
from mcpax.name_codec import NameStyle

SOURCE = Path(mcpax.__file__).parents[2]
"""The source tree. Maps and boards are not part of the installed package: whoever runs the demo has cloned the project."""
DEFAULT_PORT = 8720
MIN_BAUD = 9600
"""As in device maps."""
PATIENCE_S = 20.0
"""Until all boards are online. It takes well under a second, but a Pi that has just booted has much else to do."""


@dataclass(frozen=True, slots=True)
class _Options:
    port: int | None
    """None: what the configuration says, or the usual one."""
    boards: Path
    maps: Path
    baud: int
    state_dir: Path | None = None
    """None: nothing is kept."""
    config: Path | None = None


@click.command("demo")
@click.option("--port", type=click.IntRange(0, 0xFFFF), help=f"0 picks a free one. [{DEFAULT_PORT}]")
@click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Configuration file, for everything but the boards; to try an [upstream], say.",
)
@click.option(
    "--boards", type=click.Path(path_type=Path), default=SOURCE / "build/virtual", help="Where the virtual boards are. [build/virtual]"
)
@click.option("--maps", type=click.Path(path_type=Path), default=SOURCE / "device-maps", help="Where their device maps are. [device-maps]")
@click.option("--baud", default=115200, show_default=True, type=click.IntRange(0), help="Speed of the lines; 0 takes no time at all.")
@click.option("--check", is_flag=True, help="Start, call a tool with the MCP SDK's client, print one line of JSON, exit.")
@click.option("--verbose", is_flag=True, help="Log everything, not only warnings.")
@json_option
def command(
    *, port: int | None, config_path: Path | None, boards: Path, maps: Path, baud: int, check: bool, verbose: bool, as_json: bool
) -> None:
    """Run the gateway with virtual boards, and say how to use it.

    \b
    mcpax demo                         on port 8720, until Ctrl-C
    mcpax demo --port 0                on any free port
    mcpax demo --config mcpax.toml     as configured there, but for the boards
    mcpax demo --check                 does everything work? exit code 0 if so
    """
    logs.configure("info" if verbose else "warning")
    if 0 < baud < MIN_BAUD:
        raise click.UsageError(f"--baud {baud} is slower than any board may be; from {MIN_BAUD} on, or 0")
    if check:
        _check(_Options(0, boards, maps, baud))
        return
    try:
        run_until_signal(_demo(_Options(port, boards, maps, baud, _state_dir(), config_path), as_json))
    except CANNOT_START as error:
        raise Failure(str(error)) from None


async def _demo(options: _Options, as_json: bool) -> None:
    async with _running(options) as (gateway, served):
        if as_json:
            print_json(told_as_json(served.url, gateway.bridge.devices(), _listed(gateway)))
        else:
            tell(served.url, gateway.config.segment, _listed(gateway))
        await served.ended


def _check(options: _Options) -> None:
    """One line of JSON on stdout whatever happens."""
    from mcpax.cli.demo_check import check_with_sdk  # noqa: PLC0415  the SDK's client takes long to load

    started = time.monotonic()
    report: dict[str, object] = {"ok": False, "error": "interrupted"}

    async def run() -> None:
        nonlocal report
        async with _running(options) as (_, served):
            report = {"ok": True, "url": f"{served.url}{MCP_PATH}", **await check_with_sdk(served.url)}

    try:
        run_until_signal(run())
    except Failure as failure:
        report = {"ok": False, "error": "; ".join(filter(None, (failure.message, failure.hint)))}
    except Exception as error:
        report = {"ok": False, "error": str(error) or repr(error)}
    click.echo(json.dumps({**report, "elapsed_s": round(time.monotonic() - started, 3)}, ensure_ascii=False))
    if not report["ok"]:
        raise SystemExit(FAULT_EXIT)


@contextlib.asynccontextmanager
async def _running(options: _Options) -> AsyncIterator[tuple[Gateway, Served]]:
    """Boards, then the gateway over them; ended in the opposite order, so that no board seems lost on the way out."""
    boards = find_boards(options.boards)
    if not boards:
        raise Failure(f"no virtual boards in {options.boards}", "scripts/run builds and starts them; or: make -C firmware virtual")
    bindings = tuple(_binding(board, options) for board in boards)
    async with contextlib.AsyncExitStack() as stack:
        private = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mcpax-demo-")))
        ports = private / "by-id"
        ports.mkdir()
        config = replace(_configured(options, private), by_id_dirs=(ports,), bindings=bindings, unused_maps=())
        gateway = Gateway(config)
        running = [asyncio.create_task(keep_running(board, ports, options.baud, _say)) for board in boards]
        stack.push_async_callback(_end, running)
        await stack.enter_async_context(gateway.running())
        try:
            served = await stack.enter_async_context(serving(gateway))
        except OSError as error:
            raise cannot_listen(config, error, "--port chooses it, --port 0 takes a free one") from None
        try:
            await boards_online(gateway, PATIENCE_S, lambda segment: _say(f"{segment} is online"))
        except BoardsMissing as missing:
            raise Failure(str(missing), "mcpax demo --verbose tells more") from None
        yield gateway, served


def _configured(options: _Options, private: Path) -> Config:
    """All but the boards."""
    if options.config is not None:
        config = load_config(options.config)
    else:
        config = Config(port=DEFAULT_PORT, own_tools=False, state_dir=options.state_dir or private / "state")
    return config if options.port is None else replace(config, port=options.port)


def _binding(board: VirtualBoard, options: _Options) -> Binding:
    try:
        device = load_map(options.maps / f"{board.name}.toml")
    except DocumentError as error:
        raise Failure(str(error)) from None
    return Binding(device.name, _at_baud(device, options.baud), PortMatch(by_id=board.port_name))


def _at_baud(device: DeviceMap, baud: int) -> DeviceMap:
    """Time-outs follow the speed of the line, so both ends must have the same; a line that takes no time suits any."""
    return replace(device, port=replace(device.port, baud=baud)) if baud else device


def _listed(gateway: Gateway) -> list[Json]:
    return [route.render(NameStyle.DOTTED) for route in gateway.aggregator.catalog.routes()]


def _state_dir() -> Path:
    """Identity is kept, so that the demo is the same gateway at every start, as a real one is."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "mcpax-demo"


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _say(text: str) -> None:
    click.echo(text, err=True)
