"""What is no fault in a device map and yet not finished: said when a map is checked, and in no one's way. Takes a map that loads."""

from __future__ import annotations

from mcpax.bridge.maps.model import DeviceMap

PLACEHOLDER = "TODO"
"""How a draft's descriptions begin."""
NO_MATCH = """\
no port.match: no board is looked for until the [port] of the map has one, like match = { by_id = "usb-…" }, \
or a [[device]] of the configuration names this map and a port"""


def notes_on(device: DeviceMap) -> list[str]:
    """One sentence for each."""
    notes = [] if device.port.match else [NO_MATCH]
    unfinished = [tool.name for tool in device.tools if tool.description.lstrip().startswith(PLACEHOLDER)]
    if unfinished:
        notes.append(f"{PLACEHOLDER} is still the description of {', '.join(unfinished)}: models choose a tool by its description")
    return notes
