"""What one more aggregator on the way costs a call, next to what one more proxy written with the MCP SDK costs.

    scripts/bench hops [--json] [--calls N] [--depths 1,2,4,10]

A chain of aggregators, each a process, with a tool that does nothing at the lowest. The same tool is called from different levels, so the
depths differ in hops and in nothing else; and it is called through one and two SDK proxies in front of the lowest. Calls of all kinds take
turns. A hop costs the slope of the medians. Passes when ours is at most a quarter of the SDK's.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.harness import levels
from tests.harness.dummy_gateway import SEGMENT, TOOL
from tests.harness.levels import Level
from tests.harness.plain_client import PlainClient, checked
from tests.harness.process_figures import cpu_s, percentile_99

DEPTHS = (1, 2, 4, 10)
PROXIES = 2
ALLOWED_RATIO = 0.25
CALLS = 1000
WARM_UP_CALLS = 100
TURN_CALLS = 10
"""Calls of one kind in a row: few, so that what else the machine does meets all kinds alike."""
PATIENCE_S = 90.0


@dataclass(frozen=True, slots=True)
class Subject:
    """One way to the tool."""

    kind: str
    hops: int
    client: PlainClient
    request: bytes
    taken_ms: list[float] = field(default_factory=list)

    def turn(self, calls: int) -> None:
        for _ in range(calls):
            started = time.perf_counter()
            answer = self.client.exchange(self.request)
            self.taken_ms.append((time.perf_counter() - started) * 1000)
            checked(answer)

    def row(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "hops": self.hops,
            "p50_ms": round(statistics.median(self.taken_ms), 3),
            "p99_ms": round(percentile_99(self.taken_ms), 3),
        }


@dataclass(frozen=True, slots=True)
class Chains:
    urls: list[str]
    """Of our levels, the root first."""
    pids: list[int]
    proxy_urls: list[str]
    """Each in front of the one before, the first in front of our lowest level."""
    proxy_pids: list[int]


@contextlib.asynccontextmanager
async def chains(depth: int, proxies: int) -> AsyncIterator[Chains]:
    with tempfile.TemporaryDirectory(prefix="mcpax-hops-") as folder:
        names = [f"n{number}" for number in range(1, depth + 1)]
        ports = levels.free_ports(depth + proxies)
        ours = [Level(name, port, Path(folder, name)) for name, port in zip(names, ports, strict=False)]
        ours[-1] = Level(names[-1], ports[depth - 1], Path(folder, names[-1]), program=("-m", "tests.harness.dummy_gateway"))
        async with levels.running(ours) as tree, contextlib.AsyncExitStack() as stack:
            await levels.until(tree, lambda: _answers(ours[0].url, _name(names)), "the tool at the root", PATIENCE_S)
            urls, pids = [ours[-1].url], []
            for port in ports[depth:]:
                process = await levels.start(Path(folder, "proxy.log"), "-m", "tests.harness.sdk_proxy", f"{urls[-1]}/mcp", str(port))
                stack.push_async_callback(levels.end, process)
                urls.append(f"http://127.0.0.1:{port}")
                pids.append(process.pid)
                await levels.until(tree, lambda url=urls[-1]: _answers(url, _name(names[-1:])), "the SDK proxy", PATIENCE_S)  # type: ignore[misc]
            yield Chains([level.url for level in ours], [each.pid for each in tree], urls[1:], pids)


def _name(segments: Sequence[str]) -> str:
    """As the first of the segments names the tool."""
    return "__".join((*segments, SEGMENT, TOOL))


async def _answers(url: str, name: str) -> bool:
    try:
        client = PlainClient(url)
    except OSError:
        return False
    answer = await asyncio.to_thread(client.exchange, client.call(name, {}))
    client.close()
    return "error" not in json.loads(answer)


async def measure(depths: Sequence[int], calls: int) -> dict[str, Any]:
    deepest = max(depths)
    async with chains(deepest, PROXIES) as found:
        names = [f"n{number}" for number in range(1, deepest + 1)]
        subjects = [_subject("mcpax", depth - 1, found.urls[-depth], names[-depth:]) for depth in depths]
        subjects += [_subject("sdk", hops, url, names[-1:]) for hops, url in enumerate(found.proxy_urls, 1)]
        for subject in subjects:
            subject.turn(WARM_UP_CALLS)
            subject.taken_ms.clear()
        # Levels that no call enters or ends at, and that only calls from the root pass; the outermost proxy, which only its own calls pass.
        passed = found.pids[1 : -sorted(depths)[-2]]
        before = [cpu_s(pid) for pid in passed], cpu_s(found.proxy_pids[-1])
        for _ in range(calls // TURN_CALLS):
            for subject in subjects:
                subject.turn(TURN_CALLS)
        cpu = [cpu_s(pid) - at for pid, at in zip(passed, before[0], strict=True)], cpu_s(found.proxy_pids[-1]) - before[1]
    rows = [subject.row() for subject in subjects]
    return {
        "calls": calls // TURN_CALLS * TURN_CALLS,
        "rows": rows,
        **judge(subjects),
        "cpu_ms_per_hop": {
            "mcpax": round(statistics.mean(cpu[0]) * 1000 / calls, 3) if passed else None,
            "sdk": round(cpu[1] * 1000 / calls, 3),
        },
    }


def _subject(kind: str, hops: int, url: str, segments: Sequence[str]) -> Subject:
    client = PlainClient(url)
    return Subject(kind, hops, client, client.call(_name(segments), {"unit": "celsius"}))


def judge(subjects: Sequence[Subject]) -> dict[str, Any]:
    """A hop of each kind, and their ratio; also for each fifth of the run, so that one can see how much it depends on the moment."""
    fifth = max(1, len(subjects[0].taken_ms) // 5)
    ratios = [
        ours / sdk for ours, sdk in (_per_hop(subjects, slice(begin, begin + fifth)) for begin in range(0, fifth * 5, fifth)) if sdk > 0
    ]
    ours, sdk = _per_hop(subjects, slice(None))
    return {
        "per_hop_ms": {"mcpax": round(ours, 3), "sdk": round(sdk, 3)},
        "ratio": round(ours / sdk, 3),
        "ratio_in_parts": [round(ratio, 3) for ratio in sorted(ratios)],
        "allowed_ratio": ALLOWED_RATIO,
        "ok": ours <= ALLOWED_RATIO * sdk,
    }


def _per_hop(subjects: Sequence[Subject], part: slice) -> tuple[float, float]:
    """Our slope and the SDK's. The SDK's proxies stand in front of our lowest level, so that one is where its line begins."""
    return _slope([each for each in subjects if each.kind == "mcpax"], part), _slope(
        [each for each in subjects if each.kind == "sdk" or each.hops == 0], part
    )


def _slope(subjects: Sequence[Subject], part: slice) -> float:
    medians = [statistics.median(each.taken_ms[part]) for each in subjects]
    return statistics.linear_regression([each.hops for each in subjects], medians).slope


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench hops")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--depths", type=lambda text: [int(each) for each in text.split(",")], default=list(DEPTHS))
    options = parser.parse_args()
    result = asyncio.run(measure(options.depths, options.calls))
    if options.json:
        print(json.dumps(result))
    else:
        print(f"{'way':24} {'p50 ms':>8} {'p99 ms':>8}")
        for row in result["rows"]:
            print(f"{row['kind'] + ', added hops: ' + str(row['hops']):24} {row['p50_ms']:8} {row['p99_ms']:8}")
        for what, figures in (("one hop", result["per_hop_ms"]), ("its CPU", result["cpu_ms_per_hop"])):
            print(f"{what}: mcpax {figures['mcpax']} ms, SDK proxy {figures['sdk']} ms")
        verdict = "ok" if result["ok"] else "MISSED"
        print(f"ratio {result['ratio']}, in parts of the run {result['ratio_in_parts']}, {ALLOWED_RATIO} allowed: {verdict}")
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
