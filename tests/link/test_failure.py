"""When parts fail: calls in flight end first and truthfully, the namespace follows, and everything comes back by itself."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from mcpax.core.notify import COALESCE_S, LIST_CHANGED
from mcpax.errors import ErrorKind, Fault, Outcome
from mcpax.link import introduction
from tests.core.rig import Board, refused, tool
from tests.link import nodes
from tests.link.nodes import HEARTBEAT_S, Node, eventually, joined, node
from tests.link.raw import raw_child, raw_tool, registration
from tests.link.raw_parent import raw_parent
from tests.link.relay import Relay, relayed


@contextlib.asynccontextmanager
async def cuttable(**more: Any) -> AsyncIterator[tuple[Node, Relay, Node, Board]]:
    async with node("root", **more) as root, relayed(root) as relay, node("leaf") as leaf:
        board = Board(tool("read"))
        await leaf.add("env", board)
        leaf.join(relay.url)
        await eventually(lambda: root.names() == ["root.leaf.env.read"] and leaf.uplink is not None and leaf.uplink.describe()["connected"])
        yield root, relay, leaf, board


def states(at: Node) -> dict[str, str]:
    return {session.segment: "degraded" if session.degraded else "active" for session in at.aggregator.registry}


@pytest.fixture
def interval_s(monkeypatch: pytest.MonkeyPatch) -> float:
    """Long enough that a busy machine does not count."""
    monkeypatch.setattr(nodes, "HEARTBEAT_S", 0.5)
    return 0.5


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is refused asks again soon."""
    monkeypatch.setattr(introduction, "REFUSED_PAUSE_S", 0.2)


# --- a link is cut


async def test_a_call_in_flight_fails_first_and_its_outcome_is_unknown_then_the_tools_are_degraded() -> None:
    async with cuttable() as (root, relay, _, board):
        order: list[str] = []
        board.gate.clear()
        board.entered.clear()

        async def call() -> Fault:
            try:
                with pytest.raises(Fault) as caught:
                    await root.aggregator.call_tool("root.leaf.env.read", {})
                return caught.value
            finally:
                order.append(f"call failed, {states(root)['leaf']}")

        calling = asyncio.create_task(call())
        await asyncio.wait_for(board.entered.wait(), 5)
        relay.refusing = True
        relay.cut()
        fault = await calling
        assert (fault.kind, fault.outcome) == (ErrorKind.LINK_LOST, Outcome.UNKNOWN)
        assert order == ["call failed, active"]
        await eventually(lambda: states(root) == {"leaf": "degraded"})
        with refused(ErrorKind.TOOL_DEGRADED) as caught:
            await root.aggregator.call_tool("root.leaf.env.read", {})
        assert caught.value.outcome is Outcome.NOT_EXECUTED
        assert caught.value.data()["reason"] == "subserver_unreachable"
        assert root.names() == ["root.leaf.env.read"]


async def test_a_call_in_flight_below_a_cut_link_ends_at_the_leaf_as_well() -> None:
    cancelled = asyncio.Event()

    class Noting(Board):
        async def _answer(self) -> None:
            try:
                await super()._answer()
            except asyncio.CancelledError:
                cancelled.set()
                raise

    async with node("root") as root, relayed(root) as relay, node("leaf") as leaf:
        board = Noting(tool("read"))
        await leaf.add("env", board)
        leaf.join(relay.url)
        await eventually(lambda: bool(root.names()))
        board.gate.clear()
        board.entered.clear()
        calling = asyncio.create_task(root.aggregator.call_tool("root.leaf.env.read", {}))
        await asyncio.wait_for(board.entered.wait(), 5)
        relay.cut()
        await asyncio.wait_for(cancelled.wait(), 5)
        with refused(ErrorKind.LINK_LOST):
            await calling


@pytest.mark.req("AX-13.2-2")
async def test_tools_of_a_child_that_does_not_return_are_removed_after_the_grace_period() -> None:
    grace_s = 0.4
    async with node("root", grace_s=grace_s) as root, raw_child(root) as child:
        await child.register()
        lost_at = time.monotonic()
        await child.connection.close()
        await eventually(lambda: states(root) == {"raw": "degraded"})
        assert root.names() == ["root.raw.read"]
        await eventually(lambda: not root.names())
        assert time.monotonic() - lost_at >= grace_s
        with refused(ErrorKind.TOOL_NOT_FOUND):
            await root.aggregator.call_tool("root.raw.read", {})


