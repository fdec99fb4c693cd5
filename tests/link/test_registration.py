"""`mcpax/register`, `heartbeat` and `deregister` over a link, by a child that writes its own JSON (draft §4, §6, §10.2, §11.4)."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from mcpax.capability import AuthScope
from mcpax.config_links import Links
from mcpax.core.notify import LIST_CHANGED
from mcpax.core.ownership import Alone
from mcpax.core.principal import Principal
from mcpax.core.registration import Budget
from mcpax.errors import ErrorKind, Fault
from mcpax.link.authority import sign_authority
from mcpax.link.endpoint import Pass
from mcpax.linking import voucher
from mcpax.pki import make_authority_key
from mcpax.store.sqlite import Store
from tests.core.rig import refused
from tests.link.nodes import LINK_TOKEN, Node, eventually, node
from tests.link.raw import RawChild, raw_child, raw_tool, registration

MUTABLE = {"x-mcpax-capability": {"mutable": True, "reversible": True}}
OTHER_TOKEN = "a-token-of-somebody-else"
READ_TOKEN = "a-token-for-reading-only"
PASSES = (
    Pass(Principal("one", AuthScope.ADMIN), LINK_TOKEN),
    Pass(Principal("other", AuthScope.ADMIN), OTHER_TOKEN),
    Pass(Principal("reader", AuthScope.READ), READ_TOKEN),
    Pass(Principal("fixed", AuthScope.ADMIN, segment="mine"), "a-token-for-one-segment"),
)


@contextlib.asynccontextmanager
async def pair(**more: Any) -> AsyncIterator[tuple[Node, RawChild]]:
    async with node("root", **more) as root, raw_child(root) as child:
        yield root, child


# --- the request (§6.1)


@pytest.fixture
async def refused_child() -> AsyncIterator[RawChild]:
    """A child that is not to get in."""
    async with pair() as (root, child):
        yield child
        assert not list(root.aggregator.registry)


LONG = "a" * 64
MALFORMED: dict[str, tuple[object, ...]] = {
    "subserver_id": (..., None, "", "not-a-uuid", 7, [], "550e8400-e29b-41d4-a716-44665544000g"),
    "segment": (..., None, "", "Upper", "a.b", "a b", "ü", LONG, 7, {}, "a\n"),
    "transport_class": (..., None, "", "UART", "a" * 33, 7, "a-b"),
    "version": (..., None, "", "1", "2026-5-1", "２０２６-05-01", 20260501),
    "heartbeat_interval_ms": (None, -1, 1, 99, 3_600_001, 1.5, "5000", True, [], 10**30),
    "authority": ("", "edge.example.com", "dns:", "dns:-a", "dns:a..b", f"dns:{LONG}", "dns:\u212adge", 7, ["dns:a"]),
    "capabilities": (None, [], "tools", {"tools": 1}, {"tools": None}, {"flying": True}),
    "x-mcpax-subtree-ids": (None, "x", {}, ["x"], [7], [str(uuid.uuid4())] * 4097),
    "x-mcpax-auth-scope": (None, "", "root", 7, []),
    "x-mcpax-authority-proof": (7, [], "x" * 8193),
    "budget": ({"max_calls_per_minute": 10**6},),
    "segmnt": ("raw",),
}


@pytest.mark.req("AX-6.1-1")
@pytest.mark.parametrize("field", MALFORMED)
async def test_a_malformed_field_is_named(refused_child: RawChild, field: str) -> None:
    for value in MALFORMED[field]:
        error = await refused_child.refused(**{field: value})
        assert error["code"] == -32602, value
        assert error["data"]["field"] == field, value
        assert field in error["message"]
        assert len(error["message"]) < 400


async def test_a_field_with_a_name_without_end_is_not_said_back(refused_child: RawChild) -> None:
    error = await refused_child.refused(**{"x" * 100_000: 1})
    assert error["code"] == -32602
    assert len(str(error)) < 1000


@pytest.mark.req("AX-6.1-1")
async def test_parameters_that_are_no_object_are_refused(refused_child: RawChild) -> None:
    for params in ([], None, "x", 7, [registration()]):
        assert (await refused_child.ask("mcpax/register", params))["error"]["code"] == -32602


@pytest.mark.req("AX-6.1-1", "AX-6.2-1")
async def test_every_field_of_the_draft_is_accepted_and_the_answer_has_every_field() -> None:
    budget = Budget(max_calls_per_minute=60, max_mutable_calls_per_session=10)
    async with pair(budget=budget) as (root, child):
        result = await child.register(segment="stm32h7", authority="dns:edge01.factory.example.com", heartbeat_interval_ms=5000)
        assert result["status"] == "registered"
        assert result["assigned_segment"] == "stm32h7"
        assert result["heartbeat_deadline_ms"] == 15_000
        assert result["budget"] == {"max_calls_per_minute": 60, "max_mutable_calls_per_session": 10}
        assert len(result["session_id"]) >= 32
        assert root.aggregator.registry.get(result["session_id"]) is not None
        assert root.names() == ["root.stm32h7.read"]


# --- names (§4.1, §4.3)


@pytest.mark.req("AX-4.2-1")
async def test_the_first_of_two_children_keeps_a_segment() -> None:
    async with pair() as (root, first), raw_child(root) as second:
        kept = await first.register(segment="env")
        error = await second.refused(segment="env")
        assert error["code"] == ErrorKind.NAMESPACE_CONFLICT.value.code
        assert "namespace_conflict" in error["message"]
        assert error["data"]["error"] == "namespace_conflict"
        assert kept["session_id"] not in str(error)
        assert root.names() == ["root.env.read"]
        await root.aggregator.call_tool("root.env.read", {})
        assert [request["method"] for request in first.asked if request["method"] == "tools/call"]


@pytest.mark.req("AX-4.2-1")
async def test_of_two_children_that_come_at_once_exactly_one_is_taken() -> None:
    async with pair() as (root, first), raw_child(root) as second:
        answers = await asyncio.gather(*(child.ask("mcpax/register", registration(segment="env")) for child in (first, second)))
        assert sorted("error" in answer for answer in answers) == [False, True]
        assert len(list(root.aggregator.registry)) == 1


@pytest.mark.req("AX-4.3-1")
async def test_only_an_aggregator_presents_names_with_dots() -> None:
    async with pair() as (root, child):
        child.tools = [raw_tool("other.read")]
        error = await child.refused(segment="leaf")
        assert error["code"] == -32602
        assert "other.read" in error["message"]
        assert not root.names()
        await child.register(segment="agg", **{"x-mcpax-subtree-ids": [str(uuid.uuid4())]})
        assert root.names() == ["root.agg.other.read"]


@pytest.mark.parametrize("ids", [[], [str(uuid.uuid4())]], ids=["leaf", "aggregator"])
async def test_a_tool_name_that_breaks_the_rules_is_refused(refused_child: RawChild, ids: list[str]) -> None:
    for name in ("", ".", "a.", ".a", "a..b", "Upper", "a b", "ü", "root.env.read\n", "a" * 64, "a" * 256):
        refused_child.tools = [raw_tool(name)]
        error = await refused_child.refused(**{"x-mcpax-subtree-ids": ids})
        assert error["code"] in (-32602, ErrorKind.CHILD_LIED.value.code), name


async def test_the_longest_names_of_a_leaf_are_taken() -> None:
    async with pair() as (root, child):
        child.tools = [raw_tool("a" * 63)]
        assert await child.register(segment="s" * 63)
        assert [len(name) for name in root.names()] == [4 + 1 + 63 + 1 + 63]


def deep(total: int) -> str:
    """A name that takes `total` characters as root.raw.NAME."""
    left = total - len("root.raw.")
    parts = []
    while left > 63:
        parts.append("a" * 60)
        left -= 61
    return ".".join([*parts, "b" * left])


@pytest.mark.req("AX-4.1-2")
async def test_one_name_too_long_costs_an_aggregator_that_tool_and_not_its_others() -> None:
    """It cannot know how long its names become above it, and what is below it must not be able to silence its neighbours."""
    async with pair() as (root, child):
        child.tools = [raw_tool("env.read"), raw_tool(deep(255)), raw_tool(deep(256))]
        await child.register(**{"x-mcpax-subtree-ids": [str(uuid.uuid4())]})
        assert sorted(map(len, root.names())) == [len("root.raw.env.read"), 255]
        child.tools = [raw_tool("env.read"), raw_tool("env.write"), raw_tool(deep(257))]
        await child.tell(LIST_CHANGED.method)
        await eventually(lambda: root.names() == ["root.raw.env.read", "root.raw.env.write"])


# --- ownership (§4.2)


@pytest.mark.req("AX-4.2-2")
async def test_a_title_outlives_the_session_and_the_program(tmp_path: Path) -> None:
    for step in range(3):
        store = Store(tmp_path / "mcpax.db")
        async with pair(ownership=Alone(store)) as (root, child):
            if step == 0:
                await child.register(segment="press", authority="dns:plant.example.com")
                continue  # closed without a word, and the store with it
            for other in ({"authority": "dns:elsewhere.example.com"}, {}):
                error = await child.refused(segment="press", **other)
                assert error["data"]["error"] == "namespace_conflict"
                assert "plant" not in str(error)
            assert not root.names()
            if step == 2:
                await child.register(segment="press", authority="dns:plant.example.com")
                assert root.names() == ["root.press.read"]
        store.close()


class Plant:
    """An authority that a parent knows, and the parent's judgement as configured."""

    def __init__(self, directory: Path, **links: Any) -> None:
        self._parent_id = str(uuid.uuid4())
        self._key = make_authority_key()
        anchors = directory / "anchors"
        anchors.mkdir()
        (anchors / "plant.example.com.pem").write_bytes(self._key.public)
        self.vouch = voucher(Links(anchors=anchors, **links), self._parent_id)

    def proof(self, subserver_id: str) -> str:
        return sign_authority(self._key.key, "plant.example.com", self._parent_id, subserver_id, time.time())


