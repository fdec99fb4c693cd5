"""`mcpax devices`: the boards of a running gateway, their state, and in plain words what is wrong with those that are not there."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click

from mcpax.cli.client import Target
from mcpax.cli.output import json_option, print_json, print_table
from mcpax.cli.target import target_options

Json = dict[str, Any]

WATCH_EVERY_S = 1.0
HEADERS = ("device", "state", "map", "port", "calls", "retries", "crc errors", "p50 ms", "p99 ms")
COLOURS = {"online": "green", "connecting": "yellow", "absent": "red"}


@click.command("devices")
@click.option("--watch", is_flag=True, help="Show them again every second, until Ctrl-C.")
@target_options
@json_option
def command(*, target: Target, watch: bool, as_json: bool) -> None:
    """List the boards and their state.

    \b
    mcpax devices            once
    mcpax devices --watch    again and again
    """
    if not watch:
        devices = target.get("/admin/devices")
        print_json(devices) if as_json else show(devices)
        return
    try:
        while True:
            devices = target.get("/admin/devices")
            if as_json:
                click.echo(json.dumps(devices, ensure_ascii=False))
            else:
                click.clear()
                show(devices)
            time.sleep(WATCH_EVERY_S)
    except KeyboardInterrupt:
        return


def show(devices: list[Json]) -> None:
    if not devices:
        click.echo("This gateway has no devices: no map with a port.match, and no [[device]]. 'mcpax doctor' tells what to add.")
        return
    print_table(HEADERS, map(_row, devices))
    for device in devices:
        if device["problem"]:
            click.echo(f"\n{click.style(device['segment'], fg=COLOURS[device['state']])}: {device['problem']}")


def _port(path: str | None) -> str:
    """A by-id name says it all; any other path is shown whole."""
    return "–" if not path else Path(path).name if Path(path).parent.name == "by-id" else path


def _row(device: Json) -> tuple[object, ...]:
    counters, round_trip = device["counters"], device["counters"]["round_trip_ms"]
    return (
        *(device["segment"], device["state"], device["map"], _port(device["port"])),
        *(counters["calls"], counters["retries"], device["framing"].get("crc_errors", 0)),
        *(round_trip.get("p50", "–"), round_trip.get("p99", "–")),
    )
