"""Calling tools from a shell: through a real gateway, to the real firmware library."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcpax.cli.call_text import show_error
from tests.cli.conftest import Mcpax, plugged_in, serve, write_config
from tests.cli.program import Program


def test_a_result_has_its_units(mcpax: Mcpax) -> None:
    result = mcpax("call", "edge.env-sensor.read_climate")
    assert result.exit_code == 0, result.stderr
    (temperature, humidity) = [line.split() for line in result.stdout.splitlines()]
    assert (temperature[0], temperature[2]) == ("temperature", "°C")
    assert -40 <= float(temperature[1]) <= 85
    assert (humidity[0], humidity[2]) == ("humidity", "%")
    assert result.stderr == ""


def test_numbers_without_a_unit(mcpax: Mcpax) -> None:
    lines = mcpax("call", "edge.env-sensor.read_info").stdout.splitlines()
    assert [line.split() for line in lines] == [["alarms", "0"], ["number", "1"]]


@pytest.mark.parametrize("name", ["edge.relay-board.set_relay", "edge__relay-board__set_relay", "edge.relay-board:set_relay"])
def test_any_form_of_a_name_and_typed_arguments(mcpax: Mcpax, name: str) -> None:
    mcpax("call", name, "relay=2", "state=off")
    assert mcpax("call", name, "relay=2", "state=on").stdout == "previous  off\n"
    assert mcpax("call", name, "--args", '{"relay": 2, "state": "off"}').stdout == "previous  on\n"


def test_arguments_from_a_file_from_stdin_and_mixed(mcpax: Mcpax, tmp_path: Path) -> None:
    file = tmp_path / "arguments.json"
    file.write_text('{"relay": 3, "state": "on"}')
    assert mcpax("call", "edge.relay-board.set_relay", "--args", f"@{file}").stdout == "previous  off\n"
    assert mcpax("call", "edge.relay-board.set_relay", "--args", "-", stdin='{"relay": 3, "state": "on"}').stdout == "previous  on\n"
    assert mcpax("call", "edge.relay-board.set_relay", "--args", f"@{file}", "state=off").stdout == "previous  on\n"


def test_a_tool_without_results_says_done(mcpax: Mcpax) -> None:
    assert mcpax("call", "edge.relay-board.set_led", "colour=red").stdout == "done\n"


def test_json_is_the_result_itself(mcpax: Mcpax) -> None:
    result = json.loads(mcpax("call", "edge.env-sensor.read_light", "samples=4", "--json").stdout)
    assert set(result["structuredContent"]) == {"light"}
    assert not result.get("isError")


def test_a_refused_argument_is_told_with_code_and_outcome(mcpax: Mcpax) -> None:
    result = mcpax("call", "edge.relay-board.set_relay", "relay=9", "state=on")
    assert result.exit_code == 1
    assert result.stdout == ""
    message, facts = result.stderr.splitlines()
    assert "relay: 9 is out of range" in message
    assert "utcome" not in message, "once is enough"
    assert facts.strip() == "code 4000, error invalid_tool_args, outcome not_executed"


def test_of_a_lost_board_the_sentence_comes_first(capsys: pytest.CaptureFixture[str]) -> None:
    sentence = "edge.lamp.set is listed but its board cannot be reached (unplugged)."
    show_error("tool_degraded", {"code": -32002, "error": "tool_degraded", "outcome": "not_executed", "hint": sentence})
    assert capsys.readouterr().err == f"error: {sentence}\n    code -32002, error tool_degraded, outcome not_executed\n"


def test_a_hint_stands_where_it_stood(capsys: pytest.CaptureFixture[str]) -> None:
    show_error("The board restarted. Outcome: unknown. Read it back.", {"outcome": "unknown", "hint": "Read it back."})
    assert capsys.readouterr().err == "error: The board restarted. Read it back.\n    outcome unknown\n"


def test_a_refusal_for_programs(mcpax: Mcpax) -> None:
    result = mcpax("call", "edge.relay-board.set_relay", "relay=9", "state=on", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["_meta"]["x-mcpax-error"]["outcome"] == "not_executed"


def test_an_unknown_tool_gets_a_suggestion(mcpax: Mcpax) -> None:
    by_ending = mcpax("call", "echo")
    assert by_ending.exit_code == 1
    assert "did you mean edge.relay-board.echo?" in by_ending.stderr
    assert 'did you mean "edge.env-sensor.read_light"?' in mcpax("call", "edge.env-sensor.raed_light").stderr


def test_no_answer_in_time_is_told(mcpax: Mcpax) -> None:
    result = mcpax("call", "edge.env-sensor.read_climate", "--timeout", "0.0001")
    assert result.exit_code == 1
    assert "Traceback" not in result.stderr
    assert "error:" in result.stderr
    assert "outcome unknown" in result.stderr


def test_a_call_that_takes_long_tells_that_it_waits(tmp_path: Path) -> None:
    with plugged_in(["env-sensor"], tmp_path / "by-id") as boards, serve(write_config(tmp_path), online=1) as url:
        boards["env-sensor"].hang()
        with Program(["call", "edge.env-sensor.read_climate", "--url", url]) as program:
            program.wait_for_text("waiting for the board, 1 s", "stderr")
            boards["env-sensor"].go_on()
            assert program.ended() == 0
        assert program.stdout[0].startswith("temperature")
