"""`mcpax serve` with one tool of its own that does nothing, for benchmarks: below it is no device whose time would count.

Knows nothing of what is above it but what the configuration says.
"""

from __future__ import annotations

import argparse
import uuid
from collections.abc import Sequence
from pathlib import Path

from mcpax import logs
from mcpax.capability import Capability, LatencyClass
from mcpax.cli.running import run_until_signal
from mcpax.config import load_config
from mcpax.core.registration import RegistrationRequest
from mcpax.core.subserver import Call, Json, Tool
from mcpax.gateway import Gateway

SEGMENT, TOOL = "dummy", "read"
RESULT: Json = {"content": [{"type": "text", "text": '{"celsius": 21.5}'}], "structuredContent": {"celsius": 21.5}, "isError": False}
"""As a sensor would answer."""


class Dummy:
    async def list_tools(self) -> Sequence[Tool]:
        capability = Capability(mutable=False, reversible=True, idempotent=True, latency_class=LatencyClass.FAST)
        return [Tool((TOOL,), "Answers at once.", {"type": "object", "properties": {"unit": {"type": "string"}}}, capability)]

    async def call(self, _: Call) -> Json:
        return RESULT

    async def close(self) -> None: ...


async def serve(config: Path) -> None:
    gateway = Gateway(load_config(config))
    with gateway.listen() as listener:
        async with gateway.running():
            await gateway.aggregator.register(RegistrationRequest(str(uuid.uuid4()), SEGMENT, "native"), Dummy())
            await gateway.serve_http(listener, lambda _: None)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, required=True)
    logs.configure("info")
    run_until_signal(serve(parser.parse_args().config))
