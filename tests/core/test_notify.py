"""Telling those above: list changes once for many, everything else in order, nobody left out."""

import asyncio

import pytest

from mcpax.core import notify
from mcpax.core.notify import LIST_CHANGED, Notifier
from mcpax.core.subserver import Notification


class Ear:
    def __init__(self, notifier: Notifier) -> None:
        self.heard: list[Notification] = []
        self.changed = asyncio.Event()
        self.stop = notifier.subscribe(self.hear)

    def hear(self, notification: Notification) -> None:
        self.heard.append(notification)
        if notification == LIST_CHANGED:
            self.changed.set()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify, "COALESCE_S", 0.001)


async def test_many_changes_are_told_once_and_the_next_one_again() -> None:
    notifier = Notifier()
    ear = Ear(notifier)
    for _ in range(2):
        for _ in range(100):
            notifier.list_changed()
        assert not ear.changed.is_set()
        await ear.changed.wait()
        ear.changed.clear()
    assert ear.heard == [LIST_CHANGED, LIST_CHANGED]


async def test_everybody_hears_everything_in_order() -> None:
    notifier = Notifier()
    ears = [Ear(notifier), Ear(notifier)]
    sent = [Notification("notifications/mcpax/event", {"n": n}) for n in range(50)]
    for each in sent:
        notifier.publish(each)
    assert [ear.heard for ear in ears] == [sent, sent]


async def test_one_listeners_bug_keeps_nobody_else_from_hearing() -> None:
    notifier = Notifier()

    def stumble(_: Notification) -> None:
        raise RuntimeError("bug")

    notifier.subscribe(stumble)
    ear = Ear(notifier)
    notifier.publish(LIST_CHANGED)
    assert ear.heard == [LIST_CHANGED]


async def test_who_unsubscribes_hears_no_more_even_while_being_told() -> None:
    notifier = Notifier()
    first = Ear(notifier)
    notifier.subscribe(lambda _: first.stop())
    last = Ear(notifier)
    notifier.publish(LIST_CHANGED)
    assert (len(first.heard), len(last.heard)) == (1, 1)
    last.stop()
    assert len(last.heard) == 1


async def test_closing_takes_a_pending_change_back() -> None:
    notifier = Notifier()
    ear = Ear(notifier)
    notifier.list_changed()
    notifier.close()
    notifier.close()
    later = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(0.005, later.set_result, None)
    await later
    assert ear.heard == []


def test_the_notification_is_mcps() -> None:
    assert Notification("notifications/tools/list_changed") == LIST_CHANGED
