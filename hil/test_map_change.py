"""A map is changed and the board not: the gateway says so and does not use it, until the board is flashed with what the map makes.

Builds and uploads as an engineer does, by `pio run -t upload`, in a copy of the project; into the Uno with the real avrdude.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hil.boards import Board
from hil.gateway import ONLINE, until
from hil.line import Line
from hil.plugin import GatewayWith
from mcpax.bridge.device import MISFIT
from mcpax.bridge.maps.load import load_map
from mcpax.bridge.wire.messages import Status
from tests.harness.firmware_project import copy_project, needs_compilers

APP = "valve-actuator"
OLD_MOST_ML, NEW_MOST_ML = 500, 400


@pytest.mark.slow
@needs_compilers
@pytest.mark.needs("flash")
async def test_a_changed_limit_is_told_and_reflashing_cures_it(board: Board, gateway_with: GatewayWith, tmp_path: Path) -> None:
    if board.spec.app != APP or board.spec.emulator in (None, "virtual"):
        pytest.skip(f"needs an emulated chip with {APP}")
    project = copy_project(tmp_path)
    project.change_map(APP, f"max = {OLD_MOST_ML}\n", f"max = {NEW_MOST_ML}\n")
    changed = load_map(project.map_file(APP))

    async with gateway_with([board], maps={board.name: changed}, online=False) as running:
        await until(lambda: running.device(board.name)["problem"].startswith(MISFIT), lambda: str(running.device(board.name)))
        problem = running.device(board.name)["problem"]
        assert f"the map's hash is {changed.hash:#010x} and the firmware's {board.map.hash:#010x}" in problem
        assert "limits, scales, enum labels or max_len were changed on one side" in problem
        assert await running.tools(board.name) == {}

    uploaded = await asyncio.to_thread(project.pio, "run", "-e", board.spec.env, "-t", "upload", "--upload-port", board.port)
    assert uploaded.returncode == 0, uploaded.stdout + uploaded.stderr
    if board.spec.emulator == "avr":
        assert "bytes of flash verified" in uploaded.stderr, "avrdude did not do it"

    async with gateway_with([board], maps={board.name: changed}) as running:
        assert running.device(board.name)["state"] == ONLINE
        assert set(await running.tools(board.name)) == {tool.name for tool in changed.tools}
        assert (await running.call(board.name, "dose", {"amount": NEW_MOST_ML}))["doses"] == 1

    dose = next(tool for tool in changed.tools if tool.name == "dose")
    with Line(board.port, changed, board.log) as line:
        line.synchronise()
        assert line.call(dose, [NEW_MOST_ML + 1]).status == Status.OUT_OF_RANGE, "the board still has the old limit"