@pytest.mark.req("AX-4.2-4")
async def test_an_unproven_authority_is_accepted_for_tools_that_only_read(tmp_path: Path) -> None:
    async with pair(vouch=Plant(tmp_path).vouch) as (root, child):
        await child.register(authority="dns:plant.example.com")
        assert root.names() == ["root.raw.read"]


@pytest.mark.req("AX-4.2-3")
async def test_an_unproven_authority_is_refused_for_tools_that_change_something(tmp_path: Path) -> None:
    async with pair(vouch=Plant(tmp_path).vouch) as (root, child):
        child.tools = [raw_tool("set", **MUTABLE)]
        error = await child.refused(authority="dns:plant.example.com")
        assert error["code"] == ErrorKind.AUTHORITY_UNPROVEN.value.code
        assert not root.names()


@pytest.mark.req("AX-4.2-4")
async def test_an_unproven_authority_is_accepted_for_all_tools_by_configuration(tmp_path: Path) -> None:
    async with pair(vouch=Plant(tmp_path, accept_unproven=True).vouch) as (root, child):
        child.tools = [raw_tool("set", **MUTABLE)]
        await child.register(authority="dns:plant.example.com")
        assert root.names() == ["root.raw.set"]


@pytest.mark.req("AX-4.2-4")
async def test_an_unproven_authority_gives_no_title(tmp_path: Path) -> None:
    store = Store(tmp_path / "mcpax.db")
    async with pair(vouch=Plant(tmp_path).vouch, ownership=Alone(store)) as (_, child):
        await child.register(segment="press", authority="dns:plant.example.com")
        assert store.authority_of("press") is None
    store.close()


