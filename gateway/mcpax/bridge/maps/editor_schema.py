"""JSON Schema of the device map file itself, for editors: completion, hover help and red lines while typing.

Made from `keys`, so it can know no key that the loader does not, nor miss one. Rules between keys are left to `mcpax map check`.
"""

from __future__ import annotations

from typing import Any

from mcpax.bridge.maps.keys import DOCUMENT
from mcpax.documents.keys import Key, Kind, Table
from mcpax.names import MAX_SEGMENT_CHARS

_TYPES: dict[Kind, dict[str, Any]] = {
    Kind.TEXT: {"type": "string"},
    Kind.INTEGER: {"type": "integer"},
    Kind.NUMBER: {"type": "number"},
    Kind.FLAG: {"type": "boolean"},
    Kind.SCALAR: {"type": ["string", "number", "boolean"]},
    Kind.LABELS: {"type": "object", "minProperties": 1, "additionalProperties": {"type": "integer"}},
}


def editor_schema() -> dict[str, Any]:
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",  # the newest that taplo reads
        "title": "mcpax device map",
        **_table(DOCUMENT),
    }


def _table(table: Table) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "description": table.help,
        "properties": {key.name: _key(key) for key in table.keys},
        "additionalProperties": False,
    }
    required = [key.name for key in table.keys if key.required]
    return {**schema, "required": required} if required else schema


def _key(key: Key) -> dict[str, Any]:
    note = f" Profile {key.profile} only." if key.profile else ""
    described = {"description": key.help + note}
    if key.kind is Kind.TABLE and key.table is not None:
        return {**_table(key.table), **described}
    if key.kind is Kind.TABLES and key.table is not None:
        return {"type": "array", "items": _table(key.table), "maxItems": key.high, **described}
    schema: dict[str, Any] = {**_TYPES[key.kind], **described}
    if key.choices:
        schema["enum"] = [str(choice) for choice in key.choices]
    if key.name == "name":
        schema["pattern"] = f"^[a-z0-9_-]{{1,{MAX_SEGMENT_CHARS}}}$"
    if key.low is not None:
        schema |= {"minimum": key.low, "maximum": key.high}
    if key.default is not None:
        schema["default"] = key.default
    return schema
