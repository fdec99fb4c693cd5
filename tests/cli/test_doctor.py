"""The doctor as a command, on this machine, with virtual boards on its ports."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from mcpax.cli.main import main
from mcpax.config import MAP_UNUSED
from tests.cli.conftest import plugged_in, serve, write_config
from tests.cli.program import Program
from tests.virtual import BOARDS, VirtualBoard


def examine(run: CliRunner, config: Path, *options: str, healthy: bool) -> dict[str, list[dict[str, Any]]]:
    """What it found, by check."""
    result = run.invoke(main, ["doctor", "--config", str(config), "--json", *options])
    report = json.loads(result.stdout)
    assert (result.exit_code, report["ok"]) == ((0, True) if healthy else (1, False)), result.stdout
    found: dict[str, list[dict[str, Any]]] = {}
    for finding in report["findings"]:
        found.setdefault(finding["check"], []).append(finding)
    return found


def test_boards_that_answer_are_healthy(run: CliRunner, tmp_path: Path) -> None:
    with plugged_in(BOARDS, tmp_path / "by-id"):
        found = examine(run, write_config(tmp_path), healthy=True)
    assert not any("baud" in check for check in found), "a line that works needs no advice"
    for name in BOARDS:
        assert [finding["level"] for finding in found[f"port of {name}"]] == ["ok", "ok"]
        assert found[f"board {name}"][0]["message"] == f"answers, and fits the map {name!r}"


def test_ports_are_left_alone_when_asked_to(run: CliRunner, tmp_path: Path) -> None:
    with plugged_in(BOARDS, tmp_path / "by-id"):
        assert not any(check.startswith("board ") for check in examine(run, write_config(tmp_path), "--no-ask", healthy=True))


def test_a_wrong_map_is_told_with_the_difference(run: CliRunner, tmp_path: Path) -> None:
    ports = tmp_path / "by-id"
    with plugged_in(["env-sensor"], ports) as boards:
        (ports / "usb-mcpax_valve-actuator_0001").symlink_to(os.readlink(boards["env-sensor"].link))
        boards["env-sensor"].link.unlink()
        (finding,) = examine(run, write_config(tmp_path), healthy=False)["board valve-actuator"]
    assert finding["level"] == "fail"
    assert 'the board says it is "env-sensor", the map is for "valve-actuator"' in finding["message"]
    assert "right board" in finding["hint"]


def test_a_board_that_does_not_answer_is_told(run: CliRunner, tmp_path: Path) -> None:
    master, slave = os.openpty()
    try:
        config = write_config(tmp_path)
        (tmp_path / "by-id/usb-mcpax_env-sensor_0001").symlink_to(os.ttyname(slave))
        found = examine(run, config, "--patience", "0.5", healthy=False)
    finally:
        os.close(master)
        os.close(slave)
    (finding,) = found["board env-sensor"]
    assert "does not answer" in finding["message"]
    assert "115200 baud" in finding["hint"]
    assert "16 MHz AVR" in found["115200 baud"][0]["message"]


def test_a_port_held_by_another_program_is_told_with_its_pid(run: CliRunner, tmp_path: Path) -> None:
    with VirtualBoard("env-sensor", write_config(tmp_path).parent / "by-id") as board, board.link.open("rb", buffering=0):
        found = examine(run, tmp_path / "mcpax.toml", healthy=False)
    held = found["port of env-sensor"][1]
    assert held["level"] == "fail"
    assert f"(pid {os.getpid()})" in held["message"]
    assert "board env-sensor" not in found, "it is not asked: its port is taken"


def test_ports_of_a_running_gateway_are_fine_and_boards_are_asked_through_it(run: CliRunner, tmp_path: Path) -> None:
    with plugged_in(["env-sensor"], tmp_path / "by-id"), serve(write_config(tmp_path), online=1) as url:
        config = tmp_path / "mcpax.toml"
        config.write_text(config.read_text().replace("127.0.0.1:0", url.removeprefix("http://")))
        found = examine(run, config, healthy=False)
    assert found["gateway"][0]["message"].startswith(f"runs at {url}, version ")
    assert "running gateway" in found["port of env-sensor"][1]["message"]
    assert found["board env-sensor"][0]["level"] == "ok"
    assert found["port of relay-board"][0]["level"] == "fail"


def test_a_map_without_a_port_is_told_by_serve_devices_and_doctor(run: CliRunner, tmp_path: Path) -> None:
    draft = tmp_path / "lamp.toml"
    draft.write_text('[device]\nname = "lamp"\nprofile = "B"\nversion = "1.0.0"\n[[event]]\nid = 1\nname = "hot"\n')
    config = write_config(tmp_path, maps=[draft])
    (tmp_path / "by-id/usb-lamp-if00").symlink_to("/dev/null")
    with Program(["serve", "--config", config, "--log-json"]) as program:
        warning = json.loads(program.wait_for_text('"event": "map_unused"', "stderr"))
        port = json.loads(program.wait_for_text('"event": "listening"', "stderr"))["port"]
        listed = run.invoke(main, ["devices", "--url", f"http://127.0.0.1:{port}"])
    assert (warning["level"], warning["map"], warning["problem"]) == ("warning", "lamp", MAP_UNUSED)
    assert "match = {" in warning["hint"]
    assert "port.match" in listed.stdout
    assert "names no map" not in listed.stdout
    found = examine(run, config, healthy=False)
    assert found["map lamp"][0]["message"] == MAP_UNUSED
    assert '/dev/null: match = { by_id = "usb-lamp-if00" }' in found["ports"][0]["message"]


def test_a_gateway_of_another_configuration_is_told(run: CliRunner, tmp_path: Path) -> None:
    with serve(write_config(tmp_path / "other", maps=())) as url:
        config = write_config(tmp_path)
        config.write_text(config.read_text().replace("127.0.0.1:0", url.removeprefix("http://")))
        _, other = examine(run, config, healthy=False)["gateway"]
    assert other["level"] == "fail"
    assert f"does not know {', '.join(BOARDS)}: it was started with another configuration" in other["message"]


def test_boards_of_another_configuration_are_not_reported_as_ours(run: CliRunner, tmp_path: Path) -> None:
    with plugged_in(["env-sensor"], tmp_path / "other/by-id"), serve(write_config(tmp_path / "other"), online=1) as url:
        config = write_config(tmp_path, maps=(), more='[[device]]\nsegment = "mine"\nport = { by_id = "usb-mine" }')
        config.write_text(config.read_text().replace("127.0.0.1:0", url.removeprefix("http://")))
        found = examine(run, config, "--no-ask", healthy=False)
    assert not [check for check in found if check.startswith("board ")]


def test_without_a_configuration_the_way_to_one_is_told(run: CliRunner, tmp_path: Path) -> None:
    (finding,) = examine(run, tmp_path / "none.toml", healthy=False)["configuration"]
    assert finding["message"] == f"there is no {tmp_path / 'none.toml'}"
    assert "docs/configuration.md" in finding["hint"]
    assert "'mcpax demo' needs none" in finding["hint"]


def test_faults_of_the_configuration_are_told_for_people(run: CliRunner, tmp_path: Path) -> None:
    config = tmp_path / "mcpax.toml"
    config.write_text('[gateway]\nsegmet = "edge"\n')
    result = run.invoke(main, ["doctor", "--config", str(config)])
    assert result.exit_code == 1
    first, second = result.stdout.splitlines()[:2]
    assert first == "fail  configuration: cannot be used:"
    assert f"{config}:2:" in second
