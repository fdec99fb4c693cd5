"""What every command shares: help with an example, completion, JSON, and a quick start."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest
from click.testing import CliRunner

from mcpax.cli.main import COMMANDS, main
from tests.cli.program import MCPAX

LISTS_FOR_PROGRAMS = ("demo", "devices", "tools", "call", "routes", "clients", "sniff", "doctor")
SLOW_TO_LOAD = ("mcp", "httpx", "serial", "starlette", "cbor2")


def complete(words: str, gateway_url: str = "http://127.0.0.1:1") -> list[str]:
    """What bash offers for the last word."""
    environment = {
        "_MCPAX_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
        "MCPAX_URL": gateway_url,
        "PATH": "/usr/bin:/bin",
    }
    done = subprocess.run([MCPAX], env=environment, capture_output=True, text=True, timeout=30, check=True)
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_there_and_has_help(run: CliRunner, name: str) -> None:
    assert import_module(f"mcpax.cli.{name}").command.name == name
    result = run.invoke(main, [name, "-h"])
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: main {name}")


@pytest.mark.parametrize("name", [*LISTS_FOR_PROGRAMS, "serve", "stdio"])
def test_help_has_an_example(run: CliRunner, name: str) -> None:
    assert f"mcpax {name}" in run.invoke(main, [name, "-h"]).stdout


@pytest.mark.parametrize("name", LISTS_FOR_PROGRAMS)
def test_json_is_offered(run: CliRunner, name: str) -> None:
    assert "--json" in run.invoke(main, [name, "-h"]).stdout


def test_a_mistyped_command_is_answered_with_the_nearest(run: CliRunner) -> None:
    result = run.invoke(main, ["devcies"])
    assert result.exit_code == 2
    assert "there is no command 'devcies'; did you mean \"devices\"?" in result.stderr


def test_start_up_loads_only_what_is_used() -> None:
    script = f"import sys, mcpax.cli.main, mcpax.cli.devices, mcpax.cli.tools; print([m for m in {SLOW_TO_LOAD!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.strip() == "[]"


def test_commands_and_options_are_completed() -> None:
    assert complete("mcpax de") == ["demo", "devices"]
    assert complete("mcpax sniff --re") == ["--record", "--replay"]


def test_tools_devices_and_arguments_are_completed_from_the_gateway(gateway_url: str) -> None:
    assert complete("mcpax call edge.v", gateway_url) == [
        f"edge.valve-actuator.{tool}" for tool in ("dose", "move_valve", "read_valve", "stop")
    ]
    assert complete("mcpax call edge.relay-board.set_relay ", gateway_url) == ["relay=", "state=off", "state=on"]
    assert complete("mcpax call edge.relay-board.set_relay relay=1 ", gateway_url) == ["state=off", "state=on"]
    assert complete("mcpax sniff e", gateway_url) == ["env-sensor"]


def test_without_a_gateway_nothing_is_offered_and_nothing_said() -> None:
    assert complete("mcpax call e") == []
    assert complete("mcpax sniff e") == []
