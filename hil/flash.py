"""`scripts/flash BOARD [APP]`: builds the firmware, puts it on the board, and waits until a gateway lists the board's tools.

PlatformIO builds and uploads, for real boards and for those that `scripts/hil up` keeps running. This finds the port, says what goes on,
and turns what goes wrong into words.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import click

from hil.control import control_path
from hil.listed import Watch
from hil.pio import Pio, find_pio
from hil.places import PORTS
from hil.project import Firmware, NoSuchFirmware, Project
from mcpax.bridge.maps.load import load_map
from mcpax.bridge.maps.model import DeviceMap
from mcpax.bridge.ports import Port, matches, scan
from mcpax.cli.client import Target
from mcpax.cli.output import Failure, json_option, print_json
from mcpax.cli.target import target_options
from mcpax.doctor.processes import holders
from mcpax.documents.faults import DocumentError
from mcpax.words import HOW_TO_START

Json = dict[str, Any]

GATEWAY_PROGRAM = "mcpax"


@click.command("flash", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("board")
@click.argument("app", required=False)
@click.option("--port", help="Its serial port. [the board that `scripts/hil up` runs, else the one that the map's port.match finds]")
@click.option("--offline", is_flag=True, help="Build with Debian's compilers, where PlatformIO's registry cannot be reached.")
@target_options
@json_option
def command(*, board: str, app: str | None, port: str | None, offline: bool, target: Target, as_json: bool) -> None:
    """Build APP for BOARD, upload it, and wait until the gateway lists its tools.

    \b
    scripts/flash uno                                the relay board, Profile B
    scripts/flash uno valve-actuator --port /dev/ttyACM0
    scripts/flash msp430g2553 env-sensor --offline

    Exit codes: 0 it is on the board, and listed if a gateway runs; 1 something failed; 2 the command was used wrongly.
    """
    project = Project()
    try:
        firmware = project.firmware(board, app)
    except NoSuchFirmware as error:
        raise click.UsageError(str(error)) from None
    try:
        result = flash(firmware, port, find_pio(project.folder, offline=offline), target)
    except Failure as failure:
        if as_json:
            print_json({"ok": False, "error": failure.message, "hint": failure.hint})
        raise
    if as_json:
        print_json({"ok": True, **result})


def flash(firmware: Firmware, given_port: str | None, pio: Pio, target: Target) -> Json:
    """Returns what was done, for programs."""
    device_map = _map(firmware.map_file)
    port = find_port(given_port, firmware, device_map)
    if firmware.over_serial_port and port is not None:
        check_free(port)
    watch = Watch(target, port, device_map)
    seconds: dict[str, float] = {}

    say(f"building {firmware.env}")
    began = time.monotonic()
    size = pio.build(firmware.env)
    seconds["build"] = _since(began)
    say(f"built in {seconds['build']} s{f': {size}' if size else ''}")

    say(f"uploading to {port or f'the {firmware.board} that PlatformIO finds'}")
    began = time.monotonic()
    pio.upload(firmware.env, port, f"boards/{firmware.board}/README.md")
    seconds["upload"] = _since(began)
    say(f"uploaded in {seconds['upload']} s")

    result = {"board": firmware.board, "app": firmware.app, "env": firmware.env, "port": port, "seconds": seconds}
    if not watch.gateway_runs():
        say(f"done; no gateway runs at {target.url}. To use the board, start one: {HOW_TO_START}")
        return result | {"gateway": None, "device": None, "tools": []}
    say(f"waiting until the gateway at {target.url} lists its tools")
    began = time.monotonic()
    listed = watch.wait()
    seconds["listed"] = _since(began)
    say(f"listed in {seconds['listed']} s: {', '.join(listed.tools)}")
    return result | {"gateway": target.url, "device": listed.device, "tools": listed.tools}


# --- The port


def find_port(given: str | None, firmware: Firmware, device_map: DeviceMap) -> str | None:
    """None: not known, and not needed to upload."""
    ports = scan()
    if given is not None:
        if not os.path.exists(given):
            raise Failure(f"{given}: no such port", _those(ports))
        return given
    emulated = PORTS / f"usb-mcpax_{firmware.board}-if00"  # as hil.boards names it
    if emulated.exists() and control_path(emulated).is_socket():
        return str(emulated)
    match = device_map.port.match
    matching = [port.path for port in ports if match is not None and matches(port, match)]
    if len(matching) > 1:
        raise Failure(
            f"{len(matching)} ports match {firmware.map_file.name}: {', '.join(matching)}", "name the one that is meant with --port"
        )
    if not matching and firmware.over_serial_port:
        raise Failure(
            f"no port matches port.match of {firmware.map_file.name}, and none was named", f"name it with --port. {_those(ports)}"
        )
    return matching[0] if matching else None


def check_free(port: str) -> None:
    """A bootloader and a gateway cannot share a line. (As root one may open it all the same, and neither would get all bytes.)"""
    there = holders(Path("/"), os.path.realpath(port))
    if not there:
        return
    who = ", ".join(map(str, there))
    if any(process.program == GATEWAY_PROGRAM for process in there):
        hint = "this board takes firmware over that port: stop the gateway (Ctrl-C, or systemctl stop mcpax-gateway), flash, start it again"
    else:
        hint = "end that program, or name another port with --port"
    raise Failure(f"{port} is in use by {who}", hint)


def _those(ports: list[Port]) -> str:
    if not ports:
        return "There is no serial port here: is the board plugged in? An emulated one: scripts/hil up BOARD"
    return f"There are: {', '.join(port.path for port in ports)}"


def _map(file: Path) -> DeviceMap:
    try:
        return load_map(file)
    except DocumentError as error:
        raise Failure(str(error)) from None


def _since(began: float) -> float:
    return round(time.monotonic() - began, 1)


def say(text: str) -> None:
    click.echo(text, err=True)


if __name__ == "__main__":
    command(prog_name="scripts/flash")
