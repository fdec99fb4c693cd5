"""The result of a call for people: values with their units, errors with code, outcome and what to do. Takes MCP's JSON, prints; no more."""

from __future__ import annotations

import json
import re
from typing import Any

import click

Json = dict[str, Any]

ERROR_META = "x-mcpax-error"
UNIT = re.compile(r"(?:^|\s)In (\S+?)(?:, steps of \S+)?\.(?:\s|$)")
"""How `mcpax.bridge.maps.schema` words a unit in a field's description; MCP's schemas have no place of their own for it."""


def show_result(result: Json, output_schema: Json | None) -> None:
    """A call that succeeded."""
    structured = result.get("structuredContent")
    if structured is None:
        for block in result.get("content") or []:
            click.echo(block["text"] if block.get("type") == "text" else json.dumps(block, ensure_ascii=False))
        return
    described = (output_schema or {}).get("properties") or {}
    width = max(map(len, structured), default=0)
    for name, value in structured.items():
        click.echo(f"{name:{width}}  {_value(value)}{_unit(described.get(name) or {})}")


def show_error(message: str, data: Json) -> None:
    """A call that failed: as a result that says so, or as an error of the protocol."""
    known = [f"{name} {data[name]}" for name in ("code", "error", "outcome", "retry_after_ms") if data.get(name) not in (None, "")]
    hint = str(data.get("hint", ""))
    if hint and message == data.get("error"):
        message, hint = hint, ""  # the draft wants the bare name there; people want the sentence
    message = message.replace(f" Outcome: {data.get('outcome')}.", "")  # it stands in the next line
    click.echo(f"{click.style('error:', fg='red')} {message}", err=True)
    for line in (", ".join(known), hint if hint not in message else ""):
        if line:
            click.echo(f"    {line}", err=True)


def error_of(result: Json) -> tuple[str, Json]:
    """Message and data of a result with `isError`."""
    texts = [block["text"] for block in result.get("content") or [] if block.get("type") == "text"]
    data: Json = (result.get("_meta") or {}).get(ERROR_META) or {}
    return "\n".join(texts) or "the tool failed and does not say why", data


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _unit(described: Json) -> str:
    found = UNIT.search(described.get("description", ""))
    return f" {found[1]}" if found else ""
