"""The PlatformIO project: what platformio.ini says, and in scratch copies what `scripts/pio-offline` makes of it without a network."""

import os
import re
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile
from platformio.project.config import ProjectConfig  # type: ignore[import-untyped]

from tests.harness.firmware_project import FirmwareProject, copy_project, needs_compilers

ROOT = Path(__file__).resolve().parents[2]
INI = ROOT / "firmware/platformio.ini"

# Board: the registry's platform, its name for the board, and the machine in the image's ELF header.
BOARDS = {
    "uno": ("atmelavr", "uno", "EM_AVR"),
    "l053": ("ststm32", "nucleo_l053r8", "EM_ARM"),
    "microbit": ("nordicnrf51", "bbcmicrobit", "EM_ARM"),
    "msp430g2553": ("timsp430", "lpmsp430g2553", "EM_MSP430"),
}
BUILT_BY_MAKE = {"relay-board-51"}
"""For the 8051, whose compiler PlatformIO drives in ways of its own; firmware/mcs51.mk does."""
MAPS = sorted({path.stem for path in (ROOT / "device-maps").glob("*.toml")} - BUILT_BY_MAKE)
DEFAULT_MAP = "relay-board-b"
CHIP_ENVS = [*(f"{board}-{name}" for board in BOARDS for name in MAPS), *BOARDS, *(f"{board}-debug" for board in BOARDS)]


# --- What the file says


@pytest.fixture(scope="module")
def config() -> Any:
    return ProjectConfig(str(INI))


def test_platformio_finds_nothing_wrong_with_the_file() -> None:
    assert ProjectConfig.lint(str(INI)) == {"errors": [], "warnings": []}


def test_every_board_has_every_map_and_nothing_else_is_there(config: Any) -> None:
    assert sorted(config.envs()) == sorted([*CHIP_ENVS, "native"])
    assert sorted(config.default_envs()) == sorted(BOARDS)


@pytest.mark.parametrize("env", CHIP_ENVS)
def test_environment_names_official_platform_board_and_its_map(config: Any, env: str) -> None:
    board = env.partition("-")[0]
    name = env.removeprefix(board).strip("-")
    platform, official, _ = BOARDS[board]
    section = f"env:{env}"
    assert config.get(section, "platform").split(" @ ")[0] == platform
    assert config.get(section, "board") == official
    assert config.get(section, "custom_map") == (name if name in MAPS else DEFAULT_MAP)
    assert config.get(section, "custom_debug", "no") == ("yes" if name == "debug" else "no")
    sources = [part.strip("+<> ") for part in config.get(section, "build_src_filter")[0].split(" ")]
    assert [source for source in sources if not (INI.parent / source).is_file()] == []
    assert (INI.parent.parent / "boards" / config.get(section, "custom_board") / "pins.h").is_file()


# --- What is made of it


def lines_that_build(output: str) -> list[str]:
    return [line for line in output.splitlines() if line.startswith(("Compiling", "Archiving", "Linking", "Building /"))]


@pytest.fixture
def project(tmp_path: Path) -> FirmwareProject:
    return copy_project(tmp_path / "my project")


BUILT = FirmwareProject(ROOT)
"""All environments, as `scripts/test` has built them here; the copies that tests change are built in a folder with a space in its name."""


@pytest.mark.slow
@needs_compilers
class TestAllEnvironments:
    @pytest.mark.parametrize("env", CHIP_ENVS)
    def test_image_is_for_its_chip_and_has_a_loadable_program(self, env: str) -> None:
        assert BUILT.built(env).is_file(), f"build it with: scripts/pio-offline run -e {env}"
        with BUILT.built(env).open("rb") as file:
            image = ELFFile(file)
            assert image["e_machine"] == BOARDS[env.partition("-")[0]][2]
            assert sum(segment["p_filesz"] for segment in image.iter_segments() if segment["p_type"] == "PT_LOAD") > 0

    def test_maps_give_different_images_and_the_short_name_is_the_default_map(self) -> None:
        for board in BOARDS:
            headers = {name: BUILT.built(f"{board}-{name}", "map/mcpax_map.h").read_text() for name in MAPS}
            assert len(set(headers.values())) == len(MAPS)
            assert BUILT.built(board, "map/mcpax_map.h").read_text() == headers[DEFAULT_MAP]
            assert BUILT.built(f"{board}-debug", "map/mcpax_map.h").read_text() != headers[DEFAULT_MAP]

    def test_virtual_board_runs(self) -> None:
        with subprocess.Popen([BUILT.built("native", "program")], stdout=subprocess.PIPE, text=True) as board:
            assert board.stdout is not None
            assert Path(board.stdout.readline().strip()).is_char_device()
            board.terminate()

    def test_nothing_is_made_a_second_time(self) -> None:
        before = {board: BUILT.built(board).stat().st_mtime_ns for board in BOARDS}
        output = BUILT.run(*(word for board in BOARDS for word in ("-e", board)))
        assert lines_that_build(output) == []
        assert {board: BUILT.built(board).stat().st_mtime_ns for board in BOARDS} == before


