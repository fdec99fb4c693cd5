"""Boards come and go: unplugged under load, plugged in again, elsewhere, with another gateway. The others lose nothing."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mcpax.bridge.wire.dialect import dialect_for
from mcpax.bridge.wire.messages import CallRequest
from mcpax.core.subserver import Json, Notification
from mcpax.errors import ErrorKind, Fault, Outcome
from mcpax.gateway import Gateway
from mcpax.name_codec import NameStyle
from tests.harness.lossy import LossyLine
from tests.virtual import BOARDS, MAPS, VirtualBoard, running_gateway

BACK_WITHIN_S = 2.0
"""From the port's return to the board's. Stated in the project's aims, so an absolute figure."""
DEADLINE_S = 15.0
CALLS: dict[str, tuple[str, Json]] = {
    "env-sensor": ("read_climate", {}),
    "relay-board": ("pulse_relay", {"relay": 1, "duration": 5}),
    "relay-board-b": ("pulse_relay", {"relay": 1, "duration": 5}),
    "valve-actuator": ("dose", {"amount": 1}),
}


async def until(met: Callable[[], bool], what: str) -> None:
    """Boards are other processes: looking is all there is."""
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not met():  # noqa: ASYNC110
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise AssertionError(f"not within {DEADLINE_S} s: {what}") from None


def device(gateway: Gateway, segment: str) -> Json:
    return next(each for each in gateway.bridge.devices() if each["segment"] == segment)


def subserver_ids(gateway: Gateway) -> dict[str, str]:
    return {session.segment: session.request.subserver_id for session in gateway.aggregator.registry}


async def call(gateway: Gateway, segment: str) -> Json:
    tool, arguments = CALLS[segment]
    return await gateway.aggregator.call_tool(f"edge.{segment}.{tool}", arguments)


class Load:
    """Calls a board without pause, and keeps account."""

    def __init__(self, gateway: Gateway, segment: str) -> None:
        self._gateway = gateway
        self._segment = segment
        self.answers: list[Json] = []
        self.faults: list[Fault] = []
        self.back_at: float | None = None
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while True:
            try:
                self.answers.append((await call(self._gateway, self._segment))["structuredContent"])
                if self.back_at is None:
                    self.back_at = time.monotonic()
            except Fault as fault:
                self.faults.append(fault)
            await asyncio.sleep(0.002)

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


