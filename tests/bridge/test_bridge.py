"""The bridge over real boards: what reaches the wire, what operators see, and ports that are looked for."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import cbor2
import pytest

from mcpax.bridge import bridge as bridge_module
from mcpax.bridge.bridge import FRAMES_BUFFERED, _watch
from mcpax.bridge.maps.load import load_map
from mcpax.bridge.maps.model import Profile
from mcpax.bridge.ports import Port, scan
from mcpax.bridge.slot import Slot
from mcpax.bridge.wire.dialect import dialect_for
from mcpax.bridge.wire.messages import CallRequest
from mcpax.core.subserver import Json
from mcpax.errors import ErrorKind, Fault, Outcome
from mcpax.gateway import Gateway
from tests.harness.lossy import LossyLine
from tests.virtual import BOARDS, MAPS, VirtualBoard, running_gateway

DEADLINE_S = 10.0


async def until(met: Callable[[], bool], what: str) -> None:
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not met():  # noqa: ASYNC110
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise AssertionError(f"not within {DEADLINE_S} s: {what}") from None


@asynccontextmanager
async def tapped(name: str, directory: Path) -> AsyncIterator[tuple[Gateway, VirtualBoard, LossyLine]]:
    """A gateway, a real board, and a faultless line between them that writes down all that passes."""
    for folder in ("board", "by-id"):
        (directory / folder).mkdir()
    with VirtualBoard(name, directory / "board") as board:
        link = directory / "by-id" / board.link.name
        with LossyLine(board.link, link, MAPS / f"{name}.toml", directory / "record", seed=1, rate=0) as line:
            async with running_gateway([], bindings=(board.binding,), by_id_dirs=(link.parent,)) as running:
                yield running.gateway, board, line


def sent(line: LossyLine) -> list[bytes]:
    line.tell("stats")
    return [seen.message for seen in line.truth() if seen.to_board]


GOOD: dict[str, tuple[str, Json]] = {"relay-board": ("set_relay", {"relay": 2, "state": "on"}), "valve-actuator": ("dose", {"amount": 7})}


@pytest.mark.req("AX-8.2-2", "AX-8.3-1")
@pytest.mark.parametrize("name", GOOD)
async def test_a_board_gets_its_number_and_the_arguments_and_nothing_else(name: str, tmp_path: Path) -> None:
    tool_name, arguments = GOOD[name]
    async with tapped(name, tmp_path) as (gateway, board, line):
        route = ["edge", name, tool_name]
        meta = {"x-mcpax-route": route, "x-mcpax-cursor": 0, "x-mcpax-trace": "secret-of-the-caller"}
        await gateway.aggregator.call_tool(".".join(route), arguments, meta)
        everything = sent(line)
        tool = next(tool for tool in board.map.tools if tool.name == tool_name)
        dialect = dialect_for(board.map)
        (call,) = [each for message in everything if isinstance(each := dialect.decode_request(message), CallRequest)]
        assert call.tool == tool.id
        if board.map.profile is Profile.A:
            assert everything[-1] == bytes((1, tool.id, call.seq, 2, 1)), "type, tool, sequence, relay, state"
        else:
            assert cbor2.loads(everything[-1]) == {0: 2, 1: 1, 2: call.seq, 3: tool.id, 4: {0: 7}}
        for text in (b"mcpax", b"secret", tool_name.encode(), name.encode(), b"edge"):
            assert text not in b"".join(everything)


@pytest.mark.req("AX-8.2-3")
@pytest.mark.parametrize(
    ("name", "tool", "arguments"),
    [
        ("relay-board", "set_relay", {"relay": 5, "state": "on"}),
        ("relay-board", "set_relay", {"relay": 1, "state": "half"}),
        ("relay-board", "set_relay", {"relay": 1}),
        ("relay-board", "pulse_relay", {"relay": "1"}),
        ("valve-actuator", "dose", {"amount": 501}),
        ("valve-actuator", "dose", {"amount": 1.5}),
        ("valve-actuator", "dose", {"amount": 1, "extra": 1}),
        ("valve-actuator", "dose", {"amount": None}),
    ],
)
async def test_not_a_byte_is_sent_for_bad_arguments(name: str, tool: str, arguments: Json, tmp_path: Path) -> None:
    async with tapped(name, tmp_path) as (gateway, board, line):
        with pytest.raises(Fault) as caught:
            await gateway.aggregator.call_tool(f"edge.{name}.{tool}", arguments)
        assert caught.value.kind is ErrorKind.INVALID_TOOL_ARGS
        assert caught.value.outcome is Outcome.NOT_EXECUTED
        requests = [dialect_for(board.map).decode_request(message) for message in sent(line)]
        assert not [each for each in requests if isinstance(each, CallRequest)]


@pytest.mark.req("AX-B.3-1", "AX-B.3-2")
@pytest.mark.parametrize("name", BOARDS)
async def test_a_board_is_found_mapped_registered_and_kept_alive(name: str, tmp_path: Path) -> None:
    """The boot sequence of both profiles, and heartbeats on the board's behalf: it stays registered while nobody calls it."""
    shipped = load_map(MAPS / f"{name}.toml")
    board_map = replace(shipped, port=replace(shipped.port, heartbeat_ms=100))
    quick = VirtualBoard(name, tmp_path, map=board_map)
    async with running_gateway([quick], online=False) as running:
        gateway = running.gateway
        (before,) = gateway.bridge.devices()
        assert (before["state"], before["problem"]) == ("absent", "no such port")
        assert len(gateway.aggregator.catalog) == 0
        with quick:
            await until(lambda: gateway.bridge.devices()[0]["state"] == "online", "it is online")
            (session,) = gateway.aggregator.registry
            assert session.request.heartbeat_interval_ms == 100
            assert {route.downstream_name for route in gateway.aggregator.catalog.routes()} == {tool.name for tool in board_map.tools}
            heard = gateway.bridge.devices()[0]["counters"]["received"]
            # Ten intervals without a call: three missed ones would degrade it.
            await until(lambda: gateway.bridge.devices()[0]["counters"]["received"] >= heard + 10, "ten heartbeats are answered")
            assert not session.degraded