@pytest.mark.req("AX-4.2-3")
async def test_an_unproven_authority_does_not_get_tools_that_change_something_later_either(tmp_path: Path) -> None:
    """A gateway registers before its boards are there: what its tools do is not known at registration."""
    async with pair(vouch=Plant(tmp_path).vouch) as (root, child):
        await child.register(authority="dns:plant.example.com")
        child.tools = [raw_tool("read"), raw_tool("set", **MUTABLE)]
        with capture_logs() as logs:
            await child.tell(LIST_CHANGED.method)
            await eventually(lambda: "relist_failed" in [log["event"] for log in logs])
        assert root.names() == ["root.raw.read"]


@pytest.mark.req("AX-4.2-2", "AX-4.2-3")
async def test_a_proven_authority_may_change_its_tools_and_its_segment_is_its_own(tmp_path: Path) -> None:
    plant = Plant(tmp_path)
    identifier = str(uuid.uuid4())
    store = Store(tmp_path / "mcpax.db")
    async with pair(vouch=plant.vouch, ownership=Alone(store)) as (root, child):
        proof = {"x-mcpax-authority-proof": plant.proof(identifier)}
        await child.register(subserver_id=identifier, authority="dns:plant.example.com", **proof)
        child.tools = [raw_tool("set", **MUTABLE)]
        await child.tell(LIST_CHANGED.method)
        await eventually(lambda: root.names() == ["root.raw.set"])
        assert store.authority_of("raw") == "dns:plant.example.com"
        async with raw_child(root) as thief:  # a proof works once
            error = await thief.refused(subserver_id=identifier, authority="dns:plant.example.com", **proof)
            assert error["code"] == ErrorKind.AUTHORITY_UNPROVEN.value.code
    store.close()


