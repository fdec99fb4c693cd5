"""The live tree as seen from one aggregator: who is below, how they are, how far away.

Asks every child for its own part, and waits for none long. Knows nothing of how it is drawn.
"""

from __future__ import annotations

import asyncio
from typing import Any

import mcpax
from mcpax.core.aggregator import Aggregator
from mcpax.core.registry import Session
from mcpax.core.subserver import Json
from mcpax.errors import Fault
from mcpax.link.remote import RemoteSubserver

ASK_S = 1.0
"""For one level; a child asks its own children within less."""
SHRINK = 0.8
MIN_ASK_S = 0.05


async def tree(aggregator: Aggregator, ask_s: float = ASK_S) -> Json:
    below = await asyncio.gather(*(_node(session, ask_s) for session in sorted(aggregator.registry, key=lambda each: each.segment)))
    return {
        "segment": aggregator.segment,
        "aggregator_id": aggregator.id,
        "version": mcpax.__version__,
        "tools": len(aggregator.catalog),
        "below": below,
    }


async def _node(session: Session, ask_s: float) -> Json:
    told: Json = {
        "segment": session.segment,
        "transport": session.request.transport_class,
        "state": "degraded" if session.degraded else "active",
        "reason": session.degraded_reason,
        "tools": len(session.tools),
        "calls": session.calls,
    }
    subserver = session.subserver
    if not isinstance(subserver, RemoteSubserver):
        return told
    if subserver.round_trip_s is not None:
        told["round_trip_ms"] = round(subserver.round_trip_s * 1000, 3)
    if session.request.is_aggregator and not session.degraded:
        told |= await _ask(subserver, ask_s)
    return told


async def _ask(subserver: RemoteSubserver, ask_s: float) -> Json:
    try:
        async with asyncio.timeout(ask_s):
            answer: Any = await subserver.status(ask_s * SHRINK)
    except (TimeoutError, Fault, ValueError, RecursionError):
        return {"unanswered": True}
    if not isinstance(answer, dict) or not isinstance(answer.get("below"), list):
        return {"unanswered": True}
    return {key: answer[key] for key in ("aggregator_id", "version", "below") if key in answer}
