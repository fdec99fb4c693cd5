"""How to connect MCP clients to a gateway, in words: for the demo, which has one, and for `mcpax clients`. Only words."""

from __future__ import annotations

import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from mcpax.cli.client import MCP_PATH
from mcpax.front.client_config import ClientConfig, client_configs

Json = dict[str, Any]


def clients_as_json(url: str, token: str | None = None, ca: Path | None = None) -> Json:
    return {client: asdict(config) for client, config in _configs(url, token, ca).items()}


def tell_clients(url: str, token: str | None = None, ca: Path | None = None) -> None:
    heading("Connect a client: paste one of these.")
    for client, config in _configs(url, token, ca).items():
        heading(f"\n{client}: {config.where}")
        indented(config.text)


def program() -> str:
    """This very command, by its full path: clients start it from anywhere."""
    return str(Path(sys.argv[0]).resolve()) if Path(sys.argv[0]).name == "mcpax" else shutil.which("mcpax") or "mcpax"


def heading(text: str) -> None:
    click.secho(text, bold=True)


def indented(text: str) -> None:
    for line in text.splitlines():
        click.echo(f"  {line}".rstrip())


def _configs(url: str, token: str | None, ca: Path | None) -> dict[str, ClientConfig]:
    trust = [] if ca is None else ["--ca", str(ca.resolve())]
    return client_configs(f"{url}{MCP_PATH}", token, [program(), "stdio", "--url", url, *trust])
