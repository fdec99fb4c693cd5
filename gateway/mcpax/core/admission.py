"""The rules by which a registration is let in or refused: names, numbers, places that are taken, circles. Pure.

Answers name what was asked for and never who stands in the way: an id that became known could be used to take its place. Knows no session.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcpax.core.principal import Principal
from mcpax.core.registration import RegistrationRequest
from mcpax.core.subserver import Tool
from mcpax.errors import ErrorKind, Fault
from mcpax.names import InvalidName, qualified

MAX_TOOLS_PER_SUBSERVER = 4096
MAX_TOOLS_PER_AGGREGATOR = 65_536
"""What one child aggregator may present of its whole subtree."""
TRY_ELSEWHERE_MS = 1000
"""When one that is registered elsewhere may try again: it may be moving, and its old place ends soon."""


def check_segment_of(principal: Principal, segment: str) -> None:
    if principal.segment not in (None, segment):
        raise Fault(
            ErrorKind.NAMESPACE_CONFLICT,
            f"namespace_conflict: segment {segment!r} is not {principal.name!r}'s to take.",
            hint=f"It may register as {principal.segment!r}.",
            details={"segment": segment},
        )


@dataclass(frozen=True, slots=True)
class Bid:
    """Somebody's claim to a place."""

    request: RegistrationRequest
    principal: Principal
    fence: int | None = None
    """None: not known yet."""


def check_takeover(holder: Bid, newcomer: Bid) -> None:
    """May the newcomer displace a holder of its id or segment? First come, first served, and a session belongs to whom it was opened by.

    Between replicas of one aggregator it is the shared store that decides, and the larger fence tells what it decided last.
    """
    if not (holder.principal.claims and newcomer.principal.claims):
        if newcomer.fence is not None and newcomer.fence < (holder.fence or 0):
            raise _elsewhere("Another replica serves this subserver.")
        return
    segment = newcomer.request.segment
    if holder.request.subserver_id != newcomer.request.subserver_id:
        raise Fault(
            ErrorKind.NAMESPACE_CONFLICT,
            f"namespace_conflict: segment {segment!r} is held by another subserver.",
            hint="The first to register keeps a segment. Choose another one.",
            details={"segment": segment},
        )
    if holder.principal.name != newcomer.principal.name:
        raise _elsewhere("This subserver is registered by somebody else.")


def check_subtree(ids: frozenset[str], own_id: str, others: frozenset[str]) -> None:
    """`others`: all aggregators that are below already, by another way (draft §5.3, §13.4)."""
    if own_id in ids:
        raise Fault(
            ErrorKind.REGISTRATION_CYCLE,
            "registration_cycle: this aggregator is part of the subtree that wants to be below it.",
            hint="Remove one of the [upstream] tables that form the circle.",
        )
    if ids & others:
        raise Fault(
            ErrorKind.REGISTERED_ELSEWHERE,
            "An aggregator of this subtree is registered in another part of the tree already.",
            retry_after_ms=TRY_ELSEWHERE_MS,
            details={"aggregator_ids": sorted(ids & others)},
        )


def most_tools(request: RegistrationRequest) -> int:
    return MAX_TOOLS_PER_AGGREGATOR if request.is_aggregator else MAX_TOOLS_PER_SUBSERVER


def check_tools(tools: Sequence[Tool], request: RegistrationRequest, root: str) -> None:
    """The rules for names that a subserver may present (draft §4.1, §4.3)."""
    most = most_tools(request)
    if len(tools) > most:
        raise Fault(ErrorKind.INVALID_PARAMS, f"{len(tools)} tools, at most {most} allowed per subserver.")
    seen = set()
    for tool in tools:
        if len(tool.path) != 1 and not request.is_aggregator:
            raise Fault(
                ErrorKind.INVALID_PARAMS,
                f"Tool {'.'.join(tool.path)!r} of {request.segment!r} has more than one level.",
                hint="Only an aggregator adds levels; a leaf server's tool names contain no dot.",
            )
        try:
            qualified((root, request.segment, *qualified(tool.path)))
        except InvalidName as error:
            raise Fault(ErrorKind.INVALID_PARAMS, f"Tool of {request.segment!r}: {error}.") from None
        if tool.path in seen:
            raise Fault(ErrorKind.INVALID_PARAMS, f"Tool {'.'.join(tool.path)!r} of {request.segment!r} is listed twice.")
        seen.add(tool.path)


def _elsewhere(message: str) -> Fault:
    return Fault(ErrorKind.REGISTERED_ELSEWHERE, message, retry_after_ms=TRY_ELSEWHERE_MS)
