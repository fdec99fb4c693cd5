"""Names: what a tool is called, independent of how any client wants it printed.

A tool's identity is its tuple of segments (`QualifiedName`). This module knows the draft's rules for segments and lengths and
nothing about registries, clients or printing in other styles (see `name_codec`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_SEGMENT_CHARS = 63
MAX_NAME_CHARS = 255
_SEGMENT = re.compile(r"[a-z0-9_-]{1,63}")

QualifiedName = tuple[str, ...]
"""Segments from the root aggregator down to the tool, e.g. ("edge", "env", "read_climate")."""


class InvalidName(ValueError):
    """A segment or name that breaks the rules; the message says which rule and how to mend it."""


def check_segment(segment: str) -> str:
    """Return the segment, or raise `InvalidName` saying what is wrong with it."""
    if _SEGMENT.fullmatch(segment):
        return segment
    if not segment:
        raise InvalidName("empty segment: use 1 to 63 of a-z, 0-9, '_' and '-'")
    if len(segment) > MAX_SEGMENT_CHARS:
        raise InvalidName(f"segment of {len(segment)} characters, at most {MAX_SEGMENT_CHARS} allowed: {segment[:70]!r}")
    if "." in segment:
        raise InvalidName(f"segment {segment!r} contains a dot: only aggregators add levels, a name below one has none")
    bad = ", ".join("a space" if c == " " else repr(c) for c in sorted({c for c in segment if not _SEGMENT.fullmatch(c)}))
    raise InvalidName(f"segment {segment!r} contains {bad}: use only a-z, 0-9, '_' and '-'")


def qualified(segments: Iterable[str]) -> QualifiedName:
    """Check every segment and the total length; never shorten."""
    name = tuple(check_segment(segment) for segment in segments)
    if not name:
        raise InvalidName("a name needs at least one segment")
    printed = dotted(name)
    if len(printed) > MAX_NAME_CHARS:
        raise InvalidName(f"name of {len(printed)} characters, at most {MAX_NAME_CHARS} allowed: {printed[:60]}…")
    return name


def dotted(name: QualifiedName) -> str:
    """The canonical printed form."""
    return ".".join(name)


def parse_dotted(text: str) -> QualifiedName:
    """Read the canonical printed form back."""
    return qualified(text.split("."))
