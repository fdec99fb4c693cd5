"""The asking end: every request ends exactly once, and says truthfully what is known of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from mcpax.core.subserver import Progress
from mcpax.errors import ErrorKind, Fault, Outcome, RelayedFault
from mcpax.link.caller import MAX_IN_FLIGHT, Caller, link_lost
from mcpax.link.messages import BadMessage, Direction, decode
from tests.core.rig import refused
from tests.link.frames import json_values, meant_frames, message, parsed


class Far:
    """The other side, in a test's hands."""

    def __init__(self) -> None:
        self.frames: list[dict[str, Any]] = []
        self.caller = Caller(Direction.DOWN, self._take)
        self.broken = False

    async def _take(self, text: str) -> None:
        if self.broken:
            raise link_lost("broken", Outcome.UNKNOWN)
        self.frames.append(parsed(text))

    async def ask(self, method: str = "ping", progress: Progress | None = None, **params: Any) -> asyncio.Task[Raw]:
        """Returns when it is sent."""
        task = asyncio.create_task(self.caller.request(method, params, progress=progress))
        await asyncio.sleep(0)
        return task

    def answer(self, identifier: int, **members: Any) -> None:
        self.caller.receive(message(Direction.DOWN, id=identifier, **members))


async def soon(task: Awaitable[Raw]) -> Raw:
    return await asyncio.wait_for(task, 5)


async def test_answers_find_their_requests_in_any_order() -> None:
    far = Far()
    asked = [await far.ask("ping", n=n) for n in range(5)]
    for frame in reversed(far.frames):
        far.answer(frame["id"], result={"n": frame["params"]["n"]})
    assert [json.loads(bytes(await soon(task))) for task in asked] == [{"n": n} for n in range(5)]


async def test_an_answer_to_nothing_or_a_second_answer_changes_nothing() -> None:
    far = Far()
    asked = await far.ask()
    far.answer(999, result={})
    far.answer(-1, error={"code": 1, "message": "no"})
    assert not asked.done()
    far.answer(far.frames[0]["id"], result={"first": 1})
    far.answer(far.frames[0]["id"], error={"code": 1, "message": "second"})
    assert json.loads(bytes(await soon(asked))) == {"first": 1}
    far.answer(far.frames[0]["id"], result={"late": 1})


async def test_ids_are_never_used_twice() -> None:
    far = Far()
    for _ in range(3):
        asked = await far.ask()
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        again = await far.ask()
        far.answer(far.frames[-1]["id"], result=None)
        await soon(again)
    ids = [frame["id"] for frame in far.frames if "id" in frame]
    assert len(set(ids)) == len(ids) == 6


async def test_an_error_comes_with_code_message_and_data() -> None:
    far = Far()
    asked = await far.ask()
    far.answer(far.frames[0]["id"], error={"code": -32002, "message": "tool_degraded", "data": {"since": "then", "n": 1.5}})
    with pytest.raises(RelayedFault) as caught:
        await soon(asked)
    assert (caught.value.code, caught.value.message, caught.value.data()) == (-32002, "tool_degraded", {"since": "then", "n": 1.5})


@pytest.mark.parametrize(("data", "told"), [(None, {}), ([1, 2], {"data": [1, 2]}), ("text", {"data": "text"}), ({"a": 1}, {"a": 1})])
async def test_the_data_of_an_error_may_be_anything(data: object, told: dict[str, object]) -> None:
    far = Far()
    asked = await far.ask()
    far.answer(far.frames[0]["id"], error={"code": 1, "message": "no", "data": data})
    with pytest.raises(RelayedFault) as caught:
        await soon(asked)
    assert caught.value.data() == told


async def test_an_answer_with_neither_result_nor_error_is_a_lie() -> None:
    far = Far()
    asked = await far.ask()
    far.answer(far.frames[0]["id"])
    with refused(ErrorKind.CHILD_LIED) as caught:
        await soon(asked)
    assert caught.value.outcome is Outcome.UNKNOWN


async def test_more_than_the_most_in_flight_are_refused_and_were_not_sent() -> None:
    far = Far()
    asked = [await far.ask() for _ in range(MAX_IN_FLIGHT)]
    with refused(ErrorKind.DEVICE_BUSY) as caught:
        await far.caller.request("ping", {})
    assert caught.value.outcome is Outcome.NOT_EXECUTED
    assert caught.value.retry_after_ms
    assert len(far.frames) == MAX_IN_FLIGHT
    far.answer(far.frames[0]["id"], result={})
    await soon(asked[0])
    asked.append(await far.ask())
    assert len(far.frames) == MAX_IN_FLIGHT + 1
    far.caller.close("enough")
    await asyncio.gather(*asked, return_exceptions=True)


async def test_closing_fails_every_waiter_once_and_the_outcome_is_unknown() -> None:
    far = Far()
    asked = [await far.ask() for _ in range(20)]
    far.caller.close("pulled")
    far.caller.close("and again")
    for frame in far.frames:
        far.answer(frame["id"], result={"too": "late"})
    failures = await asyncio.gather(*asked, return_exceptions=True)
    for failure in failures:
        assert isinstance(failure, Fault)
        assert (failure.kind, failure.outcome) == (ErrorKind.LINK_LOST, Outcome.UNKNOWN)
        assert "pulled" in failure.message
    assert len(far.frames) == 20  # nobody was told of cancellations


async def test_what_is_asked_after_the_end_was_never_sent() -> None:
    far = Far()
    far.caller.close("pulled")
    with refused(ErrorKind.LINK_LOST) as caught:
        await far.caller.request("tools/call", {})
    assert caught.value.outcome is Outcome.NOT_EXECUTED
    await far.caller.notify("notifications/x", {})
    assert not far.frames


