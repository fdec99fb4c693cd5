"""The MCP Inspector's command line as a client that we did not write, over HTTP and over stdio."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from mcpax.front.http import build_app
from tests.e2e.inspector import Installation
from tests.front.bench import build_gateway
from tests.front.conftest import serving

PATIENCE_S = 60.0

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=["legacy", "modern"])
def era(request: pytest.FixtureRequest) -> str:
    """With sessions (2025-11-25), and without (2026-07-28)."""
    return str(request.param)


@pytest.fixture(scope="module")
def inspector(installation: Installation, era: str) -> list[str]:
    return [installation.node, str(installation.finish()), "--cli", "--protocol-era", era]


@pytest.fixture(params=["http", "stdio"])
async def target(request: pytest.FixtureRequest) -> AsyncIterator[list[str]]:
    if request.param == "stdio":
        yield [sys.executable, "-m", "tests.front.bench", "stdio"]
        return
    gateway = await build_gateway()
    async with serving(build_app(gateway.aggregator)) as url:
        yield [f"{url}/mcp", "--transport", "http"]


async def run(command: list[str], home: Path) -> tuple[int | None, dict[str, Any]]:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "HOME": str(home)}
    )
    out, err = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert out, err.decode()
    return process.returncode, json.loads(out)


def listed(tool: str, era: str) -> str:
    """It calls only what it was listed."""
    return ("." if era == "legacy" else "__").join(("edge", "bench", tool))


@pytest.mark.req("AX-1.1-a", "AX-1.1-d")
async def test_it_lists(inspector: list[str], target: list[str], era: str, tmp_path: Path) -> None:
    """Strictly: it also judges whether every schema is one that all clients can use. Without a session nobody is known to take dots."""
    status, answer = await run([*inspector, *target, "--method", "tools/list", "--strict"], tmp_path)
    assert status == 0
    tools = {tool["name"]: tool for tool in answer["tools"]}
    assert tools[listed("echo", era)]["annotations"]["readOnlyHint"] is True
    assert tools[listed("burn", era)]["_meta"]["x-mcpax-safety"] == "irreversible_mutable"


@pytest.mark.req("AX-1.1-a", "AX-5.2-1")
async def test_it_calls(inspector: list[str], target: list[str], era: str, tmp_path: Path) -> None:
    call = [*inspector, *target, "--method", "tools/call", "--tool-name", listed("echo", era), "--tool-arg", "text=hi"]
    status, answer = await run(call, tmp_path)
    assert (status, answer["content"]) == (0, [{"type": "text", "text": "hi"}])


async def test_it_reads_a_failure_of_a_tool_with_an_output_schema(
    inspector: list[str], target: list[str], era: str, tmp_path: Path
) -> None:
    """The TypeScript SDK checks structured content of errors too, so the message must survive without any."""
    _, answer = await run([*inspector, *target, "--method", "tools/call", "--tool-name", listed("lost", era)], tmp_path)
    assert answer["isError"] is True
    assert "Outcome: unknown" in answer["content"][0]["text"]
    assert answer["_meta"]["x-mcpax-error"]["outcome"] == "unknown"