@pytest.mark.slow
@needs_compilers
def test_changed_map_gives_a_new_header_and_image(project: FirmwareProject) -> None:
    env = "uno-relay-board"
    project.run("-e", env)
    header, image = project.built(env, "map/mcpax_map.h").read_text(), project.built(env).read_bytes()
    project.change_map("relay-board", "max = 5000\n", "max = 4000\n")
    output = project.run("-e", env)
    assert project.built(env, "map/mcpax_map.h").read_text() != header
    assert project.built(env).read_bytes() != image
    assert any("mcpax/tables.o" in line for line in lines_that_build(output)), "the library has the map's tables in it"


@pytest.mark.slow
@needs_compilers
@pytest.mark.parametrize(
    ("env", "source"), [("l053", "ld/stm32l053.ld"), ("msp430g2553", "ld/msp430g2553.ld"), ("msp430g2553", "msp430_crt.c")]
)
def test_changed_linker_script_or_startup_code_links_anew(project: FirmwareProject, env: str, source: str) -> None:
    project.run("-e", env)
    with (project.root / "firmware/ports" / source).open("a") as file:
        file.write("\n/* changed */\n")
    assert [line.split()[0] for line in lines_that_build(project.run("-e", env))][:1] == ["Linking"]


@needs_compilers
def test_missing_map_is_named(project: FirmwareProject) -> None:
    (project.root / "device-maps/valve-actuator.toml").unlink()
    done = project.pio("run", "-e", "uno-valve-actuator")
    assert done.returncode != 0
    assert "valve-actuator.toml does not exist: custom_map of environment uno-valve-actuator" in done.stderr


@needs_compilers
def test_missing_mcpax_is_explained(project: FirmwareProject, tmp_path: Path) -> None:
    """A PATH without the command, and a Python that does not find the package."""
    tmp_path.joinpath("sitecustomize.py").write_text(
        "import pathlib, sys\nsys.path[:] = [entry for entry in sys.path if not pathlib.Path(entry, 'mcpax').is_dir()]\n"
    )
    done = project.pio("run", "-e", "uno", MCPAX="", PATH="/usr/bin:/bin", PYTHONPATH=str(tmp_path))
    assert done.returncode != 0
    assert "which makes the header from the device map, was not found" in done.stderr
    assert "MCPAX=/path/to/mcpax" in done.stderr


@pytest.mark.slow
@needs_compilers
def test_nothing_reaches_for_the_network(project: FirmwareProject, tmp_path: Path) -> None:
    log = tmp_path / "connections"
    log.touch()
    tmp_path.joinpath("sitecustomize.py").write_text(
        "import sys\n"
        "def note(event, args):\n"
        "    if event in ('socket.connect', 'socket.getaddrinfo'):\n"
        f"        with open({str(log)!r}, 'a') as file:\n"
        "            print(event, args, file=file)\n"
        "sys.addaudithook(note)\n"
    )
    project.run("-e", "uno", PYTHONPATH=str(tmp_path))
    assert log.read_text() == ""


@needs_compilers
def test_seeding_again_changes_nothing(project: FirmwareProject, tmp_path: Path) -> None:
    core = tmp_path / "core"
    seen = []
    for _ in range(2):
        done = project.pio("--core-dir", str(core), "--version")
        assert done.returncode == 0, done.stderr
        seen.append({path: path.lstat().st_mtime_ns for folder in ("packages", "platforms") for path in sorted((core / folder).rglob("*"))})
    assert seen[0] == seen[1]
    assert core / "platforms/timsp430/boards/lpmsp430g2553.json" in seen[0]


# --- Tests of the library


@pytest.mark.slow
@needs_compilers
def test_pio_test_reports_each_program_and_fails_with_one(project: FirmwareProject) -> None:
    done = project.pio("test", "-e", "native")
    assert done.returncode == 0, done.stdout + done.stderr
    programs = re.search(r"(\d+) test cases: \1 succeeded", done.stdout)
    assert programs is not None, done.stdout

    vectors = project.root / "tests/vectors/wire.txt"
    lines = vectors.read_text().splitlines()
    broken = next(number for number, line in enumerate(lines) if line.startswith("frame | cobs | "))
    lines[broken] += "ff"
    vectors.write_text("\n".join(lines) + "\n")
    done = project.pio("test", "-e", "native")
    assert done.returncode != 0
    assert f"FAIL wire.txt:{broken + 1} | frame | cobs" in done.stdout
    assert f"{programs[1]} test cases: 1 failed, {int(programs[1]) - 1} succeeded" in done.stderr


