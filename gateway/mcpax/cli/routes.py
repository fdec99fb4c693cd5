"""`mcpax routes`: the routing table of a running gateway, from each name to the session that answers for it."""

from __future__ import annotations

import click

from mcpax.cli.client import Target
from mcpax.cli.output import json_option, print_json, print_table
from mcpax.cli.target import target_options

HEADERS = ("name", "leads to", "transport")
MORE_HEADERS = ("in session", "since")


@click.command("routes")
@click.option("-v", "--verbose", is_flag=True, help="Also in which session, and since when.")
@target_options
@json_option
def command(*, target: Target, verbose: bool, as_json: bool) -> None:
    """Show where each name leads.

    \b
    mcpax routes
    mcpax routes -v      with sessions and times
    """
    table = target.get("/admin/routes")
    if as_json:
        print_json(table)
        return
    print_table(
        (*HEADERS, *(MORE_HEADERS if verbose else ())),
        [
            (
                *(name, route["downstream_name"], route["capability"]["transport"]),
                *((route["downstream_session"], route["registered_at"]) if verbose else ()),
            )
            for name, route in table.items()
        ],
    )
