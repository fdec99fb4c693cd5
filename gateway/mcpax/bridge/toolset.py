"""A device's tools as MCP sees them, and the way between MCP's values and raw ones. Everything is compiled once, when the map is loaded.

Knows nothing of sessions, sequences or ports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from mcpax.bridge.maps.model import DeviceMap, EventMap, Profile, ToolMap
from mcpax.bridge.maps.schema import input_schema, output_schema
from mcpax.bridge.maps.values import FieldsCodec, ValueFault
from mcpax.bridge.wire.dialect import Dialect
from mcpax.bridge.wire.messages import AnnouncedTool, Response, Status, WireError, outcome_of, status_name
from mcpax.capability import Capability, TransportClass
from mcpax.core.subserver import Json, Tool
from mcpax.errors import ErrorKind, Fault, Outcome


@dataclass(frozen=True, slots=True)
class CompiledTool:
    map: ToolMap
    tool: Tool
    args: FieldsCodec
    results: FieldsCodec


class Toolset:
    """All tools and events of one device map."""

    def __init__(self, device: DeviceMap) -> None:
        self.transport = TransportClass.UART_BYTES if device.profile is Profile.A else TransportClass.UART_CBOR
        self._tools = {tool.name: _compile(tool) for tool in device.tools}
        self._by_id = {tool.id: tool for tool in device.tools}
        self._events = {event.id: (event, FieldsCodec(event.fields)) for event in device.events}

    def tools(self) -> list[Tool]:
        return [compiled.tool for compiled in self._tools.values()]

    def get(self, name: str) -> CompiledTool | None:
        return self._tools.get(name)

    def by_id(self, tool_id: int) -> ToolMap | None:
        return self._by_id.get(tool_id)

    def event(self, event_id: int) -> tuple[EventMap, FieldsCodec] | None:
        return self._events.get(event_id)

    def quarantined(self, announced: Sequence[AnnouncedTool]) -> list[Tool]:
        """Tools that a board announces and no map describes: listed, so that they are seen, and never open."""
        names = Counter([*self._tools, *(tool.name for tool in announced)])
        return [
            Tool(
                path=(_segment(tool.name, tool.id) if names[tool.name] == 1 else f"tool-{tool.id}",),
                description=f"Announced by the board as tool {tool.id}.",
                input_schema={"type": "object"},
                capability=Capability(transport=self.transport),
                quarantined="the device map has no entry for it. Add one ('mcpax map new' writes a draft).",
            )
            for tool in announced
            if tool.id not in self._by_id
        ]


def _compile(tool: ToolMap) -> CompiledTool:
    described = Tool(
        path=(tool.name,),
        description=tool.description,
        title=tool.title,
        input_schema=input_schema(tool.args),
        output_schema=output_schema(tool.results) if tool.results else None,
        capability=tool.capability,
    )
    return CompiledTool(tool, described, FieldsCodec(tool.args), FieldsCodec(tool.results))


def _segment(name: str, tool_id: int) -> str:
    """A board may call its tools anything; what is not a segment is known by its number."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in name.lower())
    return plain if plain == name else f"tool-{tool_id}"


def arguments_to_raw(compiled: CompiledTool, arguments: Mapping[str, Any]) -> list[Any]:
    """Before a byte is sent: every argument fits its field, or the caller learns of each that does not."""
    try:
        return list(compiled.args.to_raw(arguments))
    except ValueFault as fault:
        raise Fault(
            ErrorKind.INVALID_TOOL_ARGS,
            f"Arguments of {compiled.map.name}: {fault}.",
            outcome=Outcome.NOT_EXECUTED,
            details={"problems": [{"field": problem.field, "message": problem.message} for problem in fault.problems]},
        ) from None


def response_to_result(compiled: CompiledTool, dialect: Dialect, response: Response) -> Json:
    """The board's answer as an MCP result, once it has proven to keep to the map; raises `Fault` if it failed or lied."""
    if response.status != Status.OK:
        raise _refused(compiled.map.name, response.status)
    try:
        values = compiled.results.from_raw(dialect.result(compiled.map, response.payload))
    except (WireError, ValueFault) as error:
        raise Fault(
            ErrorKind.DEVICE_LIED,
            f"The answer to {compiled.map.name} does not keep to the device map: {error}.",
            hint="The call ran; its result is withheld. Is the firmware built from this map?",
            outcome=Outcome.EXECUTED,
        ) from None
    if not compiled.map.results:
        return {"content": [{"type": "text", "text": "done"}], "isError": False}
    return {
        "content": [{"type": "text", "text": msgspec.json.encode(values).decode()}],
        "structuredContent": values,
        "isError": False,
    }


def _refused(tool: str, status: int) -> Fault:
    busy = status == Status.BUSY
    return Fault(
        ErrorKind.DEVICE_BUSY if busy else ErrorKind.DEVICE_ERROR,
        f"The board refused {tool}: {status_name(status)}.",
        outcome=outcome_of(status),
        retry_after_ms=200 if busy else None,
        details={"status": status},
    )
