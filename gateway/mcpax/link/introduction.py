"""How a child presents itself to a parent, and under whom it is. Data only; knows nothing of links."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mcpax.errors import Fault

REFUSED_PAUSE_S = 5.0
"""Being refused does not mend itself quickly, and every attempt costs the other side work."""


class LinkRefused(Exception):
    """The parent will not have us; says why, and when it makes sense to ask again."""

    def __init__(self, message: str, retry_s: float = REFUSED_PAUSE_S) -> None:
        super().__init__(message)
        self.retry_s = retry_s

    @classmethod
    def by(cls, fault: Fault) -> LinkRefused:
        retry_ms = fault.data().get("retry_after_ms")
        return cls(fault.message, retry_ms / 1000 if isinstance(retry_ms, int) else REFUSED_PAUSE_S)


class Parentage:
    """Under whom this aggregator is just now. One for all links of an aggregator: it has one parent at most (draft §13.4)."""

    def __init__(self) -> None:
        self.parent_id: str | None = None


@dataclass(frozen=True, slots=True)
class Introduction:
    subserver_id: str
    segment: str
    heartbeat_s: float
    authority: str | None = None
    prove: Callable[[str, str], str] | None = None
    """Make a proof of authority for the aggregator of that id, about the subserver of that id."""
    parent_id: str | None = None
    """The only parent to register with; None: whoever has the address and the certificate. Without it a dishonest parent could have us
    sign a proof for another aggregator, and show it there."""
    each_on_its_own: bool = False
    """Register every subserver by itself, as if it were the parent's own (draft B.3), instead of the subtree."""
    among_replicas: bool = False
    """To another replica of this very aggregator: show it what we serve ourselves, and not what others show us. It is no parent."""

    @property
    def heartbeat_ms(self) -> int:
        return int(self.heartbeat_s * 1000)
