"""The aggregator's own tools: registered and called like any other's, in a place that nobody else may take."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from mcpax.core.aggregator import Aggregator
from mcpax.core.flow import FlowLimits
from mcpax.core.own_tools import NOTIFICATIONS_DROPPED, own_request
from mcpax.core.registration import RegistrationRequest
from mcpax.core.subserver import Json, Notification
from mcpax.errors import ErrorKind, Outcome
from mcpax.name_codec import NameStyle
from tests.core.rig import Board, refused, request, tool

NAME = "edge.mcpax.notifications_dropped"


async def started(**options: Any) -> Aggregator:
    aggregator = Aggregator("edge", "some-id", own_tools=True, **options)
    await aggregator.start()
    return aggregator


async def listed(aggregator: Aggregator) -> dict[str, Json]:
    return {each["name"]: each for each in (await aggregator.list_tools(NameStyle.DOTTED)).tools}


async def test_without_being_asked_for_there_are_none() -> None:
    aggregator = Aggregator("edge", "some-id")
    await aggregator.start()
    assert await listed(aggregator) == {}


async def test_it_is_listed_as_what_it_is() -> None:
    described = (await listed(await started()))[NAME]
    assert described["annotations"]["readOnlyHint"] is True
    capability = described["_meta"]["x-mcpax-capability"]
    assert (capability["latency_class"], capability["transport"], capability["auth_scope"]) == ("fast", "native", "read")
    jsonschema.Draft202012Validator.check_schema(described["outputSchema"])
    jsonschema.Draft202012Validator.check_schema(described["inputSchema"])


async def test_it_says_what_was_dropped_and_what_waits_by_its_own_schema() -> None:
    aggregator = await started(flow_limits=FlowLimits(burst=1, depth=2))
    quiet, loud = [(await aggregator.register(request(name, n), Board(tool("a")))).session_id for n, name in enumerate(("env", "lab"))]
    assert (await aggregator.call_tool(NAME, {}))["structuredContent"] == {"total": 0, "by_subserver": []}
    aggregator.emit(quiet, Notification("event"))
    for _ in range(8):
        aggregator.emit(loud, Notification("event"))
    result = await aggregator.call_tool(NAME, {})
    told = {"total": 5, "by_subserver": [{"source": "edge.lab", "dropped": 5, "buffered": 2}]}
    assert result["structuredContent"] == told
    assert result["content"] == [{"type": "text", "text": '{"total":5,"by_subserver":[{"source":"edge.lab","dropped":5,"buffered":2}]}'}]
    assert NOTIFICATIONS_DROPPED.output_schema is not None
    jsonschema.validate(told, NOTIFICATIONS_DROPPED.output_schema)
    await aggregator.close(0)


async def test_arguments_are_refused() -> None:
    aggregator = await started()
    with refused(ErrorKind.INVALID_TOOL_ARGS) as caught:
        await aggregator.call_tool(NAME, {"since": 1})
    assert "since" in caught.value.message
    assert caught.value.outcome is Outcome.NOT_EXECUTED


@pytest.mark.parametrize("own_tools", [False, True])
async def test_nobody_else_takes_the_place(own_tools: bool) -> None:
    aggregator = Aggregator("edge", "some-id", own_tools=own_tools)
    await aggregator.start()
    with refused(ErrorKind.INVALID_PARAMS) as caught:
        await aggregator.register(request("mcpax"), Board(tool("a")))
    assert "reserved" in caught.value.message
    assert caught.value.details == {"field": "segment"}
    assert list(await listed(aggregator)) == ([NAME] if own_tools else [])


async def test_it_registers_by_the_rules_under_an_id_that_nobody_knows() -> None:
    asked = own_request()
    assert RegistrationRequest.parse(
        {"subserver_id": asked.subserver_id, "segment": asked.segment, "transport_class": asked.transport_class, "version": asked.version}
    )
    assert own_request().subserver_id != asked.subserver_id


async def test_it_stays_without_heartbeats_and_is_asked_again_like_others() -> None:
    aggregator = await started(list_ttl_s=0)
    assert aggregator.registry.sweep() is None
    assert list(await listed(aggregator)) == list(await listed(aggregator)) == [NAME]
    await aggregator.close(0)
    assert not list(aggregator.registry)