async def test_a_child_that_returns_is_listed_afresh() -> None:
    async with cuttable() as (root, relay, _, board):
        before = {session.id for session in root.aggregator.registry}
        relay.refusing = True
        relay.cut()
        await eventually(lambda: states(root) == {"leaf": "degraded"})
        board.tools = [tool("write")]
        relay.refusing = False
        await eventually(lambda: root.names() == ["root.leaf.env.write"] or states(root) == {"leaf": "active"})
        assert not before & {session.id for session in root.aggregator.registry}
        assert states(root) == {"leaf": "active"}


async def test_a_child_comes_back_within_moments_of_a_cut() -> None:
    async with cuttable() as (root, relay, _, _):
        for _ in range(2):
            links = relay.dialled
            cut_at = time.monotonic()
            relay.cut()
            await eventually(lambda links=links: relay.dialled > links and states(root) == {"leaf": "active"})  # type: ignore[misc]
            assert time.monotonic() - cut_at < 1
        await root.aggregator.call_tool("root.leaf.env.read", {})


async def test_a_child_that_is_silent_but_connected_is_lost_after_three_heartbeats_and_found_when_it_beats() -> None:
    async with node("root", grace_s=60) as root, raw_child(root) as child:
        session_id = (await child.register(heartbeat_interval_ms=100))["session_id"]
        await eventually(lambda: states(root) == {"raw": "degraded"})
        with refused(ErrorKind.TOOL_DEGRADED):
            await root.aggregator.call_tool("root.raw.read", {})
        assert (await child.ask("mcpax/heartbeat", {"session_id": session_id}))["result"] == {}
        assert states(root) == {"raw": "active"}
        await root.aggregator.call_tool("root.raw.read", {})


async def test_a_parent_that_answers_no_heartbeats_is_left() -> None:
    async with raw_parent() as parent, node("leaf") as leaf:
        parent.on["mcpax/heartbeat"] = lambda _: None
        leaf.join(parent.url)
        await eventually(lambda: parent.links >= 2)
        assert leaf.uplink is not None


# --- an aggregator is lost (§13.3)


@pytest.mark.req("AX-13.3-1")
async def test_the_subtree_of_a_lost_aggregator_is_gone_within_three_intervals(interval_s: float) -> None:
    async with node("root") as root, relayed(root) as relay, node("mid") as mid, node("leaf") as leaf:
        await leaf.add("env", Board(tool("read")))
        await joined(leaf, mid)
        mid.join(relay.url)
        await eventually(lambda: root.names() == ["root.mid.leaf.env.read"])
        relay.refusing = True
        lost_at = time.monotonic()
        relay.cut()
        await eventually(lambda: not root.names())
        assert time.monotonic() - lost_at < 3 * interval_s
        assert leaf.names()


@pytest.mark.req("AX-13.3-1")
async def test_the_subtree_of_a_silent_aggregator_is_gone_when_three_heartbeats_are_missed() -> None:
    async with node("root") as root, raw_child(root) as child:
        child.tools = [raw_tool("env.read")]
        result = await child.register(heartbeat_interval_ms=400, **{"x-mcpax-subtree-ids": [str(uuid.uuid4())]})
        beaten_at = time.monotonic()
        await child.ask("mcpax/heartbeat", {"session_id": result["session_id"]})
        assert root.names()
        await eventually(lambda: not root.names())
        assert time.monotonic() - beaten_at < 3 * 0.4 + 0.3


@pytest.mark.req("AX-13.3-1")
async def test_a_child_moves_to_the_backup_and_is_not_in_two_places(interval_s: float) -> None:
    async with node("root") as root, node("one") as one, relayed(one) as relay, node("two") as two, node("leaf") as leaf:
        await leaf.add("env", Board(tool("read")))
        await joined(one, root)
        await joined(two, root)
        leaf.join(relay.url, two)
        await eventually(lambda: root.names() == ["root.one.leaf.env.read"])
        relay.refusing = True
        lost_at = time.monotonic()
        relay.cut()
        await eventually(lambda: root.names() == ["root.two.leaf.env.read"])
        assert time.monotonic() - lost_at < 3 * interval_s
        await root.aggregator.call_tool("root.two.leaf.env.read", {})
        assert leaf.parentage.parent_id == two.aggregator.id


