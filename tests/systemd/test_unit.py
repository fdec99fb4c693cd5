"""The service files that are shipped: systemd takes them, they start the command as the command is, and hints name them truly."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from mcpax.cli.main import main
from mcpax.config import SYSTEM_CONFIG, SYSTEM_STATE_DIR
from mcpax.words import HOW_TO_START

DIRECTORY = Path(__file__).parents[2] / "systemd"
GATEWAY = DIRECTORY / "mcpax-gateway.service"
AGGREGATOR = DIRECTORY / "mcpax-aggregator.service"
ANALYZE = shutil.which("systemd-analyze")
MOST_EXPOSED = {GATEWAY: 4.5, AGGREGATOR: 1.5}
"""By systemd's own measure, from 0 to 10."""

needs_systemd = pytest.mark.skipif(ANALYZE is None, reason="needs systemd-analyze")
each_unit = pytest.mark.parametrize("unit", [GATEWAY, AGGREGATOR], ids=lambda unit: unit.stem)


def service(unit: Path) -> configparser.SectionProxy:
    # Not strict: a list may be written in several lines, of which the last is read here.
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(unit)
    return parser["Service"]


def startable(unit: Path, directory: Path) -> Path:
    copy = directory / unit.name
    copy.write_text(unit.read_text().replace("/usr/bin/mcpax", "/bin/true"))  # it wants the program to be there
    return copy


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(ANALYZE), *arguments], capture_output=True, text=True, timeout=30, check=False)


@needs_systemd
@each_unit
def test_systemd_takes_it(unit: Path, tmp_path: Path) -> None:
    done = analyze("verify", "--man=no", startable(unit, tmp_path))
    assert done.returncode == 0, done.stderr
    assert unit.stem not in done.stderr, "unknown keys are only warned of"


@needs_systemd
@each_unit
def test_it_is_exposed_no_more_than_it_must(unit: Path, tmp_path: Path) -> None:
    done = analyze("security", "--offline=true", "--no-pager", startable(unit, tmp_path))
    found = re.search(r"Overall exposure level for .*: ([\d.]+)", done.stdout)
    if found is None:
        pytest.skip(f"this systemd judges no file: {done.stderr.strip()}")
    assert float(found[1]) <= MOST_EXPOSED[unit]


@each_unit
def test_it_starts_the_command_with_the_systems_configuration(unit: Path) -> None:
    program, command, *options = shlex.split(service(unit)["ExecStart"])
    assert (program, options) == ("/usr/bin/mcpax", ["--config", str(SYSTEM_CONFIG)])
    assert CliRunner().invoke(main, [command, *options, "--help"]).exit_code == 0


@each_unit
def test_it_may_use_its_state(unit: Path) -> None:
    assert f"/var/lib/{service(unit)['StateDirectory']}" == SYSTEM_STATE_DIR


def test_the_gateway_may_use_serial_ports() -> None:
    assert service(GATEWAY)["SupplementaryGroups"] == "dialout"
    assert "PrivateDevices" not in service(GATEWAY), "boards are devices"


def test_the_aggregator_may_use_no_device() -> None:
    assert service(AGGREGATOR)["PrivateDevices"] == "yes"
    assert service(AGGREGATOR)["DevicePolicy"] == "closed"
    assert "SupplementaryGroups" not in service(AGGREGATOR)


@each_unit
def test_the_instructions_in_it_name_it(unit: Path) -> None:
    told = [line.removeprefix("#").strip() for line in unit.read_text().splitlines() if line.startswith("#     ")]
    assert f"sudo cp systemd/{unit.name} /etc/systemd/system/" in told
    assert told[-1].endswith(f"enable --now {unit.stem}")


def test_hints_do_not_take_the_service_for_granted() -> None:
    assert HOW_TO_START.startswith("mcpax serve --config ")
    assert f"systemctl start {GATEWAY.stem} where it is installed as a service" in HOW_TO_START
