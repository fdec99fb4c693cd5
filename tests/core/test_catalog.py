"""The merged list and the routing table: contents, order, pages, and what a change does."""

import re
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpax.capability import Capability
from mcpax.core.catalog import Catalog
from mcpax.core.subserver import Tool
from mcpax.errors import ErrorKind
from mcpax.name_codec import NameStyle, render
from mcpax.names import dotted
from tests.core.rig import READ_ONLY, refused, session, tool


class Changes:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


def catalog_of(*sessions_: object) -> Catalog:
    catalog = Catalog("edge", Changes())
    for each in sessions_:
        catalog.added(each)  # type: ignore[arg-type]
    return catalog


def names(catalog: Catalog, style: NameStyle = NameStyle.DOTTED) -> list[str]:
    return [listed["name"] for listed in catalog.page(style).tools]


# --- the routing table


@pytest.mark.req("AX-7.1-1")
def test_the_routing_table_says_session_name_capability_and_since_when() -> None:
    capability = Capability.parse({"latency_class": "slow", "mutable": True, "reversible": True, "schema_version": "2.1.0"})
    catalog = catalog_of(session("env", tool("read", capability=capability)), session("site", tool("plc", "stop")))
    assert {dotted(route.name): route.to_json() for route in catalog.routes()} == {
        "edge.env.read": {
            "downstream_session": "session-of-env",
            "downstream_name": "read",
            "capability": capability.to_json(),
            "registered_at": "2026-05-01T12:00:00.000Z",
        },
        "edge.site.plc.stop": {
            "downstream_session": "session-of-site",
            "downstream_name": "plc.stop",
            "capability": READ_ONLY.to_json(),
            "registered_at": "2026-05-01T12:00:00.000Z",
        },
    }


@pytest.mark.parametrize("style", NameStyle)
def test_a_route_is_found_by_its_name_in_any_style(style: NameStyle) -> None:
    catalog = catalog_of(session("env", tool("read"), tool("write")))
    name = ("edge", "env", "write")
    route = catalog.resolve(render(name, style))
    assert route is not None
    assert route is catalog.route(name)
    assert route.name == name
    assert catalog.resolve("read") is None
    assert catalog.route(("edge", "env")) is None


# --- the list


@pytest.mark.req("AX-5.1-2")
def test_names_are_prefixed_merged_and_in_order() -> None:
    catalog = catalog_of(session("zoo", tool("b"), tool("a")), session("env", tool("c")))
    assert names(catalog) == ["edge.env.c", "edge.zoo.a", "edge.zoo.b"]
    assert names(catalog, NameStyle.FLAT) == ["edge__env__c", "edge__zoo__a", "edge__zoo__b"]
    assert names(catalog, NameStyle.COLON) == ["edge.env:c", "edge.zoo:a", "edge.zoo:b"]


def test_annotations_are_passed_on_as_they_are_with_the_depth_added() -> None:
    stated = {
        "latency_class": "realtime",
        "consistency": "eventual",
        "mutable": True,
        "reversible": True,
        "idempotent": True,
        "transport": "can_cbor",
        "auth_scope": "admin",
        "cost_class": "metered",
        "availability": "scheduled",
        "schema_version": "3.2.1",
    }
    capability = Capability.parse(stated)
    catalog = catalog_of(*(session(f"s{depth}", tool(*["x"] * depth, capability=capability, hops_below=depth - 1)) for depth in (1, 2, 7)))
    for listed, depth in zip(catalog.page(NameStyle.FLAT).tools, (1, 2, 7), strict=True):
        assert listed["_meta"]["x-mcpax-capability"] == stated
        assert listed["_meta"]["x-mcpax-hops"] == depth
        assert listed["_meta"]["x-mcpax-route"] == ["edge", f"s{depth}", *["x"] * depth]


@pytest.mark.req("AX-11.2-1")
@pytest.mark.parametrize(("mutable", "reversible"), [(True, False), (True, True), (False, False), (False, True)])
def test_exactly_the_irreversible_mutable_are_flagged(mutable: bool, reversible: bool) -> None:
    capability = Capability(mutable=mutable, reversible=reversible)
    [listed] = catalog_of(session("env", tool("x", capability=capability))).page(NameStyle.DOTTED).tools
    flag = {"x-mcpax-safety": "irreversible_mutable"} if mutable and not reversible else {}
    assert {key: value for key, value in listed["_meta"].items() if key == "x-mcpax-safety"} == flag
    assert listed["annotations"] == capability.hints()


@pytest.mark.req("AX-11.2-1")
def test_an_unannotated_tool_is_flagged() -> None:
    [listed] = catalog_of(session("env", tool("x", capability=Capability.parse({})))).page(NameStyle.DOTTED).tools
    assert listed["_meta"]["x-mcpax-safety"] == "irreversible_mutable"


