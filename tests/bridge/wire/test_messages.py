"""Status bytes: whether a call ran, by the stub's own word (docs/wire-format.md §2.3)."""

import pytest

from mcpax.bridge.wire.messages import Type, outcome_of, status_name
from mcpax.errors import Outcome

RAN, DID_NOT, NOBODY_KNOWS = Outcome.EXECUTED, Outcome.NOT_EXECUTED, Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("statuses", "outcome", "name"),
    [
        ([0], RAN, "ok"),
        ([1], DID_NOT, "unknown_tool"),
        ([2], DID_NOT, "bad_arguments"),
        ([3], DID_NOT, "out_of_range"),
        ([4], DID_NOT, "busy"),
        ([5], DID_NOT, "unsynchronised"),
        ([6], RAN, "response_lost"),
        ([7], RAN, "result_too_large"),
        (range(8, 64), NOBODY_KNOWS, "reserved status {}"),
        (range(64, 256), RAN, "device error {}"),
    ],
)
def test_every_status_says_whether_the_call_ran(statuses: list[int], outcome: Outcome, name: str) -> None:
    for status in statuses:
        assert outcome_of(status) is outcome
        assert status_name(status) == name.format(status)


@pytest.mark.req("AX-B.1-1")
def test_types_are_the_drafts() -> None:
    assert [int(t) for t in (Type.CALL, Type.RESPONSE, Type.REGISTRATION, Type.HEARTBEAT)] == [1, 2, 3, 4]
