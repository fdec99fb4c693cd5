"""A day of a small plant in minutes: three boards, a call to each every five seconds, and all that happens besides. Does memory grow?

    scripts/bench soak [--json] [--calls N]

`mcpax serve` runs as its own process and is used as clients use it, over HTTP: calls, lists, mistakes, clients that open a session and
close it, one that holds a session and listens, events, boards pulled out and plugged in. Its resident memory is read from /proc. Passes
when it is flat after warm-up: what it holds at the end is at most the allowance above what it held when a fifth was done.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import socket
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from tests.virtual import MAPS, VirtualBoard

CALLS_A_DAY = 3 * 24 * 3600 // 5
WARM_UP_PART = 0.2
SAMPLES = 100
ALLOWANCE_MIB = 2.0
"""Python's allocator takes arenas of 1 MiB, so a flat program moves by one or two. Measured: 0.2 to 0.5 MiB, for one day as for four."""
EVERY = {"list": 50, "mistake": 40, "session": 150, "event": 60, "status": 300, "replug": 2000}
"""Calls between two of each."""
STATELESS, SESSION_BASED = "2026-07-28", "2025-11-25"
META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientInfo": {"name": "soak", "version": "0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
TOOLS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "env-sensor": [("read_climate", {}), ("read_light", {"samples": 4}), ("read_info", {})],
    "relay-board": [("set_relay", {"relay": 1, "state": "on"}), ("pulse_relay", {"relay": 2}), ("read_relays", {})],
    "valve-actuator": [("read_valve", {}), ("move_valve", {"position": 40}), ("dose", {"amount": 3})],
}
MISTAKES: list[tuple[str, dict[str, Any]]] = [
    ("edge.relay-board.set_relay", {"relay": 9, "state": "on"}),
    ("edge.relay-board.no_such_tool", {}),
    ("edge.nobody.anything", {"x": "y" * 200}),
    ("edge.valve-actuator.dose", {"amount": "much"}),
]
PATIENCE_S = 20.0


class Client:
    """One kept-alive HTTP connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
        self._reader, self._writer, self._host = reader, writer, host

    @classmethod
    async def open(cls, port: int) -> Client:
        return cls(*await asyncio.open_connection("127.0.0.1", port), f"127.0.0.1:{port}")

    def close(self) -> None:
        self._writer.close()

    @property
    def ended(self) -> bool:
        """The other side has closed it, as far as is known here."""
        return self._reader.at_eof() or self._writer.is_closing()

    async def request(self, verb: str, path: str, body: Any = None, **headers: str) -> tuple[dict[bytes, bytes], bytes]:
        data = b"" if body is None else json.dumps(body).encode()
        lines = [f"{verb} {path} HTTP/1.1", f"Host: {self._host}", f"Content-Length: {len(data)}"]
        lines += ["Content-Type: application/json", "Accept: application/json, text/event-stream"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self._writer.write("\r\n".join([*lines, "", ""]).encode() + data)
        head = await self._reader.readuntil(b"\r\n\r\n")
        received = {name.lower(): value.strip() for name, _, value in (line.partition(b":") for line in head.split(b"\r\n")[1:])}
        if b"content-length" in received:
            return received, await self._reader.readexactly(int(received[b"content-length"]))
        chunks = b""
        while received.get(b"transfer-encoding") == b"chunked" and (size := int(await self._reader.readline(), 16)):
            chunks += (await self._reader.readexactly(size + 2))[:-2]
        if received.get(b"transfer-encoding") == b"chunked":
            await self._reader.readline()
        return received, chunks

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return await self.rpc("tools/call", {"name": name, "arguments": arguments}, Mcp_Name=name)

    async def rpc(self, method: str, params: dict[str, Any], **headers: str) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
        _, body = await self.request("POST", "/mcp/dotted", message, MCP_Protocol_Version=STATELESS, Mcp_Method=method, **headers)
        answer: dict[str, Any] = json.loads(body)
        return answer

    async def start_session(self) -> dict[str, str]:
        """A client of a revision with sessions; returns the headers that go with it."""
        about = {"protocolVersion": SESSION_BASED, "capabilities": {}, "clientInfo": {"name": "soak", "version": "0"}}
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}
        received, _ = await self.request("POST", "/mcp", hello)
        headers = {"Mcp_Session_Id": received[b"mcp-session-id"].decode(), "MCP_Protocol_Version": SESSION_BASED}
        await self.request("POST", "/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"}, **headers)
        return headers


class Listener:
    """Holds a session for the whole time and hears what is told."""

    def __init__(self) -> None:
        self.heard: Counter[str] = Counter()

    async def run(self, port: int) -> None:
        client = await Client.open(port)
        headers = await client.start_session()
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        client._writer.write(
            "\r\n".join(["GET /mcp HTTP/1.1", f"Host: {client._host}", "Accept: text/event-stream", *lines, "", ""]).encode()
        )
        while line := await client._reader.readline():
            if line.startswith(b"data: {"):
                self.heard[json.loads(line[6:])["method"]] += 1


def resident_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise SystemExit("the gateway is gone")


@contextlib.asynccontextmanager
async def gateway(boards: list[VirtualBoard], directory: Path) -> AsyncIterator[tuple[int, int]]:
    """`mcpax serve` as its own process, all boards online; yields its port and its pid."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = directory / "mcpax.toml"
    maps = json.dumps([str(MAPS / f"{name}.toml") for name in TOOLS])
    config.write_text(
        f'[gateway]\nlisten = "127.0.0.1:{port}"\nstate_dir = "{directory}/state"\nmaps = {maps}\nby_id_dirs = ["{directory}"]\n'
    )
    arguments = ["-m", "mcpax", "serve", "--config", str(config), "--log-level", "error"]
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments)
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                    client = await Client.open(port)
                    _, body = await client.request("GET", "/admin/devices")
                    client.close()
                    if sum(device["state"] == "online" for device in json.loads(body)) == len(boards):
                        break
                await asyncio.sleep(0.05)
        yield port, process.pid
    finally:
        process.terminate()
        await process.wait()


