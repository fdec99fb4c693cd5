"""Texts to paste into MCP clients so that they find this gateway. Knows each client's file format, and nothing else.

A text is exactly what the client reads: strict JSON has no comments, so what there is to say about it stands beside it.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import Any

NAME = "mcpax"
TOKEN_VARIABLE = "MCPAX_TOKEN"


MERGE = "merge into mcpServers if the file has some"


@dataclass(frozen=True, slots=True)
class ClientConfig:
    where: str
    """Which file or program it is for, and what to mind."""
    text: str


def client_configs(url: str, token: str | None, stdio_command: list[str]) -> dict[str, ClientConfig]:
    """By client, what to paste and where. `stdio_command` starts our relay to `url`, for clients that speak only stdio."""
    return {
        "Claude Desktop": _claude_desktop(token, stdio_command),
        "Claude Code": _claude_code(url, token),
        "VS Code": _vs_code(url, token),
        "Cursor": _cursor(url, token),
        "Codex": _codex(url, token),
    }


def _claude_desktop(token: str | None, stdio_command: list[str]) -> ClientConfig:
    server: dict[str, Any] = {"command": stdio_command[0], "args": stdio_command[1:]}
    if token:
        server["env"] = {TOKEN_VARIABLE: token}
    where = f"claude_desktop_config.json (Settings, Developer, Edit Config); {MERGE}, then restart Claude"
    return ClientConfig(where, _json({"mcpServers": {NAME: server}}))


def _claude_code(url: str, token: str | None) -> ClientConfig:
    command = ["claude", "mcp", "add", "--transport", "http", NAME, url]
    if token:
        command += ["--header", f"Authorization: Bearer {token}"]
    return ClientConfig("in a shell, for the project in this directory; add --scope user for all of yours", f"{shlex.join(command)}\n")


def _vs_code(url: str, token: str | None) -> ClientConfig:
    """The file is usually committed, so the token is asked for instead of written down."""
    server: dict[str, Any] = {"type": "http", "url": url}
    config: dict[str, Any] = {"servers": {NAME: server}}
    if token:
        server["headers"] = {"Authorization": "Bearer ${input:mcpax-token}"}
        config["inputs"] = [{"type": "promptString", "id": "mcpax-token", "description": "Token of the mcpax gateway", "password": True}]
    return ClientConfig(".vscode/mcp.json; merge into servers if the file has some", _json(config))


def _cursor(url: str, token: str | None) -> ClientConfig:
    server: dict[str, Any] = {"url": url}
    if token:
        server["headers"] = {"Authorization": f"Bearer {token}"}
    where = (
        f"~/.cursor/mcp.json; {MERGE}. Cursor leaves out a tool when server name and tool name together are over 60 characters: "
        f'keep the server name as short as "{NAME}", and segments short too'
    )
    return ClientConfig(where, _json({"mcpServers": {NAME: server}}))


def _codex(url: str, token: str | None) -> ClientConfig:
    """Codex takes a token only from the environment."""
    lines = [f"[mcp_servers.{NAME}]", f"url = {json.dumps(url)}"]
    if token:
        lines.insert(0, f"# before starting codex: export {TOKEN_VARIABLE}={shlex.quote(token)}")
        lines.append(f'bearer_token_env_var = "{TOKEN_VARIABLE}"')
    return ClientConfig("~/.codex/config.toml", "\n".join(lines) + "\n")


def _json(value: Any) -> str:
    return json.dumps(value, indent=2) + "\n"
