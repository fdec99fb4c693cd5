"""A place for one board: when it tries, when it waits, and what it says meanwhile."""

from __future__ import annotations

import asyncio
import os
import pty
import tty
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpax.bridge import slot as slot_module
from mcpax.bridge.device import Binding
from mcpax.bridge.maps.load import load_map
from mcpax.bridge.maps.model import PortMatch
from mcpax.bridge.ports import Port
from mcpax.bridge.slot import FIRST_BACKOFF_S, MAX_BACKOFF_S, Slot
from mcpax.bridge.transports.uart import PortError
from tests.virtual import MAPS


class NobodyUpstream:
    """No board comes so far here."""

    async def register(self, *_: Any) -> Any:
        raise AssertionError

    def heartbeat(self, session_id: str) -> None: ...

    def degrade(self, session_id: str, reason: str) -> None: ...

    def deregister(self, session_id: str) -> None: ...

    def emit(self, session_id: str, notification: Any) -> None: ...


@pytest.fixture
def binding() -> Binding:
    return Binding("relay-board", load_map(MAPS / "relay-board.toml"), PortMatch(by_id="*"))


@pytest.fixture
def terminal() -> Iterator[str]:
    """A port that is there and says nothing."""
    master, slave = pty.openpty()
    tty.setraw(slave)
    yield os.ttyname(slave)
    os.close(master)
    os.close(slave)


async def finished(slot: Slot) -> None:
    assert slot._task is not None
    await asyncio.wait([slot._task])


async def test_a_port_that_fails_is_left_alone_for_longer_and_longer(
    binding: Binding, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0

    async def refuse(*_: Any, **__: Any) -> Any:
        nonlocal tries
        tries += 1
        raise PortError("it is broken")

    monkeypatch.setattr(slot_module, "open_uart", refuse)
    path = tmp_path / "port"
    path.touch()
    port = Port(str(path), str(path))
    slot = Slot(binding, NobodyUpstream(), str)
    waits = []
    for _ in range(8):
        slot.offer(port)
        await finished(slot)
        waits.append(slot._not_before - asyncio.get_running_loop().time())
        slot.offer(port)
        assert not slot.busy, "it is too early"
        slot._not_before = 0.0
    assert tries == 8
    assert waits[0] == pytest.approx(FIRST_BACKOFF_S, rel=0.3)
    assert waits[-1] == pytest.approx(MAX_BACKOFF_S, rel=0.3)
    assert slot.describe()["problem"] == "it is broken"


@pytest.mark.parametrize("how", ["gone for a moment", "made anew between two looks"])
async def test_what_is_plugged_in_anew_is_tried_at_once(
    binding: Binding, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    tries = 0

    async def refuse(*_: Any, **__: Any) -> Any:
        nonlocal tries
        tries += 1
        raise PortError("it is broken")

    monkeypatch.setattr(slot_module, "open_uart", refuse)
    path = tmp_path / "port"
    path.touch()
    port = Port(str(path), str(path))
    slot = Slot(binding, NobodyUpstream(), str)
    slot.offer(port)
    await finished(slot)
    slot.offer(port)
    assert not slot.busy
    if how == "gone for a moment":
        slot.offer(None)
        assert slot.describe()["problem"] == "no such port"
    else:
        path.rename(tmp_path / "old")
        path.touch()
    slot.offer(port)
    assert slot.busy
    await finished(slot)
    assert tries == 2


async def test_a_bug_in_one_slot_ends_nothing_else(binding: Binding, terminal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(slot_module, "open_uart", broken)
    slot = Slot(binding, NobodyUpstream(), str)
    slot.offer(Port(terminal, terminal))
    await finished(slot)
    assert "internal error: ZeroDivisionError" in slot.describe()["problem"]
    assert not slot.busy


async def test_a_silent_port_is_held_and_described_while_it_is_asked(binding: Binding, terminal: str) -> None:
    slot = Slot(binding, NobodyUpstream(), str)
    port = Port(terminal, terminal)
    slot.offer(port)
    assert slot.device_path == terminal, "no other slot may take it"
    async with asyncio.timeout(5):
        while slot.describe()["state"] != "connecting":  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    described = slot.describe()
    assert described["problem"] == "waiting for the board to answer"
    assert described["port"] == terminal
    assert described["counters"]["connects"] == 1
    slot.offer(None)
    assert slot.busy, "what it has is not taken away by a look that missed it"
    await slot.close()
    assert slot.device_path is None
    assert slot.describe()["port"] is None


async def test_the_identity_of_a_board_is_of_place_map_and_hardware(binding: Binding, terminal: str) -> None:
    asked: list[str] = []

    def identify(hardware: str) -> str:
        asked.append(hardware)
        return "00000000-0000-4000-8000-000000000000"

    slot = Slot(binding, NobodyUpstream(), identify)
    slot.offer(Port(terminal, terminal, by_id="usb-mcpax_relay-board_0001-if00"))
    async with asyncio.timeout(5):
        while not asked:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    assert asked == ["relay-board|relay-board|usb-mcpax_relay-board_0001-if00"]
    await slot.close()
