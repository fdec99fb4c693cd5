"""Frames: live, recorded, replayed."""

from __future__ import annotations

import contextlib
import json
import re
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner

from mcpax.cli.frame_text import frame_text
from mcpax.cli.main import main
from tests.cli.conftest import Mcpax, plugged_in, serve, write_config
from tests.cli.program import Program
from tests.virtual import BOARDS, MAPS

CALL = {
    "time": "2026-01-02T03:04:05.678901+00:00",
    "device": "relay-board",
    "direction": "tx",
    "message": "0101070201",
    "kind": "call",
    "seq": 7,
    "tool": "set_relay",
    "arguments": {"relay": 2, "state": "on"},
}
ANSWER = {**CALL, "direction": "rx", "message": "0201070000", "kind": "response", "status": "ok", "result": {"previous": "off"}}
del ANSWER["arguments"]


def record(path: Path, *frames: object) -> Path:
    path.write_text("".join(f"{json.dumps(frame)}\n" for frame in frames))
    return path


def test_live_frames_are_decoded_and_recorded(mcpax: Mcpax, gateway_url: str, tmp_path: Path) -> None:
    file = tmp_path / "frames.ndjson"
    with Program(["sniff", "relay-board", "--record", file, "--url", gateway_url]) as program:
        program.wait_for_text("watching relay-board", "stderr")
        mcpax("call", "edge.relay-board.set_relay", "relay=4", "state=on")
        mcpax("call", "edge.env-sensor.read_climate")
        mcpax("call", "edge.relay-board.set_relay", "relay=4", "state=off")
        call = program.wait_for_text("relay=4 state=on")
        answer = program.wait_for_text("previous=on")
        assert program.end(signal.SIGINT) == 0
    assert "relay-board    → call         set_relay relay=4 state=on seq=" in call
    assert "relay-board    ← response     set_relay previous=on" in answer
    assert not any("read_climate" in line for line in program.stdout)
    recorded = [json.loads(line) for line in file.read_text().splitlines()]
    assert {"relay": 4, "state": "on"} in [frame.get("arguments") for frame in recorded]
    assert {frame["device"] for frame in recorded} == {"relay-board"}

    shown = CliRunner().invoke(main, ["sniff", "--replay", str(file)])
    assert shown.stdout.splitlines() == program.stdout


def test_heartbeats_are_hidden_from_people_and_that_is_said_once(run: CliRunner, tmp_path: Path) -> None:
    beat = {key: CALL[key] for key in ("time", "device", "direction", "message")} | {"kind": "heartbeat", "seq": 1, "boot_id": 7}
    file = str(record(tmp_path / "r", beat, CALL, beat))
    people = run.invoke(main, ["sniff", "--replay", file])
    assert [line.split()[3] for line in people.stdout.splitlines()] == ["call"]
    assert people.stderr == "heartbeats are not shown; --all shows them\n"
    everything = run.invoke(main, ["sniff", "--replay", file, "--all"])
    assert [line.split()[3] for line in everything.stdout.splitlines()] == ["heartbeat", "call", "heartbeat"]
    assert everything.stderr == ""
    programs = run.invoke(main, ["sniff", "--replay", file, "--json"])
    assert [json.loads(line)["kind"] for line in programs.stdout.splitlines()] == ["heartbeat", "call", "heartbeat"]


def test_a_recording_has_the_heartbeats_too(tmp_path: Path) -> None:
    file = tmp_path / "frames.ndjson"
    maps = tmp_path / "maps"
    maps.mkdir()
    quick = re.sub(r"heartbeat_ms = \d+", "heartbeat_ms = 100", (MAPS / "env-sensor.toml").read_text())
    (maps / "env-sensor.toml").write_text(quick)
    with plugged_in(["env-sensor"], tmp_path / "by-id"), serve(write_config(tmp_path, maps=[maps]), online=1) as url:  # noqa: SIM117
        with Program(["sniff", "--record", file, "--url", url]) as program:
            program.wait_for_text("heartbeats are not shown", "stderr")
            assert program.end(signal.SIGINT) == 0
    assert "heartbeat" in {json.loads(line)["kind"] for line in file.read_text().splitlines()}
    assert not any("heartbeat" in line for line in program.stdout)


def test_live_frames_for_programs_include_those_of_all_boards(mcpax: Mcpax, gateway_url: str) -> None:
    with Program(["sniff", "--json", "--url", gateway_url]) as program:
        program.wait_for_text("watching all devices", "stderr")
        mcpax("call", "edge.env-sensor.read_climate")
        frame = json.loads(program.wait_for_text('"tool": "read_climate"'))
        assert (frame["device"], frame["kind"]) == ("env-sensor", "call")
        assert program.end(signal.SIGINT) == 0