def test_a_tool_is_listed_with_what_it_has() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    full = Tool(("full",), "Does.", schema, READ_ONLY, title="Full", output_schema=schema)
    listed, quarantined = catalog_of(session("env", full, tool("odd", quarantined="no entry."))).page(NameStyle.DOTTED).tools
    assert {key: listed[key] for key in ("name", "description", "inputSchema", "outputSchema", "title")} == {
        "name": "edge.env.full",
        "description": "Does.",
        "inputSchema": schema,
        "outputSchema": schema,
        "title": "Full",
    }
    assert "x-mcpax-quarantined" not in listed["_meta"]
    assert quarantined.keys() & {"title", "outputSchema"} == set()
    assert quarantined["description"] == "Does odd. Not callable: no entry."
    assert quarantined["_meta"]["x-mcpax-quarantined"] == "no entry."


def test_a_tool_is_rendered_once_until_it_changes() -> None:
    env, zoo = session("env", tool("a")), session("zoo", tool("b"))
    catalog = catalog_of(env, zoo)
    before = catalog.page(NameStyle.FLAT).encoded
    assert all(one is other for one, other in zip(catalog.page(NameStyle.FLAT).encoded, before, strict=True))
    catalog.changed(env)
    after = catalog.page(NameStyle.FLAT).encoded
    assert [one is other for one, other in zip(after, before, strict=True)] == [False, True]


# --- changes


def test_every_change_is_told_and_counted() -> None:
    changes = Changes()
    catalog = Catalog("edge", changes)
    env = session("env", tool("a"))
    catalog.added(env)
    env.tools = (tool("b"),)
    catalog.changed(env)
    assert names(catalog) == ["edge.env.b"]
    assert catalog.resolve("edge.env.a") is None
    assert catalog.resolve("edge__env__b") is not None
    catalog.removed(env)
    assert names(catalog) == []
    assert catalog.resolve("edge.env.b") is None
    assert (changes.count, catalog.version) == (3, 3)


@pytest.mark.req("AX-13.2-1")
def test_degraded_tools_stay_listed_and_say_so() -> None:
    env, zoo = session("env", tool("a")), session("zoo", tool("b"))
    catalog = catalog_of(env, zoo)
    env.degraded_at, env.degraded_since = 1.0, env.registered_at + timedelta(minutes=5)
    catalog.changed(env)
    availability = [listed["_meta"]["x-mcpax-capability"]["availability"] for listed in catalog.page(NameStyle.DOTTED).tools]
    assert availability == ["degraded", "always"]
    env.degraded_at = None
    catalog.changed(env)
    assert catalog.page(NameStyle.DOTTED).tools[0]["_meta"]["x-mcpax-capability"]["availability"] == "always"


# --- pages


def walk(catalog: Catalog, size: int) -> list[list[str]]:
    pages, cursor = [], None
    while True:
        page = catalog.page(NameStyle.DOTTED, cursor, size)
        pages.append([listed["name"] for listed in page.tools])
        if page.next_cursor is None:
            return pages
        cursor = page.next_cursor


@pytest.mark.parametrize(("count", "sizes"), [(0, [0]), (1, [1]), (3, [3]), (4, [3, 1]), (6, [3, 3]), (7, [3, 3, 1])])
def test_pages_are_full_but_for_the_last_and_never_empty_behind_a_cursor(count: int, sizes: list[int]) -> None:
    catalog = catalog_of(session("env", *(tool(f"t{n}") for n in range(count))))
    assert [len(page) for page in walk(catalog, 3)] == sizes


letters = st.sampled_from("abcdefghij")
boards = st.dictionaries(st.sampled_from(["e", "e-", "e_", "ea", "f"]), st.sets(letters, max_size=8), max_size=5)


@given(boards, st.lists(boards, max_size=6), st.integers(1, 5), st.sampled_from(NameStyle))
def test_tools_that_come_and_go_between_pages_cost_no_survivor_and_repeat_none(
    first: dict[str, set[str]], later: list[dict[str, set[str]]], size: int, style: NameStyle
) -> None:
    catalog = Catalog("edge", Changes())
    present = {segment: session(segment, *map(tool, sorted(tools))) for segment, tools in first.items()}
    for each in present.values():
        catalog.added(each)
    survivors = set(names_of(first))
    seen: list[str] = []
    cursor, rounds = None, iter(later)
    while True:
        page = catalog.page(style, cursor, size)
        seen += [dotted(tuple(listed["_meta"]["x-mcpax-route"])) for listed in page.tools]
        assert len(page.tools) <= size
        cursor = page.next_cursor
        if cursor is None:
            break
        now = next(rounds, None)
        if now is not None:
            for each in present.values():
                catalog.removed(each)
            present = {segment: session(segment, *map(tool, sorted(tools))) for segment, tools in now.items()}
            for each in present.values():
                catalog.added(each)
            survivors &= set(names_of(now))
    assert len(set(seen)) == len(seen)
    assert survivors <= set(seen)


def names_of(tree: dict[str, set[str]]) -> list[str]:
    return [f"edge.{segment}.{name}" for segment, tools in tree.items() for name in tools]


@pytest.mark.parametrize("cursor", ["?", "a", "====", "YQ", "_w==", "é", "\udc80", "YWJj YWJj"])
def test_a_cursor_that_is_not_ours_is_refused(cursor: str) -> None:
    with refused(ErrorKind.INVALID_PARAMS) as caught:
        catalog_of().page(NameStyle.FLAT, cursor)
    assert re.search("cursor", caught.value.message)
