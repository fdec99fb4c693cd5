"""One connected board: it is verified against its map, registers with the aggregator, runs calls, and reports what it says.

Lives from the opening of a port to its loss; finding and opening ports is the slot's business. Implements `Subserver` upward and
`SessionListener` downward, and registers by the same rules as any remote child.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from mcpax.allowance import Allowance
from mcpax.bridge.complaints import Complaints
from mcpax.bridge.counters import DeviceCounters
from mcpax.bridge.maps.diff import explain_difference, explain_hash
from mcpax.bridge.maps.model import DeviceMap, PortMatch
from mcpax.bridge.maps.values import ValueFault
from mcpax.bridge.session import StubSession, Tap
from mcpax.bridge.toolset import Toolset, arguments_to_raw, response_to_result
from mcpax.bridge.transport import Transport
from mcpax.bridge.wire.dialect import dialect_for
from mcpax.bridge.wire.messages import Event, Heartbeat, Registration, WireError
from mcpax.core.registration import RegistrationRequest, RegistrationResponse
from mcpax.core.subserver import Call, Json, Notification, Progress, Subserver, Tool
from mcpax.errors import ErrorKind, Fault

ANNOUNCE_AGAIN_S = 0.5
"""How long to wait for an announcement before asking again: the first may have been lost."""
PROGRESS_EVERY_S = 1.0
EVENTS_READ_PER_S = 1000
"""More than these are not even read, to save the event loop's time for the other boards. Far above what the aggregator lets pass: which
events are told, and that some are not, is its business."""
MISFIT = "the firmware does not fit the device map"
"""How the problem of such a board begins; what differs follows."""
GATEWAY_STOPPED = "gateway_stopped"
"""The one reason for losing a board that is nobody's trouble."""
NO_MAP_HASH = 0
"""What firmware that was not made from a map announces."""


@dataclass(frozen=True, slots=True)
class Binding:
    """A place in the namespace, the map that holds there, and the port it is on."""

    segment: str
    map: DeviceMap
    match: PortMatch


@dataclass(frozen=True, slots=True)
class Registered:
    """Who a board was to the aggregator."""

    subserver_id: str
    session_id: str


class Upstream(Protocol):
    """The part of the aggregator that a device needs."""

    async def register(self, request: RegistrationRequest, subserver: Subserver) -> RegistrationResponse: ...

    def heartbeat(self, session_id: str) -> None: ...

    def degrade(self, session_id: str, reason: str) -> None: ...

    def deregister(self, session_id: str) -> None: ...

    def emit(self, session_id: str, notification: Notification) -> None: ...