@pytest.mark.req("AX-13.2-1")
@pytest.mark.parametrize("pulled", BOARDS)
async def test_one_of_many_is_unplugged_and_comes_back_by_itself(pulled: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    boards = {name: VirtualBoard(name, tmp_path) for name in BOARDS}
    try:
        for board in boards.values():
            board.start()
        async with running_gateway(list(boards.values())) as running:
            gateway = running.gateway
            ids = subserver_ids(gateway)
            changes: list[Notification] = []
            gateway.aggregator.notifier.subscribe(changes.append)
            loads = {name: Load(gateway, name) for name in BOARDS}
            await until(lambda: all(len(load.answers) > 50 for load in loads.values()), "load on all of them")

            boards[pulled].stop()
            await until(lambda: any(fault.kind is ErrorKind.TOOL_DEGRADED for fault in loads[pulled].faults), "the tools are degraded")
            listed = {tool["name"]: tool for tool in (await gateway.aggregator.list_tools(NameStyle.DOTTED)).tools}
            gone = listed[f"edge.{pulled}.{CALLS[pulled][0]}"]
            assert gone["_meta"]["x-mcpax-capability"]["availability"] == "degraded"
            degraded = loads[pulled].faults[-1]
            assert degraded.code == -32002
            assert degraded.outcome is Outcome.NOT_EXECUTED
            assert {"reason", "since", "retry_after_ms"} <= degraded.data().keys()
            others = {name: len(load.answers) for name, load in loads.items() if name != pulled}
            await until(lambda: all(len(loads[name].answers) > count + 50 for name, count in others.items()), "the others go on")

            loads[pulled].back_at = None
            plugged_at = time.monotonic()
            boards[pulled].start()
            await until(lambda: loads[pulled].back_at is not None, "the board answers again")
            took_s = (loads[pulled].back_at or 0.0) - plugged_at
            await until(lambda: any(each.method == "notifications/tools/list_changed" for each in changes), "clients are told")
            for load in loads.values():
                await load.stop()

            with capsys.disabled():
                print(f"\n{pulled}: back {took_s:.2f} s after its port; calls { ({n: len(each.answers) for n, each in loads.items()}) }")
            assert took_s < BACK_WITHIN_S
            for name in others:
                assert not loads[name].faults, f"{name} failed while {pulled} was away: {loads[name].faults[:3]}"
            assert subserver_ids(gateway) == ids
            # The calls that were in flight say so; every other one was refused without being sent.
            outcomes = Counter(fault.outcome for fault in loads[pulled].faults)
            assert outcomes[Outcome.UNKNOWN] <= 1
            for name, key in (("relay-board", "pulses"), ("relay-board-b", "pulses"), ("valve-actuator", "doses")):
                if name != pulled:
                    assert [answer[key] for answer in loads[name].answers] == list(range(1, len(loads[name].answers) + 1))
    finally:
        for board in boards.values():
            board.stop()


async def test_a_board_that_is_pulled_again_and_again_always_comes_back_in_time(tmp_path: Path) -> None:
    board = VirtualBoard("relay-board", tmp_path).start()
    try:
        async with running_gateway([board]) as running:
            for _ in range(5):
                board.stop()
                await until(lambda: device(running.gateway, "relay-board")["state"] == "absent", "it is gone")
                plugged_at = time.monotonic()
                board.start()
                await until(lambda: device(running.gateway, "relay-board")["state"] == "online", "it is back")
                assert time.monotonic() - plugged_at < BACK_WITHIN_S
                await call(running.gateway, "relay-board")
    finally:
        board.stop()


async def test_the_same_board_on_another_port_keeps_its_identity(tmp_path: Path) -> None:
    """Its name under by-id stays, and leads to another device: plugged in again, into another socket."""
    with VirtualBoard("relay-board", tmp_path) as first:
        async with running_gateway([first]) as running:
            gateway = running.gateway
            ids = subserver_ids(gateway)
            assert (await call(gateway, "relay-board"))["structuredContent"] == {"pulses": 1}
            path = first.link.readlink()
            # The new one takes over the name before the old one goes, so it must have another path.
            with VirtualBoard("relay-board", tmp_path) as second:
                assert second.link.readlink() != path
                first.stop()
                await until(lambda: device(gateway, "relay-board")["counters"]["connects"] == 2, "it is opened again")
                await until(lambda: device(gateway, "relay-board")["state"] == "online", "it is back")
                assert (await call(gateway, "relay-board"))["structuredContent"] == {"pulses": 1}
                assert subserver_ids(gateway) == ids


async def test_a_restarted_gateway_goes_on_where_the_last_one_stopped(tmp_path: Path) -> None:
    """Same board, never reset: the sequence goes on, nothing runs again, and it is the same subserver."""
    (tmp_path / "board").mkdir()
    (tmp_path / "by-id").mkdir()
    with VirtualBoard("relay-board", tmp_path / "board") as board:
        link = tmp_path / "by-id" / board.link.name
        with LossyLine(board.link, link, MAPS / "relay-board.toml", tmp_path / "record", seed=1, rate=0) as line:
            options: dict[str, Any] = {"bindings": (board.binding,), "by_id_dirs": (tmp_path / "by-id",), "state_dir": tmp_path / "state"}
            seen = []
            pulses = 0
            for _ in range(3):
                async with running_gateway([], **options) as running:
                    seen.append((subserver_ids(running.gateway), running.gateway.aggregator.id))
                    for _ in range(5):
                        pulses += 1
                        assert (await call(running.gateway, "relay-board"))["structuredContent"] == {"pulses": pulses}
            assert seen[0] == seen[1] == seen[2]
            line.tell("stats")
            dialect = dialect_for(board.map)
            calls = [dialect.decode_request(each.message) for each in line.truth() if each.to_board]
            sequences = [each.seq for each in calls if isinstance(each, CallRequest)]
            assert len(sequences) == 15
            steps = [(after - before) % 256 for before, after in pairwise(sequences)]
            assert all(1 <= step <= 127 for step in steps), f"a sequence was used again: {sequences}"
