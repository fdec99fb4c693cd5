"""A small real subserver with a tool of every kind, an aggregator over it, and a program that serves it over stdio or HTTP."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from mcpax.capability import Capability, LatencyClass
from mcpax.core.aggregator import Aggregator
from mcpax.core.registration import RegistrationRequest
from mcpax.core.subserver import Call, Json, Tool
from mcpax.errors import ErrorKind, Fault, Outcome
from mcpax.front.http import build_app, open_listener, serve_http
from mcpax.front.stdio import serve_stdio
from mcpax.name_codec import NameStyle

AGGREGATOR_ID = "5d0c3c1e-8f0e-4a53-9b38-0a1f0f3b6a10"
SUBSERVER_ID = "7f6f5d1a-3f0a-4d0e-9a44-2d6a4f2f9d01"
READ_ONLY = Capability(mutable=False, reversible=True, idempotent=True, latency_class=LatencyClass.FAST, schema_version="1.2.0")
NUMBER_RESULT: Json = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
EMPTY: Json = {"type": "object", "properties": {}}
ECHO_INPUT: Json = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}

ECHO_META: Json = {"x-mcpax-event-id": "e-1", "vendor/key": [1, None, 2.5]}
SLOW_STEPS = 3


class Bench:
    """The subserver. Its events tell a test where a call has got to."""

    def __init__(self) -> None:
        self.tools = [
            Tool(("echo",), "Says it back.", ECHO_INPUT, READ_ONLY, title="Echo"),
            Tool(("count",), "Counts calls.", EMPTY, Capability(reversible=True), output_schema=NUMBER_RESULT),
            Tool(("burn",), "Blows a fuse.", EMPTY, Capability()),
            Tool(("slow",), "Reports progress, then waits.", EMPTY, Capability()),
            Tool(("lost",), "Loses the link.", EMPTY, Capability(), output_schema=NUMBER_RESULT),
            Tool(("crash",), "Has a bug.", EMPTY, Capability()),
        ]
        self.counted = 0
        self.started = asyncio.Event()
        self.release = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def list_tools(self) -> Sequence[Tool]:
        return list(self.tools)

    async def call(self, call: Call) -> Json:
        match call.path[0]:
            case "echo":
                return {"content": [{"type": "text", "text": call.arguments["text"]}], "_meta": ECHO_META}
            case "count":
                self.counted += 1
                return {"content": [{"type": "text", "text": str(self.counted)}], "structuredContent": {"n": self.counted}}
            case "slow":
                return await self._slow(call)
            case "lost":
                raise Fault(ErrorKind.DEVICE_LOST, "The board went away during the call.", hint="Read its state.", outcome=Outcome.UNKNOWN)
            case "burn":
                print("a stray print", flush=True)  # as careless code does; on stdio it must not reach the client
                return {"content": [{"type": "text", "text": "burnt"}]}
            case "crash":
                raise RuntimeError("secret detail of a bug")
            case name:
                return {"content": [{"type": "text", "text": f"ran {name}"}]}

    async def _slow(self, call: Call) -> Json:
        self.started.set()
        try:
            for step in range(1, SLOW_STEPS + 1):
                if call.progress is not None:
                    await call.progress(step, SLOW_STEPS, f"step {step}")
            await self.release.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return {"content": [{"type": "text", "text": "done"}]}

    async def close(self) -> None: ...


@dataclass
class Gateway:
    """An aggregator with the bench registered."""

    aggregator: Aggregator
    bench: Bench
    session_id: str

    async def add_tools(self, *names: str) -> None:
        self.bench.tools += [Tool((name,), "One more.", EMPTY, READ_ONLY) for name in names]
        await self.aggregator.registry.relist(self.session_id)


async def build_gateway() -> Gateway:
    aggregator, bench = Aggregator("edge", AGGREGATOR_ID), Bench()
    answer = await aggregator.register(RegistrationRequest(SUBSERVER_ID, "bench", "native"), bench)
    return Gateway(aggregator, bench, answer.session_id)


async def main(transport: str, style: str | None) -> None:
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    gateway = await build_gateway()
    if transport == "stdio":
        await serve_stdio(gateway.aggregator, NameStyle(style) if style else None)
    else:
        await serve_http(build_app(gateway.aggregator), open_listener("127.0.0.1", 0), lambda port: print(port, flush=True))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("transport", choices=["stdio", "http"])
    parser.add_argument("--style")
    asyncio.run(main(**vars(parser.parse_args())))
