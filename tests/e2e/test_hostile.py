"""Boards that lie, flood, hang and cheat: each is contained, and an honest board beside it does not notice.

The hostile board and the honest one (the real C stub) share one gateway. While the attack runs, the honest board is called without pause:
not one call may fail, and its calls may not take much longer than they do without the attack, measured in the same test.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mcpax.core.subserver import Json, Notification
from mcpax.errors import ErrorKind, Fault, Outcome
from mcpax.gateway import Gateway
from mcpax.name_codec import NameStyle
from tests.harness.hostile import ATTACKS, HostileBoard
from tests.virtual import VirtualBoard, running_gateway

IDLE_CALLS = 100
SLOWER_BY = 5.0
"""The honest board's median call during an attack, in idle medians."""
SLOWEST_BY = 30.0
"""Its slowest but one in ten, in idle ones: a hiccup of the machine is no attack, and one in a hundred is a hiccup."""
DEADLINE_S = 12.0


@dataclass
class Scene:
    """One gateway with a hostile and an honest board."""

    gateway: Gateway
    honest_s: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def device(self, segment: str) -> Json:
        return next(device for device in self.gateway.bridge.devices() if device["segment"] == segment)

    def hostile(self) -> Json:
        return self.device("hostile")

    def counter(self, name: str) -> int:
        device = self.hostile()
        dropped = sum(each.dropped for each in self.gateway.aggregator.flows.counts() if each.source == "edge.hostile")
        counters: dict[str, int] = {**device["counters"], **device["framing"], "notifications_dropped": dropped}
        return counters[name]

    async def call(self, tool: str, arguments: Json | None = None) -> Json:
        return await self.gateway.aggregator.call_tool(f"edge.hostile.{tool}", arguments or {})

    async def failing(self, tool: str, arguments: Json | None = None) -> Fault:
        with pytest.raises(Fault) as caught:
            await self.call(tool, arguments)
        return caught.value

    async def until(self, met: Callable[[], bool], what: str) -> None:
        """Wait for something with a deadline; everything here comes from another process, so looking is all there is."""
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not met():  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(f"not within {DEADLINE_S} s: {what}; {self.hostile()}") from None

    async def online(self) -> None:
        await self.until(lambda: self.hostile()["state"] == "online", "the hostile board is online")

    async def honest_call(self) -> float:
        started = time.perf_counter()
        result = await self.gateway.aggregator.call_tool("edge.env-sensor.read_climate", {})
        assert "temperature" in result["structuredContent"]
        return time.perf_counter() - started

    async def honest_load(self) -> None:
        while True:
            try:
                self.honest_s.append(await self.honest_call())
            except Fault as fault:
                self.faults.append(str(fault))
            await asyncio.sleep(0.001)


@contextlib.asynccontextmanager
async def under_attack(attack: str, device: str, directory: Path) -> AsyncIterator[Scene]:
    """The attack begins, the block runs, and the honest board is judged at the end."""
    assert attack in ATTACKS
    with VirtualBoard("env-sensor", directory) as honest, HostileBoard(attack, device, directory) as hostile:
        bindings = (honest.binding, hostile.binding)
        async with running_gateway([honest], online=False, bindings=bindings) as running:
            scene = Scene(running.gateway)
            await scene.until(lambda: scene.device("env-sensor")["state"] == "online", "the honest board is online")
            hostile.prepared()
            for _ in range(20):
                await scene.honest_call()
            idle = []
            for _ in range(IDLE_CALLS):
                idle.append(await scene.honest_call())
                await asyncio.sleep(0.001)
            hostile.begin()
            load = asyncio.create_task(scene.honest_load())
            try:
                yield scene
                enough = len(scene.honest_s) + IDLE_CALLS
                await scene.until(lambda: len(scene.honest_s) >= enough, f"{IDLE_CALLS} more honest calls")
            finally:
                hostile.end()
                load.cancel()
                await asyncio.gather(load, return_exceptions=True)
            assert not scene.faults, f"the honest board failed {len(scene.faults)} times: {scene.faults[:3]}"
            attacked = scene.honest_s
            medians = statistics.median(attacked) / statistics.median(idle)
            slowest = statistics.quantiles(attacked, n=10)[8] / statistics.quantiles(idle, n=10)[8]
            print(f"{attack} on {device}: honest calls {len(attacked)}, median x{medians:.1f}, 90th percentile x{slowest:.1f}")
            assert medians < SLOWER_BY, f"{attack} makes the honest board {medians:.1f} times slower"
            assert slowest < SLOWEST_BY, f"{attack} makes the honest board's slowest calls {slowest:.1f} times slower"


