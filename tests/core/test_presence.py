"""Lost and back: once for each change, never of one that took its leave, and nothing said that could be used against a subserver."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpax.core import presence as presence_module
from mcpax.core.presence import BACK, ENDED, LOST, Presence
from mcpax.core.registry import Registry, Session
from mcpax.core.subserver import Notification
from tests.core.rig import Board, Clock, request, tool

NOW = datetime(2026, 5, 1, 12, 5, tzinfo=UTC)


class Rig:
    def __init__(self, grace_s: float = 300) -> None:
        self.clock = Clock()
        self.told: list[tuple[str, Notification]] = []
        presence = Presence(lambda session, notification: self.told.append((session.segment, notification)), lambda: NOW)
        self.registry = Registry("edge", presence, clock=self.clock, now=lambda: NOW, grace_s=grace_s)

    async def add(self, segment: str = "env", number: int = 0, board: Board | None = None) -> Session:
        asked = request(segment, number, heartbeat_interval_ms=1000)
        session = self.registry.get((await self.registry.register(asked, board or Board(tool("a")))).session_id)
        assert session is not None
        return session

    def methods(self) -> list[str]:
        return [notification.method for _, notification in self.told]


@pytest.fixture
def rig() -> Rig:
    return Rig()


async def test_to_come_and_to_leave_is_nobodys_loss(rig: Rig) -> None:
    session = await rig.add()
    rig.registry.deregister(session.id)
    await rig.add()
    assert rig.told == []


@pytest.mark.req("AX-13.1-1")
async def test_missed_heartbeats_are_told_with_reason_and_time_and_nothing_else(rig: Rig) -> None:
    await rig.add()
    rig.clock.at += 3
    rig.registry.sweep()
    assert rig.told == [("env", Notification(LOST, {"reason": "heartbeat_timeout", "since": "2026-05-01T12:05:00Z"}))]
    rig.registry.sweep()
    assert len(rig.told) == 1


@pytest.mark.req("AX-13.1-1")
async def test_a_lost_connection_is_told_once_until_it_is_back(rig: Rig) -> None:
    session = await rig.add()
    for _ in range(3):
        rig.registry.degrade(session.id, "unplugged")
    assert [each.params["reason"] for _, each in rig.told] == ["unplugged"]
    for _ in range(3):
        rig.registry.heartbeat(session.id)
    assert rig.told[1:] == [("env", Notification(BACK))]
    rig.registry.degrade(session.id, "unplugged again")
    assert rig.methods() == [LOST, BACK, LOST]


async def test_removal_after_the_grace_period_is_no_second_loss(rig: Rig) -> None:
    session = await rig.add()
    rig.registry.degrade(session.id, "unplugged")
    rig.clock.at += 300
    rig.registry.sweep()
    assert not list(rig.registry)
    assert rig.methods() == [LOST]


async def test_nor_where_there_is_no_grace() -> None:
    rig = Rig(grace_s=0)
    await rig.add()
    rig.clock.at += 3
    rig.registry.sweep()
    assert not list(rig.registry)
    assert rig.methods() == [LOST]


@pytest.mark.parametrize("removed", [False, True])
async def test_one_that_registers_again_is_back(rig: Rig, removed: bool) -> None:
    session = await rig.add()
    rig.registry.degrade(session.id, "unplugged")
    if removed:
        rig.clock.at += 300
        rig.registry.sweep()
    await rig.add()
    assert rig.methods() == [LOST, BACK]
    await rig.add("zoo", 1)
    assert rig.methods() == [LOST, BACK]


async def test_a_session_that_is_taken_over_unnoticed_was_lost_and_is_back(rig: Rig) -> None:
    await rig.add()
    await rig.add()
    assert rig.methods() == [LOST, BACK]
    assert rig.told[0][1].params == {"reason": ENDED, "since": "2026-05-01T12:05:00Z"}


async def test_one_that_moves_is_lost_where_it_was_and_new_where_it_is(rig: Rig) -> None:
    await rig.add("env")
    await rig.add("lab")
    assert [(where, each.method) for where, each in rig.told] == [("env", LOST)]


@pytest.mark.parametrize("orderly", [False, True])
async def test_another_in_its_place_is_not_the_lost_one(rig: Rig, orderly: bool) -> None:
    session = await rig.add(number=0)
    rig.registry.degrade(session.id, "unplugged")
    if orderly:
        rig.registry.deregister(session.id)  # as the bridge does when another board is plugged in there
    else:
        rig.clock.at += 300
        rig.registry.sweep()
    await rig.add(number=1)
    assert rig.methods() == [LOST]


async def test_a_change_of_tools_while_lost_is_no_second_loss(rig: Rig) -> None:
    board = Board(tool("a"))
    session = await rig.add(board=board)
    rig.registry.degrade(session.id, "unplugged")
    board.tools.append(tool("b"))
    await rig.registry.relist(session.id)
    assert len(session.tools) == 2
    assert rig.methods() == [LOST]


async def test_only_so_many_that_are_gone_are_awaited(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence_module, "MISSED_REMEMBERED", 2)
    for number in range(3):
        await rig.add(f"s{number}", number)
    rig.clock.at += 3
    rig.registry.sweep()
    rig.clock.at += 300
    rig.registry.sweep()
    assert rig.methods() == [LOST] * 3
    for number in range(3):
        await rig.add(f"s{number}", number)
    assert [(where, each.method) for where, each in rig.told[3:]] == [("s1", BACK), ("s2", BACK)]


STEPS = st.lists(st.sampled_from(["register", "degrade", "heartbeat", "deregister", "silence", "grace"]), max_size=30)


@given(STEPS)
async def test_what_was_told_last_is_true_and_lost_and_back_alternate(steps: list[str]) -> None:
    """Of one subserver in one place, from one orderly leave to the next."""
    rig = Rig()
    session: Session | None = None
    for step in steps:
        match step:
            case "register":
                session = await rig.add()
            case "silence":
                rig.clock.at += 3
                rig.registry.sweep()
            case "grace":
                rig.clock.at += 400
                rig.registry.sweep()
            case _ if session is None or rig.registry.get(session.id) is None:
                continue
            case "degrade":
                rig.registry.degrade(session.id, "unplugged")
            case "heartbeat":
                rig.registry.heartbeat(session.id)
            case "deregister":
                told = len(rig.told)
                rig.registry.deregister(session.id)
                assert len(rig.told) == told
                rig.told.clear()
                session = None
        assert rig.methods() == [LOST, BACK] * (len(rig.told) // 2) + [LOST] * (len(rig.told) % 2)
        if session is not None:
            assert (len(rig.told) % 2 == 1) == (session.degraded or rig.registry.get(session.id) is None)
