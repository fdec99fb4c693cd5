"""The command `mcpax`: which subcommands there are, and where each lives.

A subcommand's module is imported only when it is called: start-up takes a second on a small board if everything is loaded.
So the table holds their short help too. Knows nothing of what the subcommands do.
"""

from __future__ import annotations

from importlib import import_module

import click
from click.shell_completion import CompletionItem

from mcpax import __version__
from mcpax.documents.faults import nearest

COMMANDS = {
    "serve": "Run the gateway.",
    "demo": "Run the gateway with virtual boards.",
    "devices": "List the boards and their state.",
    "tools": "List the tools.",
    "call": "Call a tool.",
    "routes": "Show where each name leads.",
    "tree": "Draw the tree of aggregators and boards.",
    "clients": "Tell how to connect MCP clients.",
    "map": "Check, make and show device maps.",
    "pki": "Make certificates, keys and tokens for links between aggregators.",
    "sniff": "Show what goes over a line.",
    "stdio": "Let a client that speaks only stdio use a running gateway.",
    "doctor": "Find out why something does not work.",
    "completion": "Print the script that completes mcpax in a shell.",
}
"""Each is `mcpax.cli.<name>`, which exports a click command named `command`."""


class LazyGroup(click.Group):
    """Knows its subcommands by name, and loads the one that is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"mcpax.cli.{cmd_name}").command
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"there is no command {args[0]!r}; {nearest(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]
        return names + click.Command.shell_complete(self, ctx, incomplete)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="mcpax")
def main() -> None:
    """Microcontroller boards as MCP tools."""