# --- heartbeats (§6.3)

BEAT_MS = 100


@pytest.mark.req("AX-6.3-1")
async def test_heartbeats_keep_a_session_and_three_missed_lose_it() -> None:
    async with pair(grace_s=0) as (root, child):
        session_id = (await child.register(heartbeat_interval_ms=BEAT_MS))["session_id"]
        session = root.aggregator.registry.get(session_id)
        assert session is not None
        for _ in range(8):  # longer than three intervals
            heard = session.last_heard
            await asyncio.sleep(BEAT_MS / 1000 / 2)
            assert (await child.ask("mcpax/heartbeat", {"session_id": session_id}))["result"] == {}
            assert session.last_heard > heard
            assert root.names()
        silent_since = time.monotonic()
        await eventually(lambda: not root.names())
        assert time.monotonic() - silent_since > 2.5 * BEAT_MS / 1000
        answer = await child.ask("mcpax/heartbeat", {"session_id": session_id})
        assert answer["error"]["code"] == ErrorKind.UNKNOWN_SESSION.value.code


async def test_no_heartbeats_are_missed_where_none_were_promised() -> None:
    async with pair(grace_s=0) as (root, child):
        await child.register(heartbeat_interval_ms=0)
        assert root.aggregator.registry.sweep() is None


async def test_a_malformed_heartbeat_or_farewell_is_refused() -> None:
    async with pair() as (root, child):
        await child.register()
        for method in ("mcpax/heartbeat", "mcpax/deregister"):
            wrong: list[Any] = [{}, {"session_id": 7}, [], {"session_id": "x", "x-mcpax-subtree-ids": 7}, {"session_id": None}, "x", None]
            for params in wrong:
                assert (await child.ask(method, params))["error"]["code"] == -32602, (method, params)
        assert root.names()


@pytest.mark.req("AX-6.3-2", "AX-6.3-3")
async def test_deregistering_removes_at_once_and_is_told_upstream_within_an_interval() -> None:
    interval_s = 0.5
    async with node("cloud") as cloud, node("root") as root, raw_child(root) as child:
        root.join(cloud)
        session_id = (await child.register(heartbeat_interval_ms=int(interval_s * 1000)))["session_id"]
        await eventually(lambda: cloud.names() == ["cloud.root.raw.read"])
        cloud.heard.clear()
        started = time.monotonic()
        assert (await child.ask("mcpax/deregister", {"session_id": session_id}))["result"] == {}
        assert not root.names()
        with refused(ErrorKind.TOOL_NOT_FOUND):
            await root.aggregator.call_tool("root.raw.read", {})
        await eventually(lambda: not cloud.names())
        assert time.monotonic() - started < interval_s
        await eventually(lambda: LIST_CHANGED in cloud.heard)
        assert "error" in await child.ask("mcpax/deregister", {"session_id": session_id})


# --- whose a session is


@pytest.mark.parametrize("method", ["mcpax/heartbeat", "mcpax/deregister"])
async def test_a_session_id_is_of_no_use_on_another_link(method: str) -> None:
    async with node("root", passes=PASSES) as root, raw_child(root) as child:
        session_id = (await child.register())["session_id"]
        for token in (LINK_TOKEN, OTHER_TOKEN):
            async with raw_child(root, token) as thief:
                error = (await thief.ask(method, {"session_id": session_id}))["error"]
                assert error["code"] == ErrorKind.UNKNOWN_SESSION.value.code
                never = (await thief.ask(method, {"session_id": "0" * 32}))["error"]
                assert never == error  # nothing tells a session of another from none
        assert root.names() == ["root.raw.read"]


async def test_a_subserver_id_of_another_principal_is_refused() -> None:
    identifier = str(uuid.uuid4())
    async with node("root", passes=PASSES) as root, raw_child(root) as child, raw_child(root, OTHER_TOKEN) as thief:
        kept = await child.register(subserver_id=identifier)
        for segment in ("raw", "other"):
            error = await thief.refused(subserver_id=identifier, segment=segment)
            assert error["code"] == ErrorKind.REGISTERED_ELSEWHERE.value.code
        assert root.aggregator.registry.get(kept["session_id"]) is not None


