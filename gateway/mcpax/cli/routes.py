"""`mcpax routes`: the routing table of a running gateway, from each name to the session that answers for it."""

from __future__ import annotations

import click

from mcpax.cli.client import Target
from mcpax.cli.output import json_option, print_json, print_table
from mcpax.cli.target import target_options

HEADERS = ("name", "leads to", "in session", "transport", "since")


@click.command("routes")
@target_options
@json_option
def command(*, target: Target, as_json: bool) -> None:
    """Show where each name leads.

    \b
    mcpax routes
    """
    table = target.get("/admin/routes")
    if as_json:
        print_json(table)
        return
    print_table(
        HEADERS,
        [
            (name, route["downstream_name"], route["downstream_session"], route["capability"]["transport"], route["registered_at"])
            for name, route in table.items()
        ],
    )
