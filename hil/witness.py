"""How to see, on each example application, whether a call has run: a tool that acts, and a reading that tells.

The board's own word about its own state is the witness, never the answer to the call in question. Deals in raw values on a line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hil.line import Line
from mcpax.bridge.maps.model import DeviceMap, ToolMap
from mcpax.bridge.wire.messages import Status


@dataclass(frozen=True, slots=True)
class _Known:
    act: str
    arguments: tuple[Any, ...]
    reading: str
    reading_arguments: tuple[Any, ...]
    field: str
    counts: bool
    """Each run adds to the reading; otherwise a run only changes it."""


_KNOWN = (
    _Known("pulse_relay", (1, 5), "read_relays", (), "pulses", counts=True),
    _Known("dose", (1,), "read_valve", (), "dosed", counts=True),
    # Reading sets the threshold to 70 °C and returns what it was: 80 °C if the act has run since the last reading. No room is that hot.
    _Known("set_alarm", (8000,), "set_alarm", (7000,), "previous", counts=False),
)


@dataclass(frozen=True, slots=True)
class Witness:
    act: ToolMap
    arguments: list[Any]
    counts: bool
    _reading: ToolMap
    _reading_arguments: list[Any]
    _field: int

    @property
    def reading_name(self) -> str:
        return self._reading.name

    @property
    def field_name(self) -> str:
        return self._reading.results[self._field].name

    def state(self, line: Line) -> Any:
        """Changes if, and only if, the act has run meanwhile; 1 more for each run of an act that counts."""
        response = line.call(self._reading, self._reading_arguments)
        assert response.status == Status.OK, f"{self._reading.name} gave status {response.status}"
        return line.result(self._reading, response)[self._field]


def witness_of(device: DeviceMap) -> Witness | None:
    """None: no application that is known here."""
    tools = {tool.name: tool for tool in device.tools}
    for known in _KNOWN:
        if known.act in tools and known.reading in tools:
            reading = tools[known.reading]
            field = [result.name for result in reading.results].index(known.field)
            return Witness(tools[known.act], list(known.arguments), known.counts, reading, list(known.reading_arguments), field)
    return None
