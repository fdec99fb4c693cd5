"""The command line over device maps: what is printed, where to, and the exit code."""

import json
import os
import pty
import subprocess
import sys
import threading
import tty
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from mcpax import __version__
from mcpax.bridge.maps.load import load_map, load_text
from mcpax.bridge.maps.model import PortMatch
from mcpax.bridge.wire.framing import CobsFraming
from mcpax.bridge.wire.messages import AnnounceRequest
from mcpax.bridge.wire.profile_b import decode_request, encode_heartbeat, encode_registration
from mcpax.cli.main import main
from tests.cli.conftest import plugged_in, serve, write_config

ROOT = Path(__file__).parents[2]
MAPS = ROOT / "device-maps"
SENSOR = MAPS / "env-sensor.toml"
FAULTY = '[device]\nname = "X"\nprofile = "B"\nversion = "1.0.0"\n[port]\nbaud = 300\n'


@pytest.fixture
def run() -> CliRunner:
    return CliRunner()


def test_check_says_what_is_fine(run: CliRunner) -> None:
    result = run.invoke(main, ["map", "check", str(MAPS)])
    assert result.exit_code == 0
    assert f"{SENSOR}: ok, 4 tools, 1 event, hash {load_map(SENSOR).hash:#010x}" in result.stdout.splitlines()
    assert len(result.stdout.splitlines()) == len(list(MAPS.glob("*.toml")))


def test_check_tells_every_fault_on_stderr(run: CliRunner, tmp_path: Path) -> None:
    faulty = tmp_path / "faulty.toml"
    faulty.write_text(FAULTY)
    result = run.invoke(main, ["map", "check", str(faulty), str(SENSOR)])
    assert result.exit_code == 1
    lines = result.stderr.splitlines()
    assert lines[0].startswith(f"{faulty}:2: device: bad name")
    assert lines[1].startswith("    use only")
    assert lines[2].startswith(f"{faulty}:6: port: baud 300")
    assert f"{SENSOR}: ok" in result.stdout


def test_check_for_programs(run: CliRunner, tmp_path: Path) -> None:
    faulty = tmp_path / "faulty.toml"
    faulty.write_text(FAULTY)
    result = run.invoke(main, ["map", "check", "--json", str(faulty), str(SENSOR)])
    assert result.exit_code == 1
    bad, good = json.loads(result.stdout)
    assert (bad["ok"], [fault["line"] for fault in bad["faults"]]) == (False, [2, 6])
    assert (good["ok"], good["tools"], good["faults"]) == (True, 4, [])


def test_wrong_use_is_2_and_nothing_to_check_is_1(run: CliRunner, tmp_path: Path) -> None:
    assert run.invoke(main, ["map", "check", "no-such-file"]).exit_code == 2
    empty = run.invoke(main, ["map", "check", str(tmp_path)])
    assert (empty.exit_code, "no device maps there" in empty.stderr) == (1, True)
    assert run.invoke(main, ["map", "new", "--port", "x", "--answers", str(SENSOR)]).exit_code == 2


def test_show(run: CliRunner) -> None:
    people = run.invoke(main, ["map", "show", str(MAPS / "valve-actuator.toml")])
    assert people.exit_code == 0
    [dose] = [line for line in people.stdout.splitlines() if " dose " in line]
    assert "IRREVERSIBLE" in dose
    assert "amount: integer from 1 to 500 ml" in dose
    programs = json.loads(run.invoke(main, ["map", "show", "--json", str(SENSOR)]).stdout)
    assert programs["tools"][2]["inputSchema"]["properties"]["threshold"]["maximum"] == 85


def test_schema_and_keys(run: CliRunner, tmp_path: Path) -> None:
    out = tmp_path / "schema.json"
    assert run.invoke(main, ["map", "schema", "-o", str(out)]).exit_code == 0
    assert out.read_bytes() == (MAPS / "device-map.schema.json").read_bytes()
    assert "| `heartbeat_ms` |" in run.invoke(main, ["map", "keys"]).stdout


def test_header(run: CliRunner, tmp_path: Path) -> None:
    out = tmp_path / "map.h"
    assert run.invoke(main, ["map", "header", str(SENSOR), "-o", str(out)]).exit_code == 0
    assert f"0x{load_map(SENSOR).hash:08x}" in out.read_text().lower()
    assert f"0x{load_map(SENSOR, debug=True).hash:08X}" in run.invoke(main, ["map", "header", "--debug", str(SENSOR)]).stdout
    faulty = tmp_path / "faulty.toml"
    faulty.write_text(FAULTY)
    refused = run.invoke(main, ["map", "header", str(faulty)])
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "baud 300" in refused.stderr


