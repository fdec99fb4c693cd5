"""Coming back after faults: soon, to whoever can be reached, without upsetting what works. Each of these was found by a chaos run, or by
reading what one had logged."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from mcpax.core.aggregator import Aggregator
from mcpax.core.registry import Registry
from mcpax.link import redial
from mcpax.link.child import ChildEnd
from mcpax.link.introduction import Introduction, LinkRefused, Parentage
from mcpax.link.redial import Redialler, Target
from mcpax.link.replicas import Replicas
from mcpax.link.wire import CannotDial, Wire, WireClosed
from tests.chaos.line import Line
from tests.core.rig import UUIDS, Board, tool
from tests.harness.etcd_server import EtcdServer, needs_etcd
from tests.link.cluster import TOKEN, replicas
from tests.link.nodes import HEARTBEAT_S, chain, eventually, node


class Enough(Exception):
    """Ends what would go on for ever."""


@pytest.mark.parametrize("problem", [CannotDial("nobody there"), LinkRefused("not now", 60.0)])
async def test_a_parent_is_dialled_at_least_once_a_heartbeat(problem: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    paused: list[float] = []

    async def sleep(seconds: float) -> None:
        paused.append(seconds)
        if len(paused) == 12:
            raise Enough

    async def serve(_: Wire) -> str:
        raise AssertionError("nobody is there")

    def refuse(*_: object) -> None:
        raise problem

    monkeypatch.setattr(redial, "dial", refuse)
    with pytest.raises(Enough):
        await Redialler([Target("ws://127.0.0.1:1")], serve, heartbeat_s=2.0, spread=lambda: 1.0, sleep=sleep).run()
    assert max(paused) == 2.0


async def test_a_replica_that_was_started_again_is_linked_once_though_the_store_still_knows_its_first_life() -> None:
    dialled: list[str] = []

    def target(url: str) -> Target:
        dialled.append(url)
        return Target(url)

    url = "ws://127.0.0.1:1/mcpax/link/replica"
    others = Replicas(Aggregator("cloud", UUIDS[0]), "me", 1.0, target)
    others.changed({"me": "ws://127.0.0.1:2", "first-life": url})
    others.changed({"me": "ws://127.0.0.1:2", "first-life": url, "second-life": url})
    others.changed({"me": "ws://127.0.0.1:2", "second-life": url})
    assert dialled == [url]
    await others.close()


async def test_a_changed_list_that_could_not_be_had_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with chain("cloud", "plant") as (cloud, plant):
        listed = Registry.relist
        failures = iter([True])

        async def relist(registry: Registry, session_id: str) -> None:
            if registry is cloud.aggregator.registry and next(failures, False):
                raise TimeoutError
            await listed(registry, session_id)

        monkeypatch.setattr(Registry, "relist", relist)
        await plant.add("env", Board(tool("read")))
        await eventually(lambda: "cloud.plant.env.read" in cloud.names(), 10 * HEARTBEAT_S)


async def test_subservers_that_come_while_a_slow_parent_registers_others_cost_no_link() -> None:
    async with node("cloud") as cloud, node("plant") as plant, Line("plant→cloud", int(cloud.url.rpartition(":")[2])).open() as line:
        uplink = plant.join(f"ws://127.0.0.1:{line.port}/mcpax/link", each_on_its_own=True)
        await plant.add("first", Board(tool("read")))
        await eventually(lambda: "cloud.first.read" in cloud.names())
        line.delay(0.05)
        for segment in ("second", "third", "fourth"):
            await plant.add(segment, Board(tool("read")))
            await asyncio.sleep(HEARTBEAT_S / 2)
        await eventually(lambda: {"cloud.second.read", "cloud.third.read", "cloud.fourth.read"} <= set(cloud.names()))
        await asyncio.sleep(2 * HEARTBEAT_S)
        assert uplink.describe()["links"] == 1


class Script:
    """A wire that says what it was given, and remembers what was said."""

    def __init__(self, *texts: str) -> None:
        self._texts = list(texts)
        self.sent: list[str] = []

    async def send(self, text: str) -> None:
        self.sent.append(text)

    async def receive(self) -> str:
        if self._texts:
            return self._texts.pop(0)
        await eventually(lambda: any(text.startswith("D") for text in self.sent))
        raise WireClosed("the end")

    async def close(self, reason: str) -> None: ...


async def test_a_call_for_a_registration_that_is_gone_says_that_it_did_not_run() -> None:
    meta = {"x-mcpax-registration": UUIDS[5]}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "read", "_meta": meta}}
    wire = Script("D" + msgspec.json.encode(call).decode())
    await ChildEnd(Aggregator("plant", UUIDS[0]), wire, Introduction(UUIDS[0], "plant", 1.0), Parentage()).run()
    answer = next(msgspec.json.decode(text[1:]) for text in wire.sent if text.startswith("D"))
    assert answer["error"]["data"]["outcome"] == "not_executed"


@needs_etcd
async def test_a_child_that_is_cut_off_from_its_replica_moves_to_the_other_though_the_first_lives(
    own_etcd: EtcdServer, prefix: str, tmp_path: Path
) -> None:
    with replicas(tmp_path, own_etcd, prefix, 2) as (first, second):
        async with node("plant") as child, Line("plant→first", first.port).open() as line:
            await child.add("env", Board(tool("read")))
            child.join(f"ws://127.0.0.1:{line.port}/mcpax/link", second.link_url, token=TOKEN)
            await eventually(lambda: "cloud.plant.env.read" in first.names() & second.names())
            line.cut()
            await eventually(lambda: child.uplink is not None and str(second.port) in child.uplink.describe()["url"])
            await eventually(lambda: child.parentage.parent_id is not None and not first.problems() | second.problems())
