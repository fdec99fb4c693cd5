"""MCP result objects on their way up: what came from afar stays the bytes it came in, until a client's edge has to read it.

Pure. Knows nothing of what a result means.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mcpax.core.subserver import Json
from mcpax.errors import Fault

ERROR_META = "x-mcpax-error"

_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def unread(raw: msgspec.Raw) -> Json:
    """A result from afar, its members left as they are. Raises `msgspec.DecodeError` for anything but an object."""
    return dict(_MEMBERS.decode(raw))


def plain(result: Json) -> Json:
    """The same result with every member read, for those who need Python values."""
    return {key: _read(value) for key, value in result.items()}


def with_meta(result: Json, added: Mapping[str, Any]) -> Json:
    """The same result with more in its `_meta`; all other members are left alone."""
    return {**result, "_meta": {**(_read(result.get("_meta")) or {}), **added}}


def fault_as_result(fault: Fault) -> Json:
    """An error that the model reads. Its data is in `_meta`, not in structuredContent: the TypeScript SDK holds that against the tool's
    output schema even when the result is an error, and would throw the message away."""
    return {
        "content": [{"type": "text", "text": fault.text()}],
        "isError": True,
        "_meta": {ERROR_META: {"code": fault.code, **fault.data()}},
    }


def _read(value: Any) -> Any:
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value
