"""JSON Schema of a tool's arguments and results, as MCP clients see them.

Says what can be said in JSON Schema 2020-12; the judge of values is `values`. Beyond it go only the length of text in bytes
(a schema counts characters), the exact length of base64 data, the zero character, and steps: `multipleOf` would refuse 0.3 with steps
of 0.1, which validators compute in binary fractions, so steps are told in the description. Knows nothing of MCP or of tools.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcpax.bridge.maps.limits import value_range
from mcpax.bridge.maps.model import Field, FieldType

BASE64_PATTERN = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"


def input_schema(fields: Sequence[Field]) -> dict[str, Any]:
    """Arguments: those with a default may be left out."""
    return _object(fields, required=[field.name for field in fields if field.default is None])


def output_schema(fields: Sequence[Field]) -> dict[str, Any]:
    """Results and event fields: all are always there."""
    return _object(fields, required=[field.name for field in fields])


def _object(fields: Sequence[Field], required: list[str]) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {field.name: _property(field) for field in fields},
        "additionalProperties": False,
    }
    return {**schema, "required": required} if required else schema


def _property(field: Field) -> dict[str, Any]:
    schema = _kind(field)
    if description := _description(field):
        schema["description"] = description
    if field.default is not None:
        schema["default"] = field.default
    return schema


def _kind(field: Field) -> dict[str, Any]:
    if field.enum is not None:
        return {"type": "string", "enum": list(field.enum)}
    if field.type is FieldType.BOOL:
        return {"type": "boolean"}
    length = field.max_len or 0
    if field.type is FieldType.TEXT:
        return {"type": "string", "maxLength": length}
    if field.type is FieldType.BYTES:
        size = _base64_size(length)
        exact = {"minLength": size} if field.exact_len else {}
        return {"type": "string", "contentEncoding": "base64", "pattern": BASE64_PATTERN, **exact, "maxLength": size}
    low, high = value_range(field)
    return {"type": "number" if field.scaled or field.type is FieldType.F32 else "integer", "minimum": low, "maximum": high}


def _base64_size(length: int) -> int:
    return (length + 2) // 3 * 4


def _description(field: Field) -> str:
    """The author's words, then what a reader of the number must know."""
    notes = [field.description.strip()]
    if field.unit:
        notes.append(f"In {field.unit}, steps of {field.scale:g}." if field.scaled else f"In {field.unit}.")
    elif field.scaled:
        notes.append(f"Steps of {field.scale:g}.")
    if field.max_len is not None:
        count = "Exactly" if field.exact_len else "At most"
        notes.append(f"{count} {field.max_len} bytes{' of UTF-8' if field.type is FieldType.TEXT else ', as base64'}.")
    return " ".join(note for note in notes if note)
