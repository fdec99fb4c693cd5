"""The real gateway on boards of the rig, served on a free port, with every frame in the boards' logs.

Boards are found by their ports alone, so emulated and real ones are served the same way. Knows nothing of pytest.
"""

from __future__ import annotations

import asyncio
import contextlib
import glob
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hil.boards import Board
from mcpax.bridge.device import Binding
from mcpax.bridge.maps.model import DeviceMap, PortMatch
from mcpax.capability import Availability
from mcpax.cli.serving import boards_online, serving
from mcpax.config import Config
from mcpax.gateway import Gateway
from mcpax.name_codec import NameStyle

Json = dict[str, Any]

PATIENCE_S = 30.0
"""For anything that a gateway and a board are to reach together. Three lost heartbeats and a bootloader fit in."""
LOOK_EVERY_S = 0.01
DEVICES = Path("/dev")
SEGMENT = "edge"
ONLINE = "online"


@dataclass(frozen=True, slots=True)
class RunningGateway:
    gateway: Gateway
    url: str

    async def call(self, board: str, tool: str, arguments: Json) -> Json:
        """The tool's structured result, empty if it has none; raises `Fault` as the gateway does."""
        result = await self.gateway.aggregator.call_tool(f"{SEGMENT}.{board}.{tool}", arguments)
        return dict(result.get("structuredContent", {}))

    async def tools(self, board: str) -> dict[str, Json]:
        """The board's tools as listed to clients, by their own names."""
        listed = await self.gateway.aggregator.list_tools(NameStyle.DOTTED)
        prefix = f"{SEGMENT}.{board}."
        return {tool["name"].removeprefix(prefix): tool for tool in listed.tools if tool["name"].startswith(prefix)}

    def device(self, board: str) -> Json:
        """What operators see of it."""
        return next(device for device in self.gateway.bridge.devices() if device["segment"] == board)

    async def until_state(self, board: str, state: str) -> None:
        await until(lambda: self.device(board)["state"] == state, lambda: f"{board} is {state}; it is {self.device(board)}")

    async def until_degraded(self, board: str) -> None:
        """Its loss is noticed, and all its tools stay listed as degraded."""
        await until(lambda: self.device(board)["state"] != ONLINE, lambda: f"{board} is lost")
        tools = await self.tools(board)
        assert tools, f"the tools of {board} should stay listed for a while"
        assert {tool["_meta"]["x-mcpax-capability"]["availability"] for tool in tools.values()} == {str(Availability.DEGRADED)}


async def until(met: Callable[[], bool], what: Callable[[], str]) -> None:
    """Boards are elsewhere: looking is all there is."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not met():  # noqa: ASYNC110 - see above
                await asyncio.sleep(LOOK_EVERY_S)
    except TimeoutError:
        raise AssertionError(f"not within {PATIENCE_S:g} s: {what()}") from None


@contextlib.asynccontextmanager
async def gateway_on(
    boards: Sequence[Board], *, maps: Mapping[str, DeviceMap] | None = None, online: bool = True, **config: Any
) -> AsyncIterator[RunningGateway]:
    """`maps`: other than the rig's, by board; `online`: wait until all boards are; `config`: fields of `Config`."""
    with tempfile.TemporaryDirectory(prefix="mcpax-hil-") as state_dir:
        defaults = Config(
            own_tools=False,
            segment=SEGMENT,
            port=0,
            state_dir=Path(state_dir),
            by_id_dirs=tuple({Path(each.port).parent for each in boards} - {DEVICES}),
            bindings=tuple(_binding(each, maps or {}) for each in boards),
        )
        gateway = Gateway(replace(defaults, **config))
        async with gateway.running(), serving(gateway) as served:
            logging = asyncio.create_task(_log_frames(gateway, boards))
            try:
                if online:
                    await boards_online(gateway, PATIENCE_S)
                yield RunningGateway(gateway, served.url)
            finally:
                logging.cancel()
                await asyncio.gather(logging, return_exceptions=True)


def _binding(board: Board, maps: Mapping[str, DeviceMap]) -> Binding:
    port = Path(board.port)
    pattern = glob.escape(port.name)
    match = PortMatch(glob=str(port)) if port.parent == DEVICES else PortMatch(by_id=pattern)
    return Binding(board.name, maps.get(board.name, board.map), match)


async def _log_frames(gateway: Gateway, boards: Sequence[Board]) -> None:
    logs = {board.name: board.log for board in boards}
    async for frame in gateway.bridge.frames(None):
        if frame["kind"] != "dropped":
            logs[frame["device"]].take(frame)
