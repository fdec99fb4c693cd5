"""Tools as they are told over a link: below the teller's own segment, with their annotations. Pure.

Whatever a child says of a tool is checked here before it becomes one; names and numbers are the registry's to judge.
"""

from __future__ import annotations

from typing import Any

import msgspec

from mcpax.capability import Capability, InvalidCapability
from mcpax.core.catalog import Route
from mcpax.core.subserver import Json, Tool
from mcpax.errors import ErrorKind, Fault
from mcpax.names import QualifiedName, dotted
from mcpax.nesting import MAX_DEPTH, too_deep

MAX_TEXT_CHARS = 16_384
MAX_SCHEMA_BYTES = 128 << 10
MAX_HOPS = 64
CAPABILITY_META = "x-mcpax-capability"
HOPS_META = "x-mcpax-hops"
QUARANTINED_META = "x-mcpax-quarantined"


def to_json(route: Route, path: QualifiedName) -> Json:
    """A tool of ours for an aggregator above, which knows it by `path` below our segment."""
    tool = route.tool
    meta: Json = {CAPABILITY_META: route.capability.to_json(), HOPS_META: route.hops}
    if tool.quarantined:
        meta[QUARANTINED_META] = tool.quarantined
    told: Json = {"name": dotted(path), "description": tool.description, "inputSchema": tool.input_schema, "_meta": meta}
    if tool.title:
        told["title"] = tool.title
    if tool.output_schema is not None:
        told["outputSchema"] = tool.output_schema
    return told


def from_json(told: Any) -> Tool:
    """A tool of a child; raises `Fault` with what is wrong."""
    if not isinstance(told, dict):
        raise _lied("a tool that is no object")
    name = _text(told, "name", 255)
    meta = told.get("_meta") or {}
    if not isinstance(meta, dict):
        raise _lied(f"tool {name!r}: _meta is no object")
    hops = meta.get(HOPS_META, 0)
    if type(hops) is not int or not 0 <= hops <= MAX_HOPS:
        raise _lied(f"tool {name!r}: {HOPS_META} {hops!r:.40}, at most {MAX_HOPS}")
    try:
        # Not annotated, or annotated beyond what we know, is read as dangerous; only nonsense is refused.
        capability = Capability.parse(meta.get(CAPABILITY_META) or {})
    except (InvalidCapability, AttributeError, TypeError) as error:
        raise _lied(f"tool {name!r}: {error!s:.300}") from None
    return Tool(
        path=tuple(name.split(".")),
        description=_text(told, "description", MAX_TEXT_CHARS, ""),
        input_schema=_schema(told, "inputSchema", name) or {"type": "object"},
        capability=capability,
        title=_text(told, "title", MAX_TEXT_CHARS, ""),
        output_schema=_schema(told, "outputSchema", name),
        quarantined=_text(meta, QUARANTINED_META, MAX_TEXT_CHARS, ""),
        hops_below=hops,
    )


def _text(told: Json, key: str, most: int, default: str | None = None) -> str:
    text = told.get(key, default)
    if not isinstance(text, str) or len(text) > most:
        raise _lied(f"a tool whose {key} is not a text of at most {most} characters")
    return text


def _schema(told: Json, key: str, name: str) -> Json | None:
    schema = told.get(key)
    if schema is None:
        return None
    if not isinstance(schema, dict):
        raise _lied(f"tool {name!r}: {key} is no object")
    if too_deep(schema):
        raise _lied(f"tool {name!r}: {key} is nested more than {MAX_DEPTH} deep")
    size = len(msgspec.json.encode(schema))  # as it will be sent on, which may take more room than it came in
    if size > MAX_SCHEMA_BYTES:
        raise _lied(f"tool {name!r}: {key} takes {size} bytes, at most {MAX_SCHEMA_BYTES}")
    return schema


def _lied(what: str) -> Fault:
    return Fault(ErrorKind.CHILD_LIED, f"The child's list holds {what}.")