def test_events_and_restarts_are_seen(tmp_path: Path) -> None:
    with plugged_in(["relay-board", "env-sensor"], tmp_path / "by-id") as boards, serve(write_config(tmp_path), online=2) as url:  # noqa: SIM117
        with Program(["sniff", "--url", url]) as program:
            program.wait_for_text("watching", "stderr")
            boards["relay-board"].press()
            assert "relay-board    ← event        button presses=1" in program.wait_for_text("button")
            boards["env-sensor"].reset()
            assert "env-sensor     ← registration env-sensor map_hash=" in program.wait_for_text("registration")
            assert program.end(signal.SIGINT) == 0


def test_a_gateway_that_stops_is_told(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        with serve(write_config(tmp_path, maps=())) as url:
            sniffing = stack.enter_context(Program(["sniff", "--url", url]))
            sniffing.wait_for_text("watching", "stderr")
        assert sniffing.ended() == 1
    assert "error: the gateway has closed the stream" in sniffing.stderr


def test_an_unknown_device_is_told_with_those_there_are(mcpax: Mcpax) -> None:
    result = mcpax("sniff", "toaster")
    assert result.exit_code == 1
    assert "No device 'toaster'" in result.stderr
    assert ", ".join(BOARDS) in result.stderr


def test_bytes_on_request_and_always_for_what_cannot_be_read() -> None:
    assert frame_text(CALL, with_hex=True).splitlines()[1].strip() == "01 01 07 02 01"
    assert len(frame_text(CALL, with_hex=False).splitlines()) == 1
    unreadable = {**CALL, "kind": "unreadable", "reason": "too short"}
    assert "01 01 07 02 01" in frame_text(unreadable, with_hex=False)


def test_dropped_frames_are_told() -> None:
    assert "12 frames were dropped" in frame_text({"kind": "dropped", "count": 12}, with_hex=False)


def test_a_replay_shows_dropped_frames_too(run: CliRunner, tmp_path: Path) -> None:
    file = record(tmp_path / "r", CALL, {"kind": "dropped", "count": 3}, ANSWER)
    lines = run.invoke(main, ["sniff", "--replay", str(file)]).stdout.splitlines()
    assert len(lines) == 3
    assert "3 frames were dropped" in lines[1]


def test_a_replay_with_a_map_is_decoded_from_the_bytes(run: CliRunner, tmp_path: Path) -> None:
    stale = {**CALL, "tool": "old_name", "arguments": {"a": 1}}
    file = record(tmp_path / "r", stale, ANSWER)
    as_recorded = run.invoke(main, ["sniff", "--replay", str(file)]).stdout
    assert "old_name a=1" in as_recorded
    anew = run.invoke(main, ["sniff", "--replay", str(file), "--map", str(MAPS / "relay-board.toml")]).stdout.splitlines()
    assert "set_relay relay=2 state=on seq=7" in anew[0]
    assert "set_relay previous=off" in anew[1]


def test_one_map_is_not_used_for_two_boards(run: CliRunner, tmp_path: Path) -> None:
    file = record(tmp_path / "r", CALL, {**CALL, "device": "other"})
    arguments = ["sniff", "--replay", str(file), "--map", str(MAPS / "relay-board.toml")]
    refused = run.invoke(main, arguments)
    assert refused.exit_code == 1
    assert f"{file}:2: a frame of 'other' after frames of 'relay-board'" in refused.stderr
    assert run.invoke(main, [*arguments, "relay-board"]).exit_code == 0


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "not a recorded frame"),
        ("[]", "a JSON object is needed"),
        ("{}", "'kind' is missing"),
        (json.dumps({**CALL, "direction": "up"}), "direction is 'up'"),
        (json.dumps({**CALL, "message": "0g"}), "non-hexadecimal"),
        (json.dumps({**CALL, "time": "noon"}), "noon"),
        (json.dumps({**CALL, "device": 7}), "device is not text"),
        (json.dumps({"kind": "dropped"}), "'count' is missing"),
    ],
)
def test_a_broken_line_is_told_by_its_number(run: CliRunner, tmp_path: Path, line: str, why: str) -> None:
    file = record(tmp_path / "r", CALL)
    file.write_text(file.read_text() + line + "\n")
    result = run.invoke(main, ["sniff", "--replay", str(file)])
    assert result.exit_code == 1
    assert f"{file}:2: not a recorded frame: " in result.stderr
    assert why in result.stderr
    assert len(result.stdout.splitlines()) == 1


def test_wrong_use_is_told(run: CliRunner, tmp_path: Path) -> None:
    assert "give --replay too" in run.invoke(main, ["sniff", "--map", "x"]).stderr
    assert "not both" in run.invoke(main, ["sniff", "--replay", "x", "--record", "y"]).stderr
    missing = run.invoke(main, ["sniff", "--replay", str(tmp_path / "none")])
    assert (missing.exit_code, f"{tmp_path / 'none'}: cannot be read" in missing.stderr) == (1, True)
