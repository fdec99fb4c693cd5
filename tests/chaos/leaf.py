"""A leaf of the tree as a program of its own: a whole gateway, with a ledger where boards would be.

    python -m tests.chaos.leaf CONFIG LEDGER

The ledger's tools append the id they are given to a file, in one write, before they answer: what is in the file was executed, as often as
it is there. `record` does so at once, `record_slowly` takes 50 to 300 ms, some of it before and some after.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path

from mcpax import logs
from mcpax.capability import Capability
from mcpax.config import load_config
from mcpax.core.registration import RegistrationRequest
from mcpax.core.subserver import Call, Json, Tool
from mcpax.gateway import Gateway

SEGMENT = "ledger"
TOOLS = ("record", "record_slowly")
SLOW_S = (0.05, 0.3)
_CAPABILITY = Capability.parse({"mutable": True, "reversible": False, "idempotent": False, "latency_class": "fast"})
_SCHEMA: Json = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}


class Ledger:
    def __init__(self, file: Path) -> None:
        self._descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    async def list_tools(self) -> Sequence[Tool]:
        return [Tool((name,), "Appends an id to the ledger.", _SCHEMA, _CAPABILITY) for name in TOOLS]

    async def call(self, call: Call) -> Json:
        slow_s = random.uniform(*SLOW_S) if call.path == ("record_slowly",) else 0.0
        before_s = slow_s * random.random()
        if slow_s:
            await asyncio.sleep(before_s)
        os.write(self._descriptor, f"{call.arguments['id']}\n".encode())
        if slow_s:
            await asyncio.sleep(slow_s - before_s)
        return {"content": [{"type": "text", "text": "recorded"}]}

    async def close(self) -> None:
        os.close(self._descriptor)


async def serve(config: Path, ledger: Path) -> None:
    gateway = Gateway(load_config(config))
    subserver_id = str(uuid.uuid5(uuid.NAMESPACE_URL, ledger.name))
    with gateway.listen() as listener:
        async with gateway.running():
            await gateway.aggregator.register(RegistrationRequest(subserver_id, SEGMENT, "native"), Ledger(ledger))
            await gateway.serve_http(listener, lambda _: None)


if __name__ == "__main__":
    logs.configure("debug", as_json=True)
    asyncio.run(serve(Path(sys.argv[1]), Path(sys.argv[2])))
