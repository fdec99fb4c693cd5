"""`mcpax serve`: run the gateway, over HTTP or on stdin and stdout."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from mcpax import logs
from mcpax.cli.client import DEFAULT_URL, local_url
from mcpax.cli.output import Failure
from mcpax.cli.running import run_until_signal
from mcpax.cli.serving import CANNOT_START, cannot_listen
from mcpax.config import Config, default_config_path, load_config
from mcpax.gateway import Gateway
from mcpax.name_codec import NameStyle

STYLES = ("auto", *(style.value for style in NameStyle))  # click goes by the names of an enum, not by its values


@click.command("serve")
@click.option(
    "--config", "config_path", type=click.Path(path_type=Path, dir_okay=False), help="Configuration file. [/etc/mcpax/mcpax.toml]"
)
@click.option("--listen", metavar="HOST:PORT", help="Overrides the configuration.")
@click.option("--stdio", is_flag=True, help="Serve one client on stdin and stdout instead of HTTP.")
@click.option("--names", type=click.Choice(STYLES), default="auto", show_default=True, help="How to print tool names on stdio.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", show_default=True)
@click.option("--log-json/--log-text", default=None, help="[JSON unless stderr is a terminal]")
def command(*, config_path: Path | None, listen: str | None, stdio: bool, names: str, log_level: str, log_json: bool | None) -> None:
    """Run the gateway until Ctrl-C or SIGTERM.

    \b
    mcpax serve                          with the system's configuration
    mcpax serve --config mcpax.toml      with another
    mcpax serve --stdio                  as the child of one MCP client
    """
    logs.configure(log_level, as_json=log_json)
    try:
        config = load_config(config_path or default_config_path(), listen=listen)
        run_until_signal(_serve(config, stdio, None if names == "auto" else NameStyle(names)))
    except CANNOT_START as error:
        raise Failure(str(error)) from None
    except OSError as error:
        raise cannot_listen(config, error, "listen in [gateway], or --listen HOST:PORT") from None


async def _serve(config: Config, stdio: bool, style: NameStyle | None) -> None:
    gateway = Gateway(config)
    if stdio:
        async with gateway.running():
            await gateway.serve_stdio(style)
        return
    with gateway.listen() as listener:
        async with gateway.running():
            await gateway.serve_http(listener, lambda port: _tell_clients(config, port))


def _tell_clients(config: Config, port: int) -> None:
    """To whoever sits in front of it; a journal has no use for it."""
    if sys.stderr.isatty():
        # The name in the certificate is not known here.
        url = local_url(config.host, port) if config.links.tls is None else f"https://NAME:{port}"
        options = [*([] if url == DEFAULT_URL else ["--url", url]), *(["--token-file", "FILE"] if config.token else [])]
        options += [] if config.links.tls is None else ["--ca", "FILE"]
        click.echo(f"'{' '.join(['mcpax clients', *options])}' tells how to connect", err=True)
