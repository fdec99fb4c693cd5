"""The tool that a debug build has besides the map's own: it reads how much RAM the firmware uses and has used at most.

A map that says `debug = true` describes the debug build, one that does not the release build; either can be had from the other.
`firmware/ports/memory.c` is the tool's handler.
"""

from __future__ import annotations

from dataclasses import replace

from mcpax.bridge.maps.build import build_capability
from mcpax.bridge.maps.model import DeviceMap, Field, FieldType, ToolMap

NAME = "read_memory"
MAX_TOOL_ID = 255
_CAPABILITY = {"latency_class": "fast", "mutable": False, "reversible": True, "idempotent": True}
_RESULTS = {
    "static_ram": "Taken by variables, always.",
    "stack_max": "Deepest that the stack has been since the board started.",
    "ram_free": "Never used since the board started.",
}


def with_debug_tool(device: DeviceMap) -> DeviceMap:
    """The debug build of a release build. Its tool comes behind all others, so that none of them changes its number."""
    tool = ToolMap(
        id=max((tool.id for tool in device.tools), default=0) + 1,
        name=NAME,
        description="Read how many bytes of RAM the firmware takes, and how deep its stack has been. In debug builds only.",
        capability=build_capability(_CAPABILITY, device.version, device.profile),
        results=tuple(Field(name, FieldType.U16, description, unit="B") for name, description in _RESULTS.items()),
    )
    return replace(device, debug=True, tools=(*device.tools, tool))


def other_build(device: DeviceMap) -> DeviceMap | None:
    """Of a release build the debug build, and the other way round; None if all numbers for tools are taken."""
    if device.debug:
        return replace(device, debug=False, tools=device.tools[:-1])
    if any(tool.id == MAX_TOOL_ID for tool in device.tools):
        return None
    return with_debug_tool(device)
