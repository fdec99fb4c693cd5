"""Baud rates, the gateway's word, and the boards'."""

from __future__ import annotations

from typing import Any

import pytest

import mcpax
from mcpax.bridge.device import MISFIT
from mcpax.bridge.transports.uart import explain_open_error
from mcpax.doctor.checks_baud import CHIPS, COMMON, check_baud, nearest_good
from mcpax.doctor.checks_boards import check_boards, misread
from mcpax.doctor.checks_gateway import check_status
from mcpax.doctor.finding import Level


@pytest.mark.parametrize(
    ("baud", "percent"), [(9600, 0.2), (57600, -0.8), (76800, 0.2), (115200, 2.1), (230400, -3.5), (250000, 0.0), (1_000_000, 0.0)]
)
def test_errors_of_an_avr_are_those_of_its_data_sheet(baud: int, percent: float) -> None:
    """ATmega328P, examples of UBRR settings for 16 MHz with U2X."""
    assert round(COMMON.error(baud) * 100, 1) == pytest.approx(percent, abs=0.05)


def test_a_rate_beyond_a_chip_is_an_error_and_no_crash() -> None:
    assert all(abs(chip.error(12_000_000)) > 0.02 for chip in CHIPS)


@pytest.mark.parametrize(("baud", "good"), [(115200, 125000), (230400, 250000), (250000, 250000), (9600, 9600)])
def test_the_nearest_good_rate(baud: int, good: int) -> None:
    assert nearest_good(baud) == good


def test_each_rate_is_told_once() -> None:
    fine, off = check_baud([115200, 9600, 115200])
    assert (fine.check, fine.level) == ("9600 baud", Level.OK)
    assert (off.check, off.level) == ("115200 baud", Level.WARN)
    assert "a 16 MHz AVR (Uno, Nano, Mega) makes it +2.1%" in off.message
    assert "125000" in off.hint


def test_a_gateway_of_another_version() -> None:
    status: dict[str, Any] = {"version": mcpax.__version__, "tools": 3}
    assert check_status("http://x", status, "").level is Level.OK
    other = check_status("http://x", {**status, "version": "0.0.1"}, "")
    assert (other.level, "0.0.1" in other.message, "restart" in other.hint) == (Level.WARN, True, True)
    absent = check_status("http://x", None, "no gateway answers")
    assert (absent.level, absent.message) == (Level.WARN, "no gateway answers")
    assert "mcpax serve --config" in absent.hint
    assert check_status("http://x", {**status, "tools": 1}, "").message.endswith(" 1 tool")


@pytest.mark.parametrize(
    ("state", "problem", "level", "hint"),
    [
        ("online", "", Level.OK, ""),
        ("connecting", f"{MISFIT}: one; two", Level.FAIL, "right board"),
        ("connecting", "waiting for the board to answer", Level.FAIL, "9600 baud"),
        ("absent", "in use", Level.FAIL, "port"),
    ],
)
def test_what_is_said_of_a_board(state: str, problem: str, level: Level, hint: str) -> None:
    (finding,) = check_boards([{"segment": "uno", "map": "uno", "state": state, "problem": problem, "baud": 9600}])
    assert finding.level is level
    assert hint in finding.hint


def test_the_doctor_does_not_send_to_the_doctor() -> None:
    problem = explain_open_error("/dev/x", BlockingIOError(11, "locked"))
    assert "mcpax doctor" in problem
    (finding,) = check_boards([{"segment": "uno", "map": "uno", "state": "absent", "problem": problem, "baud": 9600}])
    assert finding.message == "/dev/x: locked by another program."


@pytest.mark.parametrize(
    ("state", "problem", "framing", "doubtful"),
    [
        ("online", "", {"crc_errors": 0}, False),
        ("online", "", {}, False),
        ("online", "", {"crc_errors": 3}, True),
        ("connecting", "waiting for the board to answer", {}, True),
        ("connecting", f"{MISFIT}: one", {}, False),
        ("absent", "no such port", {}, False),
    ],
)
def test_the_rate_is_in_doubt_only_where_a_board_is_silent_or_frames_are_damaged(
    state: str, problem: str, framing: dict[str, int], doubtful: bool
) -> None:
    assert misread({"state": state, "problem": problem, "framing": framing}) is doubtful
