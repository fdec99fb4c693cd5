"""Who registers a subserver, as far as the way it came in has proven it. Pure data; knows nothing of tokens or certificates."""

from __future__ import annotations

from dataclasses import dataclass

from mcpax.capability import AuthScope


@dataclass(frozen=True, slots=True)
class Principal:
    name: str
    """Unique among those who may register; a session belongs to the name that opened it."""
    scope: AuthScope = AuthScope.ADMIN
    """The most that may be asked of its tools."""
    segment: str | None = None
    """The only segment it may take; None: any."""
    dns_names: frozenset[str] = frozenset()
    """Names that its certificate proves."""
    trusted: bool = False
    """True: part of this very process, so nothing needs proof."""
    claims: bool = True
    """Whether what it registers must be held in the store that replicas share. Not so for what another replica holds and shows us."""


LOCAL = Principal("local", trusted=True)
"""Boards on this machine's own ports."""
OWN = Principal("own", trusted=True, claims=False)
"""The aggregator's own tools, which every replica has for itself."""
REPLICA = Principal("replica", claims=False)
"""Another replica of this aggregator, for the subservers that it serves."""
