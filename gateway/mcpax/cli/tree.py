"""`mcpax tree`: the live tree below a running gateway, drawn with the health and the distance of every part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from mcpax.cli.client import Target
from mcpax.cli.output import json_option, print_json
from mcpax.cli.target import target_options
from mcpax.words import counted

Json = dict[str, Any]

COLOURS = {"active": "green", "degraded": "red"}


@click.command("tree")
@target_options
@json_option
def command(*, target: Target, as_json: bool) -> None:
    """Draw the tree of aggregators and boards, with their health.

    \b
    mcpax tree
    mcpax tree --url https://cloud.example.com:8720
    """
    root = target.get("/admin/tree")
    if as_json:
        print_json(root)
        return
    upstream = (root.get("links") or {}).get("upstream")
    if upstream is not None:
        click.echo(_upstream(upstream))
    click.echo(f"{click.style(root['segment'], bold=True)}  {counted(root['tools'], 'tool')}")
    for line in draw(root):
        click.echo(line)


def draw(node: Json, indent: str = "", hops: int = 1) -> Iterator[str]:
    """Everything below a node, a line each."""
    below = node.get("below") or []
    for index, child in enumerate(below):
        last = index == len(below) - 1
        yield f"{indent}{'└─ ' if last else '├─ '}{_describe(child, hops)}"
        yield from draw(child, indent + ("   " if last else "│  "), hops + 1)


def _describe(node: Json, hops: int) -> str:
    parts = [click.style(node["segment"], fg=COLOURS.get(node["state"])), counted(node["tools"], "tool"), counted(hops, "hop")]
    if "aggregator_id" not in node:
        parts.insert(1, node["transport"])
    if "round_trip_ms" in node:
        parts.append(f"{node['round_trip_ms']:.1f} ms away")
    if node["state"] != "active":
        parts.append(f"{node['state']}: {node['reason']}")
    if node.get("unanswered"):
        parts.append("does not tell what is below it")
    return "  ".join(parts)


def _upstream(upstream: Json) -> str:
    if upstream["connected"]:
        return f"registered with {upstream['url']}"
    return click.style(f"not registered with {upstream['url']}: {upstream['problem']}", fg="red")
