"""The one interface to everything downstream: boards, native MCP servers, child aggregators.

A subserver lists tools, runs a call, and closes. It knows its own tools by the names below
its segment and nothing of the rest of the tree.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from mcpax.capability import Capability
from mcpax.names import QualifiedName

Json = dict[str, Any]

Progress = Callable[[float, float | None, str | None], Awaitable[None]]
"""Report progress, total, message."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as its subserver presents it."""

    path: QualifiedName
    """Below the subserver's segment: one part for a leaf, more only below an aggregator."""
    description: str
    input_schema: Json
    capability: Capability
    title: str = ""
    output_schema: Json | None = None
    quarantined: str = ""
    """Not empty: why this tool is listed but may not be called."""
    hops_below: int = 0
    """Aggregators between the subserver's link and the tool."""


@dataclass(frozen=True, slots=True)
class Call:
    """One tools/call on its way down."""

    path: QualifiedName
    arguments: Mapping[str, Any]
    deadline: float | None
    """Event-loop time after which nobody waits any more; None: no limit."""
    route: QualifiedName = ()
    cursor: int = 0
    progress: Progress | None = None


@dataclass(frozen=True, slots=True)
class Notification:
    """Something a subserver wants told upstream."""

    method: str
    params: Json = field(default_factory=dict)


class Subserver(Protocol):
    async def list_tools(self) -> Sequence[Tool]: ...

    async def call(self, call: Call) -> Json:
        """Run it and return the MCP result object (camelCase), or raise `Fault`.

        Members of a result that came from afar may be `msgspec.Raw`: the bytes they came in (see `results`).
        """
        ...

    async def close(self) -> None: ...
