"""Texts to paste into MCP clients so that they find this gateway. Knows each client's file format, and nothing else."""

from __future__ import annotations

import json
import shlex
from typing import Any

NAME = "mcpax"
TOKEN_VARIABLE = "MCPAX_TOKEN"


def client_configs(url: str, token: str | None, stdio_command: list[str]) -> dict[str, str]:
    """By client, what to paste and where. `stdio_command` starts our relay to `url`, for clients that speak only stdio."""
    return {
        "Claude Desktop": _claude_desktop(token, stdio_command),
        "Claude Code": _claude_code(url, token),
        "VS Code": _vs_code(url, token),
        "Cursor": _cursor(url, token),
        "Codex": _codex(url, token),
    }


def _claude_desktop(token: str | None, stdio_command: list[str]) -> str:
    server: dict[str, Any] = {"command": stdio_command[0], "args": stdio_command[1:]}
    if token:
        server["env"] = {TOKEN_VARIABLE: token}
    return f"// claude_desktop_config.json (Settings, Developer, Edit Config); then restart Claude\n{_json({'mcpServers': {NAME: server}})}"


def _claude_code(url: str, token: str | None) -> str:
    command = ["claude", "mcp", "add", "--transport", "http", NAME, url]
    if token:
        command += ["--header", f"Authorization: Bearer {token}"]
    return f"# in a shell\n{shlex.join(command)}\n"


def _vs_code(url: str, token: str | None) -> str:
    """The file is usually committed, so the token is asked for instead of written down."""
    server: dict[str, Any] = {"type": "http", "url": url}
    config: dict[str, Any] = {"servers": {NAME: server}}
    if token:
        server["headers"] = {"Authorization": "Bearer ${input:mcpax-token}"}
        config["inputs"] = [{"type": "promptString", "id": "mcpax-token", "description": "Token of the mcpax gateway", "password": True}]
    return f"// .vscode/mcp.json\n{_json(config)}"


def _cursor(url: str, token: str | None) -> str:
    server: dict[str, Any] = {"url": url}
    if token:
        server["headers"] = {"Authorization": f"Bearer {token}"}
    return (
        "// ~/.cursor/mcp.json. Cursor leaves out a tool when server name and tool name together are over 60 characters:\n"
        f'// keep the server name as short as "{NAME}", and segments short too.\n{_json({"mcpServers": {NAME: server}})}'
    )


def _codex(url: str, token: str | None) -> str:
    """Codex takes a token only from the environment."""
    lines = ["# ~/.codex/config.toml", f"[mcp_servers.{NAME}]", f"url = {json.dumps(url)}"]
    if token:
        lines.insert(1, f"# before starting codex: export {TOKEN_VARIABLE}={shlex.quote(token)}")
        lines.append(f'bearer_token_env_var = "{TOKEN_VARIABLE}"')
    return "\n".join(lines) + "\n"


def _json(value: Any) -> str:
    return json.dumps(value, indent=2) + "\n"
