"""What there is: devices, tools, routes."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
from pathlib import Path

import click
import pytest

from mcpax.cli import devices as devices_command
from mcpax.cli.output import fitted
from mcpax.cli.tool_view import effect, row
from tests.cli.conftest import Mcpax, plugged_in, serve, write_config
from tests.cli.program import MCPAX, Program
from tests.virtual import BOARDS


def test_devices_tell_their_state_and_counters(mcpax: Mcpax) -> None:
    mcpax("call", "edge.env-sensor.read_climate")
    result = mcpax("devices")
    header, *rows = result.stdout.splitlines()
    assert header.split("  ")[0] == "DEVICE"
    assert [line.split()[:3] for line in rows] == [
        ["env-sensor", "online", "env-sensor"],
        ["relay-board", "online", "relay-board"],
        ["relay-board-b", "online", "relay-board-b"],
        ["valve-actuator", "online", "valve-actuator"],
    ]
    assert rows[0].split()[3] == "usb-mcpax_env-sensor_0001-if00", "the name, without the directory"
    calls, retries, crc_errors, p50, p99 = rows[0].split()[4:]
    assert (int(calls) > 0, retries, crc_errors) == (True, "0", "0")
    assert 0 < float(p50) <= float(p99)


def test_devices_for_programs(mcpax: Mcpax) -> None:
    devices = json.loads(mcpax("devices", "--json").stdout)
    profiles = {device["segment"]: device["profile"] for device in devices}
    assert profiles == {"env-sensor": "B", "relay-board": "A", "relay-board-b": "B", "valve-actuator": "B"}


def test_watching_goes_on_until_interrupted(gateway_url: str) -> None:
    with Program(["devices", "--watch", "--json", "--url", gateway_url]) as program:
        lines = program.wait_for(lambda lines: len(lines) >= 2)
        assert all(len(json.loads(line)) == len(BOARDS) for line in lines)
        assert program.end(signal.SIGINT) == 0


def test_a_board_that_is_not_there_has_its_problem_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with plugged_in(["env-sensor"], tmp_path / "by-id"), serve(write_config(tmp_path), online=1) as url:
        devices_command.command.main(["--url", url], standalone_mode=False)
    told = capsys.readouterr().out
    assert "relay-board: no such port" in told
    assert "env-sensor:" not in told


def test_tools_tell_what_they_do_to_the_world(mcpax: Mcpax) -> None:
    rows = {line.split()[0]: line for line in mcpax("tools").stdout.splitlines()}
    assert rows["edge.env-sensor.read_climate"].split()[1:3] == ["reads", "fast"]
    assert rows["edge.env-sensor.set_alarm"].split()[1] == "reversible"
    assert rows["edge.valve-actuator.dose"].split()[1:3] == ["IRREVERSIBLE", "standard"]
    assert "Pump an amount of liquid" in rows["edge.valve-actuator.dose"]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["valve"], ["dose", "move_valve", "read_valve", "stop"]),
        (["*.read_v*"], ["read_valve"]),
        (["nothing"], []),
    ],
)
def test_tools_by_pattern(mcpax: Mcpax, arguments: list[str], names: list[str]) -> None:
    assert [tool["name"].split(".")[-1] for tool in json.loads(mcpax("tools", *arguments, "--json").stdout)] == names


@pytest.mark.parametrize(
    ("style", "name"),
    [("flat", "edge__env-sensor__read_info"), ("colon", "edge.env-sensor:read_info"), ("dotted", "edge.env-sensor.read_info")],
)
def test_names_in_every_style(mcpax: Mcpax, style: str, name: str) -> None:
    assert name in mcpax("tools", "--names", style).stdout


def test_what_is_not_stated_is_shown_as_dangerous() -> None:
    assert effect({"name": "x"}) == "IRREVERSIBLE"
    assert effect({"name": "x", "_meta": {"x-mcpax-capability": {"mutable": True}}}) == "IRREVERSIBLE"


def test_tools_that_cannot_be_called_are_marked() -> None:
    degraded = {"name": "x", "description": "Text.", "_meta": {"x-mcpax-capability": {"availability": "degraded"}}}
    assert row(degraded)[-1] == "[degraded] Text."
    assert row({**degraded, "_meta": {"x-mcpax-quarantined": "no map"}})[-1] == "[quarantined] Text."


def test_routes_lead_to_sessions(mcpax: Mcpax) -> None:
    table = json.loads(mcpax("routes", "--json").stdout)
    assert table["edge.relay-board.echo"]["downstream_name"] == "echo"
    line = next(line for line in mcpax("routes").stdout.splitlines() if line.startswith("edge.relay-board.echo "))
    assert line.split()[1:] == ["echo", "uart_bytes"]
    line = next(line for line in mcpax("routes", "-v").stdout.splitlines() if line.startswith("edge.relay-board.echo "))
    route = table["edge.relay-board.echo"]
    assert line.split()[1:] == ["echo", "uart_bytes", route["downstream_session"], route["registered_at"]]


@pytest.mark.parametrize(
    ("widths", "room", "narrow"),
    [
        ([5, 10], 17, [5, 10]),
        ([5, 10], 16, [5, 9]),
        ([20, 60, 3], 50, [20, 23, 3]),
        ([40, 40], 50, [24, 24]),
        ([40, 4, 40], 10, [6, 4, 6]),
    ],
)
def test_the_widest_columns_give_first(widths: list[int], room: int, narrow: list[int]) -> None:
    assert fitted(widths, room) == narrow


@pytest.mark.parametrize("command", ["devices", "tools", "routes"])
def test_on_a_terminal_no_line_is_wider_than_it(command: str, gateway_url: str, mcpax: Mcpax) -> None:
    """80 columns; elsewhere nothing is cut."""
    master, slave = pty.openpty()
    environment = {**os.environ, "MCPAX_URL": gateway_url, "COLUMNS": "80", "TERM": "xterm"}
    with subprocess.Popen([MCPAX, command], stdout=slave, stderr=slave, env=environment) as process:
        os.close(slave)
        told = b""
        with contextlib.suppress(OSError):  # so a terminal ends
            while data := os.read(master, 4096):
                told += data
    os.close(master)
    assert process.returncode == 0
    lines = click.unstyle(told.decode()).splitlines()
    assert max(map(len, lines)) <= 80
    assert ("…" in told.decode()) == (max(map(len, mcpax(command).stdout.splitlines())) > 80)
    assert "…" not in mcpax(command).stdout
