"""How mcpax logs: structured, to stderr; readable on a terminal, one JSON object a line elsewhere."""

from __future__ import annotations

import logging
import sys
from collections import Counter

import structlog

TROUBLE = frozenset({"warning", "error", "critical", "exception"})
WARNINGS: Counter[str] = Counter()
"""How often each kind of trouble was logged since the start, by its event. Every limit that somebody meets is logged, so it is counted."""


def configure(level: str = "info", *, as_json: bool | None = None) -> None:
    """Set up logging for the process. `as_json` None: JSON unless stderr is a terminal."""
    if as_json is None:
        as_json = not sys.stderr.isatty()
    numeric = logging.getLevelNamesMapping()[level.upper()]
    # Libraries log through the standard library; below warning they only repeat what our own lines say.
    logging.basicConfig(stream=sys.stderr, level=max(numeric, logging.WARNING), format="%(levelname)s %(name)s %(message)s")
    renderer: structlog.typing.Processor = structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer()
    structlog.configure(
        processors=[
            _counted,
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info if as_json else _unchanged,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(numeric),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,  # lines are rare, and a cached logger could never be configured again
    )


def _counted(_logger: object, method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    if method in TROUBLE:
        WARNINGS[str(event["event"])] += 1
    return event


def _unchanged(_logger: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    return event
