"""Where a notification came from: the name it is given on its way up, one level at each aggregator (draft §12).

A subserver speaks for itself, an aggregator also for those below it, and nobody for a place beside his own. Does not know what is told.
"""

from __future__ import annotations

from mcpax.core.registration import RegistrationRequest
from mcpax.names import MAX_NAME_CHARS, InvalidName, dotted, qualified

SOURCE = "x-mcpax-source"


def source_of(root: str, request: RegistrationRequest, stated: object) -> str:
    """The source of what a subserver told. What it states itself counts only from an aggregator, and only for its own part of the tree."""
    own = dotted((root, request.segment))
    if not request.is_aggregator or not isinstance(stated, str) or len(stated) > MAX_NAME_CHARS:
        return own  # the length is checked again below; here it keeps a huge one from being taken apart
    segments = stated.split(".")
    if segments[0] != request.segment:
        return own
    try:
        return dotted(qualified((root, *segments)))
    except InvalidName:
        return own
