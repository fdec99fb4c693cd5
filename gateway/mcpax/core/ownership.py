"""Who owns what in a tree that several aggregators may serve (draft §4.2, §13.4).

Two kinds of ownership with two lifetimes. A *hold* says that one holder, and no other, serves a subserver just now; it ends with the
session or with the holder. A *title* says which authority a segment belongs to; it outlives sessions and restarts. An aggregator that
shares its tree with nobody needs only titles (`Alone`); several agree through a shared store. Knows nothing of where either is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from mcpax.errors import ErrorKind, Fault


@dataclass(frozen=True, slots=True)
class Claim:
    """What a registering subserver wants to be."""

    subserver_id: str
    segment: str
    authority: str | None = None
    """Proven, or accepted unproven by configuration; None makes no claim beyond the session."""


@dataclass(frozen=True, slots=True)
class Hold:
    """A claim that was granted."""

    claim: Claim
    fence: int
    """Grows with every hold of the same subserver in the tree: of two that believe they hold it, the one with the larger does."""


Lost = Callable[[Hold], None]
"""Called when a hold ended without being released: another took it over, or the store forgot us."""


class Ownership(Protocol):
    async def claim(self, claim: Claim, lost: Lost) -> Hold:
        """Hold a subserver. Raises `Fault`: REGISTERED_ELSEWHERE, NAMESPACE_CONFLICT for another authority's segment, STORE_UNAVAILABLE."""
        ...

    async def release(self, hold: Hold) -> None:
        """Give it back. Never raises: what cannot be released expires."""
        ...

    def check(self, hold: Hold) -> bool:
        """Whether it certainly is ours just now; cheap, as it is asked before every call."""
        ...


class Titles(Protocol):
    """Which authority a segment belongs to, kept durably."""

    def authority_of(self, segment: str) -> str | None: ...

    def give(self, segment: str, authority: str) -> None: ...


class Alone:
    """The ownership of an aggregator that shares its tree with no other: every subserver that reaches it is its own to serve."""

    def __init__(self, titles: Titles) -> None:
        self._titles = titles
        self._fence = 0

    async def claim(self, claim: Claim, lost: Lost) -> Hold:  # noqa: ARG002
        check_title(claim, self._titles.authority_of(claim.segment))
        if claim.authority is not None:
            self._titles.give(claim.segment, claim.authority)
        self._fence += 1
        return Hold(claim, self._fence)

    async def release(self, hold: Hold) -> None: ...

    def check(self, hold: Hold) -> bool:  # noqa: ARG002
        return True


def check_title(claim: Claim, authority: str | None) -> None:
    """Refuse a segment that belongs to another authority, even while nobody uses it."""
    if authority is not None and authority != claim.authority:
        raise Fault(
            ErrorKind.NAMESPACE_CONFLICT,
            f"namespace_conflict: segment {claim.segment!r} belongs to another authority.",
            hint="Choose another segment, or have the operator release it.",
            details={"segment": claim.segment},
        )