A, B = "relay-board", "valve-actuator"


@pytest.mark.req("AX-10.4-2")
@pytest.mark.parametrize(
    ("attack", "device", "tool"),
    [
        ("WrongType", A, "read_relays"),
        ("WrongType", B, "read_valve"),
        ("OutOfRange", A, "read_relays"),
        ("OutOfRange", B, "read_valve"),
        ("MissingField", B, "read_valve"),
        ("ExtraField", B, "read_valve"),
        ("NotANumber", B, "read_valve"),
        ("Bignum", B, "read_valve"),
    ],
)
async def test_an_answer_that_breaks_the_map_is_withheld(attack: str, device: str, tool: str, tmp_path: Path) -> None:
    async with under_attack(attack, device, tmp_path) as scene:
        await scene.online()
        fault = await scene.failing(tool)
        assert fault.kind is ErrorKind.DEVICE_LIED
        assert fault.outcome is Outcome.EXECUTED
        assert "device map" in fault.message
        assert scene.counter("refused_results") == 1


@pytest.mark.req("AX-10.4-2")
@pytest.mark.parametrize(
    ("attack", "device", "tool", "counter"),
    [
        ("OtherTool", A, "read_relays", "refused_messages"),
        ("UnknownTool", A, "read_relays", "refused_messages"),
        ("NoStatus", A, "read_relays", "refused_messages"),
        ("NotBytes", B, "stop", "refused_messages"),
        ("BadUtf8", B, "stop", "refused_messages"),
        ("Tags", B, "stop", "refused_messages"),
        ("DeepNesting", B, "stop", "refused_messages"),
        ("WrongSequence", A, "read_relays", "duplicates_suppressed"),
        ("WrongSequence", B, "stop", "duplicates_suppressed"),
        ("NeverAnswers", A, "read_relays", "timeouts"),
        ("NeverAnswers", B, "stop", "timeouts"),
        ("NeverReads", A, "read_relays", "timeouts"),
        ("NeverReads", B, "stop", "timeouts"),
    ],
)
async def test_what_is_no_answer_is_never_taken_for_one(attack: str, device: str, tool: str, counter: str, tmp_path: Path) -> None:
    async with under_attack(attack, device, tmp_path) as scene:
        await scene.online()
        fault = await scene.failing(tool)
        assert fault.kind is ErrorKind.DEVICE_TIMEOUT
        assert fault.outcome is Outcome.UNKNOWN
        assert scene.counter(counter) >= 1


async def test_a_status_without_meaning_leaves_the_outcome_unknown(tmp_path: Path) -> None:
    async with under_attack("ReservedStatus", A, tmp_path) as scene:
        await scene.online()
        fault = await scene.failing("read_relays")
        assert fault.kind is ErrorKind.DEVICE_ERROR
        assert fault.outcome is Outcome.UNKNOWN


async def test_an_answer_after_the_deadline_goes_to_nobody(tmp_path: Path) -> None:
    async with under_attack("AnswersLate", A, tmp_path) as scene:
        await scene.online()
        assert (await scene.failing("read_relays")).outcome is Outcome.UNKNOWN
        await scene.until(lambda: scene.counter("duplicates_suppressed") >= 1, "the late answer has come")
        assert (await scene.call("read_relays"))["structuredContent"] == {"mask": 0, "pulses": 0}


@pytest.mark.parametrize(("device", "tool"), [(A, "read_relays"), (B, "read_valve")])
async def test_half_a_frame_costs_that_frame(device: str, tool: str, tmp_path: Path) -> None:
    async with under_attack("HalfFrame", device, tmp_path) as scene:
        await scene.online()
        for _ in range(3):
            assert not (await scene.call(tool))["isError"]
        assert scene.counter("retries") >= 2