def test_new_from_answers(run: CliRunner, tmp_path: Path) -> None:
    answers = tmp_path / "answers.json"
    answers.write_text('{"device": "lamp", "profile": "A", "tools": [{"name": "set", "args": "on:bool"}], "events": [{"name": "hot"}]}')
    result = run.invoke(main, ["map", "new", "--answers", str(answers)])
    assert result.exit_code == 0
    device = load_text(result.stdout, "new")
    assert (device.name, device.tools[0].args[0].name, device.events[0].name) == ("lamp", "on", "hot")


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"device": 5}', '{"device": "d", "tools": [{}]}', '{"device": "d", "tools": [{"name": "t", "args": "x"}]}']
)
def test_new_from_answers_that_make_no_sense(run: CliRunner, tmp_path: Path, text: str) -> None:
    answers = tmp_path / "answers.json"
    answers.write_text(text)
    result = run.invoke(main, ["map", "new", "--answers", str(answers)])
    assert (result.exit_code, type(result.exception)) == (1, SystemExit)
    assert "error: " in result.stderr
    assert "Error(" not in result.stderr, "no Python"


def test_new_tells_which_answer_is_missing_and_where_the_form_is(run: CliRunner, tmp_path: Path) -> None:
    answers = tmp_path / "answers.json"
    answers.write_text("{}")
    result = run.invoke(main, ["map", "new", "--answers", str(answers)])
    assert f"{answers}: device is missing" in result.stderr
    assert "mcpax map new -h" in result.stderr
    shown = run.invoke(main, ["map", "new", "-h"]).stdout
    answers.write_text(shown[shown.index('{"device"') : shown.index("Options:")])
    assert run.invoke(main, ["map", "new", "--answers", str(answers)]).exit_code == 0


def test_new_explains_the_profiles_before_it_asks(run: CliRunner) -> None:
    asked = run.invoke(main, ["map", "new"], input="lamp\nB\nset\n\n\n\n").stderr
    assert asked.index("announces its tools itself") < asked.index("Profile")


def test_new_from_questions_asks_again(run: CliRunner) -> None:
    result = run.invoke(main, ["map", "new"], input="My Lamp\nlamp\nB\nset\non:what\non:bool\n\n\n")
    assert result.exit_code == 0
    device = load_text(result.stdout, "new")
    assert [tool.name for tool in device.tools] == ["set"]


@pytest.fixture
def board() -> Iterator[str]:
    """A board on a pseudo-terminal that talks of other things first and then announces itself when asked."""
    master, slave = pty.openpty()
    tty.setraw(master)
    tty.setraw(slave)
    framing = CobsFraming()

    def talk() -> None:
        decoder = framing.decoder(256)
        while data := os.read(master, 256):
            for message in decoder.feed(data):
                if isinstance(decode_request(message), AnnounceRequest):
                    os.write(
                        master, b"noise\0" + framing.encode(encode_heartbeat(1, 2)) + framing.encode(encode_registration(load_map(SENSOR)))
                    )
                    return

    thread = threading.Thread(target=talk, daemon=True)
    thread.start()
    yield os.ttyname(slave)
    thread.join(timeout=10)
    os.close(slave)
    os.close(master)


def test_new_from_a_board(run: CliRunner, board: str, tmp_path: Path) -> None:
    out = tmp_path / "new.toml"
    result = run.invoke(main, ["map", "new", "--port", board, "-o", str(out)])
    assert result.exit_code == 0
    drafted, real = load_map(out), load_map(SENSOR)
    assert (drafted.name, [tool.name for tool in drafted.tools]) == (real.name, [tool.name for tool in real.tools])
    assert f"{real.hash:#010x}" in out.read_text()


def test_new_from_a_board_by_its_lasting_name_says_which_port(run: CliRunner, board: str, tmp_path: Path) -> None:
    port = tmp_path / "by-id" / "usb-Acme_Sensor_0001-if00"
    port.parent.mkdir()
    port.symlink_to(board)
    drafted = load_text(run.invoke(main, ["map", "new", "--port", str(port)]).stdout, "new")
    assert drafted.port.match == PortMatch(by_id="usb-Acme_Sensor_0001-if00")


