"""`scripts/flash`: a real build, a real upload into emulated boards, a real gateway beside them, and the words when it cannot be done."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hil.listed import Watch
from hil.pio import Pio
from hil.project import NoSuchFirmware, Project
from mcpax.bridge.maps.load import load_map
from mcpax.cli.client import Target
from mcpax.cli.output import Failure
from tests.hil.process import ROOT
from tests.hil.workplace import Workplace, make_workplace

COMPILERS = ("avr-gcc", "avrdude", "clang-19", "ld.lld-19", "msp430mcu-config")
needs_compilers = pytest.mark.skipif(not all(map(shutil.which, COMPILERS)), reason=f"needs {', '.join(COMPILERS)}")

DEVICES = """
[[device]]
segment = "relays"
map = "relay-board-b"
port = { by_id = "usb-mcpax_uno-if00" }

[[device]]
segment = "climate"
map = "env-sensor"
port = { by_id = "usb-mcpax_msp430g2553-if00" }
"""
SENSOR_TOOLS = [f"edge.climate.{tool}" for tool in ("read_climate", "read_info", "read_light", "set_alarm")]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workplace]:
    """With an Uno and a LaunchPad running, both as valves."""
    place = make_workplace(tmp_path_factory.mktemp("flash") / "project")
    place.build("uno-valve-actuator", "msp430g2553-valve-actuator")
    with place.up(["uno", "msp430g2553"]):
        yield place


def tools_of(url: str, device: str) -> list[str]:
    return [tool["name"] for tool in Target(url).tools() if tool["name"].startswith(f"edge.{device}.")]


@pytest.mark.slow
@needs_compilers
class TestOnEmulatedBoards:
    def test_gateway_that_runs_meanwhile_lists_the_new_tools(self, workplace: Workplace) -> None:
        with workplace.gateway(DEVICES) as url:
            done = workplace.flash("msp430g2553", "env-sensor", "--offline", "--json", url=url)
            assert done.returncode == 0, done.stderr
            told = json.loads(done.stdout)
            assert tools_of(url, "climate") == SENSOR_TOOLS
        seconds = told.pop("seconds")
        assert told == {
            "ok": True,
            "board": "msp430g2553",
            "app": "env-sensor",
            "env": "msp430g2553-env-sensor",
            "port": str(workplace.port("msp430g2553")),
            "gateway": url,
            "device": "climate",
            "tools": SENSOR_TOOLS,
        }
        assert set(seconds) == {"build", "upload", "listed"}

    def test_same_firmware_again_is_waited_for_again(self, workplace: Workplace) -> None:
        assert workplace.flash("msp430g2553", "env-sensor", "--offline").returncode == 0
        with workplace.gateway(DEVICES, online=1) as url:
            before = boot_id(url, "climate")
            done = workplace.flash("msp430g2553", "env-sensor", "--offline", url=url)
            assert done.returncode == 0, done.stderr
            assert boot_id(url, "climate") not in (None, before)
        steps = [line.split()[0] for line in done.stderr.splitlines()]
        assert steps == ["building", "built", "uploading", "uploaded", "waiting", "listed"]

    def test_uno_is_flashed_by_avrdude_and_then_served(self, workplace: Workplace) -> None:
        done = workplace.flash("uno", "--offline")
        assert done.returncode == 0, done.stderr
        assert "no gateway runs at http://127.0.0.1:1. To use the board, start one: mcpax serve" in done.stderr
        with workplace.gateway(DEVICES, online=1) as url:
            assert "edge.relays.set_relay" in tools_of(url, "relays")

    def test_uno_whose_port_the_gateway_holds_is_left_alone(self, workplace: Workplace) -> None:
        with workplace.gateway(DEVICES) as url:
            wait_for_port(url, "relays")
            done = workplace.flash("uno", "--offline", "--json", url=url)
        assert done.returncode == 1
        told = json.loads(done.stdout)
        assert told["ok"] is False
        assert f"{workplace.port('uno')} is in use by mcpax (pid " in told["error"]
        assert "stop the gateway" in told["hint"]
        assert "building" not in done.stderr

    def test_firmware_of_another_map_than_the_gateways_is_told(self, workplace: Workplace) -> None:
        with workplace.gateway(DEVICES) as url:
            done = workplace.flash("msp430g2553", "valve-actuator", "--offline", url=url)
        assert done.returncode == 1
        assert 'climate is not listed: the firmware does not fit the device map: the board says it is "valve-actuator"' in done.stderr
        assert "start the gateway anew" in done.stderr

    def test_gateway_that_does_not_serve_the_board_is_told(self, workplace: Workplace) -> None:
        with workplace.gateway("", maps="device-maps/relay-board.toml") as url:
            done = workplace.flash("msp430g2553", "valve-actuator", "--offline", "--json", url=url)
        told = json.loads(done.stdout)
        assert done.returncode == 1
        assert told["error"] == f"uploaded, but the gateway at {url} has no device with the map valve-actuator on that port"
        assert f'port = {{ glob = "{workplace.port("msp430g2553")}" }}' in told["hint"]

    def test_board_that_does_not_start_anew_is_waited_for_in_vain(self, workplace: Workplace) -> None:
        port = workplace.port("msp430g2553")
        assert workplace.flash("msp430g2553", "env-sensor", "--offline").returncode == 0
        with workplace.gateway(DEVICES, online=1) as url:
            watch = Watch(Target(url), str(port), load_map(ROOT / "device-maps/env-sensor.toml"))
            with pytest.raises(Failure, match=r"not listed by the gateway within 0.5 s: climate: has not started anew"):
                watch.wait(0.5)

    def test_code_that_does_not_compile_is_shown(self, workplace: Workplace) -> None:
        source = workplace.root / "firmware/examples/env_sensor.c"
        sound = source.read_text()
        source.write_text(sound + "\nint wrong = not_declared;\n")
        try:
            done = workplace.flash("msp430g2553", "env-sensor", "--offline")
        finally:
            source.write_text(sound)
        assert done.returncode == 1
        assert "not_declared" in done.stderr
        assert "msp430g2553-env-sensor: build failed" in done.stderr
        assert "uploading" not in done.stderr


def boot_id(url: str, device: str) -> int | None:
    found: int | None = next(each["boot_id"] for each in Target(url).get("/admin/devices") if each["segment"] == device)
    return found


def wait_for_port(url: str, device: str) -> None:
    with Target(url).lines("/admin/frames", {"device": device}) as frames:
        next(frames)  # it speaks, so it has the port


# --- What needs no build


NO_SET_ALL = ("uno: the map has a tool set_all, and the example has no handler for it", "add to it: uint8_t mcpax_tool_set_all(")
NO_DEBUG_BUILD = ("uno: the map says debug = true, and this is no debug build", "scripts/flash uno debug")


@pytest.mark.parametrize(
    ("linker", "message", "hint"),
    [
        ("main.c:(.text+0x1e): undefined reference to `mcpax_tool_set_all'", *NO_SET_ALL),
        ("ld.lld: error: undefined symbol: mcpax_tool_set_all", *NO_SET_ALL),
        ("undefined reference to `mcpax_tool_b'\nundefined reference to `mcpax_tool_a'", "the map has tools a, b, and", "mcpax_tool_b("),
        ("undefined reference to `mcpax_tool_read_memory'", *NO_DEBUG_BUILD),
        ("undefined reference to `other'", "uno: build failed", "PlatformIO's own words"),
    ],
)
def test_what_a_linker_misses_is_told_in_words(linker: str, message: str, hint: str, tmp_path: Path) -> None:
    (tmp_path / "said").write_text(linker)
    with pytest.raises(Failure) as failure:
        Pio(("sh", "-c", f"cat '{tmp_path}/said'; exit 1"), tmp_path).build("uno")
    assert message in failure.value.message
    assert hint in failure.value.hint


def refused(*arguments: str) -> str:
    done = subprocess.run([ROOT / "scripts/flash", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == (2 if "Usage:" in done.stderr else 1)
    return done.stderr


def test_board_that_is_not_there_is_told_with_the_nearest() -> None:
    assert "there is no board 'unno': did you mean \"uno\"? Known: uno, l053, microbit, msp430g2553" in refused("unno")


def test_application_that_is_not_there_is_told_with_the_nearest() -> None:
    assert "there is no application 'valve-actor' for uno: did you mean \"valve-actuator\"?" in refused("uno", "valve-actor")


def test_board_that_is_built_otherwise_is_told() -> None:
    assert "mcs51 is not built by PlatformIO: boards/mcs51/README.md" in refused("mcs51")


def test_port_that_is_not_there_is_told(tmp_path: Path) -> None:
    assert f"{tmp_path}/none: no such port" in refused("uno", "--port", f"{tmp_path}/none")


def test_what_the_project_says_of_its_firmware() -> None:
    project = Project()
    for board in project.boards:
        assert (ROOT / "boards" / board / "README.md").is_file()
        by_name = project.firmware(board, "valve-actuator")
        assert by_name.map_file == ROOT / "device-maps/valve-actuator.toml"
        default = project.firmware(board, None)
        assert (default.env, default.app, default.map_file.stem) == (board, "relay-board-b", "relay-board-b")
        assert default.over_serial_port == (board == "uno")
    with pytest.raises(NoSuchFirmware, match="known here: uno"):
        project.firmware("zebra", None)
