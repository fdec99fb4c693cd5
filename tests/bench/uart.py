"""Round trip of a call through the whole gateway to a virtual board at 115200 baud, next to the time its bytes need on the wire.

    scripts/bench uart [--json] [--calls N]

The client is a bare HTTP connection, so that what is measured is the gateway. Passes when the median is within 1.3 x the wire time
plus 1 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import socket
import statistics
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from mcpax.bridge.maps.load import load_map
from mcpax.bridge.transports.uart import BITS_PER_BYTE
from mcpax.bridge.wire.dialect import dialect_for

ROOT = Path(__file__).parents[2]
BAUD = 115200
ALLOWED_FACTOR, ALLOWED_EXTRA_MS = 1.3, 1.0
WARM_UP_CALLS = 50
REVISION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
SUBJECTS: list[tuple[str, str, dict[str, Any]]] = [
    ("env-sensor", "read_climate", {}),
    ("relay-board", "set_relay", {"relay": 1, "state": "on"}),
    ("valve-actuator", "move_valve", {"position": 40}),
]


@contextlib.asynccontextmanager
async def gateway() -> AsyncIterator[str]:
    """The demo as its own process; yields its URL."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "mcpax", "demo", "--port", "0", "--json", "--baud", str(BAUD), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        told = b""
        while not told.endswith(b"\n}\n"):
            line = await process.stdout.readline()
            if not line:
                raise SystemExit("the demo did not start; run scripts/run to see why")
            told += line
        yield json.loads(told)["url"]
    finally:
        process.terminate()
        await process.wait()


class Connection:
    """One kept-alive HTTP connection that does nothing but call tools, on a plain socket: the client's own time must not count."""

    def __init__(self, host: str, port: int) -> None:
        self._host = f"{host}:{port}"
        self._socket = socket.create_connection((host, port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def request(self, name: str, arguments: dict[str, Any]) -> bytes:
        body = json.dumps(
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments, "_meta": META}}
        ).encode()
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\n"
            f"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {REVISION}\r\n"
            f"Mcp-Method: tools/call\r\nMcp-Name: {name}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    def exchange(self, request: bytes) -> bytes:
        """The body of the answer."""
        self._socket.sendall(request)
        answer = b""
        while True:
            answer += self._socket.recv(65536)
            head, found, body = answer.partition(b"\r\n\r\n")
            if found and len(body) >= int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]):
                return body


def check(name: str, answer: bytes) -> None:
    decoded = json.loads(answer)
    if "result" not in decoded or decoded["result"].get("isError"):
        raise SystemExit(f"{name} failed: {decoded}")


async def wire_bytes(url: str, connection: Connection, device: str, request: bytes) -> tuple[int, int]:
    """What one call puts on the wire, there and back, as seen by the gateway's own sniffer."""
    framing = dialect_for(load_map(ROOT / "device-maps" / f"{device}.toml")).framing
    sizes: dict[str, int] = {}
    async with httpx.AsyncClient() as client, client.stream("GET", f"{url}/admin/frames", params={"device": device}) as frames:
        call = asyncio.create_task(asyncio.to_thread(connection.exchange, request))
        async for line in frames.aiter_lines():
            frame = json.loads(line)
            if frame["kind"] in ("call", "response"):
                sizes[frame["direction"]] = len(framing.encode(bytes.fromhex(frame["message"])))
            if len(sizes) == 2:
                break
        await call
    return sizes["tx"], sizes["rx"]


async def measure(url: str, calls: int) -> list[dict[str, Any]]:
    parts = urlsplit(url)
    connection = Connection(parts.hostname or "", parts.port or 0)
    rows = []
    for device, tool, arguments in SUBJECTS:
        name = f"edge__{device}__{tool}"
        request = connection.request(name, arguments)
        there, back = await wire_bytes(url, connection, device, request)
        wire_ms = (there + back) * BITS_PER_BYTE / BAUD * 1000
        taken: list[float] = []
        for number in range(WARM_UP_CALLS + calls):
            started = time.perf_counter()
            answer = connection.exchange(request)
            elapsed = time.perf_counter() - started
            check(name, answer)
            if number >= WARM_UP_CALLS:
                taken.append(elapsed * 1000)
        taken.sort()
        allowed_ms = ALLOWED_FACTOR * wire_ms + ALLOWED_EXTRA_MS
        p50 = statistics.median(taken)
        rows.append(
            {
                "tool": name,
                "bytes": there + back,
                "wire_ms": round(wire_ms, 3),
                "p50_ms": round(p50, 3),
                "p99_ms": round(taken[int(0.99 * (len(taken) - 1))], 3),
                "allowed_ms": round(allowed_ms, 3),
                "ratio": round(p50 / wire_ms, 3),
                "ok": p50 <= allowed_ms,
            }
        )
    return rows


async def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench uart")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--calls", type=int, default=500)
    options = parser.parse_args()
    async with gateway() as url:
        rows = await measure(url, options.calls)
    if options.json:
        print(json.dumps({"baud": BAUD, "calls": options.calls, "rows": rows}))
    else:
        print(f"{'tool':36} {'bytes':>5} {'wire ms':>8} {'p50 ms':>8} {'p99 ms':>8} {'allowed':>8}")
        for row in rows:
            print(
                f"{row['tool']:36} {row['bytes']:5} {row['wire_ms']:8} {row['p50_ms']:8} {row['p99_ms']:8} {row['allowed_ms']:8}"
                f"  {'ok' if row['ok'] else 'OVER'}"
            )
    return 0 if all(row["ok"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
