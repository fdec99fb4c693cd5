"""The service file that is shipped: systemd takes it, it starts the command as the command is, and hints name it truly."""

from __future__ import annotations

import configparser
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from mcpax.cli.main import main
from mcpax.config import SYSTEM_CONFIG, SYSTEM_STATE_DIR
from mcpax.words import HOW_TO_START

UNIT = Path(__file__).parents[2] / "systemd" / "mcpax-gateway.service"
ANALYZE = shutil.which("systemd-analyze")


def service() -> configparser.SectionProxy:
    unit = configparser.ConfigParser(interpolation=None, strict=True)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(UNIT)
    return unit["Service"]


@pytest.mark.skipif(ANALYZE is None, reason="needs systemd-analyze")
def test_systemd_takes_it(tmp_path: Path) -> None:
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace("/usr/bin/mcpax", "/bin/true"))  # it wants the program to be there
    done = subprocess.run([str(ANALYZE), "verify", "--man=no", copy], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    assert UNIT.stem not in done.stderr, "unknown keys are only warned of"


def test_it_starts_the_command_with_the_systems_configuration() -> None:
    program, command, *options = shlex.split(service()["ExecStart"])
    assert (program, options) == ("/usr/bin/mcpax", ["--config", str(SYSTEM_CONFIG)])
    assert CliRunner().invoke(main, [command, *options, "--help"]).exit_code == 0


def test_it_may_use_serial_ports_and_its_state() -> None:
    assert service()["SupplementaryGroups"] == "dialout"
    assert f"/var/lib/{service()['StateDirectory']}" == SYSTEM_STATE_DIR
    assert "PrivateDevices" not in service(), "boards are devices"


def test_hints_do_not_take_the_service_for_granted() -> None:
    assert HOW_TO_START.startswith("mcpax serve --config ")
    assert f"systemctl start {UNIT.stem} where it is installed as a service" in HOW_TO_START
