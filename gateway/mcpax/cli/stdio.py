"""`mcpax stdio`: for clients that start a program and speak to it on stdin and stdout; passes everything on to a running gateway."""

from __future__ import annotations

import click

from mcpax.cli.client import MCP_PATH, Target
from mcpax.cli.output import Failure
from mcpax.cli.running import run_until_signal
from mcpax.cli.target import target_options
from mcpax.name_codec import NameStyle


@click.command("stdio")
@click.option(
    "--names",
    type=click.Choice(["auto", *(style.value for style in NameStyle)]),
    default="auto",
    show_default=True,
    help="How to print tool names.",
)
@target_options
def command(*, target: Target, names: str) -> None:
    """Let a client that speaks only stdio use a running gateway.

    Put it into the client's configuration as the command to start:

    \b
    mcpax stdio --url http://127.0.0.1:8720
    """
    from mcpax.front.relay import GatewayUnreachable, relay_stdio  # noqa: PLC0415  loads the SDK

    style = "" if names == "auto" else f"/{names}"
    try:
        run_until_signal(relay_stdio(f"{target.url}{MCP_PATH}{style}", target.token, target.tls()))
    except GatewayUnreachable as error:
        raise Failure(str(error)) from None