async def test_the_same_child_on_a_new_link_takes_its_place_over() -> None:
    identifier = str(uuid.uuid4())
    async with node("root") as root, raw_child(root) as before, raw_child(root) as after:
        old = await before.register(subserver_id=identifier)
        after.tools = [raw_tool("fresh")]
        new = await after.register(subserver_id=identifier)
        assert root.names() == ["root.raw.fresh"]
        assert new["session_id"] != old["session_id"]
        assert "error" in await before.ask("mcpax/heartbeat", {"session_id": old["session_id"]})
        await before.connection.close()
        await before.ended
        await root.aggregator.call_tool("root.raw.fresh", {})  # the end of the old link is not the new one's


async def test_a_principal_bound_to_a_segment_gets_no_other() -> None:
    async with node("root", passes=PASSES) as root, raw_child(root, "a-token-for-one-segment") as child:
        assert (await child.refused(segment="yours"))["data"]["error"] == "namespace_conflict"
        await child.register(segment="mine")
        assert root.names() == ["root.mine.read"]


# --- scope (§10.2)


def scoped_tools() -> list[dict[str, Any]]:
    return [
        raw_tool("look", **{"x-mcpax-capability": {"mutable": False, "auth_scope": "read"}}),
        raw_tool("set", **{"x-mcpax-capability": {"mutable": True, "auth_scope": "write"}}),
        raw_tool("sneak", **{"x-mcpax-capability": {"mutable": True, "auth_scope": "read"}}),
        raw_tool("reset", **{"x-mcpax-capability": {"mutable": True, "auth_scope": "admin"}}),
        raw_tool("bare", **{"x-mcpax-capability": None}),
    ]


@pytest.mark.req("AX-10.2-1")
@pytest.mark.parametrize(
    ("token", "asked", "allowed"),
    [
        (LINK_TOKEN, {"x-mcpax-auth-scope": "read"}, {"look"}),
        (LINK_TOKEN, {"x-mcpax-auth-scope": "write"}, {"look", "set", "sneak", "bare"}),
        (LINK_TOKEN, {}, {"look", "set", "sneak", "bare", "reset"}),
        (READ_TOKEN, {}, {"look"}),
        (READ_TOKEN, {"x-mcpax-auth-scope": "admin"}, {"look"}),
    ],
)
async def test_a_child_gets_no_call_beyond_its_scope(token: str, asked: dict[str, str], allowed: set[str]) -> None:
    async with node("root", passes=PASSES) as root, raw_child(root, token) as child:
        child.tools = scoped_tools()
        await child.register(**asked)
        for name in ("look", "set", "sneak", "reset", "bare"):
            if name in allowed:
                await root.aggregator.call_tool(f"root.raw.{name}", {})
            else:
                with refused(ErrorKind.PERMISSION_DENIED):
                    await root.aggregator.call_tool(f"root.raw.{name}", {})
        called = {request["params"]["name"] for request in child.asked if request["method"] == "tools/call"}
        assert called == allowed


# --- budget (§11.4)


@pytest.mark.req("AX-11.4-1")
@pytest.mark.parametrize(
    ("budget", "limit"),
    [
        (Budget(max_calls_per_minute=2), "max_calls_per_minute"),
        (Budget(max_mutable_calls_per_session=2), "max_mutable_calls_per_session"),
        (Budget(max_cost_units_per_session=20), "max_cost_units_per_session"),
    ],
)
async def test_the_budget_of_the_answer_is_enforced_whatever_the_child_asks_for(budget: Budget, limit: str) -> None:
    async with pair(budget=budget) as (root, child):
        child.tools = [raw_tool("set", **{"x-mcpax-capability": {"mutable": True, "cost_class": "expensive"}})]
        generous = {"x-mcpax-budget": {"max_calls_per_minute": 10**6}, "_meta": {"budget": {}}}
        result = await child.register(**generous)
        assert result["budget"] == budget.to_json()
        for _ in range(2):
            await root.aggregator.call_tool("root.raw.set", {})
        with pytest.raises(Fault) as caught:
            await root.aggregator.call_tool("root.raw.set", {})
        assert caught.value.code == -32003
        assert caught.value.data()["error"] == "budget_exceeded"
        assert caught.value.data()["limit"] == limit
        assert len([request for request in child.asked if request["method"] == "tools/call"]) == 2
