"""How deep a JSON value is nested. What comes from afar is held to a limit: serializers further on give up, and one tool's schema would
cost everybody the list.

Pure. Knows nothing of what the values mean.
"""

from __future__ import annotations

from typing import Any

import msgspec

MAX_DEPTH = 64
"""No schema, event or argument of a device comes near; the strictest serializer on the way to a client takes 200."""


def too_deep(value: Any, most: int = MAX_DEPTH) -> bool:
    level = [value]
    for _ in range(most):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return False
    return True


def raw_too_deep(raw: bytes, most: int = MAX_DEPTH) -> bool:
    """Of JSON that nobody has read yet. Read only where there are brackets enough; raises what its decoder raises."""
    return raw.count(b"{") + raw.count(b"[") > most and too_deep(msgspec.json.decode(raw), most)


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [each for each in value.values() if isinstance(each, dict | list)]
    return [each for each in value if isinstance(each, dict | list)] if isinstance(value, list) else []