def test_new_tells_who_may_hold_the_port(run: CliRunner, tmp_path: Path) -> None:
    with plugged_in(["env-sensor"], tmp_path / "by-id") as boards, serve(write_config(tmp_path), online=1):
        result = run.invoke(main, ["map", "new", "--port", str(boards["env-sensor"].link)])
    assert result.exit_code == 1
    assert "another program" in result.stderr.lower()
    assert "running gateway, stop that first" in result.stderr


def test_new_overwrites_nothing_unasked_and_says_what_is_next(run: CliRunner, tmp_path: Path) -> None:
    answers, out = tmp_path / "answers.json", tmp_path / "my lamp.toml"
    answers.write_text('{"device": "lamp", "tools": [{"name": "set"}]}')
    new = ["map", "new", "--answers", str(answers), "-o", str(out)]
    written = run.invoke(main, new)
    assert (written.exit_code, written.stdout) == (0, "")
    assert f"wrote '{out}'" in written.stderr
    assert f"mcpax map check '{out}'" in written.stderr
    assert f"mcpax map header '{out}'" in written.stderr
    out.write_text("hours of work")
    refused = run.invoke(main, new)
    assert (refused.exit_code, out.read_text()) == (1, "hours of work")
    assert "--force" in refused.stderr
    assert run.invoke(main, [*new, "--force"]).exit_code == 0
    assert load_map(out).name == "lamp"


def test_new_without_a_port(run: CliRunner) -> None:
    result = run.invoke(main, ["map", "new", "--port", "/dev/no-such-port"])
    assert result.exit_code == 1
    assert "/dev/no-such-port: no such port" in result.stderr


def lamp(tmp_path: Path) -> list[str]:
    """The beginning of a command that makes a map without asking."""
    answers = tmp_path / "answers.json"
    answers.write_text('{"device": "lamp", "tools": [{"name": "set", "args": "on:bool"}]}')
    return ["map", "new", "--answers", str(answers), "-o"]


def test_new_where_it_cannot_be_written(run: CliRunner, tmp_path: Path) -> None:
    result = run.invoke(main, [*lamp(tmp_path), str(tmp_path / "no" / "such.toml")])
    assert (result.exit_code, "cannot be written" in result.stderr) == (1, True)


def test_a_draft_names_the_editors_schema_only_where_it_is(run: CliRunner, tmp_path: Path) -> None:
    out = tmp_path / "lamp.toml"
    run.invoke(main, [*lamp(tmp_path), str(out)])
    assert "mcpax map schema -o device-map.schema.json" in out.read_text().splitlines()[0]
    run.invoke(main, ["map", "schema", "-o", str(tmp_path / "device-map.schema.json")])
    run.invoke(main, [*lamp(tmp_path), str(out), "--force"])
    assert out.read_text().splitlines()[0] == "#:schema ./device-map.schema.json"


def test_check_notes_what_is_not_finished(run: CliRunner, tmp_path: Path) -> None:
    out = tmp_path / "lamp.toml"
    run.invoke(main, [*lamp(tmp_path), str(out)])
    result = run.invoke(main, ["map", "check", str(out)])
    fine, port, todo = result.stdout.splitlines()
    assert (result.exit_code, result.stderr) == (0, "")
    assert ": ok, 1 tool, 0 events, " in fine
    assert port.startswith("    note: no port.match: no board is looked for until")
    assert 'match = { by_id = "usb-…" }' in port
    assert todo.startswith("    note: TODO is still the description of set")
    (told,) = json.loads(run.invoke(main, ["map", "check", str(out), "--json"]).stdout)
    assert (told["ok"], len(told["notes"])) == (True, 2)


def test_version_and_completion(run: CliRunner) -> None:
    assert __version__ in run.invoke(main, ["--version"]).stdout
    for shell in ("bash", "zsh", "fish"):
        assert "_MCPAX_COMPLETE" in run.invoke(main, ["completion", shell]).stdout
    assert run.invoke(main, ["completion", "tcsh"]).exit_code == 2


def test_checking_a_map_loads_no_mcp_sdk() -> None:
    """Start-up on a small board: only the command that is called is imported."""
    script = (
        "import sys; from mcpax.cli.main import main\n"
        f"main(['map', 'check', {str(SENSOR)!r}], standalone_mode=False)\n"
        "print(sorted({'mcp', 'starlette', 'httpx', 'pydantic', 'serial'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
