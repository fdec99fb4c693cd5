"""The tests' own virtual boards do what they say: come, go, restart, and let things happen."""

from __future__ import annotations

import asyncio
from pathlib import Path

from mcpax.core.subserver import Notification
from tests.virtual import BOARDS, ONLINE_S, VirtualBoard, running_gateway


def test_a_board_appears_under_its_name_and_goes_with_it(tmp_path: Path) -> None:
    board = VirtualBoard("env-sensor", tmp_path, number=7)
    with board:
        assert board.link.name == "usb-mcpax_env-sensor_0007-if00"
        assert board.link.resolve().is_char_device()
    assert not board.link.is_symlink()
    with board:
        assert board.link.resolve().is_char_device()


async def test_all_boards_are_online_and_two_of_a_kind_are_told_apart(tmp_path: Path) -> None:
    names = [(name, 1) for name in BOARDS] + [("env-sensor", 2)]
    boards = [VirtualBoard(name, tmp_path, number=number).start() for name, number in names]
    try:
        async with running_gateway(boards) as running:
            assert {device["segment"] for device in running.gateway.bridge.devices()} == {*BOARDS, "env-sensor-2"}
            result = await running.gateway.aggregator.call_tool("edge.env-sensor-2.read_info", {})
            assert result["structuredContent"]["number"] == 2
    finally:
        for board in boards:
            board.stop()


async def test_a_press_is_an_event_and_a_reset_a_new_boot(tmp_path: Path) -> None:
    with VirtualBoard("relay-board", tmp_path) as board:
        async with running_gateway([board]) as running:
            heard: asyncio.Queue[Notification] = asyncio.Queue()
            running.gateway.aggregator.notifier.subscribe(heard.put_nowait)
            boot_id = running.gateway.bridge.devices()[0]["boot_id"]
            board.press()
            async with asyncio.timeout(ONLINE_S):
                while (told := await heard.get()).params.get("event") != "button":
                    pass
                assert told.params["data"] == {"presses": 1}
                board.reset()
                frames = running.gateway.bridge.frames("relay-board")
                async for frame in frames:
                    if frame["kind"] == "heartbeat" and frame["direction"] == "rx" and frame["boot_id"] != boot_id:
                        break