@pytest.mark.parametrize(
    ("attack", "device", "counter"),
    [
        ("FloodGarbage", A, "resyncs"),
        ("FloodGarbage", B, "resyncs"),
        ("FloodZeros", A, "resyncs"),
        ("FloodStarts", A, "crc_errors"),
        ("FloodHeartbeats", A, "received"),
        ("FloodHeartbeats", B, "received"),
        ("FloodEvents", A, "notifications_dropped"),
        ("FloodEvents", B, "notifications_dropped"),
        ("FloodBadEvents", A, "refused_messages"),
        ("FloodBadEvents", B, "refused_messages"),
        ("FloodResponses", A, "duplicates_suppressed"),
        ("FloodResponses", B, "duplicates_suppressed"),
        ("FloodNonsense", A, "refused_messages"),
        ("FloodNonsense", B, "refused_messages"),
        ("FloodRegistrations", B, "received"),
        ("HugeLength", A, "oversize"),
        ("HugeLength", B, "oversize"),
    ],
)
async def test_a_flood_slows_nobody_else_down(attack: str, device: str, counter: str, tmp_path: Path) -> None:
    heard: list[Notification] = []
    async with under_attack(attack, device, tmp_path) as scene:
        stop = scene.gateway.aggregator.notifier.subscribe(heard.append)
        started = time.monotonic()
        await scene.until(lambda: len(scene.honest_s) > 2 * IDLE_CALLS, "the flood has run for a while")
        await scene.until(lambda: counted(scene, counter) > 10, f"{counter} was counted")
        stop()
        events = [each for each in heard if each.method == "notifications/mcpax/event"]
        assert len(events) <= 100 * (time.monotonic() - started) + 100, "no more events are passed on than the draft's limit"


def counted(scene: Scene, counter: str) -> int:
    try:
        return scene.counter(counter)
    except KeyError:
        return 0  # between two connections there is no framing to count


@pytest.mark.parametrize(
    ("attack", "device", "problem"),
    [
        ("UnsynchronisedForever", A, "synchronise"),
        ("AlternatingBootsUnsynchronised", A, "synchronise"),
        ("ManyTools", B, "does not announce its tools; 2 frames were larger than 1024 bytes"),
        ("HugeRegistration", B, "does not announce its tools; 2 frames were larger than 1024 bytes"),
        ("DuplicateIds", B, "does not announce its tools; 2 messages made no sense"),
        ("OtherMap", A, "does not fit the device map: its map hash is 12345678"),
        ("OtherMap", B, "volume"),
    ],
)
async def test_a_board_that_cannot_be_trusted_is_not_listed_and_says_why(attack: str, device: str, problem: str, tmp_path: Path) -> None:
    async with under_attack(attack, device, tmp_path) as scene:
        await scene.until(lambda: problem in scene.hostile()["problem"], f"the problem names {problem!r}")
        assert scene.hostile()["state"] != "online"
        listed = await scene.gateway.aggregator.list_tools(NameStyle.DOTTED)
        assert not [tool["name"] for tool in listed.tools if ".hostile." in tool["name"]]
        fault = await scene.failing("stop")
        assert fault.kind is ErrorKind.TOOL_NOT_FOUND


@pytest.mark.parametrize("attack", ["AlternatingBoots", "UnsynchronisedCalls"])
async def test_a_board_that_keeps_restarting_runs_nothing(attack: str, tmp_path: Path) -> None:
    async with under_attack(attack, A, tmp_path) as scene:
        await scene.until(lambda: scene.counter("connects") > 0 and counted(scene, "received") > 0, "it speaks")
        if attack == "UnsynchronisedCalls":
            await scene.online()
            fault = await scene.failing("set_relay", {"relay": 1, "state": "on"})
            assert fault.outcome is Outcome.NOT_EXECUTED, "by its own word nothing ran"
        await scene.until(lambda: len(scene.honest_s) > 2 * IDLE_CALLS, "it has gone on for a while")


@pytest.mark.req("AX-8.3-2")
async def test_a_tool_that_no_map_knows_is_listed_flagged_and_closed(tmp_path: Path) -> None:
    async with under_attack("ExtraTool", B, tmp_path) as scene:
        await scene.online()
        listed: dict[str, Any] = {tool["name"]: tool for tool in (await scene.gateway.aggregator.list_tools(NameStyle.DOTTED)).tools}
        extra = listed["edge.hostile.self_destruct"]
        assert "no entry" in extra["_meta"]["x-mcpax-quarantined"]
        assert extra["_meta"]["x-mcpax-safety"] == "irreversible_mutable"
        assert "Not callable" in extra["description"]
        fault = await scene.failing("self_destruct")
        assert fault.kind is ErrorKind.TOOL_DISABLED
        assert fault.outcome is Outcome.NOT_EXECUTED
        assert not (await scene.call("read_valve"))["isError"], "what the map knows stays callable"