@pytest.mark.req("AX-13.3-1")
async def test_a_child_whose_aggregator_died_moves_to_the_backup_under_the_same_root(interval_s: float) -> None:
    async with contextlib.AsyncExitStack() as stack:
        root, two, leaf = [await stack.enter_async_context(node(segment)) for segment in ("root", "two", "leaf")]
        await leaf.add("env", Board(tool("read")))
        await joined(two, root)
        async with node("one") as one:
            await joined(one, root)
            leaf.join(one, two)
            await eventually(lambda: root.names() == ["root.one.leaf.env.read"])
            await one.leave()
            lost_at = time.monotonic()
        await eventually(lambda: root.names() == ["root.two.leaf.env.read"])
        assert time.monotonic() - lost_at < 3 * interval_s
        await root.aggregator.call_tool("root.two.leaf.env.read", {})


async def test_a_child_returns_to_a_parent_that_was_restarted() -> None:
    async with node("leaf") as leaf:
        await leaf.add("env", Board(tool("read")))
        async with node("root") as root:
            port = urlsplit(root.url).port
            assert port is not None
            leaf.join(root)
            await eventually(lambda: root.names() == ["root.leaf.env.read"])
        async with node("root", port=port) as again:
            await eventually(lambda: again.names() == ["root.leaf.env.read"])
            await again.aggregator.call_tool("root.leaf.env.read", {})


async def test_a_parent_that_is_about_to_stop_is_asked_again_soon() -> None:
    async with raw_parent() as parent, node("leaf") as leaf:
        stopping = {"error": {"code": ErrorKind.SERVER_DRAINING.value.code, "message": "stopping"}}
        parent.on["mcpax/register"] = lambda params: stopping if parent.links < 2 else parent.register(params)
        started = time.monotonic()
        leaf.join(parent.url)
        await asyncio.wait_for(parent.registered.wait(), 5)
        assert time.monotonic() - started < introduction.REFUSED_PAUSE_S / 2  # the shortest pause of one who was refused


async def test_one_who_says_goodbye_is_gone_at_once_and_stays_away() -> None:
    async with cuttable() as (root, relay, leaf, _):
        assert leaf.uplink is not None
        await leaf.uplink.leave()
        assert not root.names()
        heard = len(relay.up)
        leaf.aggregator.notifier.publish(LIST_CHANGED)  # as when its boards close
        await asyncio.sleep(3 * HEARTBEAT_S)  # nothing is to come, and nothing tells that
        assert not root.names()
        assert relay.dialled == 1
        assert len(relay.up) == heard


# --- no storms


async def test_a_flapping_child_causes_no_storm_of_list_changed() -> None:
    async with node("cloud") as cloud, node("root") as root:
        await joined(root, cloud)
        identifier = str(uuid.uuid4())
        started = time.monotonic()
        cloud.heard.clear()
        flaps = 15
        for _ in range(flaps):
            async with raw_child(root) as child:
                await child.register(subserver_id=identifier)
        took_s = time.monotonic() - started
        await eventually(lambda: states(root) == {"raw": "degraded"})
        await eventually(lambda: LIST_CHANGED in cloud.heard)
        told = [each for each in cloud.heard if each == LIST_CHANGED]
        assert len(told) <= took_s / COALESCE_S + 2
        assert len(told) <= flaps + 2


# --- cycles (§5.3)


@pytest.mark.req("AX-5.3-2")
@pytest.mark.usefixtures("impatient")
async def test_an_aggregator_below_itself_is_refused_at_registration() -> None:
    async with node("a") as a, node("b") as b, node("own") as own:
        await a.add("env", Board(tool("read")))
        await joined(a, b)
        uplink = b.join(a)
        await eventually(lambda: "registration_cycle" in uplink.describe()["problem"])
        assert a.names() == ["a.env.read"]
        assert b.names() == ["b.a.env.read"]
        itself = own.join(own)
        await eventually(lambda: "registration_cycle" in itself.describe()["problem"])


@pytest.mark.req("AX-5.3-2")
@pytest.mark.usefixtures("impatient")
async def test_a_ring_of_three_that_forms_later_is_opened_and_stays_open() -> None:
    async with node("a") as a, node("b") as b, node("c") as c:
        ring = (a, b, c)
        for each in ring:
            await each.add("env", Board(tool("read")))
        for child, parent in ((a, b), (b, c), (c, a)):  # all at once: none sees a circle yet
            child.join(parent)

        def children() -> int:
            return sum(1 for each in ring for session in each.aggregator.registry if session.request.is_aggregator and not session.degraded)

        def settled() -> bool:
            return children() == 2 and any(len(each.names()) == 3 for each in ring)

        await eventually(settled)
        for each in ring:
            assert max(name.count(".") for name in each.names()) <= 4
            # No name passes anybody twice.
            assert all(len(set(name.split(".")[:-2])) == len(name.split(".")[:-2]) for name in each.names())


