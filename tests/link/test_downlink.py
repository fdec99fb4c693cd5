"""Where the parent dials: a child that does not dial out is registered, called, lost and found over a link that its parent opens."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from structlog.testing import capture_logs
from websockets.exceptions import InvalidStatus

from mcpax.config_links import Child, Links, Upstream
from mcpax.core.registration import RegistrationRequest
from mcpax.errors import ErrorKind, Outcome
from mcpax.gateway import Gateway
from mcpax.link import redial
from mcpax.link.endpoint import CHILD_PATH
from tests.core.rig import Board, refused, tool
from tests.link.nodes import LINK_TOKEN, eventually
from tests.link.raw import raw_child
from tests.virtual import running_gateway


@dataclass
class Waiting:
    """A child at its door."""

    gateway: Gateway
    url: str
    board: Board


@contextlib.asynccontextmanager
async def waiting_child(port: int = 0) -> AsyncIterator[Waiting]:
    links = Links(upstream=Upstream((), "leaf", LINK_TOKEN, heartbeat_s=0.2))
    async with running_gateway([], segment="leaf", links=links, port=port) as running:
        board = Board(tool("read"))
        await running.gateway.aggregator.register(RegistrationRequest(str(uuid.uuid4()), "env", "native"), board)
        yield Waiting(running.gateway, running.url.replace("http", "ws"), board)


@contextlib.asynccontextmanager
async def dialling(url: str, token: str = LINK_TOKEN, segment: str = "root") -> AsyncIterator[Gateway]:
    async with running_gateway([], segment=segment, links=Links(children=(Child("leaf", token, url=url),))) as running:
        yield running.gateway


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


def names(gateway: Gateway) -> list[str]:
    return [".".join(route.name) for route in gateway.aggregator.catalog.routes()]


async def test_a_child_that_is_dialled_is_listed_and_called_and_says_goodbye() -> None:
    async with waiting_child() as child, dialling(child.url) as root:
        await eventually(lambda: names(root) == ["root.leaf.env.read"])
        await root.aggregator.call_tool("root.leaf.env.read", {"a": 1})
        assert child.board.calls[0].arguments == {"a": 1}
        assert child.board.calls[0].cursor == 2
        (dialled,) = root.linking.describe()["dialled"]
        assert dialled["connected"]
        assert (await root.linking.tree())["below"][0]["aggregator_id"] == child.gateway.aggregator.id
        await child.gateway.linking.leave()
        assert not names(root)


async def test_a_child_that_stops_is_lost_truthfully_and_found_again_where_it_was() -> None:
    port = free_port()
    async with contextlib.AsyncExitStack() as stack:
        async with waiting_child(port) as child:
            root = await stack.enter_async_context(dialling(child.url))
            await eventually(lambda: names(root) == ["root.leaf.env.read"])
            child.board.entered.clear()
            child.board.gate.clear()
            calling = asyncio.create_task(root.aggregator.call_tool("root.leaf.env.read", {}))
            await asyncio.wait_for(child.board.entered.wait(), 5)
        with refused(ErrorKind.LINK_LOST) as caught:
            await calling
        assert caught.value.outcome is Outcome.UNKNOWN
        await eventually(lambda: not names(root))
        async with waiting_child(port):
            await eventually(lambda: names(root) == ["root.leaf.env.read"])
            await root.aggregator.call_tool("root.leaf.env.read", {})


@pytest.mark.parametrize("token", ["wrong-token-wrong-token", ""])
async def test_a_parent_without_the_childs_token_gets_nothing(token: str) -> None:
    with capture_logs() as logs:
        async with waiting_child() as child, dialling(child.url, token) as root:
            await eventually(lambda: "HTTP 403" in root.linking.describe()["dialled"][0]["problem"])
            assert not names(root)
    assert "link_rejected" in [log["event"] for log in logs]


async def test_a_second_parent_is_refused_without_a_storm() -> None:
    with capture_logs() as logs:
        async with waiting_child() as child, dialling(child.url) as first, dialling(child.url, segment="second") as second:
            await eventually(lambda: names(first) == ["root.leaf.env.read"])

            def attempts() -> int:
                return len([log for log in logs if log["event"] == "link_refused"])

            await eventually(lambda: attempts() >= 3)
            started = asyncio.get_running_loop().time()
            before = attempts()
            await eventually(lambda: attempts() >= before + 2)
            assert asyncio.get_running_loop().time() - started > redial.FIRST_PAUSE_S / 2
            assert names(first) == ["root.leaf.env.read"]
            assert not names(second)


async def test_a_child_that_its_parent_refuses_says_why_in_its_log() -> None:
    port = free_port()
    with capture_logs() as logs:
        async with dialling(f"ws://127.0.0.1:{port}") as root:
            await root.aggregator.register(RegistrationRequest(str(uuid.uuid4()), "leaf", "native"), Board(tool("own")))
            async with waiting_child(port):
                await eventually(lambda: "link_refused" in [log["event"] for log in logs])
            assert names(root) == ["root.leaf.own"]
    assert "namespace_conflict" in next(log["problem"] for log in logs if log["event"] == "link_refused")
    assert not [log for log in logs if log["log_level"] == "error"]


async def test_one_who_waits_for_its_parent_has_no_door_for_children() -> None:
    async with waiting_child() as child:
        with pytest.raises(InvalidStatus):
            await raw_child(child.url + CHILD_PATH).__aenter__()