@pytest.mark.slow
@needs_compilers
def test_pio_test_fails_with_a_program_that_does_not_build_or_breaks_off(project: FirmwareProject) -> None:
    source = project.root / "tests/firmware/test_frames.c"
    sound = source.read_text()
    source.write_text(sound.replace("int main(", "int wrong = not_declared;\nint main("))
    done = project.pio("test", "-e", "native")
    assert done.returncode != 0
    assert "the host tests did not build" in done.stderr

    source.write_text("#include <stdlib.h>\n" + sound.replace("vectors_open(", "abort();\n    vectors_open("))
    done = project.pio("test", "-e", "native")
    assert done.returncode != 0
    assert "a test program ended before its result" in done.stderr


# --- Upload


class Rig:
    """Whoever runs an emulated board: takes one command per connection on LINK.sock, and answers all alike."""

    def __init__(self, link: Path, answer: str) -> None:
        self.link = link
        self.commands: list[str] = []
        self._answer = answer.encode() + b"\n"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{link}.sock")
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            client, _ = self._listener.accept()
            with client, client.makefile("r") as lines:
                command = lines.readline().strip()
                if not command:
                    return
                self.commands.append(command)
                client.sendall(self._answer)

    def close(self) -> None:
        with socket.socket(socket.AF_UNIX) as last:
            last.connect(f"{self.link}.sock")
        self._thread.join()
        self._listener.close()


@pytest.fixture
def link() -> Iterator[Path]:
    """Where a board's port would be; not in pytest's folder, because the path of a socket may have 107 bytes only."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "board"


def uploader(folder: Path, name: str, status: int = 0) -> Path:
    """A stand-in on the PATH that writes down how it was called; returns where."""
    log = folder / f"{name}.log"
    program = folder / "bin" / name
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\necho "$@" >>"{log}"\nexit {status}\n')
    program.chmod(0o755)
    return log


@pytest.mark.slow
@needs_compilers
class TestUpload:
    @pytest.mark.parametrize("env", ["l053", "microbit", "msp430g2553"])
    def test_emulator_is_told_to_load_the_image(self, project: FirmwareProject, link: Path, env: str) -> None:
        rig = Rig(link, '{"ok": true}')
        try:
            project.run("-e", env, "-t", "upload", "--upload-port", str(link))
        finally:
            rig.close()
        assert rig.commands == [f"load {project.built(env)}"]

    def test_refusal_of_the_emulator_fails_the_upload(self, project: FirmwareProject, link: Path) -> None:
        rig = Rig(link, '{"ok": false, "error": "that image is for another chip"}')
        try:
            done = project.pio("run", "-e", "l053", "-t", "upload", "--upload-port", str(link))
        finally:
            rig.close()
        assert done.returncode != 0
        assert "that image is for another chip" in done.stderr

    def test_upload_over_a_port_that_is_not_named_is_told(self, project: FirmwareProject) -> None:
        done = project.pio("run", "-e", "uno", "-t", "upload")
        assert done.returncode != 0
        assert "none is named: add --upload-port PORT" in done.stderr

    @pytest.mark.parametrize("status", [0, 3])
    def test_bootloader_of_an_emulated_uno_is_on_while_avrdude_runs(
        self, project: FirmwareProject, link: Path, tmp_path: Path, status: int
    ) -> None:
        avrdude = uploader(tmp_path, "avrdude", status)
        rig = Rig(link, '{"ok": true}')
        try:
            path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
            done = project.pio("run", "-e", "uno", "-t", "upload", "--upload-port", str(link), PATH=path)
        finally:
            rig.close()
        assert (done.returncode == 0) == (status == 0)
        assert rig.commands == ["bootloader on", "bootloader off"]
        assert f"-P {link} -U flash:w:" in avrdude.read_text()

    @pytest.mark.parametrize(
        ("env", "program"), [("uno", "avrdude"), ("l053", "openocd"), ("microbit", "openocd"), ("msp430g2553", "mspdebug")]
    )
    def test_real_board_gets_its_own_uploader(self, project: FirmwareProject, link: Path, tmp_path: Path, env: str, program: str) -> None:
        log = uploader(tmp_path, program)
        project.run("-e", env, "-t", "upload", "--upload-port", str(link), PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}")
        assert "firmware." in log.read_text()