async def test_a_look_at_the_ports_that_fails_does_not_end_the_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def failing_scan(by_id_dirs: Sequence[Path], globs: Sequence[str]) -> list[Port]:
        nonlocal looks
        looks += 1
        if looks < 3:
            raise OSError("sysfs changed while it was read")
        return scan(list(by_id_dirs), globs)

    monkeypatch.setattr(bridge_module, "scan", failing_scan)
    with VirtualBoard("relay-board", tmp_path) as board:
        async with running_gateway([board]):
            assert looks >= 3


async def test_two_boards_that_match_one_entry_are_told_of_and_the_first_is_taken(tmp_path: Path) -> None:
    with VirtualBoard("relay-board", tmp_path) as first, VirtualBoard("relay-board", tmp_path, number=2):
        binding = first.binding
        both = type(binding)(binding.segment, binding.map, type(binding.match)(by_id="usb-mcpax_relay-board_*"))
        async with running_gateway([first], bindings=(both,)) as running:
            (device,) = running.gateway.bridge.devices()
            assert device["port"] == str(first.link)


def is_open(path: Path) -> bool:
    """In this process."""
    return os.path.realpath(path) in {os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")}


async def test_no_port_is_opened_that_no_map_means(tmp_path: Path) -> None:
    with VirtualBoard("relay-board", tmp_path) as meant, VirtualBoard("env-sensor", tmp_path) as other:
        async with running_gateway([meant]):
            assert is_open(meant.link)
            assert not is_open(other.link)


async def test_a_port_that_cannot_be_opened_is_told_to_operators(tmp_path: Path) -> None:
    board = VirtualBoard("relay-board", tmp_path)
    board.link.symlink_to("/dev/null")  # a device, and no terminal
    async with running_gateway([board], online=False) as running:
        await until(lambda: "cannot be opened" in running.gateway.bridge.devices()[0]["problem"], "the problem is told")
        assert running.gateway.bridge.devices()[0]["state"] == "absent"


async def test_frames_are_seen_by_those_who_watch(tmp_path: Path) -> None:
    with VirtualBoard("relay-board", tmp_path) as board:
        async with running_gateway([board]) as running:
            frames = running.gateway.bridge.frames("relay-board")
            first = asyncio.ensure_future(anext(frames))
            await asyncio.sleep(0)
            await running.gateway.aggregator.call_tool("edge.relay-board.set_relay", {"relay": 1, "state": "on"})
            seen = [await first]
            async with asyncio.timeout(DEADLINE_S):
                while seen[-1]["kind"] != "response":
                    seen.append(await anext(frames))
            call = next(frame for frame in seen if frame["kind"] == "call")
            assert (call["direction"], call["tool"], call["arguments"]) == ("tx", "set_relay", {"relay": 1, "state": "on"})
            assert seen[-1]["result"] == {"previous": "off"}
            with pytest.raises(KeyError):
                running.gateway.bridge.frames("nobody")


async def test_a_sniffer_that_reads_too_slowly_is_told_what_it_missed() -> None:
    class OneSlot:
        def watch(self, watcher: Callable[[Json], None]) -> Callable[[], None]:
            self.see = watcher
            return lambda: None

    slot: Any = OneSlot()
    slots: list[Slot] = [slot]
    frames = _watch(slots)
    first = asyncio.ensure_future(anext(frames))
    await asyncio.sleep(0)
    for number in range(FRAMES_BUFFERED + 5):
        slot.see({"number": number})
    assert await first == {"kind": "dropped", "count": 5}
    assert (await anext(frames))["number"] == 5
