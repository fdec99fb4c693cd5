"""The demo, as a person starts it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from mcpax.cli import demo
from mcpax.cli.demo_text import TRIES, tries
from mcpax.cli.main import main
from tests.cli.program import MCPAX, PATIENCE_S, Program
from tests.virtual import BOARDS, build_boards

TOOLS = 17
"""Of all virtual boards."""
CLIENTS = ("Claude Desktop", "Claude Code", "VS Code", "Cursor", "Codex")


@pytest.fixture(autouse=True)
def _built() -> None:
    build_boards()


def started(program: Program) -> dict[str, Any]:
    """What `--json` prints once all is up."""
    return dict(json.loads("\n".join(program.wait_for(lambda lines: bool(lines) and lines[-1] == "}"))))


def boards_of(pid: int) -> dict[str, int]:
    """The virtual boards that a demo has started, by name."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {Path(f"/proc/{child}/comm").read_text().strip(): int(child) for child in children}


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@pytest.mark.req("AX-1.1-a")
def test_the_check_is_one_line_of_json() -> None:
    environment = {**os.environ, "http_proxy": "http://127.0.0.1:1", "no_proxy": ""}  # as on many a company's machine
    done = subprocess.run([MCPAX, "demo", "--check"], env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    report = json.loads(line)
    assert report["ok"] is True
    assert report["tools"] == TOOLS
    assert report["url"].endswith("/mcp")
    assert report["protocols"] == ["2026-07-28", "2025-11-25"]
    assert set(report["result"]) == {"temperature", "humidity"}
    assert report["call"]["name"] == "edge__env-sensor__read_climate"
    assert report["elapsed_s"] > 0


def test_a_failed_check_is_one_line_of_json_too(tmp_path: Path) -> None:
    done = subprocess.run([MCPAX, "demo", "--check", "--boards", tmp_path], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 1
    (line,) = done.stdout.splitlines()
    report = json.loads(line)
    assert report["ok"] is False
    assert str(tmp_path) in report["error"]
    assert f"{tmp_path}; scripts/run" in report["error"]


def test_it_runs_until_interrupted_mends_its_boards_and_leaves_nothing(tmp_path: Path) -> None:
    with Program(["demo", "--port", "0", "--json"], {"XDG_STATE_HOME": str(tmp_path)}) as program:
        told = started(program)
        url = told["url"]
        boards = boards_of(program.pid)
        assert sorted(boards) == sorted(BOARDS)
        assert {device["state"] for device in told["devices"]} == {"online"}
        assert len(told["tools"]) == TOOLS
        assert tuple(told["clients"]) == CLIENTS
        ports = Path(told["devices"][0]["port"]).parent
        identity = httpx.get(f"{url}/admin/status").json()["aggregator_id"]

        os.kill(boards["relay-board"], signal.SIGKILL)
        assert "starting it again" in program.wait_for_text("relay-board was ended by signal 9", "stderr")
        call = ["call", "edge.relay-board.read_relays", "--url", url]
        assert _succeeds_in_the_end(call)
        boards |= boards_of(program.pid)

        assert program.end(signal.SIGINT) == 0
        assert not any(alive(pid) for pid in boards.values())
        assert not ports.exists()

    with Program(["demo", "--port", "0", "--json"], {"XDG_STATE_HOME": str(tmp_path)}) as program:
        assert httpx.get(f"{started(program)['url']}/admin/status").json()["aggregator_id"] == identity
        assert program.end(signal.SIGHUP) == 0


def _succeeds_in_the_end(call: list[str]) -> bool:
    """A board that was started again takes a moment to be back, and until then its tools say that they are degraded."""
    give_up = time.monotonic() + PATIENCE_S
    while time.monotonic() < give_up:
        if CliRunner().invoke(main, call).exit_code == 0:
            return True
    return False


def test_people_get_url_tools_clients_and_what_to_try(tmp_path: Path) -> None:
    with Program(["demo", "--port", "0"], {"XDG_STATE_HOME": str(tmp_path)}) as program:
        url = program.wait_for_text("The gateway runs at").split()[4]
        told = "\n".join(program.wait_for(lambda lines: bool(lines) and lines[-1].startswith(url)))
        assert program.end(signal.SIGTERM) == 0
    assert "IRREVERSIBLE" in told
    assert all(f"\n{client}: " in told for client in CLIENTS)
    assert f"claude mcp add --transport http mcpax {url}" in told
    assert f'  export PATH={MCPAX.parent}:"$PATH"' in told
    assert f"export MCPAX_URL={url.removesuffix('/mcp')}" in told
    assert sorted(line.split()[0] for line in program.stderr) == sorted(BOARDS), "quiet but for the boards that come online"


def test_what_to_try_works_from_a_directory_with_a_space(tmp_path: Path) -> None:
    program = tmp_path / "my clone" / "bin" / "mcpax"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "$MCPAX_URL $*"\n')
    program.chmod(0o755)
    lines = tries("http://127.0.0.1:1", program, "plant")
    done = subprocess.run(["sh", "-e", "-c", lines], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == "http://127.0.0.1:1 devices"
    assert len(done.stdout.splitlines()) == len(TRIES)
    assert "call plant.env-sensor.read_climate" in done.stdout


def test_a_taken_port_is_told_with_its_holder(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [MCPAX, "demo", "--port", str(port)],
            env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    assert done.returncode == 1
    assert f"127.0.0.1:{port} is taken by " in done.stderr
    assert f"(pid {os.getpid()})" in done.stderr
    assert "--port 0" in done.stderr


def test_a_board_that_does_not_come_is_named_with_its_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "relay-board"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setattr(demo, "PATIENCE_S", 1.5)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    result = CliRunner().invoke(main, ["demo", "--port", "0", "--boards", str(tmp_path)])
    assert result.exit_code == 1
    assert "virtual board relay-board ended with exit code 3; starting it again" in result.stderr
    assert "not online within 1.5 s: relay-board: no such port" in result.stderr


def test_a_board_without_a_map_is_told(tmp_path: Path) -> None:
    (tmp_path / "stranger").write_text("#!/bin/sh\n")
    (tmp_path / "stranger").chmod(0o755)
    result = CliRunner().invoke(main, ["demo", "--port", "0", "--boards", str(tmp_path), "--maps", str(tmp_path)])
    assert result.exit_code == 1
    assert f"{tmp_path / 'stranger.toml'}:1: cannot be read" in result.stderr


def test_a_line_slower_than_any_map_allows_is_refused() -> None:
    result = CliRunner().invoke(main, ["demo", "--baud", "300"])
    assert (result.exit_code, "from 9600 on" in result.stderr) == (2, True)
