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

from mcpax.link.introduction import LinkRefused
from mcpax.link.wire import CannotDial, Wire, dial

log = structlog.get_logger("mcpax.redial")

FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 15.0
"""Where heartbeats come more often than this, their interval is the longest: a dial costs the other side about as much as a heartbeat, and
a parent that is back must have its children back within a few of them."""
SETTLED_S = 1.0
"""A link that was of use for this long is dialled again at once; one that ends sooner counts as a failure, and pauses grow."""


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


@dataclass(frozen=True, slots=True)
class _Attempt:
    settled: bool
    retry_s: float | None = None
    """When to try again, if the other side said so."""


Serve = Callable[[Wire], Awaitable[str]]
"""Serve a link until it ends; returns why. May raise `LinkRefused`."""


class Redialler:
    def __init__(
        self,
        targets: Sequence[Target],
        serve: Serve,
        *,
        heartbeat_s: float = LONGEST_PAUSE_S,
        spread: Callable[[], float] = random.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`targets`: the first is preferred, the others stand in for it. `heartbeat_s`: how often those that are linked show they live."""
        self._targets = targets
        self._serve = serve
        self._longest_s = min(LONGEST_PAUSE_S, heartbeat_s)
        self._spread = spread
        self._sleep = sleep
        self._stopping = False
        self._told: dict[str, str] = {}
        """What was last said of each address."""
        self._connected_at: float | None = None
        self.state = LinkState()

    async def run(self) -> None:
        """Until cancelled, or until the link ends after `stop`."""
        failures = 0
        while not self._stopping:
            # One round over all addresses without a pause, then ever longer pauses between rounds.
            attempt = await self._once(self._targets[failures % len(self._targets)])
            if attempt.settled:
                failures = 0
                continue
            failures += 1
            if failures % len(self._targets) == 0:
                await self._sleep(self._pause_s(failures // len(self._targets), attempt) * (0.5 + self._spread() / 2))

    def stop(self) -> None:
        """Serve on, but when this link ends dial no more."""
        self._stopping = True

    def _pause_s(self, rounds: int, attempt: _Attempt) -> float:
        grown_s = FIRST_PAUSE_S * 2.0 ** min(rounds - 1, 16)
        return min(self._longest_s, grown_s if attempt.retry_s is None else attempt.retry_s)

    async def _once(self, target: Target) -> _Attempt:
        state = self.state
        state.attempts += 1
        state.url = target.url
        self._connected_at = None
        retry_s = None
        try:
            async with dial(target.url, target.headers, target.tls) as wire:
                self._failed("link_lost", await self._serve(wire))
        except CannotDial as error:
            self._failed("cannot_dial", str(error))
        except LinkRefused as error:
            self._failed("link_refused", str(error))
            retry_s = error.retry_s
        except Exception as error:  # whatever went wrong with one link, the next may do better
            log.exception("link_failed", url=target.url)
            self._failed("link_failed", f"{type(error).__name__}: {error}")
        since = self._connected_at
        state.connected = False
        return _Attempt(since is not None and asyncio.get_running_loop().time() - since >= SETTLED_S, retry_s)

    def connected(self) -> None:
        """Whoever serves says so when the link is of use."""
        self._connected_at = asyncio.get_running_loop().time()
        self.state.connected = True
        self.state.problem = ""
        self._told.clear()
        self.state.links += 1

    def _failed(self, event: str, problem: str) -> None:
        if self._told.get(self.state.url) != problem:  # an address that stays away is told once
            log.warning(event, url=self.state.url, problem=problem)
        self._told[self.state.url] = problem
        self.state.problem = problem
