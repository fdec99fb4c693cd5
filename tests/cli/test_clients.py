"""How to connect: the command, and the line that leads to it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from click.testing import CliRunner

from mcpax.cli.main import main
from tests.cli.conftest import Mcpax, write_config
from tests.cli.program import MCPAX, PATIENCE_S


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
