"""What the pages about firmware, ports and the rig show is true; "Add a tool" is followed word by word on an emulated Uno."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from hil.places import ROOT
from hil.project import Project
from hil.rig import load_rig
from mcpax.bridge.device import MISFIT
from mcpax.config import load_config
from tests.cli.conftest import serve
from tests.cli.program import Program
from tests.hil.test_flash import needs_compilers
from tests.hil.workplace import Workplace, make_workplace

FIRMWARE, PORTING, HIL = (ROOT / f"docs/{name}.md" for name in ("firmware", "porting", "hil"))
BOARD_PAGES = sorted(ROOT.glob("boards/*/README.md"))
PAGES = (FIRMWARE, PORTING, HIL, *BOARD_PAGES)


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def words(line: str) -> list[str]:
    return shlex.split(line, comments=True)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", found.read_text(), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}, target


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_and_boards_that_are_named_exist(page: Path) -> None:
    text = page.read_text()
    for file in re.findall(r"`((?:firmware|hil|boards|device-maps|scripts|tests)/[\w./-]+)`", text):
        assert (ROOT / file).exists() or "NAME" in file or "CHIP" in file or file == "hil/rig.local.toml", file
    for board, app in re.findall(r"scripts/flash ([a-z]\w+) ?([a-z][\w-]*)?", text):
        Project().firmware(board, app or None)
    for env in re.findall(r"-e ([a-z][\w-]+)", text):
        board, _, app = env.partition("-")
        Project().firmware(board, app or None)


@pytest.mark.parametrize("page", [FIRMWARE, HIL], ids=name_of)
def test_configurations_load(page: Path, tmp_path: Path) -> None:
    (config,) = [block for block in blocks(page, "toml") if "[gateway]" in block]
    (tmp_path / "mcpax.toml").write_text(config)
    (tmp_path / "device-maps").symlink_to(ROOT / "device-maps")
    assert load_config(tmp_path / "mcpax.toml").bindings


def test_the_bench_that_is_shown_is_a_rig(tmp_path: Path) -> None:
    (bench,) = [block for block in blocks(HIL, "toml") if "[[board]]" in block]
    (tmp_path / "rig.local.toml").write_text(bench)
    (board,) = load_rig(tmp_path / "rig.local.toml").boards
    assert set(board.capabilities) == {"flash", "reset", "power"}


def test_the_rig_is_asked_as_shown() -> None:
    commands = [words(line) for block in blocks(HIL, "sh") for line in block.splitlines()]
    ours = [[sys.executable, "-m", "hil", *command[1:]] for command in commands if command[0] == "scripts/hil"]
    assert [command[3] for command in ours] == ["boards", "report"]
    listed = subprocess.run(ours[0], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (tests,) = [command[1:] for command in commands if command[0] == ".venv/bin/pytest"]
    collect = [sys.executable, "-m", "pytest", *tests, "--collect-only", "-q"]
    collected = subprocess.run(collect, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "test_presence.py" in collected
    for board in re.findall(r"^\| `(\w+)` \|", HIL.read_text(), re.MULTILINE):
        assert re.search(rf"^{board} ", listed, re.MULTILINE), board


def test_porting_asks_what_port_h_asks() -> None:
    header = (ROOT / "firmware/ports/port.h").read_text()
    asked = set(re.findall(r"^\| `(\w+)` \|", PORTING.read_text(), re.MULTILINE))
    declared = set(re.findall(r"\b(port_\w+)\(void\);", header))
    assert asked == declared | {"mcpax_port_put", "port_free_ram"}
    script = (ROOT / "firmware/ports/ld/cortex_m0.ld").read_text()
    named = re.findall(r"`((?:data|bss|stack)_\w+)`", PORTING.read_text())
    assert [name for name in named if f"{name} = " not in script] == []
    tests = set(re.findall(r"`(test_\w+\.py)`", PORTING.read_text()))
    assert [name for name in tests if not list((ROOT / "hil").glob(name))] == []


# --- Followed word by word


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    return make_workplace(tmp_path_factory.mktemp("docs") / "project")


@pytest.mark.slow
@needs_compilers
def test_a_tool_is_added_step_by_step(workplace: Workplace) -> None:
    setup, flash_first, check, flash, calls = ([words(line) for line in block.splitlines()] for block in blocks(FIRMWARE, "sh"))
    config, tool = blocks(FIRMWARE, "toml")
    (handler,) = blocks(FIRMWARE, "c")
    (workplace.root / "mcpax.toml").write_text(config.replace("[gateway]\n", '[gateway]\nlisten = "127.0.0.1:0"\n'))
    assert [command[:2] for command in setup] == [["scripts/hil", "up"]]

    with workplace.up(setup[0][2:]):  # which builds what it starts with
        flashed(workplace, flash_first[1:])
        add(workplace.root / "device-maps/relay-board-b.toml", tool)
        assert mcpax(workplace, check[0]).returncode == 0
        done = workplace.flash(*flash[0][1:], "--offline")
        assert done.returncode == 1
        assert "the map has a tool set_all, and the example has no handler for it" in done.stderr
        assert "add to it: uint8_t mcpax_tool_set_all(const mcpax_value *args, mcpax_value *results)" in done.stderr
        assert refusal(workplace) in " ".join(FIRMWARE.read_text().split())

        add(workplace.root / "firmware/examples/relay_board.c", handler)
        flashed(workplace, flash)
        with serve(workplace.root / "mcpax.toml", online=1) as url:
            set_all, read, too_much = (mcpax(workplace, [*call, "--json"], url) for call in calls)
    assert json.loads(set_all.stdout)["structuredContent"] == {"previous": 0}
    assert json.loads(read.stdout)["structuredContent"]["mask"] == 5
    assert too_much.returncode == 1
    assert "0 to 15" in too_much.stdout


@pytest.mark.slow
@needs_compilers
def test_an_application_of_ones_own_builds(workplace: Workplace) -> None:
    (ini,) = blocks(FIRMWARE, "ini")
    add(workplace.root / "firmware/platformio.ini", ini)
    own_map = workplace.root / "device-maps/my-board.toml"
    own_map.write_text((ROOT / "device-maps/env-sensor.toml").read_text().replace('name = "env-sensor"', 'name = "my-board"'))
    (workplace.root / "firmware/examples/my_board.c").write_text((ROOT / "firmware/examples/env_sensor.c").read_text())
    assert Project(workplace.root).firmware("uno", "my-board").map_file == own_map
    workplace.build("uno-my-board")
    assert "my-board" in (workplace.root / "build/pio/uno-my-board/map/mcpax_map.h").read_text()


def add(file: Path, text: str) -> None:
    with file.open("a") as end:
        end.write(f"\n{text}")


def flashed(workplace: Workplace, commands: list[list[str]]) -> None:
    ((script, *arguments),) = commands
    assert script == "scripts/flash"
    done = workplace.flash(*arguments, "--offline")
    assert done.returncode == 0, done.stderr


def mcpax(workplace: Workplace, command: list[str], url: str = "") -> subprocess.CompletedProcess[str]:
    assert command[0] == "mcpax"
    return workplace.python("-m", *command, MCPAX_URL=url)


def refusal(workplace: Workplace) -> str:
    """What the gateway says of the board as long as only the map is new."""
    with Program(["serve", "--config", workplace.root / "mcpax.toml", "--log-json"]) as program:
        differences = json.loads(program.wait_for_text('"event": "map_mismatch"', "stderr"))["difference"]
        program.end()
    return f"{MISFIT}: {'; '.join(differences)}"