@pytest.mark.req("AX-5.3-2")
async def test_a_subtree_that_grows_is_advertised_anew_through_every_level() -> None:
    async with node("root") as root, node("mid") as mid, node("leaf") as leaf:
        await joined(mid, root)
        await eventually(lambda: root.aggregator.registry.subtree_ids() == {root.aggregator.id, mid.aggregator.id})
        await joined(leaf, mid)
        everybody = {each.aggregator.id for each in (root, mid, leaf)}
        await eventually(lambda: root.aggregator.registry.subtree_ids() == everybody)
        await leaf.leave()
        await eventually(lambda: root.aggregator.registry.subtree_ids() == {root.aggregator.id, mid.aggregator.id})


@pytest.mark.req("AX-5.3-2")
async def test_one_who_turns_out_to_have_its_parent_below_is_taken_out_at_once() -> None:
    async with node("root") as root, raw_child(root) as child:
        own = str(uuid.uuid4())
        session_id = (await child.register(**{"x-mcpax-subtree-ids": [own]}))["session_id"]
        answer = await child.ask("mcpax/heartbeat", {"session_id": session_id, "x-mcpax-subtree-ids": [own, root.aggregator.id]})
        assert answer["error"]["code"] == ErrorKind.REGISTRATION_CYCLE.value.code
        assert not root.names()
        assert not list(root.aggregator.registry)


# --- two places in one tree (§13.4)


@pytest.mark.req("AX-13.4-1")
async def test_an_aggregator_is_below_one_parent_of_a_tree_only() -> None:
    async with node("root") as root, node("one") as one, node("two") as two, node("leaf") as leaf:
        await leaf.add("env", Board(tool("read")))
        await joined(one, root)
        await joined(two, root)
        await joined(leaf, one)
        await eventually(lambda: root.names() == ["root.one.leaf.env.read"])
        async with raw_child(two) as twin:  # says that it is the leaf, and denies that it has a parent
            twin.tools = [raw_tool("env.read")]
            await twin.register(segment="leaf", subserver_id=leaf.aggregator.id, **{"x-mcpax-subtree-ids": [leaf.aggregator.id]})
            await eventually(lambda: not list(two.aggregator.registry))  # the root has told it, and it has let go
        assert root.names() == ["root.one.leaf.env.read"]
        assert {session.segment for session in root.aggregator.registry} == {"one", "two"}
        await root.aggregator.call_tool("root.one.leaf.env.read", {})


@pytest.mark.req("AX-13.4-1")
async def test_two_children_of_one_parent_do_not_share_an_aggregator() -> None:
    shared = str(uuid.uuid4())
    async with node("root") as root, raw_child(root) as first, raw_child(root) as second:
        await first.register(segment="one", **{"x-mcpax-subtree-ids": [shared]})
        error = await second.refused(segment="two", **{"x-mcpax-subtree-ids": [str(uuid.uuid4()), shared]})
        assert error["code"] == ErrorKind.REGISTERED_ELSEWHERE.value.code
        assert error["data"]["aggregator_ids"] == [shared]
        assert root.names() == ["root.one.read"]


@pytest.mark.req("AX-13.4-2")
async def test_one_who_names_another_parent_is_refused() -> None:
    async with node("root") as root, raw_child(root) as child:
        child.on["mcpax/parent"] = lambda _: {"parent_id": str(uuid.uuid4())}
        error = await child.refused()
        assert error["code"] == ErrorKind.REGISTERED_ELSEWHERE.value.code
        assert not root.names()
        nonsense: list[Any] = [7, [], {"parent_id": 7}]
        while nonsense:
            child.on["mcpax/parent"] = lambda _: nonsense.pop()
            assert (await child.ask("mcpax/register", registration()))["error"]["code"] == ErrorKind.CHILD_LIED.value.code
        child.on["mcpax/parent"] = lambda _: {"parent_id": root.aggregator.id}
        await child.register()


