"""What the demo tells once it runs: where it is, what it offers, how to connect a client, what to try. Only words."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from mcpax.cli import tool_view
from mcpax.cli.client import DEFAULT_URL, MCP_PATH, URL_VARIABLE
from mcpax.cli.client_text import clients_as_json, heading, indented, program, tell_clients
from mcpax.cli.output import print_table
from mcpax.words import counted

Json = dict[str, Any]

TRIES = (
    ("devices", "the boards, their state and their counters"),
    ("call {segment}.env-sensor.read_climate", "call a tool"),
    ("call {segment}.relay-board.set_relay relay=1 state=on", "change something"),
    ("sniff", "every frame on the lines, decoded, while you call"),
    ("-h", "all commands"),
)
PROMPT = "How warm is it in the room? If it is warmer than 20 degrees, switch relay 1 on."


def told_as_json(url: str, devices: list[Json], tools: list[Json]) -> Json:
    return {"url": url, "mcp_url": f"{url}{MCP_PATH}", "devices": devices, "tools": tools, "clients": clients_as_json(url)}


def tell(url: str, segment: str, tools: list[Json]) -> None:
    heading(f"The gateway runs at {url}{MCP_PATH} with {counted(len(tools), 'tool')}. Ctrl-C ends it.")
    click.echo()
    print_table(tool_view.HEADERS, map(tool_view.row, tools))
    click.echo()
    tell_clients(url)
    heading("\nThen ask it:")
    indented(PROMPT)
    heading("\nOr try, in another shell:")
    indented(tries(url, Path(program()), segment))
    heading(f"\n{url}{MCP_PATH} is where it runs, until Ctrl-C.")


def tries(url: str, mcpax: Path, segment: str) -> str:
    set_path = [f'export PATH={shlex.quote(str(mcpax.parent))}:"$PATH"'] if mcpax.is_absolute() else []
    set_url = [] if url == DEFAULT_URL else [f"export {URL_VARIABLE}={url}"]
    shown = [(arguments.format(segment=segment), meaning) for arguments, meaning in TRIES]
    width = max(len(arguments) for arguments, _ in shown)
    return "\n".join([*set_path, *set_url, *(f"mcpax {arguments:{width}}  # {meaning}" for arguments, meaning in shown)])
