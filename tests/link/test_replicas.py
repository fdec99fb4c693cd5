"""Several replicas of one aggregator over a real etcd: a call may come in anywhere, and losing a replica loses no child."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from mcp import Client

from mcpax.link.uplink import Uplink
from tests.core.rig import Board, tool
from tests.harness.etcd_server import EtcdServer, needs_etcd
from tests.link.cluster import TOKEN, Replica, replicas
from tests.link.nodes import eventually, node

pytestmark = needs_etcd
NAME = "cloud.plant.env.read"


async def listed(replica: Replica, name: str = NAME) -> None:
    await eventually(lambda: name in replica.names())


def registered_with(uplink: Uplink, replica: Replica) -> bool:
    told = uplink.describe()
    return told["connected"] and str(replica.port) in told["url"]


@pytest.mark.req("AX-13.4-1", "AX-13.4-2")
async def test_a_call_may_come_in_at_any_replica_and_losing_the_owner_loses_no_child(
    own_etcd: EtcdServer, prefix: str, tmp_path: Path
) -> None:
    board = Board(tool("read"))
    with replicas(tmp_path, own_etcd, prefix, 2) as (first, second):
        async with node("plant") as child:
            await child.add("env", board)
            child.join(first.link_url, second.link_url, token=TOKEN)
            await asyncio.gather(listed(first), listed(second))
            for replica in (first, second):
                async with Client(f"{replica.url}/mcp/dotted") as client:
                    assert not (await client.call_tool(NAME, {})).is_error
            assert [call.route for call in board.calls] == [tuple(NAME.split("."))] * 2

            first.kill()
            await eventually(lambda: child.uplink is not None and registered_with(child.uplink, second))
            async with Client(f"{second.url}/mcp/dotted") as client:
                assert not (await client.call_tool(NAME, {})).is_error
            assert len(board.calls) == 3
            first.start()
            await listed(first)
