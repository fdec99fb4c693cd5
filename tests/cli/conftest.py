"""A gateway started as users start it, over virtual boards, and the command line in front of it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mcpax.cli.main import main
from tests.cli.program import Program
from tests.virtual import BOARDS, MAPS, VirtualBoard

Mcpax = Callable[..., Result]


SHIPPED = tuple(MAPS / f"{name}.toml" for name in BOARDS)


def write_config(directory: Path, *, maps: Sequence[Path] = SHIPPED, more: str = "") -> Path:
    """A configuration whose ports are in `directory`/by-id, on any free port."""
    (directory / "by-id").mkdir(parents=True, exist_ok=True)
    path = directory / "mcpax.toml"
    lines = [
        "[gateway]",
        'listen = "127.0.0.1:0"',
        'state_dir = "state"',
        'by_id_dirs = ["by-id"]',
        f"maps = {json.dumps([str(path) for path in maps])}",
        more,
    ]
    path.write_text("\n".join(lines))
    return path


@contextlib.contextmanager
def serve(config: Path, online: int = 0) -> Iterator[str]:
    """`mcpax serve`; yields its URL once it listens and that many boards are online."""
    with Program(["serve", "--config", config, "--log-json"]) as program:
        port = json.loads(program.wait_for_text('"event": "listening"', "stderr"))["port"]
        program.wait_for(lambda lines: sum('"event": "online"' in line for line in lines) >= online, "stderr")
        yield f"http://127.0.0.1:{port}"
        assert program.end() == 0


@contextlib.contextmanager
def plugged_in(names: Sequence[str], directory: Path) -> Iterator[dict[str, VirtualBoard]]:
    directory.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        yield {name: stack.enter_context(VirtualBoard(name, directory)) for name in names}


@pytest.fixture(scope="package")
def gateway_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A gateway with all boards online, for every test that leaves it as it was."""
    directory = tmp_path_factory.mktemp("gateway")
    with plugged_in(BOARDS, directory / "by-id"), serve(write_config(directory), online=len(BOARDS)) as url:
        yield url


@pytest.fixture
def run() -> CliRunner:
    return CliRunner()


@pytest.fixture
def mcpax(run: CliRunner, gateway_url: str) -> Mcpax:
    """The command line, pointed at that gateway."""

    def invoke(*arguments: str, stdin: str | None = None) -> Result:
        return run.invoke(main, arguments, input=stdin, env={"MCPAX_URL": gateway_url, "MCPAX_TOKEN": ""})

    return invoke
