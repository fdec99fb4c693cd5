"""Keeping a link dialled: connect, serve, and when it ends connect again, to the same address or the next one.

The first attempt after a loss is made at once; after that the pauses grow, and are spread at random so that a restarted aggregator is not
met by all its children in one moment. Knows nothing of what is served.
"""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import structlog

from mcpax.link.child import LinkRefused
from mcpax.link.wire import CannotDial, Wire, dial

log = structlog.get_logger("mcpax.redial")

FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 15.0
STEADY_S = 5.0
"""A link that was of use for less than this, more than once, is dialled again with pauses: who lets us in only to throw us out does not
want us back at once."""
REFUSED_PAUSE_S = 5.0
"""Being refused does not mend itself quickly, and every attempt costs the other side work."""


@dataclass(frozen=True, slots=True)
class Target:
    url: str
    token: str | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = None

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.token is None else {"Authorization": f"Bearer {self.token}"}


@dataclass(slots=True)
class LinkState:
    """For operators."""

    url: str = ""
    connected: bool = False
    problem: str = "not connected yet"
    attempts: int = 0
    links: int = 0
    """How often a link has come about."""


Serve = Callable[[Wire], Awaitable[str]]
"""Serve a link until it ends; returns why. May raise `LinkRefused`."""


class Redialler:
    def __init__(self, targets: Sequence[Target], serve: Serve, *, spread: Callable[[], float] = random.random) -> None:
        """`targets`: the first is preferred, the others stand in for it."""
        self._targets = targets
        self._serve = serve
        self._spread = spread
        self.state = LinkState()
        self._connected_at = 0.0

    async def run(self) -> None:
        """Until cancelled."""
        failures = brief = 0
        while True:
            # One round over all addresses without a pause, then ever longer pauses between rounds.
            target = self._targets[failures % len(self._targets)]
            pause_s = await self._once(target)
            if self.state.connected:
                self.state.connected = False
                failures = 0
                brief = brief + 1 if asyncio.get_running_loop().time() - self._connected_at < STEADY_S else 0
                if brief > 1:
                    await self._pause(brief - 1)
                continue
            failures += 1
            if failures % len(self._targets) == 0:
                await self._pause(failures // len(self._targets), pause_s)

    async def _pause(self, times: int, least_s: float = 0.0) -> None:
        grown_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(times - 1, 16))
        await asyncio.sleep(max(least_s, grown_s) * (0.5 + self._spread() / 2))

    async def _once(self, target: Target) -> float:
        """Dial and serve once; returns the least pause before the next attempt."""
        state = self.state
        state.attempts += 1
        state.url = target.url
        try:
            async with dial(target.url, target.headers, target.tls) as wire:
                reason = await self._serve(wire)
        except CannotDial as error:
            self._failed("cannot_dial", str(error))
            return 0.0
        except LinkRefused as error:
            state.connected = False
            self._failed("link_refused", str(error))
            return REFUSED_PAUSE_S
        self._failed("link_lost", reason)
        return 0.0

    def connected(self) -> None:
        """Whoever serves says so when the link is of use."""
        self._connected_at = asyncio.get_running_loop().time()
        self.state.connected = True
        self.state.problem = ""
        self.state.links += 1

    def _failed(self, event: str, problem: str) -> None:
        if problem != self.state.problem:  # an address that stays away is told once
            log.warning(event, url=self.state.url, problem=problem)
        self.state.problem = problem
