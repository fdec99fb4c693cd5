"""`mcpax sniff`: what goes over the lines of a running gateway, decoded; recorded, and shown again later."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from mcpax.bridge.maps.load import load_map
from mcpax.bridge.maps.model import DeviceMap
from mcpax.cli.client import Target
from mcpax.cli.frame_text import frame_text
from mcpax.cli.output import Failure, json_option
from mcpax.cli.recording import replay
from mcpax.cli.target import COMPLETION_PATIENCE_S, target_of, target_options
from mcpax.documents.faults import DocumentError

Json = dict[str, Any]

HEARTBEAT = "heartbeat"

_FILE = click.Path(dir_okay=False, path_type=Path)


def _complete_device(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    try:
        segments = [device["segment"] for device in target_of(ctx).get("/admin/devices", COMPLETION_PATIENCE_S)]
    except Failure:
        return []
    return [CompletionItem(segment) for segment in segments if segment.startswith(incomplete)]


@click.command("sniff")
@click.argument("device", required=False, shell_complete=_complete_device)
@click.option("-x", "--hex", "with_hex", is_flag=True, help="Show the bytes of each message too.")
@click.option("--all", "with_heartbeats", is_flag=True, help="Show heartbeats too. [--json and --record always have them]")
@click.option("--record", type=_FILE, help="Also write the frames to a file, one JSON object a line.")
@click.option("--replay", "recorded", type=_FILE, help="Show a recording instead of asking a gateway.")
@click.option("--map", "map_path", type=_FILE, help="Decode the recording anew, with this device map.")
@target_options
@json_option
def command(
    *,
    target: Target,
    device: str | None,
    with_hex: bool,
    with_heartbeats: bool,
    record: Path | None,
    recorded: Path | None,
    map_path: Path | None,
    as_json: bool,
) -> None:
    """Show what goes over a line, live and decoded, until Ctrl-C; all but heartbeats.

    \b
    mcpax sniff                               all boards
    mcpax sniff relay-board -x                one board, with bytes
    mcpax sniff --all                         heartbeats too
    mcpax sniff --record frames.ndjson        keep it
    mcpax sniff --replay frames.ndjson        look at it again
    """
    if recorded is None and map_path is not None:
        raise click.UsageError("--map is for a recording: give --replay too; live frames are decoded by the gateway")
    if recorded is not None and record is not None:
        raise click.UsageError("give --record or --replay, not both")
    show = _Shower(with_hex=with_hex, with_heartbeats=with_heartbeats, as_json=as_json)
    if recorded is not None:
        for frame in replay(recorded, device, _map(map_path)):
            show(frame)
        return
    with contextlib.suppress(KeyboardInterrupt), _writer(record) as write:
        for line in _live(target, device):
            write(line)
            show(json.loads(line))
        raise Failure("the gateway has closed the stream", "it was stopped; start sniffing again when it runs")


def _live(target: Target, device: str | None) -> Iterator[str]:
    with target.lines("/admin/frames", {"device": device} if device else {}) as lines:
        click.echo(f"watching {device or 'all devices'} at {target.url}, until Ctrl-C", err=True)
        yield from lines


@contextlib.contextmanager
def _writer(record: Path | None) -> Iterator[Any]:
    """Writes each line at once: a recording is most wanted when something breaks."""
    if record is None:
        yield lambda _: None
        return
    try:
        with record.open("w", encoding="utf-8", buffering=1) as file:
            yield lambda line: file.write(f"{line}\n")
    except OSError as error:
        raise Failure(f"{record}: cannot be written: {error.strerror}", "check the path, its permissions and the free space") from None


class _Shower:
    """Shows frames. Heartbeats would bury the rest, so people get them only if they ask, and are told so at the first."""

    def __init__(self, *, with_hex: bool, with_heartbeats: bool, as_json: bool) -> None:
        self._with_hex = with_hex
        self._with_heartbeats = with_heartbeats
        self._as_json = as_json
        self._told = False

    def __call__(self, frame: Json) -> None:
        if self._as_json:
            click.echo(json.dumps(frame, ensure_ascii=False))
        elif frame["kind"] != HEARTBEAT or self._with_heartbeats:
            click.echo(frame_text(frame, with_hex=self._with_hex))
        elif not self._told:
            self._told = True
            click.echo("heartbeats are not shown; --all shows them", err=True)


def _map(path: Path | None) -> DeviceMap | None:
    try:
        return None if path is None else load_map(path)
    except DocumentError as error:
        raise Failure(str(error)) from None
