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
import statistics
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx

from mcpax.bridge.maps.load import load_map
from mcpax.bridge.transports.uart import BITS_PER_BYTE
from mcpax.bridge.wire.dialect import dialect_for
from tests.harness.plain_client import PlainClient, checked

ROOT = Path(__file__).parents[2]
BAUD = 115200
ALLOWED_FACTOR, ALLOWED_EXTRA_MS = 1.3, 1.0
WARM_UP_CALLS = 50
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


async def wire_bytes(url: str, client: PlainClient, device: str, request: bytes) -> tuple[int, int]:
    """What one call puts on the wire, there and back, as seen by the gateway's own sniffer."""
    framing = dialect_for(load_map(ROOT / "device-maps" / f"{device}.toml")).framing
    sizes: dict[str, int] = {}
    async with httpx.AsyncClient() as http, http.stream("GET", f"{url}/admin/frames", params={"device": device}) as frames:
        call = asyncio.create_task(asyncio.to_thread(client.exchange, request))
        async for line in frames.aiter_lines():
            frame = json.loads(line)
            if frame["kind"] in ("call", "response"):
                sizes[frame["direction"]] = len(framing.encode(bytes.fromhex(frame["message"])))
            if len(sizes) == 2:
                break
        await call
    return sizes["tx"], sizes["rx"]


async def measure(url: str, calls: int) -> list[dict[str, Any]]:
    client = PlainClient(url)
    rows = []
    for device, tool, arguments in SUBJECTS:
        name = f"edge__{device}__{tool}"
        request = client.call(name, arguments)
        there, back = await wire_bytes(url, client, device, request)
        wire_ms = (there + back) * BITS_PER_BYTE / BAUD * 1000
        taken: list[float] = []
        for number in range(WARM_UP_CALLS + calls):
            started = time.perf_counter()
            answer = client.exchange(request)
            elapsed = time.perf_counter() - started
            checked(answer)
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
