"""The texts parse in the format of each client, and say what is needed."""

from __future__ import annotations

import json
import shlex
import tomllib

import pytest

from mcpax.front.client_config import client_configs

URL = "http://pi.local:8765/mcp"
COMMAND = ["/opt/mcp ax/mcpax", "stdio", "--url", URL]
TOKEN = "it's a $ecret"


@pytest.mark.parametrize("token", [None, TOKEN])
def test_each_client_gets_what_it_reads(token: str | None) -> None:
    configs = client_configs(URL, token, COMMAND)
    texts = {client: config.text for client, config in configs.items()}
    assert set(texts) == {"Claude Desktop", "Claude Code", "VS Code", "Cursor", "Codex"}

    desktop = {"command": COMMAND[0], "args": COMMAND[1:], **({"env": {"MCPAX_TOKEN": token}} if token else {})}
    assert json.loads(texts["Claude Desktop"]) == {"mcpServers": {"mcpax": desktop}}

    header = ["--header", f"Authorization: Bearer {token}"] if token else []
    assert shlex.split(texts["Claude Code"]) == ["claude", "mcp", "add", "--transport", "http", "mcpax", URL, *header]

    code = json.loads(texts["VS Code"])
    assert code["servers"] == {
        "mcpax": {"type": "http", "url": URL, **({"headers": {"Authorization": "Bearer ${input:mcpax-token}"}} if token else {})}
    }
    assert ("inputs" in code) == bool(token)

    cursor = {"url": URL, **({"headers": {"Authorization": f"Bearer {token}"}} if token else {})}
    assert json.loads(texts["Cursor"]) == {"mcpServers": {"mcpax": cursor}}
    assert "60 characters" in configs["Cursor"].where
    assert all("merge into mcpServers" in configs[client].where for client in ("Claude Desktop", "Cursor"))
    assert "--scope user" in configs["Claude Code"].where

    codex = {"url": URL, **({"bearer_token_env_var": "MCPAX_TOKEN"} if token else {})}
    assert tomllib.loads(texts["Codex"]) == {"mcp_servers": {"mcpax": codex}}


def test_a_token_is_not_written_where_files_are_shared() -> None:
    """.vscode/mcp.json is usually committed; Codex refuses a token in its file."""
    texts = {client: config.text for client, config in client_configs(URL, TOKEN, COMMAND).items()}
    assert TOKEN not in texts["VS Code"]
    assert not any(TOKEN in line for line in texts["Codex"].splitlines() if not line.startswith("#"))
