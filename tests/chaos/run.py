"""A chaos run: grow the tree, load it, break it again and again, watch, and have the logs judged.

    scripts/chaos [--seconds 600] [--seed N] [--json]

Faults come in rounds with a calm after each, in which the tree must become true again. Exits with 1 on a violation; the logs are kept then.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from tests.chaos import journal
from tests.chaos.check import Verdict, judge
from tests.chaos.check_calm import INTERVALS, Plan
from tests.chaos.faults import Faults
from tests.chaos.grove import HEARTBEAT_S, PREFIX, REPLICAS, TTL_S, Grove, truth
from tests.chaos.journal import Journal
from tests.chaos.load import Load
from tests.chaos.observer import list_tools, watch_holds

SECONDS = 600.0
ROUND_S = (15.0, 40.0)
CALM_S = INTERVALS * HEARTBEAT_S + TTL_S + 3.0
"""The longest that becoming true may take, and a little in which it must stay so."""
LEAST_ROUND_S = 6.0
"""At least one fault comes in it."""
GROWN_S = 30.0

Say = Callable[[str], None]


async def run(directory: Path, seconds: float, seed: int, say: Say) -> Verdict:
    plan = Plan(truth(), list(REPLICAS), HEARTBEAT_S, TTL_S)
    (directory / journal.PLAN).write_text(json.dumps(asdict(plan)))
    with contextlib.ExitStack() as files:
        calls, faults, holds, listings = (
            files.enter_context(contextlib.closing(Journal(directory / name)))
            for name in (journal.CALLS, journal.FAULTS, journal.HOLDS, journal.LISTINGS)
        )
        grove = Grove(directory)
        async with grove.grown():
            ports = {name: grove.nodes[name].port for name in REPLICAS}
            watching = asyncio.create_task(watch_holds(grove.etcd.url, PREFIX, holds))
            await _grown(ports, directory, plan)
            say(f"{len(grove.nodes)} nodes, {len(grove.lines)} lines, seed {seed}")
            load = Load(ports, plan.truth, calls, seed)
            listing = asyncio.create_task(list_tools(ports, listings))
            loading = asyncio.create_task(load.run())
            try:
                started, dice, breaking = time.monotonic(), random.Random(seed), Faults(grove, faults, seed)
                while (left_s := seconds - (time.monotonic() - started)) > 0:
                    await _break_and_rest(breaking, _round_s(left_s, dice), faults)
                    say(f"{time.monotonic() - started:.0f} of {seconds:.0f} s: {load.calls} calls, {breaking.count} faults")
                load.stop()
                await loading
            finally:
                for task in (watching, listing, loading):
                    task.cancel()
                await asyncio.gather(watching, listing, loading, return_exceptions=True)
    return judge(directory)


async def _grown(ports: dict[str, int], directory: Path, plan: Plan) -> None:
    """Wait until the tree is there: what comes before is no part of the run."""
    file = directory / "growing.jsonl"
    with contextlib.closing(Journal(file)) as growing:
        listing = asyncio.create_task(list_tools(ports, growing))
        try:
            async with asyncio.timeout(GROWN_S):
                while True:
                    last = {entry["replica"]: entry for entry in journal.read(file)}
                    if [each["names"] for each in last.values()] == [plan.truth] * len(ports):
                        return
                    await asyncio.sleep(0.1)
        finally:
            listing.cancel()
            await asyncio.gather(listing, return_exceptions=True)


async def _break_and_rest(faults: Faults, round_s: float, told: Journal) -> None:
    await faults.happen(round_s)
    told.write(event="calm")
    await asyncio.sleep(CALM_S)
    told.write(event="stir")


def _round_s(left_s: float, dice: random.Random) -> float:
    """How long faults come before the next calm; all that is left when there would be no time for another."""
    round_s = dice.uniform(*ROUND_S)
    return round_s if left_s >= round_s + CALM_S + ROUND_S[0] else max(left_s - CALM_S, LEAST_ROUND_S)


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/chaos")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--seed", type=int, default=None, help="[drawn, and told]")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    seed = random.randrange(1 << 31) if options.seed is None else options.seed
    directory = Path(tempfile.mkdtemp(prefix="mcpax-chaos-"))
    verdict = asyncio.run(run(directory, options.seconds, seed, lambda text: print(text, file=sys.stderr, flush=True)))
    if verdict.passed:
        shutil.rmtree(directory)
    if options.json:
        print(json.dumps({"seed": seed, "seconds": options.seconds, **asdict(verdict), "passed": verdict.passed}))
    else:
        print(verdict.text())
    if not verdict.passed:
        print(f"seed {seed}; the logs are in {directory}", file=sys.stderr)
    return 0 if verdict.passed else 1


if __name__ == "__main__":
    sys.exit(main())
