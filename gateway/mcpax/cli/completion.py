"""`mcpax completion`: the script that makes a shell complete commands and options. The scripts are click's own."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from mcpax.cli.output import Failure


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    bash:  mcpax completion bash > ~/.local/share/bash-completion/completions/mcpax
    zsh:   mcpax completion zsh > ~/.zfunc/_mcpax
    fish:  mcpax completion fish > ~/.config/fish/completions/mcpax.fish
    """
    completion = get_completion_class(shell)
    if completion is None:
        raise Failure(f"no completion for {shell}")
    click.echo(completion(ctx.find_root().command, {}, "mcpax", "_MCPAX_COMPLETE").source())
