"""A gateway that registers each of its boards on its own behalf (draft B.3): the parent sees them as its own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from mcpax.config_links import Links, Upstream
from mcpax.core.notify import LIST_CHANGED
from mcpax.errors import ErrorKind
from tests.core.rig import Board, refused, tool
from tests.link.nodes import LINK_TOKEN, PATIENCE_S, eventually, node
from tests.link.raw_parent import raw_parent
from tests.link.relay import relayed
from tests.virtual import VirtualBoard, running_gateway


async def test_each_board_is_the_parents_own_and_comes_and_goes() -> None:
    async with node("cloud") as cloud, node("edge") as edge:
        first, second = Board(tool("read")), Board(tool("write"))
        await edge.add("env", first)
        edge.join(cloud, each_on_its_own=True)
        await eventually(lambda: cloud.names() == ["cloud.env.read"])
        gone = await edge.add("relay", second)
        await eventually(lambda: cloud.names() == ["cloud.env.read", "cloud.relay.write"])
        await cloud.aggregator.call_tool("cloud.relay.write", {"on": True})
        assert second.calls[0].arguments == {"on": True}
        assert (second.calls[0].route, second.calls[0].cursor) == (("cloud", "relay", "write"), 1)
        assert not first.calls
        edge.aggregator.deregister(gone)
        await eventually(lambda: cloud.names() == ["cloud.env.read"])
        first.tools = [tool("read"), tool("see")]
        await edge.aggregator.relist(next(iter(edge.aggregator.registry)).id)
        await eventually(lambda: cloud.names() == ["cloud.env.read", "cloud.env.see"])
        assert edge.uplink is not None
        assert edge.uplink.describe()["links"] == 1


async def test_a_board_that_the_parent_refuses_costs_the_others_nothing() -> None:
    async with node("cloud") as cloud, node("edge") as edge:
        held = await cloud.add("relay", Board(tool("own")))
        for segment in ("env", "relay", "valve"):
            await edge.add(segment, Board(tool("read")))
        edge.join(cloud, each_on_its_own=True)
        await eventually(lambda: cloud.names() == ["cloud.env.read", "cloud.relay.own", "cloud.valve.read"])
        cloud.aggregator.deregister(held)
        edge.aggregator.notifier.publish(LIST_CHANGED)  # whatever changes, the refused one is tried again
        await eventually(lambda: cloud.names() == ["cloud.env.read", "cloud.relay.read", "cloud.valve.read"])
        assert edge.uplink is not None
        assert edge.uplink.describe()["links"] == 1


async def test_a_refused_board_is_tried_again_by_itself() -> None:
    async with node("cloud") as cloud, node("edge") as edge:
        held = await cloud.add("relay", Board(tool("own")))
        await edge.add("relay", Board(tool("read")))
        with capture_logs() as logs:
            edge.join(cloud, each_on_its_own=True)
            await eventually(lambda: "registration_refused" in [log["event"] for log in logs])
        cloud.aggregator.deregister(held)
        await eventually(lambda: cloud.names() == ["cloud.relay.read"])


async def test_heartbeats_name_only_those_that_are_registered() -> None:
    """One board is being registered for longer than a heartbeat, another is just leaving."""
    async with raw_parent() as parent, node("edge") as edge:
        await edge.add("env", Board(tool("read")))
        edge.join(parent.url, each_on_its_own=True)
        await asyncio.wait_for(parent.registered.wait(), PATIENCE_S)
        parent.on["mcpax/register"] = lambda _: None
        slow = await edge.add("slow", Board(tool("read")))
        await eventually(lambda: len(parent.requests("mcpax/register")) == 2)
        beats = len(parent.requests("mcpax/heartbeat"))
        await eventually(lambda: len(parent.requests("mcpax/heartbeat")) >= beats + 3)
        (request,) = [each for each in parent.asked if each["method"] == "mcpax/register" and each["params"]["segment"] == "slow"]
        await parent.answer(request, parent.register(request["params"]))
        await eventually(lambda: parent.requests("mcpax/heartbeat")[-1]["session_id"] == parent.session_ids[1])
        edge.aggregator.deregister(slow)
        await eventually(lambda: parent.requests("mcpax/deregister") == [{"session_id": parent.session_ids[1]}])
        left = parent.asked.index(next(each for each in parent.asked if each["method"] == "mcpax/deregister"))
        beats = len(parent.asked)
        await eventually(lambda: len(parent.asked) >= beats + 3)
        assert parent.session_ids[1] not in [each["params"].get("session_id") for each in parent.asked[left + 1 :]]
        assert {each["session_id"] for each in parent.requests("mcpax/heartbeat")} == set(parent.session_ids)
        assert parent.links == 1


@pytest.mark.req("AX-B.3-1", "AX-B.3-2", "AX-5.2-1")
async def test_boards_of_both_profiles_are_registered_upstream_and_kept_alive_on_their_behalf(tmp_path: Path) -> None:
    async with node("cloud") as cloud, relayed(cloud) as relay:
        upstream = Upstream((relay.url,), "edge", LINK_TOKEN, each_on_its_own=True, heartbeat_s=0.2)
        with VirtualBoard("relay-board", tmp_path) as a, VirtualBoard("env-sensor", tmp_path) as b:
            async with running_gateway([a, b], links=Links(upstream=upstream)):
                wanted = {f"cloud.{board.segment}.{each.name}" for board in (a, b) for each in board.map.tools}
                await eventually(lambda: wanted <= set(cloud.names()))
                result = await cloud.aggregator.call_tool("cloud.env-sensor.read_climate", {})
                assert b"temperature" in bytes(result["structuredContent"])
                asked = [each["params"] for each in relay.requests("mcpax/register")]
                assert {each["segment"] for each in asked} == {a.segment, b.segment}
                assert {each["transport_class"] for each in asked} == {"uart_bytes", "uart_cbor"}
                sessions = {session.id: session for session in cloud.aggregator.registry}

                def beats() -> list[Any]:
                    return [each["params"]["session_id"] for each in relay.requests("mcpax/heartbeat")]

                await eventually(lambda: all(beats().count(session_id) >= 4 for session_id in sessions))
                assert not [session for session in sessions.values() if session.degraded]
            # The gateway has said goodbye for them.
            await eventually(lambda: not cloud.names())
            with refused(ErrorKind.TOOL_NOT_FOUND):
                await cloud.aggregator.call_tool("cloud.env-sensor.read_climate", {})