class Day:
    def __init__(self, boards: dict[str, VirtualBoard], port: int, pid: int, calls: int) -> None:
        self.boards = boards
        self.counts: Counter[str] = Counter()
        self.samples: list[tuple[int, float]] = []
        self._dice = random.Random(1)
        self._port, self._pid, self._total = port, pid, calls
        self._done = 0
        self._away: str | None = None

    async def live(self) -> None:
        """Three callers, one per board, share the day."""
        await asyncio.gather(*(self._caller(name) for name in TOOLS))

    async def _caller(self, name: str) -> None:
        client = await Client.open(self._port)
        for number in range(self._total // len(TOOLS)):
            tool, arguments = self._dice.choice(TOOLS[name])
            answer = await client.call(f"edge.{name}.{tool}", arguments)
            self.counts["calls"] += 1
            self.counts["failed"] += "error" in answer or answer["result"].get("isError", False)
            await self._besides(client, name, number)
            self._sample()
        client.close()

    async def _besides(self, client: Client, name: str, number: int) -> None:
        def due(what: str) -> bool:
            happens = number % EVERY[what] == EVERY[what] - 1
            self.counts[what] += happens
            return happens

        if due("list"):
            assert "tools" in (await client.rpc("tools/list", {}))["result"]
        if due("mistake"):
            answer = await client.call(*self._dice.choice(MISTAKES))
            assert "error" in answer or answer["result"]["isError"]
        if due("session"):
            visitor = await Client.open(self._port)
            headers = await visitor.start_session()
            await visitor.request("POST", "/mcp", {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, **headers)
            await visitor.request("DELETE", "/mcp", **headers)
            visitor.close()
        if due("event") and self._away != name:
            self.boards[name].press()
            if name == "valve-actuator":
                await client.call("edge.valve-actuator.stop", {})  # acknowledges the blocked motor
        if due("status"):
            await client.request("GET", "/admin/devices")
        if due("replug"):
            await self._replug(client, name)

    async def _replug(self, client: Client, name: str) -> None:
        self._away = name
        await asyncio.to_thread(self.boards[name].stop)
        await self._until(client, name, "absent")
        await asyncio.to_thread(self.boards[name].start)
        await self._until(client, name, "online")
        self._away = None

    async def _until(self, client: Client, name: str, state: str) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                _, body = await client.request("GET", "/admin/devices")
                if next(device for device in json.loads(body) if device["segment"] == name)["state"] == state:
                    return
                await asyncio.sleep(0.02)

    def _sample(self) -> None:
        self._done += 1
        if self._done % max(1, self._total // SAMPLES) == 0:
            self.samples.append((self._done, resident_mib(self._pid)))


def judge(samples: list[tuple[int, float]], total: int) -> dict[str, float]:
    """Medians of a tenth each, so that one sample decides nothing."""

    def around(begin: float) -> float:
        return statistics.median(mib for calls, mib in samples if begin * total <= calls <= (begin + 0.1) * total)

    warm, end = around(WARM_UP_PART), around(0.9)
    return {"after_warm_up_mib": round(warm, 2), "at_end_mib": round(end, 2), "growth_mib": round(end - warm, 2)}


async def soak(calls: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="mcpax-soak-") as folder, contextlib.ExitStack() as plugged:
        directory = Path(folder)
        boards = {name: VirtualBoard(name, directory) for name in TOOLS}
        for board in boards.values():
            plugged.enter_context(board)
        async with gateway(list(boards.values()), directory) as (port, pid):
            listener = Listener()
            listening = asyncio.create_task(listener.run(port))
            day = Day(boards, port, pid, calls)
            started = time.monotonic()
            await day.live()
            took_s = time.monotonic() - started
            assert not listening.done(), "the listener was cut off"
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
            memory = judge(day.samples, calls)
            return {
                "took_s": round(took_s, 1),
                "calls_per_s": round(day.counts["calls"] / took_s),
                "counts": dict(day.counts),
                "heard": dict(listener.heard),
                "memory": {**memory, "allowance_mib": ALLOWANCE_MIB, "ok": memory["growth_mib"] <= ALLOWANCE_MIB},
                "samples": [[done, round(mib, 2)] for done, mib in day.samples],
            }


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench soak")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--calls", type=int, default=CALLS_A_DAY, help=f"a day has {CALLS_A_DAY}")
    options = parser.parse_args()
    result = asyncio.run(soak(options.calls))
    if options.json:
        print(json.dumps(result))
    else:
        memory = result["memory"]
        print(", ".join(f"{name} {count}" for name, count in result["counts"].items()))
        print(f"{result['took_s']} s, {result['calls_per_s']} calls/s; heard {result['heard']}")
        print(
            f"resident {memory['after_warm_up_mib']} MiB after warm-up, {memory['at_end_mib']} MiB at the end: "
            f"{memory['growth_mib']:+} MiB, {ALLOWANCE_MIB} allowed"
        )
    return 0 if result["memory"]["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