async def test_a_wire_that_breaks_while_sending_leaves_the_outcome_unknown_and_no_waiter() -> None:
    far = Far()
    far.broken = True
    with refused(ErrorKind.LINK_LOST) as caught:
        await far.caller.request("tools/call", {})
    assert caught.value.outcome is Outcome.UNKNOWN
    far.broken = False
    asked = await far.ask()
    far.answer(far.frames[0]["id"], result={})
    await soon(asked)


async def test_what_cannot_be_written_is_refused_before_it_is_sent() -> None:
    far = Far()
    nested: list[Any] = []
    for _ in range(5000):
        nested = [nested]
    for arguments in ({"text": "\ud800"}, {"deep": nested}, {"n": float("inf")}, {"n": [float("nan")]}, {"what": object()}):
        with refused(ErrorKind.INVALID_PARAMS) as caught:
            await far.caller.request("tools/call", {"arguments": arguments})
        assert caught.value.outcome is Outcome.NOT_EXECUTED
    with refused(ErrorKind.INVALID_PARAMS) as caught:
        await far.caller.request("tools/call", {"arguments": "x" * (8 << 20)})
    assert "bytes" in caught.value.message
    assert not far.frames


async def test_cancelling_tells_the_other_side_once() -> None:
    far = Far()
    kept, dropped = await far.ask(), await far.ask()
    dropped.cancel()
    await asyncio.gather(dropped, return_exceptions=True)
    assert dropped.cancelled()
    told = far.frames[2:]
    assert told == [{"direction": "D", "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": far.frames[1]["id"]}}]
    far.answer(far.frames[1]["id"], result={"late": True})
    far.answer(far.frames[0]["id"], result={})
    await soon(kept)


async def test_a_wire_that_takes_nothing_does_not_hold_up_who_has_given_up() -> None:
    never = asyncio.Event()

    async def stuck(_: str) -> None:
        await never.wait()

    caller = Caller(Direction.DOWN, stuck)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await caller.request("tools/call", {})
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_progress_reaches_the_request_it_is_for() -> None:
    far = Far()
    heard: dict[str, list[object]] = {"one": [], "other": []}

    def hear(name: str) -> Progress:
        async def progress(done: float, total: float | None, text: str | None) -> None:
            heard[name].append((done, total, text))

        return progress

    one, other = await far.ask(progress=hear("one")), await far.ask(progress=hear("other"))
    tokens = [frame["params"]["_meta"]["progressToken"] for frame in far.frames]
    for token, params in (
        (tokens[0], {"progress": 1, "total": 2.5, "message": "half"}),
        (tokens[1], {"progress": 7}),
        (999, {"progress": 0}),
        ("a", {"progress": 0}),
        (tokens[0], {"progress": "much"}),
    ):
        far.caller.receive(message(Direction.DOWN, method="notifications/progress", params={"progressToken": token, **params}))
    await asyncio.sleep(0)
    assert heard == {"one": [(1.0, 2.5, "half")], "other": [(7.0, None, None)]}
    far.caller.close("done")
    await asyncio.gather(one, other, return_exceptions=True)


async def test_one_listener_that_does_not_listen_costs_the_others_no_progress_and_no_memory() -> None:
    far = Far()
    never = asyncio.Event()
    heard: list[float] = []

    async def stuck(*_: object) -> None:
        await never.wait()

    async def hear(done: float, *_: object) -> None:
        heard.append(done)

    asked = [await far.ask(progress=stuck), await far.ask(progress=hear)]
    before = len(asyncio.all_tasks())
    for done in range(50):
        for frame in far.frames[:2]:
            params = {"progressToken": frame["id"], "progress": done}
            far.caller.receive(message(Direction.DOWN, method="notifications/progress", params=params))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert heard == list(range(50))
    assert len(asyncio.all_tasks()) <= before + 1
    far.caller.close("done")
    await asyncio.gather(*asked, return_exceptions=True)
    never.set()


async def test_progress_for_a_request_that_has_ended_is_nobodys() -> None:
    far = Far()
    heard: list[float] = []

    async def hear(done: float, *_: object) -> None:
        heard.append(done)

    asked = await far.ask(progress=hear)
    far.answer(far.frames[0]["id"], result={})
    await soon(asked)
    far.caller.receive(message(Direction.DOWN, method="notifications/progress", params={"progressToken": 1, "progress": 1}))
    await asyncio.sleep(0)
    assert not heard


async def test_the_other_directions_words_mean_nothing_here() -> None:
    """A cancellation or a request that came to the asking end is not its to obey."""
    far = Far()
    asked = await far.ask()
    far.caller.receive(message(Direction.DOWN, method="notifications/cancelled", params={"requestId": far.frames[0]["id"]}))
    far.caller.receive(message(Direction.DOWN, id=far.frames[0]["id"], method="ping", result={"not": "an answer"}))
    await asyncio.sleep(0)
    assert not asked.done()
    far.answer(far.frames[0]["id"], result={})
    await soon(asked)


@given(st.lists(meant_frames, max_size=10), json_values)
@settings(max_examples=60)
async def test_whatever_arrives_each_request_ends_exactly_once(script: list[str], final: object) -> None:
    far = Far()
    asked = [await far.ask() for _ in range(3)]
    for frame in script:
        with contextlib.suppress(BadMessage):
            far.caller.receive(decode(frame)[1])
    for identifier in (1, 2, 3):
        far.answer(identifier, result=final)
    far.caller.close("over")
    for end in await asyncio.gather(*asked, return_exceptions=True):
        assert isinstance(end, Raw | Fault)
