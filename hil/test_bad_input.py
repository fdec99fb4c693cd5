"""What a board must survive: every frame that is wrong is refused with a status or met with silence, and never runs.

Speaks to the board directly, because a gateway would let none of this through. Whether something ran is asked of the board's own state.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from hil.boards import Board
from hil.line import PATIENCE_S, SEQUENCES, Line
from hil.plugin import SEED
from hil.values import out_of_range, valid, wrong_type
from hil.witness import Witness
from mcpax.bridge.maps.model import Encoding, Profile, ToolMap
from mcpax.bridge.wire import profile_a, profile_b
from mcpax.bridge.wire.messages import Status

LONG_BYTES = (64, 255, 256, 1000)
"""Payloads longer than any buffer of a small chip, or its length in one byte."""
NOISE_BYTES = 512
NOISE_ROUNDS = 8


@pytest.fixture
def unharmed(line: Line, witness: Witness) -> Callable[[], None]:
    """Asserts that the board still answers, runs calls, and has run none since this fixture."""
    line.synchronise()
    witness.state(line)  # of a reading that changes what it reads, the second is the first to compare with
    before = witness.state(line)

    def check() -> None:
        line.synchronise()
        assert witness.state(line) == before, "something ran that should not have"
        assert line.call(witness.act, witness.arguments).status == Status.OK
        assert witness.state(line) != before, "a good call has no effect any more"

    return check


def test_values_outside_the_limits_are_refused(board: Board, line: Line, unharmed: Callable[[], None]) -> None:
    refused = [case for tool in board.map.tools for case in ((tool, bad) for bad in out_of_range(tool, board.map.profile))]
    for tool, bad in refused:
        assert line.call(tool, bad.raw).status == bad.status, bad.what
    assert refused, f"{board.map.name} has no argument with limits inside its type"
    unharmed()


def test_values_of_another_type_are_refused(board: Board, line: Line, unharmed: Callable[[], None]) -> None:
    if board.map.profile is Profile.A:
        pytest.skip("values have no types in Profile A")
    for tool in board.map.tools:
        for bad in wrong_type(tool):
            assert line.ask(_call(board, line, tool.id, dict(enumerate(bad.raw))), line.seq).status == bad.status, bad.what
    unharmed()


def test_too_few_and_too_many_arguments_are_refused(board: Board, line: Line, unharmed: Callable[[], None]) -> None:
    for tool in board.map.tools:
        for payload in _payloads_of_other_counts(board.map.profile, line, tool):
            assert line.ask(_call(board, line, tool.id, payload), line.seq).status == Status.BAD_ARGUMENTS, tool.name
    unharmed()


def test_unknown_tools_are_refused(board: Board, line: Line, unharmed: Callable[[], None]) -> None:
    nothing: Any = b"" if board.map.profile is Profile.A else {}
    for tool_id in (0, max(tool.id for tool in board.map.tools) + 1, 0x7F, 0x80, 0xFF):
        assert line.ask(_call(board, line, tool_id, nothing), line.seq).status == Status.UNKNOWN_TOOL, f"tool {tool_id}"
    unharmed()


@pytest.mark.parametrize("size", LONG_BYTES)
def test_frames_longer_than_the_buffer_do_not_run(
    board: Board, line: Line, witness: Witness, unharmed: Callable[[], None], size: int
) -> None:
    """Each begins like a good call of the tool that acts: a board that cut it off at its buffer's end would run it."""
    good = line.call_message(witness.act, witness.arguments, 0)[profile_a.HEADER_BYTES :]
    many: Any = good + bytes(size) if board.map.profile is Profile.A else {**dict(enumerate(witness.arguments)), 99: bytes(size)}
    long = _call(board, line, witness.act.id, many)
    line.send(long)
    for response in line.responses_before_heartbeat():
        assert response.status == Status.BAD_ARGUMENTS, f"a frame of {len(long)} bytes got status {response.status}"
    unharmed()


def test_noise_does_nothing(line: Line, unharmed: Callable[[], None]) -> None:
    dice = random.Random(SEED)
    for _ in range(NOISE_ROUNDS):
        line.send_raw(dice.randbytes(NOISE_BYTES))
        assert line.responses_before_heartbeat() == []
    unharmed()


def test_damaged_and_truncated_frames_do_not_run(line: Line, witness: Witness, unharmed: Callable[[], None]) -> None:
    """Cut off after every byte, and with every byte flipped in turn."""
    seq = (line.seq + 1) % SEQUENCES
    frame = line.framed(line.call_message(witness.act, witness.arguments, seq))
    for at in range(1, len(frame)):
        line.send_raw(frame[:at])
        assert line.responses_before_heartbeat() == [], f"answered the first {at} of {len(frame)} bytes"
    for at in range(len(frame)):
        line.send_raw(frame[:at] + bytes((frame[at] ^ 0xFF,)) + frame[at + 1 :])
        assert line.responses_before_heartbeat() == [], f"answered a frame with byte {at} damaged"
    unharmed()


@pytest.mark.needs("power", "stats")
@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_a_brown_out_in_the_middle_of_a_call(board: Board, witness: Witness, part: float) -> None:
    """The board loses its power while it hears a call, and is back before the rest of it comes."""
    if not witness.counts:
        pytest.skip(f"no tool of {board.map.name} counts its runs")
    with Line(board.port, board.map, board.log) as line:
        line.synchronise()
        frame = line.framed(line.call_message(witness.act, witness.arguments, (line.seq + 1) % SEQUENCES))
        heard = max(1, round(part * len(frame)))
        before = _bytes_received(board)
        line.send_raw(frame[:heard])
        deadline = time.monotonic() + PATIENCE_S
        while _bytes_received(board) < before + heard:
            assert time.monotonic() < deadline, f"the first {heard} bytes of a call have not arrived"
    board.power_off()
    board.power_on()
    with Line(board.port, board.map, board.log) as line:
        line.send_raw(frame[heard:])
        assert line.responses_before_heartbeat() == []
        line.synchronise()
        assert witness.state(line) == 0, "half a call has run"
        assert line.call(witness.act, witness.arguments).status == Status.OK
        assert witness.state(line) == 1


def _bytes_received(board: Board) -> int:
    stats = board.stats()
    assert stats is not None
    return stats.rx or 0


def _call(board: Board, line: Line, tool_id: int, payload: Any) -> bytes:
    """A new call, in whatever words."""
    line.seq = (line.seq + 1) % SEQUENCES
    if board.map.profile is Profile.A:
        return profile_a.encode_call(line.seq, tool_id, payload)
    return profile_b.encode_call(line.seq, tool_id, payload)


def _payloads_of_other_counts(profile: Profile, line: Line, tool: ToolMap) -> list[Any]:
    """Arguments one too many, and one too few if there are any."""
    raw = valid(tool, "lowest")
    if profile is Profile.B:
        return [dict(enumerate(given)) for given in ([*raw, 1], raw[:-1] if raw else [1, 1])]
    if tool.encoding is Encoding.RAW:
        return []  # any length is right
    payload = line.call_message(tool, raw, 0)[profile_a.HEADER_BYTES :]
    return [payload + b"\x01", payload[:-1] if payload else b"\x01\x01"]
