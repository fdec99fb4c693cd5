"""The answering end: every request is answered once or was cancelled, whatever its handler does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import Raw
from structlog.testing import capture_logs

from mcpax.core.subserver import Progress
from mcpax.errors import ErrorKind, Fault, Outcome
from mcpax.link.answerer import MOST_WAITING, Answerer
from mcpax.link.caller import MAX_IN_FLIGHT, link_lost
from mcpax.link.messages import MAX_MESSAGE_BYTES, BadMessage, Direction
from tests.link.frames import message, parsed
from tests.link.nodes import eventually


class Desk:
    """An answerer whose requests wait until the test lets them go."""

    def __init__(self) -> None:
        self.frames: list[dict[str, Any]] = []
        self.broken = False
        self.notified: list[str] = []
        self.go = asyncio.Event()
        self.started = 0
        self.cancelled = 0
        self.fault: BaseException | None = None
        self.result: Any = {}
        self.answerer = Answerer(
            Direction.DOWN,
            self._send,
            {"wait": self._wait, "do": self._do, "tell": self._tell},
            lambda method, _: self.notified.append(method),
        )

    async def _send(self, text: str) -> None:
        if self.broken:
            raise link_lost("broken", Outcome.UNKNOWN)
        self.frames.append(parsed(text))

    async def _wait(self, _: Raw, __: Progress) -> Any:
        self.started += 1
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return {"waited": True}

    async def _do(self, _: Raw, __: Progress) -> Any:
        if self.fault is not None:
            raise self.fault
        return self.result

    async def _tell(self, _: Raw, progress: Progress) -> Any:
        await progress(1, 2.5, "half")
        await progress(2, None, None)
        return {}

    def ask(self, identifier: int, method: str, **params: Any) -> None:
        self.answerer.receive(message(Direction.DOWN, id=identifier, method=method, params=params))

    def tell(self, method: str, **params: Any) -> None:
        self.answerer.receive(message(Direction.DOWN, method=method, params=params))

    async def answered(self, count: int = 1) -> list[dict[str, Any]]:
        await eventually(lambda: len(self.frames) >= count)
        return self.frames


async def test_an_unknown_method_is_answered_with_an_error() -> None:
    desk = Desk()
    desk.ask(4, "nonsense")
    assert (await desk.answered())[0]["error"]["code"] == -32601


async def test_an_answer_that_comes_to_the_answering_end_means_nothing() -> None:
    desk = Desk()
    desk.answerer.receive(message(Direction.DOWN, id=1, result={}))
    desk.answerer.receive(message(Direction.DOWN, id=1, error={"code": 1, "message": ""}))
    desk.ask(1, "do")
    assert (await desk.answered())[0]["result"] == {}


async def test_a_cancelled_request_ends_its_work_and_is_not_answered() -> None:
    desk = Desk()
    desk.ask(1, "wait")
    desk.ask(2, "wait")
    await eventually(lambda: desk.started == 2)
    desk.tell("notifications/cancelled", requestId=1)
    desk.tell("notifications/cancelled", requestId=99)
    desk.tell("notifications/cancelled", requestId="x")
    desk.tell("notifications/cancelled")
    await eventually(lambda: desk.cancelled == 1)
    desk.go.set()
    assert [frame["id"] for frame in await desk.answered()] == [2]
    assert not desk.notified


async def test_an_id_in_use_is_not_taken_twice_and_free_again_afterwards() -> None:
    desk = Desk()
    desk.ask(1, "wait")
    await eventually(lambda: desk.started == 1)
    with capture_logs() as logs:
        desk.ask(1, "do")
    assert [log["event"] for log in logs] == ["request_id_reused"]
    desk.go.set()
    assert (await desk.answered())[0]["result"] == {"waited": True}
    desk.ask(1, "do")
    assert (await desk.answered(2))[1]["result"] == {}


async def test_more_than_the_most_under_way_are_told_so_and_those_before_go_on() -> None:
    desk = Desk()
    for identifier in range(MAX_IN_FLIGHT + 5):  # in one breath, before any of them has begun
        desk.ask(identifier, "wait")
    await desk.answered(5)
    refusals = list(desk.frames)
    assert [frame["id"] for frame in refusals] == list(range(MAX_IN_FLIGHT, MAX_IN_FLIGHT + 5))
    assert {frame["error"]["data"]["outcome"] for frame in refusals} == {"not_executed"}
    assert desk.started == MAX_IN_FLIGHT
    desk.go.set()
    frames = await desk.answered(MAX_IN_FLIGHT + 5)
    assert len([frame for frame in frames if "result" in frame]) == MAX_IN_FLIGHT


async def test_one_who_asks_without_end_and_hears_no_answer_loses_the_link() -> None:
    never = asyncio.Event()

    async def stuck(_: str) -> None:
        await never.wait()

    flooded = Answerer(Direction.UP, stuck, {})
    for identifier in range(MOST_WAITING):
        flooded.receive(message(Direction.UP, id=identifier, method="ping"))
        await asyncio.sleep(0)
    with pytest.raises(BadMessage, match=f"{MOST_WAITING} requests"):
        flooded.receive(message(Direction.UP, id=MOST_WAITING, method="ping"))
    flooded.close()


async def test_progress_is_told_in_order_and_before_the_answer() -> None:
    desk = Desk()
    desk.ask(9, "tell")
    frames = await desk.answered(3)
    assert [frame.get("params") for frame in frames] == [
        {"progressToken": 9, "progress": 1.0, "total": 2.5, "message": "half"},
        {"progressToken": 9, "progress": 2.0},
        None,
    ]
    assert frames[2]["result"] == {}


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Fault(ErrorKind.TOOL_DEGRADED, "tool_degraded"), -32002),
        (RuntimeError("a bug"), ErrorKind.CHILD_ERROR.value.code),
        (RecursionError("deep"), ErrorKind.CHILD_ERROR.value.code),
        (TimeoutError(), ErrorKind.CHILD_ERROR.value.code),
    ],
)
async def test_a_handler_that_fails_is_answered_for(fault: BaseException, code: int) -> None:
    desk = Desk()
    desk.fault = fault
    with capture_logs():
        desk.ask(1, "do")
        answer = (await desk.answered())[0]
    assert answer["error"]["code"] == code
    assert "a bug" not in str(answer)


@pytest.mark.parametrize("result", ["\ud800", object(), {1: object()}])
async def test_a_result_that_cannot_be_written_is_answered_for(result: Any) -> None:
    desk = Desk()
    desk.result = result
    with capture_logs():
        desk.ask(1, "do")
        assert (await desk.answered())[0]["error"]["code"] == ErrorKind.CHILD_ERROR.value.code


async def test_a_fault_that_cannot_be_written_is_answered_for() -> None:
    desk = Desk()
    desk.fault = Fault(ErrorKind.TOOL_DEGRADED, "tool_degraded", details={"x": object()})
    desk.ask(1, "do")
    assert (await desk.answered())[0]["error"]["code"] == -32002


@pytest.mark.parametrize("letter", ["x", "é", "\x00"])
async def test_a_result_too_long_is_withheld_and_said_to_have_run(letter: str) -> None:
    desk = Desk()
    desk.result = {"text": letter * (MAX_MESSAGE_BYTES // len(letter.encode()))}
    desk.ask(1, "do")
    error = (await desk.answered())[0]["error"]
    assert str(MAX_MESSAGE_BYTES) in error["message"]
    assert error["data"]["outcome"] == "executed"


async def test_when_the_link_ends_all_work_ends() -> None:
    desk = Desk()
    for identifier in range(5):
        desk.ask(identifier, "wait")
    await eventually(lambda: desk.started == 5)
    desk.answerer.close()
    await eventually(lambda: desk.cancelled == 5)
    assert not desk.frames


async def test_an_answer_into_a_broken_wire_is_nobodys_error() -> None:
    desk = Desk()
    desk.broken = True
    stray: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: stray.append(context))
    for identifier, method in enumerate(("do", "tell", "nonsense")):
        desk.ask(identifier, method)
    await eventually(lambda: len(asyncio.all_tasks()) == 1)
    assert not stray


async def test_what_wants_no_answer_is_passed_on() -> None:
    desk = Desk()
    desk.tell("notifications/tools/list_changed")
    desk.tell("anything")
    assert desk.notified == ["notifications/tools/list_changed", "anything"]
