"""The merged list of tools and the routing table behind it (draft §5.1, §7.1).

Follows the registry: a change costs work for the tools of the session that changed, and each tool is rendered once per style
until it changes. What is kept of that is JSON: it is what most clients get, and weighs half of what it is made from. Knows nothing of
calling.
"""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

import msgspec

from mcpax.capability import IRREVERSIBLE_MUTABLE, Capability
from mcpax.core.registry import RegistryListener, Session
from mcpax.core.subserver import Json, Tool
from mcpax.errors import ErrorKind, Fault
from mcpax.name_codec import NameCodec, NameStyle, render
from mcpax.names import QualifiedName, dotted

PAGE_TOOLS = 200


@dataclass(frozen=True, slots=True)
class Route:
    """One row of the routing table."""

    name: QualifiedName
    session: Session
    tool: Tool
    capability: Capability
    rendered: dict[NameStyle, msgspec.Raw] = field(default_factory=dict, compare=False)

    @property
    def downstream_name(self) -> str:
        return dotted(self.tool.path)

    @property
    def registered_at(self) -> datetime:
        return self.session.registered_at

    @property
    def hops(self) -> int:
        """Aggregators on the way, this one included."""
        return 1 + self.tool.hops_below

    def to_json(self) -> Json:
        return {
            "downstream_session": self.session.id,
            "downstream_name": self.downstream_name,
            "capability": self.capability.to_json(),
            "registered_at": self.registered_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }

    def encoded(self, style: NameStyle) -> msgspec.Raw:
        """The tool as an MCP client sees it, in JSON; made once."""
        if style not in self.rendered:
            self.rendered[style] = msgspec.Raw(msgspec.json.encode(self._render(style)))
        return self.rendered[style]

    def render(self, style: NameStyle) -> Json:
        """The same, read; for the reader to keep."""
        rendered: Json = msgspec.json.decode(self.encoded(style))
        return rendered

    def _render(self, style: NameStyle) -> Json:
        tool = self.tool
        meta: dict[str, Any] = {
            "x-mcpax-capability": self.capability.to_json(),
            "x-mcpax-route": list(self.name),
            "x-mcpax-hops": self.hops,
        }
        if self.capability.irreversible_mutable:
            meta["x-mcpax-safety"] = IRREVERSIBLE_MUTABLE
        description = tool.description
        if tool.quarantined:
            meta["x-mcpax-quarantined"] = tool.quarantined
            description = f"{description} Not callable: {tool.quarantined}".strip()
        rendered: Json = {"name": render(self.name, style), "description": description, "inputSchema": tool.input_schema}
        if tool.title:
            rendered["title"] = tool.title
        if tool.output_schema is not None:
            rendered["outputSchema"] = tool.output_schema
        return {**rendered, "annotations": self.capability.hints(), "_meta": meta}


@dataclass(frozen=True, slots=True)
class Page:
    """A part of the merged list, in a style."""

    routes: list[Route]
    style: NameStyle
    next_cursor: str | None

    @property
    def tools(self) -> list[Json]:
        return [route.render(self.style) for route in self.routes]

    @property
    def encoded(self) -> list[msgspec.Raw]:
        """The tools in JSON, for those who only hand them on."""
        return [route.encoded(self.style) for route in self.routes]


class Catalog(RegistryListener):
    def __init__(self, segment: str, on_change: Callable[[], None]) -> None:
        self._segment = segment
        self._on_change = on_change
        self._routes: dict[QualifiedName, Route] = {}
        self._by_session: dict[str, list[QualifiedName]] = {}
        self._by_segment: dict[str, list[QualifiedName]] = {}
        self._segments: list[str] = []
        """In order. Names sort by segment first, so the whole list is the sorted parts of the segments one after the other."""
        self._codec = NameCodec()
        self.version = 0
        """Grows with every change of the list."""

    def added(self, session: Session) -> None:
        self._put(session)
        self._changed()

    def changed(self, session: Session) -> None:
        self._take(session)
        self._put(session)
        self._changed()

    def removed(self, session: Session) -> None:
        self._take(session)
        self._changed()

    def resolve(self, printed: str) -> Route | None:
        """The route behind a name printed in any style."""
        name = self._codec.resolve(printed)
        return None if name is None else self._routes.get(name)

    def route(self, name: QualifiedName) -> Route | None:
        return self._routes.get(name)

    def __len__(self) -> int:
        return len(self._routes)

    def routes(self, after: QualifiedName | None = None) -> Iterator[Route]:
        """Routes in the order of their names, all or those after one."""
        start = 0 if after is None else bisect_left(self._segments, after[1] if len(after) > 1 else "")
        for segment in self._segments[start:]:
            names = self._by_segment[segment]
            for name in names if after is None else names[bisect_right(names, after) :]:
                yield self._routes[name]

    def routes_of(self, segment: str) -> Iterator[Route]:
        """The routes of one subserver, in order."""
        for name in self._by_segment.get(segment, ()):
            yield self._routes[name]

    def page(self, style: NameStyle, cursor: str | None = None, size: int = PAGE_TOOLS) -> Page:
        """A part of the merged list. The cursor names the last tool seen, so it stays good while tools come and go."""
        chosen = list(islice(self.routes(None if cursor is None else _parse_cursor(cursor)), size + 1))
        more = len(chosen) > size
        return Page(chosen[:size], style, _print_cursor(chosen[size - 1].name) if more else None)

    def _put(self, session: Session) -> None:
        names = []
        for tool in session.tools:
            name = (self._segment, session.segment, *tool.path)  # the registry has checked it
            capability = tool.capability.no_faster_than(session.slowed_to)
            if session.degraded:
                capability = capability.degraded()
            self._routes[name] = Route(name, session, tool, capability)
            names.append(name)
        names.sort()
        self._by_session[session.id] = names
        if session.segment not in self._by_segment:
            insort(self._segments, session.segment)
        self._by_segment[session.segment] = names
        self._codec.add(names)

    def _take(self, session: Session) -> None:
        names = self._by_session.pop(session.id, [])
        for name in names:
            self._routes.pop(name, None)
        if self._by_segment.get(session.segment) is names:
            del self._by_segment[session.segment]
            del self._segments[bisect_left(self._segments, session.segment)]
        self._codec.discard(names)

    def _changed(self) -> None:
        self.version += 1
        self._on_change()


def _print_cursor(name: QualifiedName) -> str:
    return base64.urlsafe_b64encode(dotted(name).encode()).decode()


def _parse_cursor(cursor: str) -> QualifiedName:
    try:
        return tuple(base64.b64decode(cursor.encode(), altchars=b"-_", validate=True).decode().split("."))
    except (binascii.Error, UnicodeError):
        raise Fault(ErrorKind.INVALID_PARAMS, "tools/list: this cursor is not one of ours.", hint="List again without a cursor.") from None
