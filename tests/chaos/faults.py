"""The faults of a chaos run, drawn from a seed: nodes killed or stood still, lines cut, silenced and delayed, etcd restarted.

Each is written down. It has ended when its line is mended, when what stood still goes on, or when what was killed answers again. Nothing
has two faults of its own at once; different things do. Knows nothing of what they do to anybody.
"""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Awaitable, Callable

from tests.chaos.grove import Grove, Node
from tests.chaos.journal import Journal
from tests.chaos.line import Line

PAUSE_S = (1.0, 5.0)
LINE_S = (0.5, 5.0)
"""How long a line fails, or a node stands still: longer, too, than a lease lasts."""
DELAY_S = (0.02, 0.3)
DOWN_S = (0.0, 2.0)
"""How long what was killed stays away, besides the time it takes to start."""
WEIGHTS = {"kill": 8, "freeze": 3, "cut": 4, "silence": 3, "delay": 4, "etcd": 1}


class Faults:
    def __init__(self, grove: Grove, journal: Journal, seed: int) -> None:
        self._grove = grove
        self._journal = journal
        self._dice = random.Random(seed)
        self._busy: set[str] = set()
        self.count = 0

    async def happen(self, seconds: float) -> None:
        """For that long, with one at the very end; returns when the last has ended."""
        until = asyncio.get_running_loop().time() + seconds
        async with asyncio.TaskGroup() as under_way:
            while (left_s := until - asyncio.get_running_loop().time()) > 0:
                await asyncio.sleep(min(left_s, self._dice.uniform(*PAUSE_S)))
                kind, target, work = self._draw()
                if target not in self._busy:
                    under_way.create_task(self._one(kind, target, work))

    def _draw(self) -> tuple[str, str, Callable[[], Awaitable[None]]]:
        """Always draws as much from the dice, so that what was busy once does not change all that follows."""
        kind = self._dice.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        node = self._dice.choice(list(self._grove.nodes.values()))
        line = self._dice.choice(list(self._grove.lines.values()))
        down_s, line_s, delay_s = (self._dice.uniform(*each) for each in (DOWN_S, LINE_S, DELAY_S))
        if kind == "kill":
            return kind, node.name, lambda: self._kill(node, down_s)
        if kind == "freeze":
            return kind, node.name, lambda: self._freeze(node, line_s)
        if kind == "etcd":
            return kind, "etcd", lambda: self._restart_etcd(down_s)
        break_it: dict[str, Callable[[], None]] = {"cut": line.cut, "silence": line.silence, "delay": lambda: line.delay(delay_s)}
        return kind, line.name, lambda: self._break(line, break_it[kind], line_s)

    async def _one(self, kind: str, target: str, work: Callable[[], Awaitable[None]]) -> None:
        self.count += 1
        number = self.count
        self._busy.add(target)
        self._journal.write(event="begin", number=number, kind=kind, target=target)
        try:
            await work()
        finally:
            self._busy.discard(target)
        self._journal.write(event="end", number=number, kind=kind, target=target)

    async def _kill(self, node: Node, down_s: float) -> None:
        await node.kill()
        await asyncio.sleep(down_s)
        await node.start()

    async def _freeze(self, node: Node, seconds: float) -> None:
        node.signal(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        node.signal(signal.SIGCONT)

    async def _restart_etcd(self, down_s: float) -> None:
        await asyncio.to_thread(self._grove.etcd.kill)
        await asyncio.sleep(down_s)
        await asyncio.to_thread(self._grove.etcd.start)

    async def _break(self, line: Line, break_it: Callable[[], None], seconds: float) -> None:
        break_it()
        await asyncio.sleep(seconds)
        line.heal()
