"""`mcpax clients`: what to paste into MCP clients so that they find a running gateway, from here or from another machine."""

from __future__ import annotations

import shlex
from urllib.parse import urlsplit

import click

from mcpax.cli.client import LOOPBACK, MCP_PATH, Target
from mcpax.cli.client_text import clients_as_json, heading, indented, tell_clients
from mcpax.cli.output import json_option, print_json
from mcpax.cli.target import target_options


@click.command("clients")
@target_options
@json_option
def command(*, target: Target, as_json: bool) -> None:
    """Tell how to connect MCP clients to a running gateway.

    \b
    mcpax clients                                    for the gateway of this machine
    mcpax clients --url http://raspberrypi:8720      for another
    """
    target.get("/admin/status")  # it is there, and the token is right
    tunnel = _tunnel(target.url)
    if as_json:
        print_json({"mcp_url": f"{target.url}{MCP_PATH}", "ssh": tunnel, "clients": clients_as_json(target.url, target.token, target.ca)})
        return
    tell_clients(target.url, target.token, target.ca)
    if target.ca is not None:
        heading("\nClients on Node.js (Claude Code, VS Code, Cursor) learn of the CA from their environment:")
        indented(f"export NODE_EXTRA_CA_CERTS={shlex.quote(str(target.ca.resolve()))}")
    if tunnel:
        heading("\nFrom another machine: leave this running there, and use the same configuration there.")
        indented(tunnel)


def _tunnel(url: str) -> str | None:
    """Brings a port that only this machine can reach to the machine it is typed on."""
    port = urlsplit(url).port or 80
    return f"ssh -L {port}:127.0.0.1:{port} USER@HOST" if url.startswith(LOOPBACK) else None