class Device:
    def __init__(
        self,
        binding: Binding,
        toolset: Toolset,
        transport: Transport,
        upstream: Upstream,
        counters: DeviceCounters,
        *,
        subserver_id: str,
        tap: Tap,
        predecessor: Registered | None = None,
    ) -> None:
        self._binding = binding
        self._toolset = toolset
        self._upstream = upstream
        self._counters = counters
        self._transport = transport
        self._subserver_id = subserver_id
        self._predecessor = predecessor
        self._log = structlog.get_logger("mcpax.device").bind(device=binding.segment)
        self._complaints = Complaints(self._log)
        self._dialect = dialect_for(binding.map)
        port = binding.map.port
        self._session = StubSession(
            self._dialect,
            transport,
            self,
            counters,
            heartbeat_s=port.heartbeat_ms / 1000,
            turnaround_s=port.turnaround_ms / 1000,
            tap=tap,
            name=binding.segment,
        )
        self._heartbeat: Heartbeat | None = None
        self._registration: Registration | None = None
        self._upstream_session: str | None = None
        self._registering: asyncio.Task[None] | None = None
        self._ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._announce_timer: asyncio.TimerHandle | None = None
        self._reading = Allowance(EVENTS_READ_PER_S, EVENTS_READ_PER_S, asyncio.get_running_loop().time())
        self.problem = "waiting for the board to answer"
        """Why it is not online, in plain words; empty when it is."""

    async def run(self) -> str:
        """Serve until the board is lost; returns why."""
        self._session.start()
        try:
            return await self._ended
        finally:
            if self._announce_timer is not None:
                self._announce_timer.cancel()
            if self._registering is not None:
                self._registering.cancel()
            self._session.close()

    @property
    def online(self) -> bool:
        return self._upstream_session is not None and not self.problem

    @property
    def came_online(self) -> bool:
        """It was taken in at some time, whatever became of it."""
        return self._upstream_session is not None

    @property
    def registered_as(self) -> Registered | None:
        return Registered(self._subserver_id, self._upstream_session) if self._upstream_session is not None else None

    @property
    def boot_id(self) -> int:
        return self._session.boot_id

    # --- Subserver

    async def list_tools(self) -> Sequence[Tool]:
        announced = self._registration.tools if self._registration else ()
        return [*self._toolset.tools(), *self._toolset.quarantined(announced)]

    async def call(self, call: Call) -> Json:
        """Validate, run at most once, validate the answer. Nothing of the call's route or metadata goes to the board."""
        compiled = self._toolset.get(call.path[-1])
        if compiled is None:
            raise Fault(ErrorKind.TOOL_NOT_FOUND, f"Unknown tool: {call.path[-1]}")
        raw = arguments_to_raw(compiled, call.arguments)
        ticker = asyncio.create_task(_report_progress(call.progress)) if call.progress else None
        try:
            response = await self._session.call(compiled.map, raw, call.deadline)
            return response_to_result(compiled, self._dialect, response)
        except Fault as fault:
            self._counters.refused_results += fault.kind is ErrorKind.DEVICE_LIED
            self._log.warning(
                "call_failed", tool=compiled.map.name, error=fault.kind.wire_name, outcome=fault.outcome, reason=fault.message
            )
            raise
        finally:
            if ticker is not None:
                ticker.cancel()

    async def close(self) -> None:
        self._session.close(GATEWAY_STOPPED)

    # --- SessionListener

    def heard(self) -> None:
        if self._heartbeat is None:
            self.problem = "the board answers but does not synchronise (docs/wire-format.md §5)"
        if self._upstream_session is not None and not self.problem:
            self._keep_registered(self._upstream_session)

    def synchronised(self, heartbeat: Heartbeat) -> None:
        self._heartbeat = heartbeat
        self._judge()

    def registered(self, registration: Registration) -> None:
        self._registration = registration
        self._judge()

    def event(self, event: Event) -> None:
        known = self._toolset.event(event.id)
        if known is None or not self._reading.spend(asyncio.get_running_loop().time()):
            self._counters.events_dropped += 1
            return
        described, codec = known
        try:
            values = codec.from_raw(self._dialect.event(described, event.payload))
        except (WireError, ValueFault) as error:
            self._counters.refused_messages += 1
            self._complaints.warn("event_refused", event_name=described.name, reason=str(error))
            return
        self._counters.events += 1
        if self._upstream_session is not None:
            self._upstream.emit(
                self._upstream_session, Notification("notifications/mcpax/event", {"event": described.name, "data": values})
            )

    def lost(self, reason: str) -> None:
        self.problem = f"lost: {reason}"
        if self._upstream_session is not None and reason != GATEWAY_STOPPED:
            self._upstream.degrade(self._upstream_session, reason)
        if not self._ended.done():
            self._ended.set_result(reason)

    # --- is it the board that the map describes?

    def _judge(self) -> None:
        """Go online once everything the board said agrees with the map; say what does not."""
        if self._heartbeat is None:
            return
        if self._dialect.announces and self._registration is None:
            self._ask_again()
            return
        difference = self._difference()
        if difference:
            self._mismatched(difference)
            return
        if self._upstream_session is None and (self._registering is None or self._registering.done()):
            self._registering = asyncio.create_task(self._register())
        elif self._upstream_session is not None and self.problem:
            self.problem = ""
            self._keep_registered(self._upstream_session)

    def _mismatched(self, difference: list[str]) -> None:
        problem = "the firmware does not fit the device map: " + "; ".join(difference)
        if problem == self.problem:
            return  # said before; a board may announce itself as often as it likes
        self.problem = problem
        self._log.error("map_mismatch", difference=difference, hint="Rebuild the firmware from this map, or correct the map.")
        if self._upstream_session is not None:
            self._upstream.degrade(self._upstream_session, "map_mismatch")

    def _keep_registered(self, session_id: str) -> None:
        """Heartbeat on the board's behalf; registers anew if it was degraded for so long that it was removed meanwhile."""
        try:
            self._upstream.heartbeat(session_id)
        except Fault:
            self._upstream_session = None
            self._judge()

    def _difference(self) -> list[str]:
        device = self._binding.map
        stated = self._registration.map_hash if self._registration else self._heartbeat.map_hash if self._heartbeat else None
        if stated is None or stated == device.hash or not device.tools:
            return []  # a map without tools describes nothing that could differ: all that is announced is quarantined
        if self._registration is None:
            return [explain_hash(device, stated)]
        if stated == NO_MAP_HASH:
            # Hand-written firmware: what is announced must agree; more tools than the map knows are quarantined, not refused.
            known = {tool.id for tool in device.tools}
            fitting = tuple(tool for tool in self._registration.tools if tool.id in known)
            return explain_difference(device, Registration(device.hash, self._registration.device, fitting, self._registration.events))
        return explain_difference(device, self._registration)

    def _ask_again(self) -> None:
        if self._announce_timer is None and not self._ended.done():
            self._announce_timer = asyncio.get_running_loop().call_later(ANNOUNCE_AGAIN_S, self._announce)

    def _announce(self) -> None:
        self._announce_timer = None
        if self._registration is None and not self._ended.done():
            self.problem = "the board answers but does not announce its tools" + self._refused()
            self._session.ask_to_announce()
            self._ask_again()

    def _refused(self) -> str:
        """What came instead of something useful."""
        oversize, senseless = self._transport.counters.oversize, self._counters.refused_messages
        return (f"; {oversize} frames were larger than {self._transport.limits.max_message} bytes" if oversize else "") + (
            f"; {senseless} messages made no sense, the log says why" if senseless else ""
        )

    async def _register(self) -> None:
        port = self._binding.map.port
        request = RegistrationRequest(
            subserver_id=self._subserver_id,
            segment=self._binding.segment,
            transport_class=str(self._toolset.transport),
            heartbeat_interval_ms=port.heartbeat_ms,
            capabilities=frozenset({"tools", "notifications"}),
        )
        if self._ended.done():
            return
        if self._predecessor is not None and self._predecessor.subserver_id != self._subserver_id:
            self._upstream.deregister(self._predecessor.session_id)
        try:
            response = await self._upstream.register(request, self)
        except Fault as fault:
            self.problem = fault.text()
            self._log.error("registration_refused", reason=fault.text())
            return
        self._upstream_session = response.session_id
        if self._ended.done():
            self._upstream.degrade(response.session_id, "lost while registering")
            return
        self.problem = ""
        self._log.info("online", profile=str(self._binding.map.profile), boot_id=self.boot_id, map_hash=f"{self._binding.map.hash:08x}")


async def _report_progress(progress: Progress) -> None:
    seconds = 0
    while True:
        await asyncio.sleep(PROGRESS_EVERY_S)
        seconds += 1
        await progress(float(seconds), None, f"waiting for the board, {seconds} s")
