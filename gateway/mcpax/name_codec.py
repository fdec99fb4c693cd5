"""The printed forms of a name at the client edge: dotted, flat, colon.

Many clients refuse dots or more than 64 characters, so a name may be printed in another style. A printed name is never parsed
back: the codec keeps a reverse map of what it printed. A name's printed form depends on that name alone, so it stays the same
when other servers come and go. Knows nothing of tools, sessions or HTTP.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from enum import StrEnum

from mcpax.names import QualifiedName, dotted

FLAT_MAX_CHARS = 64
"""The limit that the strictest clients share: ^[a-zA-Z0-9_-]{1,64}$."""

_HASH_CHARS = 12
_LOOKS_HASHED = re.compile(rf"[0-9a-f]{{{_HASH_CHARS}}}_")


class NameStyle(StrEnum):
    DOTTED = "dotted"
    FLAT = "flat"
    COLON = "colon"


def _digest(name: QualifiedName) -> str:
    return hashlib.sha256(dotted(name).encode()).hexdigest()[:_HASH_CHARS]


def _flat(name: QualifiedName) -> str:
    plain = "__".join(name)
    # A segment with "__" in it, or with "_" at an edge, could print like another name: such names carry their hash, and so do
    # those that look as if they did.
    ambiguous = any("__" in s or s.startswith("_") or s.endswith("_") for s in name) or _LOOKS_HASHED.match(plain)
    if len(plain) <= FLAT_MAX_CHARS and not ambiguous:
        return plain
    # The end of a name tells most (the tool), so it is the beginning that gives way.
    keep = FLAT_MAX_CHARS - _HASH_CHARS - 1
    return f"{_digest(name)}_{plain[-keep:]}"


def _colon(name: QualifiedName) -> str:
    return f"{'.'.join(name[:-1])}:{name[-1]}" if len(name) > 1 else name[0]


def render(name: QualifiedName, style: NameStyle) -> str:
    """Print one name in a style. Pure: the same name always prints the same."""
    if style is NameStyle.FLAT:
        return _flat(name)
    if style is NameStyle.COLON:
        return _colon(name)
    return dotted(name)


class NameCodec:
    """The stored reverse map over every style, kept up to date as names come and go."""

    def __init__(self) -> None:
        self._owners: dict[str, tuple[QualifiedName, ...]] = {}
        """Nearly always one each, so not sets: those weigh four times as much."""

    def add(self, names: Iterable[QualifiedName]) -> None:
        for name in names:
            for style in NameStyle:
                printed = render(name, style)
                owners = self._owners.get(printed, ())
                if name not in owners:
                    self._owners[printed] = (*owners, name)

    def discard(self, names: Iterable[QualifiedName]) -> None:
        for name in names:
            for style in NameStyle:
                printed = render(name, style)
                owners = tuple(owner for owner in self._owners.pop(printed, ()) if owner != name)
                if owners:
                    self._owners[printed] = owners

    def resolve(self, printed: str) -> QualifiedName | None:
        """The identity behind a printed name in any style.

        None if unknown, and None if two names print alike: nobody may take over another's name by finding a hash collision.
        Their dotted forms still tell them apart.
        """
        owners = self._owners.get(printed, ())
        return owners[0] if len(owners) == 1 else None
