"""A wide tree: one root with 200 children of 50 tools each. What a page of the list costs, what one more child costs, what a tool weighs.

    scripts/bench tree [--json] [--children N] [--tools N] [--passes N]

The root is `mcpax serve` as its own process; the children are simulated in another, each with its own WebSocket and registration. Passes
when a page of tools/list takes less than 50 ms for 99 of 100, and when the last child costs the root less than twice what the first did.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import secrets
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from tests.harness import levels
from tests.harness.levels import Level
from tests.harness.plain_client import PlainClient, checked
from tests.harness.process_figures import fine_cpu_s, percentile_99, resident_kib
from tests.harness.simulated_children import Child

CHILDREN, TOOLS, PASSES = 200, 50, 20
ALLOWED_PAGE_MS = 50.0
ALLOWED_GROWTH = 2.0
NEIGHBOURS = 5
"""Children that are measured at the beginning, in the middle and at the end; their median counts."""
SETTLE_S = 0.15
"""After a join the root still measures the way and tells of the change; all of that counts."""
AT_ONCE = 20
PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Root:
    url: str
    pid: int
    children: list[Child]
    """Those that may join; none has."""


@contextlib.asynccontextmanager
async def root(children: int, tools: int) -> AsyncIterator[Root]:
    with tempfile.TemporaryDirectory(prefix="mcpax-wide-") as folder:
        tokens = {f"child-{number:03}": secrets.token_urlsafe(32) for number in range(children)}
        [port] = levels.free_ports(1)
        # Asking all children again is not what is measured here, so the list does not age within the run.
        level = Level("cloud", port, Path(folder, "cloud"), more="\n".join(["list_ttl_s = 3600", *_entries(Path(folder), tokens)]))
        async with levels.running([level]) as tree:
            await levels.until(tree, lambda: _listens(level.url), "the root", PATIENCE_S)
            made = [Child(name, token, tools) for name, token in tokens.items()]
            try:
                yield Root(level.url, tree[0].pid, made)
            finally:
                await asyncio.gather(*(child.leave() for child in made))


def _entries(folder: Path, tokens: dict[str, str]) -> Iterator[str]:
    for name, token in tokens.items():
        (folder / name).write_text(token)
        yield f'[[child]]\nname = "{name}"\nsegment = "{name}"\ntoken_file = "../{name}"\n'


async def _listens(url: str) -> bool:
    try:
        PlainClient(url).close()
    except OSError:
        return False
    return True


def walk(client: PlainClient) -> tuple[int, list[float]]:
    """All pages: how many tools there are, and how long each page took."""
    found, taken_ms, cursor = 0, [], None
    while True:
        request = client.list(cursor)
        started = time.perf_counter()
        answer = client.exchange(request)
        taken_ms.append((time.perf_counter() - started) * 1000)
        result = checked(answer)
        found += len(result["tools"])
        if "nextCursor" not in result:
            return found, taken_ms
        cursor = result["nextCursor"]


async def all_at_once(children: int, tools: int, passes: int) -> dict[str, Any]:
    """Everybody joins; then the list is read again and again."""
    async with root(children, tools) as wide:
        client = PlainClient(wide.url)
        own, _ = await asyncio.to_thread(walk, client)
        before_kib = resident_kib(wide.pid)
        started = time.perf_counter()
        await asyncio.gather(*(child.join(wide.url) for child in wide.children))
        joined_s = time.perf_counter() - started
        joined_kib = resident_kib(wide.pid)
        found, first_ms = await asyncio.to_thread(walk, client)
        listed_s = time.perf_counter() - started
        if found - own != children * tools:
            raise SystemExit(f"{found} tools are listed, {own} of them the root's own, and {children * tools} were registered")
        taken = [ms for _ in range(passes) for ms in (await asyncio.to_thread(walk, client))[1]]
        after_kib = resident_kib(wide.pid)
    return {
        "tools": found - own,
        "pages": len(first_ms),
        "joined_s": round(joined_s, 2),
        "listed_s": round(listed_s, 2),
        "page_ms": {
            "first": round(statistics.median(first_ms), 3),
            "p50": round(statistics.median(taken), 3),
            "p99": round(percentile_99(taken), 3),
            "allowed": ALLOWED_PAGE_MS,
        },
        "memory": {
            "before_mib": round(before_kib / 1024, 1),
            "after_mib": round(after_kib / 1024, 1),
            "per_tool_kib": round((after_kib - before_kib) / found, 2),
            "per_tool_kib_unlisted": round((joined_kib - before_kib) / found, 2),
        },
    }


async def one_by_one(children: int, tools: int) -> dict[str, float]:
    """CPU time of the root for one more child, by how many are there already."""
    at = {"first": 0, "middle": max(0, children // 2 - NEIGHBOURS // 2), "last": max(0, children - NEIGHBOURS)}
    costs: dict[str, float] = {}
    async with root(children, tools) as wide:
        waiting = list(wide.children)
        for where, position in at.items():
            while (there := children - len(waiting)) < position:
                batch = [waiting.pop(0) for _ in range(min(AT_ONCE, position - there))]
                await asyncio.gather(*(child.join(wide.url) for child in batch))
            neighbours = [waiting.pop(0) for _ in range(min(NEIGHBOURS, len(waiting)))]
            measured = [await _cost_ms(wide, child) for child in neighbours]
            if measured:
                costs[where] = round(statistics.median(measured), 2)
    return costs


async def _cost_ms(wide: Root, child: Child) -> float:
    """What the root does besides, its share of keeping the other links alive, is measured just before and taken off."""
    idle = await _cpu_a_second(wide.pid)
    started = time.perf_counter()
    before = fine_cpu_s(wide.pid)
    await child.join(wide.url)
    await asyncio.sleep(SETTLE_S)
    return (fine_cpu_s(wide.pid) - before - idle * (time.perf_counter() - started)) * 1000


async def _cpu_a_second(pid: int) -> float:
    started, before = time.perf_counter(), fine_cpu_s(pid)
    await asyncio.sleep(SETTLE_S)
    return (fine_cpu_s(pid) - before) / (time.perf_counter() - started)


async def measure(children: int, tools: int, passes: int) -> dict[str, Any]:
    found = await all_at_once(children, tools, passes)
    costs = await one_by_one(children, tools)
    growth = costs["last"] / costs["first"] if "last" in costs else 1.0
    return {
        "children": children,
        **found,
        "join_cpu_ms": {**costs, "growth": round(growth, 2), "allowed_growth": ALLOWED_GROWTH},
        "ok": found["page_ms"]["p99"] < ALLOWED_PAGE_MS and growth < ALLOWED_GROWTH,
    }


def tell(result: dict[str, Any]) -> Sequence[str]:
    page, memory, join = result["page_ms"], result["memory"], result["join_cpu_ms"]
    return [
        f"{result['children']} children, {result['tools']} tools: joined in {result['joined_s']} s, listed after {result['listed_s']} s",
        f"a page of tools/list ({result['pages']} pages): first {page['first']} ms, then p50 {page['p50']} ms, p99 {page['p99']} ms; "
        f"{ALLOWED_PAGE_MS:g} allowed",
        f"CPU of the root for one more child: first {join['first']} ms, middle {join.get('middle')} ms, last {join.get('last')} ms: "
        f"x {join['growth']}, less than {ALLOWED_GROWTH:g} allowed",
        f"memory of the root: {memory['before_mib']} MiB, then {memory['after_mib']} MiB: {memory['per_tool_kib']} KiB a tool, "
        f"{memory['per_tool_kib_unlisted']} before anybody has listed them",
        "ok" if result["ok"] else "MISSED",
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench tree")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--children", type=int, default=CHILDREN)
    parser.add_argument("--tools", type=int, default=TOOLS, help="of each child")
    parser.add_argument("--passes", type=int, default=PASSES, help="over the whole list")
    options = parser.parse_args()
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())  # the children are many and have nothing to say
    result = asyncio.run(measure(options.children, options.tools, options.passes))
    print(json.dumps(result) if options.json else "\n".join(tell(result)))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
