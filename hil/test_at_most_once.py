"""A call runs once, whatever comes again, late, or from a second gateway (docs/wire-format.md §5). Speaks to the board directly."""

from __future__ import annotations

import pytest

from hil.boards import Board
from hil.line import SEQUENCES, Line
from hil.witness import Witness
from mcpax.bridge.maps.model import Profile
from mcpax.bridge.wire.dialect import dialect_for
from mcpax.bridge.wire.messages import Status

COPIES = 5
CALLS = 300
"""More than there are sequences: they come round."""
FAR_BEHIND = 100
"""Sequences; too old to be taken for new."""
BOOT_IDS = 0x10000


@pytest.fixture
def witness(board: Board, witness: Witness) -> Witness:
    if not witness.counts:
        pytest.skip(f"no tool of {board.map.name} counts its runs")
    return witness


def test_copies_of_a_call_get_the_same_answer_and_run_once(board: Board, line: Line, witness: Witness) -> None:
    """A Profile A board may have no room for responses; then the answer is that there was one."""
    line.synchronise()
    before = witness.state(line)
    first = line.call(witness.act, witness.arguments)
    message = line.call_message(witness.act, witness.arguments, line.seq)
    for _ in range(COPIES):
        again = line.ask(message, line.seq)
        assert again == first or (board.map.profile is Profile.A and again.status == Status.RESPONSE_LOST)
    assert witness.state(line) == before + 1


def test_stale_calls_are_ignored(line: Line, witness: Witness) -> None:
    line.synchronise()
    before = witness.state(line)
    for behind in (64, FAR_BEHIND, 127):
        line.send(line.call_message(witness.act, witness.arguments, (line.seq - behind) % SEQUENCES))
        assert line.responses_before_heartbeat() == [], f"answered a call {behind} sequences old"
    assert witness.state(line) == before


@pytest.mark.needs("reset")
def test_nothing_runs_before_the_board_is_synchronised(board: Board, line: Line, witness: Witness) -> None:
    line.synchronise()
    board.reset()
    line.wait_for_restart()
    response = line.ask(line.call_message(witness.act, witness.arguments, 1), 1)
    assert response.status == Status.UNSYNCHRONISED
    line.synchronise()
    assert witness.state(line) == 0


def test_a_second_gateway_changes_nothing(board: Board, line: Line, witness: Witness) -> None:
    """Another talks on the same line: heartbeats with other boots and sequences, stale calls. The first one's calls run once each."""
    dialect = dialect_for(board.map)
    line.synchronise()
    before = witness.state(line)
    for number in range(1, CALLS + 1):
        foreign_boot = (line.boot_id + number) % BOOT_IDS
        line.send(dialect.heartbeat((line.seq + 37 * number) % SEQUENCES, foreign_boot))
        line.send(line.call_message(witness.act, witness.arguments, (line.seq - FAR_BEHIND) % SEQUENCES))
        assert line.call(witness.act, witness.arguments).status == Status.OK
        assert line.boot_id == line.heartbeat().boot_id
    assert witness.state(line) == before + CALLS


def test_sequences_may_come_round(line: Line, witness: Witness) -> None:
    line.synchronise()
    before = witness.state(line)
    for _ in range(CALLS):
        assert line.call(witness.act, witness.arguments).status == Status.OK
    assert witness.state(line) == before + CALLS
