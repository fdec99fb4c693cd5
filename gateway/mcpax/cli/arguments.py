"""Arguments of a tool as people type them, `key=value`, made into the types that its input schema states.

Only types: whether a value is in range is for the gateway to judge, in one place for every client. Knows nothing of gateways.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mcpax.cli.output import Failure
from mcpax.documents.faults import nearest

Json = dict[str, Any]

TRUE = ("true", "on", "yes", "1")
FALSE = ("false", "off", "no", "0")


def typed_arguments(pairs: Sequence[str], schema: Json) -> Json:
    """`key=value` pairs as the schema wants them."""
    properties: Json = schema.get("properties") or {}
    arguments: Json = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise Failure(f"{pair!r} is not key=value", f"arguments: {usage(schema)}")
        if key not in properties and schema.get("additionalProperties") is False:
            raise Failure(f"there is no argument {key!r}", nearest(key, properties) if properties else "this tool takes no arguments")
        if key in arguments:
            raise Failure(f"argument {key!r} is given twice", "give it once")
        arguments[key] = _typed(key, text, properties.get(key) or {})
    return arguments


def read_arguments(given: str) -> Json:
    """The value of `--args`: JSON, `@file`, or `-` for stdin."""
    where = "stdin" if given == "-" else given.removeprefix("@") if given.startswith("@") else "--args"
    try:
        text = sys.stdin.read() if given == "-" else Path(where).read_text(encoding="utf-8") if given.startswith("@") else given
        arguments = json.loads(text)
    except OSError as error:
        raise Failure(f"{where}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise Failure(f"{where}: not JSON: {error}", 'like {"relay": 1, "state": "on"}') from None
    if not isinstance(arguments, dict):
        raise Failure(f"{where}: a JSON object is needed, not {type(arguments).__name__}", 'like {"relay": 1, "state": "on"}')
    return arguments


def usage(schema: Json) -> str:
    """All arguments, those that may be left out in brackets."""
    required = schema.get("required") or []
    words = [f"{name}={values(described)}" for name, described in (schema.get("properties") or {}).items()]
    names = list(schema.get("properties") or {})
    return " ".join(word if name in required else f"[{word}]" for name, word in zip(names, words, strict=True)) or "none"


def values(described: Json) -> str:
    if "enum" in described:
        return "|".join(map(str, described["enum"]))
    kind = described.get("type", "value")
    if "minimum" in described and "maximum" in described:
        return f"{described['minimum']}…{described['maximum']}"
    return "true|false" if kind == "boolean" else str(kind).upper()


def _typed(key: str, text: str, described: Json) -> Any:
    kind = described.get("type")
    reader = _READERS.get(kind) if isinstance(kind, str) else _loose
    if reader is None:
        return text
    try:
        return reader(text)
    except ValueError:
        raise Failure(f"argument {key}: {text!r} is not {_NAMES[str(kind)]}", f"{key}={values(described)}") from None


def _boolean(text: str) -> bool:
    if text.lower() in TRUE + FALSE:
        return text.lower() in TRUE
    raise ValueError(text)


def _loose(text: str) -> Any:
    """Where the schema says nothing: JSON if it is, else text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


_READERS: dict[str, Callable[[str], Any]] = {
    "integer": lambda text: int(text, 0),
    "number": float,
    "boolean": _boolean,
    "object": json.loads,
    "array": json.loads,
}
_NAMES = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "a JSON object",
    "array": "a JSON array",
}
