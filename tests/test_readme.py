"""What the README shows is true: its commands run, its files load, its links lead somewhere."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mcpax.bridge.maps.load import check_text
from mcpax.config import load_config
from mcpax.front.guard import check_listen
from tests.virtual import BOARDS, MAPS, ROOT, Running, VirtualBoard, running_gateway

README = (ROOT / "README.md").read_text()
BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
COMMANDS_TO_A_GATEWAY = {"devices", "tools", "call", "routes"}
PATIENCE_S = 60.0


def blocks(language: str) -> list[str]:
    return [textwrap.dedent(match[3]) for match in BLOCK.finditer(README) if match[2] == language]


def shown_commands() -> list[list[str]]:
    """The words of every mcpax command; a comment behind one is not part of it."""
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("mcpax ")]


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Running]:
    boards = [VirtualBoard(name, tmp_path).start() for name in BOARDS]
    try:
        async with running_gateway(boards) as running:
            yield running
    finally:
        for board in boards:
            board.stop()


async def run(words: list[str], url: str) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "mcpax", *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        env={**os.environ, "MCPAX_URL": url},
    )


async def test_the_commands_work_as_shown(gateway: Running) -> None:
    ran = 0
    for words in shown_commands():
        if words[0] in COMMANDS_TO_A_GATEWAY:
            done = await run(words, gateway.url)
            refused = "relay=9" in words
            assert done.returncode == (1 if refused else 0), (words, done.stdout, done.stderr)
            assert not refused or ("1 to 4" in done.stderr and "not_executed" in done.stderr), done.stderr
            ran += 1
    assert ran == 6


def test_every_command_shown_exists() -> None:
    for words in shown_commands():
        done = subprocess.run([sys.executable, "-m", "mcpax", words[0], "--help"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, (words, done.stderr)
        shown = {word for word in words if word.startswith("--")}
        assert shown <= set(re.findall(r"--[\w-]+", done.stdout)), words


def test_the_scripts_shown_exist() -> None:
    for script in set(re.findall(r"`?(scripts/\w+)", README)):
        assert os.access(ROOT / script, os.X_OK), script


def test_the_tool_shown_is_a_valid_part_of_a_map() -> None:
    (tool,) = [block for block in blocks("toml") if "[[tool]]" in block]
    device = '[device]\nname = "mine"\nprofile = "A"\nversion = "1.0.0"\n\n'
    assert check_text(device + tool, "README") == []


def test_the_configuration_shown_loads(tmp_path: Path) -> None:
    config = next(block for block in blocks("toml") if "maps =" in block)
    (tmp_path / "mcpax.toml").write_text(config)
    (tmp_path / "device-maps").symlink_to(MAPS)
    loaded = load_config(tmp_path / "mcpax.toml")
    assert {binding.segment for binding in loaded.bindings} == {path.stem for path in MAPS.glob("*.toml")}


def test_the_token_is_made_as_shown_and_lets_the_gateway_listen(tmp_path: Path) -> None:
    (command,) = [block for block in blocks("sh") if "urandom" in block]
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True)
    (tmp_path / "mcpax.toml").write_text(next(block for block in blocks("toml") if "token_file =" in block))
    loaded = load_config(tmp_path / "mcpax.toml")
    assert loaded.token == (tmp_path / "token").read_text()
    check_listen(loaded.host, loaded.token)


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", README):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        assert (ROOT / path).exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", (ROOT / path).read_text(), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}, target
