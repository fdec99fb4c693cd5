"""A tool of the merged list in few words: what it is called, what it does to the world, how long it may take.

Takes tools as `tools/list` gives them. Knows nothing of where they come from.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

HEADERS = ("tool", "effect", "latency", "what it does")


def capability(tool: Json) -> Json:
    stated: Json = (tool.get("_meta") or {}).get("x-mcpax-capability") or {}
    return stated


def effect(tool: Json) -> str:
    """What is not stated is taken as dangerous, as everywhere."""
    stated = capability(tool)
    if not stated.get("mutable", True):
        return "reads"
    return "reversible" if stated.get("reversible", False) else "IRREVERSIBLE"


def state(tool: Json) -> str:
    """Why it cannot be called just now; empty if it can."""
    if "x-mcpax-quarantined" in (tool.get("_meta") or {}):
        return "quarantined"
    return "degraded" if capability(tool).get("availability") == "degraded" else ""


def row(tool: Json) -> tuple[str, str, str, str]:
    """For `HEADERS`."""
    mark = f"[{state(tool)}] " if state(tool) else ""
    return tool["name"], effect(tool), capability(tool).get("latency_class", "?"), mark + tool.get("description", "")
