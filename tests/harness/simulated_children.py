"""Children for one parent: each an aggregator with a link, a token and a registration of its own, all in this process. For benchmarks.

Knows nothing of the parent but its address.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence

from mcpax.capability import Capability, LatencyClass
from mcpax.core.aggregator import Aggregator
from mcpax.core.registration import RegistrationRequest
from mcpax.core.subserver import Call, Json, Tool
from mcpax.link.child import Introduction, Parentage
from mcpax.link.endpoint import CHILD_PATH
from mcpax.link.redial import Target
from mcpax.link.uplink import Uplink

HEARTBEAT_S = 60.0
"""Rare, so that what is measured is not the heartbeats of those who are there already."""
LOOK_EVERY_S = 0.002
CAPABILITY = Capability(mutable=True, reversible=True, latency_class=LatencyClass.FAST)


class Device:
    """Lists tools as a device map describes them."""

    def __init__(self, tools: int) -> None:
        self._tools = [_tool(number) for number in range(tools)]

    async def list_tools(self) -> Sequence[Tool]:
        return self._tools

    async def call(self, call: Call) -> Json:
        return {"content": [{"type": "text", "text": call.path[-1]}]}

    async def close(self) -> None: ...


def _tool(number: int) -> Tool:
    schema = {
        "type": "object",
        "properties": {
            "channel": {"type": "integer", "minimum": 1, "maximum": 8, "description": "Which of the outputs, counted from the left."},
            "level": {"type": "number", "minimum": 0, "maximum": 100, "description": "How far to open it.", "x-mcpax-unit": "%"},
        },
        "required": ["channel", "level"],
        "additionalProperties": False,
    }
    return Tool(
        (f"set_output_{number}",), f"Set one output of bank {number}; the device keeps it until told otherwise.", schema, CAPABILITY
    )


class Child:
    def __init__(self, name: str, token: str, tools: int) -> None:
        self._name = name
        self._token = token
        self._tools = tools
        self._uplinking: asyncio.Task[None] | None = None

    async def join(self, parent_url: str) -> None:
        """Returns when it is registered."""
        aggregator = Aggregator(self._name, str(uuid.uuid4()))
        await aggregator.register(RegistrationRequest(str(uuid.uuid4()), "device", "native"), Device(self._tools))
        target = Target(parent_url.replace("http", "ws", 1) + CHILD_PATH, self._token)
        uplink = Uplink(aggregator, [target], Introduction(aggregator.id, self._name, HEARTBEAT_S), Parentage())
        self._uplinking = asyncio.create_task(uplink.run())
        while not uplink.describe()["connected"]:  # noqa: ASYNC110 - an uplink keeps its state for operators and tells nobody
            await asyncio.sleep(LOOK_EVERY_S)

    async def leave(self) -> None:
        if self._uplinking is not None:
            self._uplinking.cancel()
            await asyncio.gather(self._uplinking, return_exceptions=True)
