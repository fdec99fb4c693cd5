"""What the demo tells once it runs: where it is, what it offers, how to connect a client, what to try. Only words."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import click

from mcpax.cli import tool_view
from mcpax.cli.client import DEFAULT_URL, URL_VARIABLE
from mcpax.cli.output import print_table
from mcpax.front.client_config import client_configs

Json = dict[str, Any]

TRIES = (
    ("devices", "the boards, their state and their counters"),
    ("call edge.env-sensor.read_climate", "call a tool"),
    ("call edge.relay-board.set_relay relay=1 state=on", "change something"),
    ("sniff", "every frame on the lines, decoded, while you call"),
    ("-h", "all commands"),
)
PROMPT = "How warm is it in the room? If it is warmer than 20 degrees, switch relay 1 on."


def told_as_json(url: str, devices: list[Json], tools: list[Json]) -> Json:
    return {"url": url, "mcp_url": f"{url}/mcp", "devices": devices, "tools": tools, "clients": _clients(url)}


def tell(url: str, tools: list[Json]) -> None:
    _heading(f"The gateway runs at {url}/mcp with {len(tools)} tools. Ctrl-C ends it.")
    click.echo()
    print_table(tool_view.HEADERS, map(tool_view.row, tools))
    _heading("\nConnect a client: paste one of these.")
    for client, text in _clients(url).items():
        _heading(f"\n{client}")
        _indented(text)
    _heading("\nThen ask it:")
    _indented(PROMPT)
    _heading("\nOr try, in another shell:")
    _indented(_tries(url))


def _clients(url: str) -> dict[str, str]:
    return client_configs(f"{url}/mcp", None, [_program(), "stdio", "--url", url])


def _tries(url: str) -> str:
    program = "mcpax" if shutil.which("mcpax") == _program() else _program()
    set_url = [] if url == DEFAULT_URL else [f"export {URL_VARIABLE}={url}"]
    width = max(len(arguments) for arguments, _ in TRIES)
    return "\n".join([*set_url, *(f"{program} {arguments:{width}}  # {meaning}" for arguments, meaning in TRIES)])


def _program() -> str:
    """This very command, by its full path: clients start it from anywhere."""
    return str(Path(sys.argv[0]).resolve()) if Path(sys.argv[0]).name == "mcpax" else shutil.which("mcpax") or "mcpax"


def _heading(text: str) -> None:
    click.secho(text, bold=True)


def _indented(text: str) -> None:
    for line in text.splitlines():
        click.echo(f"  {line}".rstrip())