@pytest.mark.req("AX-13.4-2")
async def test_an_aggregator_says_under_whom_it_is_and_another_parent_believes_it() -> None:
    async with raw_parent() as first, node("second") as second, node("leaf") as leaf:
        leaf.join(first.url)
        await asyncio.wait_for(first.registered.wait(), 5)
        await eventually(lambda: leaf.parentage.parent_id == first.id)
        assert (await first.ask("mcpax/parent", {}))["result"] == {"parent_id": first.id}
        kept = leaf.uplinking
        uplink = leaf.join(second)
        await eventually(lambda: "another parent" in uplink.describe()["problem"])
        assert not list(second.aggregator.registry)
        await leaf.leave()
        assert kept is not None
        kept.cancel()
        await asyncio.gather(kept, return_exceptions=True)


@pytest.mark.parametrize("refusals", [1, 100], ids=["for a moment", "for good"])
async def test_who_has_moved_here_is_kept_unless_its_old_place_does_not_let_go(refusals: int) -> None:
    async with raw_parent() as parent, node("mid") as mid, raw_child(mid) as child:
        moved = str(uuid.uuid4())
        seen: list[bool] = []

        def beat(params: dict[str, Any]) -> dict[str, Any]:
            if moved not in params.get("x-mcpax-subtree-ids", []):
                return {}
            seen.append(len(seen) < refusals)
            elsewhere = {"code": ErrorKind.REGISTERED_ELSEWHERE.value.code, "message": "no", "data": {"aggregator_ids": [moved]}}
            return {"error": elsewhere} if seen[-1] else {}

        def told() -> int:
            return len([message for message in parent.told if message.get("method") == LIST_CHANGED.method])

        parent.on["mcpax/heartbeat"] = beat
        mid.join(parent.url)
        await asyncio.wait_for(parent.registered.wait(), 5)
        await child.register(**{"x-mcpax-subtree-ids": [moved]})
        if refusals == 1:
            await eventually(lambda: seen == [True, False])
            await eventually(lambda: told() == 1)  # only now: nobody above was to see it in two places
            assert states(mid) == {"raw": "active"}
        else:
            await eventually(lambda: not states(mid))
            assert len(seen) <= 4
        assert parent.links == 1


# --- ids that lie


async def test_one_who_claims_a_lost_neighbours_subtree_gets_it_and_the_neighbour_registers_anew() -> None:
    shared = str(uuid.uuid4())
    async with node("root", grace_s=60) as root, raw_child(root) as first, raw_child(root) as second:
        first.tools = second.tools = [raw_tool("x.read")]
        beat = {"heartbeat_interval_ms": 3000}
        kept = await first.register(segment="one", **beat, **{"x-mcpax-subtree-ids": [shared]})
        root.aggregator.degrade(kept["session_id"], "test")
        await second.register(segment="two", **beat, **{"x-mcpax-subtree-ids": [shared]})
        assert root.names() == ["root.two.x.read"]
        answer = await first.ask("mcpax/heartbeat", {"session_id": kept["session_id"]})
        assert answer["error"]["code"] == ErrorKind.UNKNOWN_SESSION.value.code


async def test_one_who_hides_who_is_below_it_makes_no_name_longer_than_allowed() -> None:
    """A circle through a liar: every name ends at 255 characters, and the root serves on."""
    async with node("root") as root, raw_child(root) as liar:
        liar.tools = [raw_tool("env.read")]
        await liar.register(**{"x-mcpax-subtree-ids": [str(uuid.uuid4())]})
        for _ in range(60):
            liar.tools = [raw_tool("env.read"), *(raw_tool(f"{name}") for name in root.names())]
            await root.aggregator.relist(next(iter(root.aggregator.registry)).id)
        assert max(map(len, root.names())) <= 255
        await root.aggregator.call_tool("root.raw.env.read", {})


@pytest.mark.usefixtures("impatient")
async def test_a_subtree_that_is_refused_later_keeps_its_other_parts() -> None:
    """Part of what is below a child belongs elsewhere: that part goes, the child and its heartbeats go on."""
    stolen = str(uuid.uuid4())
    async with node("root") as root, node("mid") as mid, raw_child(root) as owner, raw_child(mid) as thief:
        await mid.add("env", Board(tool("read")))
        await joined(mid, root)
        owner.tools = thief.tools = [raw_tool("x.read")]
        await owner.register(segment="owner", heartbeat_interval_ms=0, **{"x-mcpax-subtree-ids": [stolen]})
        await thief.register(segment="thief", **{"x-mcpax-subtree-ids": [stolen]})
        await eventually(lambda: "thief" not in states(mid))
        await eventually(lambda: root.names() == ["root.mid.env.read", "root.owner.x.read"])
        assert states(root) == {"mid": "active", "owner": "active"}
