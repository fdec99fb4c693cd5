"""The watchdog path: a handler that never returns ends in a reset, a new boot, and an outcome that claims nothing.

Runs firmware that is made for it (tests/hil/firmware/hang.c), on chips whose emulator has a watchdog.
"""

from __future__ import annotations

import shutil

import pytest

from hil.boards import Board
from hil.frames import FrameLog
from hil.gateway import ONLINE
from hil.line import Line
from hil.plugin import GatewayWith
from mcpax.bridge.maps.load import load_map
from mcpax.bridge.maps.model import DeviceMap
from mcpax.errors import Fault, Outcome
from tests.harness.firmware_project import ROOT, FirmwareProject, copy_project, needs_compilers

SOURCES = ROOT / "tests/hil/firmware"
WATCHED = ("uno", "l053", "msp430g2553")
"""QEMU's micro:bit has no watchdog, nor has an 8052."""

pytestmark = [pytest.mark.slow, needs_compilers]


@pytest.fixture(scope="module")
def hanging(tmp_path_factory: pytest.TempPathFactory) -> FirmwareProject:
    """The project with one more application, added as any other would be."""
    project = copy_project(tmp_path_factory.mktemp("hanging"))
    shutil.copy(SOURCES / "hang.c", project.root / "firmware/examples")
    shutil.copy(SOURCES / "hang.toml", project.root / "device-maps")
    with (project.root / "firmware/platformio.ini").open("a") as ini:
        ini.write("\n[app:hang]\ncustom_map = hang\ncustom_example = hang\n")
        ini.writelines(f"\n[env:{board}-hang]\nextends = board:{board}, app:hang\n" for board in WATCHED)
    project.run(*(word for board in WATCHED for word in ("-e", f"{board}-hang")))
    return project


@pytest.fixture
def hanging_map(board: Board, hanging: FirmwareProject) -> DeviceMap:
    """Of the firmware that is now on the board."""
    if board.name not in WATCHED or board.spec.emulator is None:
        pytest.skip(f"needs firmware for an emulated {', '.join(WATCHED[:-1])} or {WATCHED[-1]}")
    board.flash(hanging.built(f"{board.name}-hang"))
    return load_map(hanging.map_file("hang"))


def test_a_handler_that_hangs_ends_in_a_reset_and_a_new_boot(board: Board, hanging_map: DeviceMap) -> None:
    hang, read_hangs = hanging_map.tools
    with Line(board.port, hanging_map, FrameLog(board.name, hanging_map)) as line:
        before = line.synchronise().boot_id
        line.send(line.call_message(hang, [], line.seq + 1))
        restarted = line.wait_for_restart()
        assert restarted.boot_id not in (0, before)
        assert not restarted.synchronised
        line.synchronise()
        assert line.result(read_hangs, line.call(read_hangs, [])) == [0], "its RAM has survived: that was no reset"
    stats = board.stats()
    assert stats is not None
    assert stats.watchdog_resets == 1
    assert stats.fault is None


async def test_the_gateway_reports_unknown_and_takes_the_board_back(
    board: Board, hanging_map: DeviceMap, gateway_with: GatewayWith
) -> None:
    async with gateway_with([board], maps={board.name: hanging_map}) as running:
        before = running.device(board.name)["boot_id"]
        with pytest.raises(Fault) as told:
            await running.call(board.name, "hang", {})
        assert told.value.outcome is Outcome.UNKNOWN
        await running.until_state(board.name, ONLINE)
        assert await running.call(board.name, "read_hangs", {}) == {"hangs": 0}
        assert running.device(board.name)["boot_id"] != before
        assert running.device(board.name)["counters"]["reboots"] == 1
    stats = board.stats()
    assert stats is not None
    assert stats.watchdog_resets == 1, "the call was sent to the new boot too, and hung it again"
