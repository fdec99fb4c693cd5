"""`mcpax map`: check device maps, show them, make new ones, and derive the firmware's header from them.

Only talks: the rules are in `mcpax.bridge.maps`.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from mcpax.bridge.maps.editor_schema import editor_schema
from mcpax.bridge.maps.keys import TABLES
from mcpax.bridge.maps.limits import allowed
from mcpax.bridge.maps.load import load_map, load_text
from mcpax.bridge.maps.model import DeviceMap, Field
from mcpax.bridge.maps.notes import notes_on
from mcpax.bridge.maps.scaffold import SCHEMA_FILE, schema_line
from mcpax.bridge.maps.schema import input_schema, output_schema
from mcpax.cli.output import FAULT_EXIT, Failure, json_option, print_json, print_table
from mcpax.documents.faults import DocumentError, DocumentFault
from mcpax.documents.reference import key_tables
from mcpax.words import counted

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_OUT = click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write there instead of printing.")
_NEXT = """\
wrote {file}, a draft. Next:
  1. edit it: descriptions, limits, capabilities, and the port's match
  2. mcpax map check {file}
  3. mcpax map header {file} -o mcpax_map.h, and build the firmware with it"""


@click.group("map")
def command() -> None:
    """Check, make and show device maps."""


@command.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="FILE|DIR...")
@json_option
@click.pass_context
def check(ctx: click.Context, paths: tuple[Path, ...], as_json: bool) -> None:
    """Tell everything that is wrong in device maps, with line and hint."""
    files = [file for path in paths for file in (sorted(path.glob("*.toml")) if path.is_dir() else [path])]
    if not files:
        raise Failure("no device maps there", "a device map is a file that ends in .toml")
    results = [_checked(file) for file in files]
    if as_json:
        print_json([result for result, _ in results])
    for result, faults in results if not as_json else []:
        if not faults:
            counts = f"{counted(result['tools'], 'tool')}, {counted(result['events'], 'event')}"
            click.echo(f"{result['file']}: ok, {counts}, hash {result['hash']}")
        for note in result["notes"]:
            click.echo(f"    note: {note}")
        _tell(faults)
    if any(faults for _, faults in results):
        ctx.exit(FAULT_EXIT)


@command.command()
@click.argument("path", type=_FILE, metavar="MAP")
@click.option("--debug", is_flag=True, help="Of the debug build, as if the map said debug = true.")
@_OUT
def header(path: Path, debug: bool, output: Path | None) -> None:
    """Make the C header that firmware is built with."""
    from mcpax.bridge.maps.header import render_header  # noqa: PLC0415  no other command needs it

    try:
        text = render_header(_loaded(path, debug=debug))
    except ValueError as error:
        raise Failure(f"{path}: {error}") from None
    _write(text, output)


@command.command()
@_OUT
def schema(output: Path | None) -> None:
    """Print the JSON Schema that editors check device maps with."""
    _write(json.dumps(editor_schema(), indent=2, ensure_ascii=False) + "\n", output)


@command.command()
def keys() -> None:
    """Print every key that a device map may hold, as Markdown."""
    click.echo(key_tables(TABLES), nl=False)


@command.command()
@click.argument("path", type=_FILE, metavar="MAP")
@json_option
def show(path: Path, as_json: bool) -> None:
    """Show a device map as callers will see its tools."""
    device = _loaded(path)
    if as_json:
        print_json(_described(device))
        return
    click.echo(f"{device.name} {device.version}, profile {device.profile}, hash {device.hash:#010x}. {device.description}\n")
    print_table(
        ("id", "tool", "effect", "latency", "arguments", "results"),
        [
            (
                tool.id,
                tool.name,
                _effect(tool.capability.mutable, tool.capability.reversible),
                tool.capability.latency_class,
                _listed(tool.args),
                _listed(tool.results),
            )
            for tool in device.tools
        ],
    )
    if device.events:
        click.echo()
        print_table(("id", "event", "fields"), [(event.id, event.name, _listed(event.fields)) for event in device.events])


@command.command()
@click.option("--port", help="Serial port of a connected Profile B board, which is asked to announce itself.")
@click.option("--baud", default=115200, show_default=True, help="Speed of that port.")
@click.option("--reset", is_flag=True, help="Raise DTR on opening: boards with native USB need it, an Arduino resets.")
@click.option("--answers", type=_FILE, help="JSON file with the answers, instead of questions.")
@_OUT
@click.option("--force", is_flag=True, help="Overwrite the file if it is there.")
def new(*, port: str | None, baud: int, reset: bool, answers: Path | None, output: Path | None, force: bool) -> None:
    """Make a new device map, from a connected board or from answers.

    \b
    mcpax map new -o lamp.toml                                        asks questions
    mcpax map new --port /dev/serial/by-id/usb-… -o lamp.toml         asks the board
    mcpax map new --answers answers.json -o lamp.toml                 asks nobody

    Answers are one JSON object. Only device is required:

    \b
    {"device": "lamp", "profile": "A",
     "tools": [{"name": "set", "args": "level:u8 on:bool", "results": "was:u8"}],
     "events": [{"name": "hot", "fields": "celsius:i8"}]}
    """
    from mcpax.cli.map_new import from_answers, from_board, from_questions  # noqa: PLC0415  loads the serial port

    if port is not None and answers is not None:
        raise click.UsageError("give --port or --answers, not both")
    if output is not None and output.exists() and not force:
        raise Failure(f"{output} is there already", "choose another name, or overwrite it with --force")
    if port is not None:
        text = from_board(port, baud, reset)
    elif answers is not None:
        text = from_answers(answers)
    else:
        text = from_questions()
    text = schema_line(output is not None and (output.parent / SCHEMA_FILE).is_file()) + text
    _write(text, output)
    try:
        load_text(text, str(output or "the new map"))
    except DocumentError as error:
        _tell(error.faults)
        raise Failure("the new map has faults", "mend them and run mcpax map check") from None
    if output is not None:
        click.echo(_NEXT.format(file=shlex.quote(str(output))), err=True)


def _loaded(path: Path, *, debug: bool = False) -> DeviceMap:
    try:
        return load_map(path, debug=debug)
    except DocumentError as error:
        _tell(error.faults)
        raise Failure(f"{path} has {counted(len(error.faults), 'fault')}") from None


def _checked(path: Path) -> tuple[dict[str, Any], list[DocumentFault]]:
    try:
        device = load_map(path)
    except DocumentError as error:
        return {"file": str(path), "ok": False, "faults": [asdict(fault) for fault in error.faults], "notes": []}, error.faults
    counts = {"device": device.name, "tools": len(device.tools), "events": len(device.events), "hash": f"{device.hash:#010x}"}
    return {"file": str(path), "ok": True, **counts, "faults": [], "notes": notes_on(device)}, []


def _tell(faults: list[DocumentFault]) -> None:
    for fault in faults:
        click.echo(f"{fault}\n    {fault.hint}", err=True)


def _write(text: str, output: Path | None) -> None:
    if output is None:
        click.echo(text, nl=False)
    else:
        try:
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise Failure(f"{output}: cannot be written: {error.strerror}", "check the path and its permissions") from None


def _effect(mutable: bool, reversible: bool) -> str:
    if not mutable:
        return "reads"
    return "changes, can be undone" if reversible else "IRREVERSIBLE"


def _listed(fields: tuple[Field, ...]) -> str:
    return "; ".join(f"{field.name}: {allowed(field)}" for field in fields) or "–"


def _described(device: DeviceMap) -> dict[str, Any]:
    return {
        "device": device.name,
        "version": device.version,
        "profile": str(device.profile),
        "hash": f"{device.hash:#010x}",
        "tools": [
            {
                "id": tool.id,
                "name": tool.name,
                "description": tool.description,
                "capability": tool.capability.to_json(),
                "inputSchema": input_schema(tool.args),
                "outputSchema": output_schema(tool.results),
            }
            for tool in device.tools
        ],
        "events": [{"id": event.id, "name": event.name, "schema": output_schema(event.fields)} for event in device.events],
    }
