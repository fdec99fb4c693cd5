"""Dialling again: at once after a link that was of use, in ever longer pauses after failures, to the next address, never given up."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs
from websockets.asyncio.server import ServerConnection, serve

from mcpax.link import redial
from mcpax.link.introduction import LinkRefused
from mcpax.link.redial import Redialler, Target
from mcpax.link.wire import SUBPROTOCOL, Wire
from tests.link.nodes import eventually


@contextlib.asynccontextmanager
async def door() -> AsyncIterator[str]:
    async def hold(connection: ServerConnection) -> None:
        await connection.wait_closed()

    async with serve(hold, "127.0.0.1", 0, subprotocols=[SUBPROTOCOL]) as server:  # type: ignore[list-item]
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"


class Pauses(list[float]):
    """Every pause that is made, none of them waited for."""

    async def sleep(self, delay: float) -> None:
        self.append(delay)
        await asyncio.sleep(0)


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@contextlib.asynccontextmanager
async def dialling(redialler: Redialler) -> AsyncIterator[None]:
    task = asyncio.create_task(redialler.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_an_address_that_is_away_is_dialled_in_ever_longer_pauses(pauses: Pauses, unused_tcp_port: int) -> None:
    async def serve_none(_: Wire) -> str:
        raise AssertionError("nobody is there")

    redialler = Redialler([Target(f"ws://127.0.0.1:{unused_tcp_port}")], serve_none, spread=lambda: 1.0, sleep=pauses.sleep)
    async with dialling(redialler):
        await eventually(lambda: len(pauses) >= 10)
    assert pauses[:4] == [0.2, 0.4, 0.8, 1.6]
    assert max(pauses) == redial.LONGEST_PAUSE_S
    assert "cannot be reached" in redialler.state.problem


async def test_whatever_goes_wrong_with_a_link_the_next_is_dialled(pauses: Pauses) -> None:
    served = 0

    async def fail(_: Wire) -> str:
        nonlocal served
        served += 1
        if served == 1:
            raise RuntimeError("a bug")
        if served == 2:
            raise LinkRefused("not you", 3.0)
        return "over"

    async with door() as url:
        redialler = Redialler([Target(url)], fail, spread=lambda: 1.0, sleep=pauses.sleep)
        async with dialling(redialler):
            await eventually(lambda: served >= 3)
    assert pauses[:2] == [0.2, 3.0], "as long as the other side said"


async def test_a_link_that_ends_at_once_is_no_reason_to_dial_without_a_pause(pauses: Pauses) -> None:
    async def useless(_: Wire) -> str:
        redialler.connected()
        return "over"

    async with door() as url:
        redialler = Redialler([Target(url)], useless, sleep=pauses.sleep)
        async with dialling(redialler):
            await eventually(lambda: len(pauses) >= 3)
    assert redialler.state.links >= 3


async def test_a_link_that_was_of_use_is_dialled_again_at_once(pauses: Pauses, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redial, "SETTLED_S", 0.0)
    served = 0

    async def useful(_: Wire) -> str:
        nonlocal served
        served += 1
        redialler.connected()
        return "over"

    async with door() as url:
        redialler = Redialler([Target(url)], useful, sleep=pauses.sleep)
        async with dialling(redialler):
            await eventually(lambda: served >= 3)
    assert not pauses


async def test_when_the_first_address_is_away_the_next_is_tried_without_a_pause(pauses: Pauses, unused_tcp_port: int) -> None:
    reached = asyncio.Event()

    async def useful(_: Wire) -> str:
        redialler.connected()
        reached.set()
        await asyncio.Event().wait()
        return ""

    async with door() as url:
        redialler = Redialler([Target(f"ws://127.0.0.1:{unused_tcp_port}"), Target(url)], useful, sleep=pauses.sleep)
        async with dialling(redialler):
            await asyncio.wait_for(reached.wait(), 20)
            assert redialler.state.connected
            assert redialler.state.url == url
    assert not pauses


async def test_after_a_stop_the_link_is_the_last() -> None:
    async def once(_: Wire) -> str:
        redialler.connected()
        redialler.stop()
        return "over"

    async with door() as url:
        redialler = Redialler([Target(url)], once)
        await asyncio.wait_for(redialler.run(), 20)
    assert redialler.state.links == 1


async def test_of_addresses_that_stay_away_each_is_told_once(pauses: Pauses) -> None:
    async def serve_none(_: Wire) -> str:
        raise AssertionError("nobody is there")

    urls = ["ws://127.0.0.1:1", "ws://127.0.0.1:2"]
    with capture_logs() as logs:
        async with dialling(Redialler([Target(url) for url in urls], serve_none, sleep=pauses.sleep)):
            await eventually(lambda: len(pauses) >= 5)
    assert [log["url"] for log in logs if log["event"] == "cannot_dial"] == urls
