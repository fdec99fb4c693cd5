"""Which gateway a command asks: the options `--url`, `--token-file` and `--ca`, the same for every command.

The token comes from the environment or a file, never from the command line, where every user of the machine could read it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from mcpax.cli.client import CA_VARIABLE, DEFAULT_URL, TOKEN_VARIABLE, URL_VARIABLE, Target
from mcpax.cli.output import Failure

COMPLETION_PATIENCE_S = 1.0
"""Whoever presses tab does not wait longer."""


def target_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--url`, `--token-file` and `--ca`, the same for every command that asks a gateway; arrives as `target`."""

    @click.option("--url", envvar=URL_VARIABLE, default=DEFAULT_URL, show_default=True, show_envvar=True, help="Where the gateway is.")
    @click.option("--token-file", type=click.Path(path_type=Path), help=f"File with the gateway's token. [or {TOKEN_VARIABLE}]")
    @click.option(
        "--ca",
        type=click.Path(path_type=Path),
        envvar=CA_VARIABLE,
        show_envvar=True,
        help="File with the CA of its certificate, for an https:// URL. Not given: the CAs that everybody knows.",
    )
    @wraps(command)
    def with_target(*args: Any, url: str, token_file: Path | None, ca: Path | None, **options: Any) -> Any:
        return command(*args, target=Target(url, read_token(token_file), ca), **options)

    return with_target


def read_token(file: Path | None) -> str | None:
    if file is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    try:
        return file.read_text().strip() or None
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{file}: the token cannot be read: {error}", "check the path and its permissions") from None


def target_of(ctx: click.Context) -> Target:
    """The gateway that a half-typed command means, for completion."""
    return Target(ctx.params["url"], read_token(ctx.params.get("token_file")), ctx.params.get("ca"))
