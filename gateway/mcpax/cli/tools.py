"""`mcpax tools`: the tools of a running gateway, and what each would do to the world."""

from __future__ import annotations

from fnmatch import fnmatchcase

import click

from mcpax.cli import tool_view
from mcpax.cli.client import Target
from mcpax.cli.output import json_option, print_json, print_table
from mcpax.cli.target import target_options
from mcpax.name_codec import NameStyle


@click.command("tools")
@click.argument("pattern", required=False, metavar="[PATTERN]")
@click.option(
    "--names", type=click.Choice([style.value for style in NameStyle]), default="dotted", show_default=True, help="How to print names."
)
@target_options
@json_option
def command(*, target: Target, pattern: str | None, names: str, as_json: bool) -> None:
    """List the tools, or those whose name contains or matches PATTERN.

    \b
    mcpax tools                 all of them
    mcpax tools env-sensor      of one board
    mcpax tools '*.read_*'      by a shell pattern
    """
    tools = [tool for tool in target.tools(names) if pattern is None or _fits(tool["name"], pattern)]
    if as_json:
        print_json(tools)
    elif tools:
        print_table(tool_view.HEADERS, map(tool_view.row, tools))
    else:
        click.echo(f"No tool is named like {pattern!r}." if pattern else "No tools: is a board connected? 'mcpax devices' tells.", err=True)


def _fits(name: str, pattern: str) -> bool:
    return pattern in name or fnmatchcase(name, pattern)
