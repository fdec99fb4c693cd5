"""How to connect: the command, and the line that leads to it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path

from click.testing import CliRunner

from mcpax.cli.main import main
from mcpax.cli.serving import cannot_listen
from mcpax.config import Config
from tests.cli.conftest import Mcpax, write_config
from tests.cli.program import MCPAX, PATIENCE_S, Program


def test_clients_get_what_to_paste_and_the_way_from_another_machine(mcpax: Mcpax, gateway_url: str) -> None:
    told = mcpax("clients").stdout
    port = gateway_url.rpartition(":")[2]
    assert f"  claude mcp add --transport http mcpax {gateway_url}/mcp" in told.splitlines()
    assert f"  ssh -L {port}:127.0.0.1:{port} USER@HOST" in told.splitlines()
    assert "//" not in told.replace("://", "")


def test_clients_for_programs(mcpax: Mcpax, gateway_url: str) -> None:
    told = json.loads(mcpax("clients", "--json").stdout)
    assert told["mcp_url"] == f"{gateway_url}/mcp"
    desktop = json.loads(told["clients"]["Claude Desktop"]["text"])
    assert desktop["mcpServers"]["mcpax"]["args"] == ["stdio", "--url", gateway_url]


def test_without_a_gateway_there_is_nothing_to_connect_to(run: CliRunner) -> None:
    result = run.invoke(main, ["clients", "--url", "http://127.0.0.1:1"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no gateway answers" in result.stderr


def test_serve_tells_who_has_its_address(run: CliRunner, tmp_path: Path) -> None:
    config = str(write_config(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run.invoke(main, ["serve", "--config", config, "--listen", f"127.0.0.1:{port}"])
    assert result.exit_code == 1
    assert f"127.0.0.1:{port} is taken by " in result.stderr
    assert f"(pid {os.getpid()})" in result.stderr
    assert "--listen HOST:PORT" in result.stderr


def test_what_cannot_be_served_is_not_started(tmp_path: Path) -> None:
    """Neither says so nor opens a board's port."""
    config = write_config(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for address in (f"127.0.0.1:{taken.getsockname()[1]}", "0.0.0.0:0"):
            with Program(["serve", "--config", config, "--log-json", "--listen", address]) as program:
                assert program.ended() == 1
            assert "started" not in "\n".join(program.stderr)
    assert "token_file" in program.stderr[0]


def test_serve_on_an_address_of_another_machine_says_it_once() -> None:
    refused = cannot_listen(Config(host="192.0.2.1"), OSError(99, "Cannot assign (while attempting to bind on address …)"), "listen")
    assert refused.message == "cannot listen on 192.0.2.1:8720: Cannot assign"


def test_serve_on_a_terminal_says_how_to_connect(tmp_path: Path) -> None:
    terminal, side = os.openpty()
    with subprocess.Popen([MCPAX, "serve", "--config", write_config(tmp_path)], stdin=subprocess.DEVNULL, stderr=side) as program:
        os.close(side)
        told = ""
        while "tells how to connect" not in told:
            told += os.read(terminal, 4096).decode()
        program.terminate()
        assert program.wait(PATIENCE_S) == 0
    os.close(terminal)
    assert told.index("listening") < told.index("'mcpax clients --url http://127.0.0.1:")
