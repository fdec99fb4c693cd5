"""One connected board over a model stub, in virtual time: when it goes online, what it passes on, and what it keeps back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import cbor2
import pytest

from mcpax.bridge.counters import DeviceCounters
from mcpax.bridge.device import EVENTS_READ_PER_S, Binding, Device, Registered
from mcpax.bridge.maps.load import load_map
from mcpax.bridge.maps.model import DeviceMap, PortMatch
from mcpax.bridge.toolset import Toolset
from mcpax.bridge.wire.messages import Type
from mcpax.bridge.wire.profile_b import Key
from mcpax.core.registration import Budget, RegistrationRequest, RegistrationResponse
from mcpax.core.subserver import Call, Notification, Subserver
from mcpax.errors import ErrorKind, Fault
from tests.harness.hostile import plain_value
from tests.harness.model_stub import Answer, Fate, ModelTransport
from tests.harness.virtual_time import VirtualTimeLoop
from tests.virtual import MAPS

IDENTITY = "00000000-0000-4000-8000-000000000000"


class Upstream:
    """An aggregator that writes down."""

    def __init__(self) -> None:
        self.requests: list[RegistrationRequest] = []
        self.heartbeats = 0
        self.degraded: list[str] = []
        self.withdrawn: list[str] = []
        self.emitted: list[Notification] = []
        self.refusal: Fault | None = None
        self.forgotten = False
        """It was degraded for so long that it was removed."""

    async def register(self, request: RegistrationRequest, subserver: Subserver) -> RegistrationResponse:
        if self.refusal is not None:
            raise self.refusal
        await subserver.list_tools()
        self.requests.append(request)
        return RegistrationResponse(request.segment, "session", 0, Budget())

    def heartbeat(self, session_id: str) -> None:
        assert session_id == "session"
        if self.forgotten:
            self.forgotten = False
            raise Fault(ErrorKind.UNKNOWN_SESSION, "No such session.")
        self.heartbeats += 1

    def degrade(self, session_id: str, reason: str) -> None:
        assert session_id == "session"
        self.degraded.append(reason)

    def deregister(self, session_id: str) -> None:
        self.withdrawn.append(session_id)

    def emit(self, session_id: str, notification: Notification) -> None:
        assert session_id == "session"
        self.emitted.append(notification)


class Plugged:
    """A device, its model stub, and the upstream it registers with."""

    def __init__(
        self,
        board: str,
        firmware: DeviceMap | None = None,
        *,
        drop: int = 0,
        refusal: Fault | None = None,
        predecessor: Registered | None = None,
    ) -> None:
        self.loop = VirtualTimeLoop()
        self.map = load_map(MAPS / f"{board}.toml")
        self.upstream = Upstream()
        self.upstream.refusal = refusal
        self.counters = DeviceCounters()
        self.runs = 0
        self.takes_s = 0.0
        self.loop.finish(self._start(firmware or self.map, drop, predecessor))
        self.loop.advance(0.1)

    async def _start(self, firmware: DeviceMap, drop: int, predecessor: Registered | None) -> None:
        tools = {tool.id: tool for tool in firmware.tools}

        def handle(tool: int, _: list[Any]) -> Answer:
            self.runs += 1
            return Answer(values=tuple(plain_value(field) for field in tools[tool].results), takes_s=self.takes_s)

        self.transport = ModelTransport(firmware, handle)
        self.transport.to_gateway.fates.extend([Fate.DROP] * drop)
        binding = Binding("board", self.map, PortMatch())
        self.device = Device(
            binding,
            Toolset(self.map),
            self.transport,
            self.upstream,
            self.counters,
            subserver_id=IDENTITY,
            tap=lambda *_: None,
            predecessor=predecessor,
        )
        self.running = self.loop.create_task(self.device.run())

    def restart(self, boot_id: int) -> None:
        async def press() -> None:
            self.transport.stub.reset(boot_id)
            self.transport.stub.announce()

        self.loop.finish(press())
        self.loop.advance(0.2)

    def say(self, *messages: bytes) -> None:
        async def speak() -> None:
            for message in messages:
                self.transport.to_gateway.put(message)

        self.loop.finish(speak())
        self.loop.advance(0.05)

    def call(self, tool: str, arguments: dict[str, Any], **options: Any) -> dict[str, Any]:
        return self.loop.finish(self.device.call(Call((tool,), arguments, self.loop.time() + 30, **options)))

    def close(self) -> None:
        self.running.cancel()
        self.loop.run_until_complete(self.loop.create_task(_nothing()))
        self.loop.close()


async def _nothing() -> None: ...


MakePlugged = Callable[..., Plugged]


@pytest.fixture
def plug() -> Iterator[MakePlugged]:
    made: list[Plugged] = []

    def make(*arguments: Any, **options: Any) -> Plugged:
        made.append(Plugged(*arguments, **options))
        return made[-1]

    yield make
    for plugged in made:
        plugged.close()


BOARDS = pytest.mark.parametrize("board", ["relay-board", "env-sensor"])


@BOARDS
def test_it_registers_once_by_the_rules_for_all_subservers(plug: MakePlugged, board: str) -> None:
    plugged = plug(board)
    (request,) = plugged.upstream.requests
    assert (request.segment, request.heartbeat_interval_ms) == ("board", plugged.map.port.heartbeat_ms)
    assert request.transport_class == ("uart_bytes" if board == "relay-board" else "uart_cbor")
    assert plugged.device.online
    plugged.restart(2)
    assert plugged.device.online
    assert len(plugged.upstream.requests) == 1, "a restart is no new registration"


@BOARDS
def test_heartbeats_go_up_on_its_behalf_while_it_answers(plug: MakePlugged, board: str) -> None:
    plugged = plug(board)
    interval_s = plugged.map.port.heartbeat_ms / 1000
    before = plugged.upstream.heartbeats
    plugged.loop.advance(10.5 * interval_s)
    assert plugged.upstream.heartbeats - before >= 5
    plugged.transport.to_gateway.fates.extend([Fate.DROP] * 100)
    silent = plugged.upstream.heartbeats
    plugged.loop.advance(10 * interval_s)
    assert plugged.upstream.heartbeats == silent
    assert plugged.upstream.degraded == ["heartbeat_timeout"]
    assert plugged.running.done()
    assert plugged.running.result() == "heartbeat_timeout"


@BOARDS
def test_a_board_that_was_removed_meanwhile_registers_again(plug: MakePlugged, board: str) -> None:
    plugged = plug(board)
    plugged.upstream.forgotten = True
    plugged.loop.advance(3 * plugged.map.port.heartbeat_ms / 1000)
    assert len(plugged.upstream.requests) == 2
    assert plugged.device.online
    assert not plugged.upstream.forgotten


def test_a_board_at_work_on_a_long_call_stays_registered(plug: MakePlugged) -> None:
    plugged = plug("valve-actuator")
    plugged.takes_s = 20.0
    before = plugged.upstream.heartbeats
    plugged.call("dose", {"amount": 1})
    assert plugged.upstream.heartbeats - before >= 20 * 1000 // plugged.map.port.heartbeat_ms - 1


def test_a_spare_board_takes_the_place_of_the_one_before(plug: MakePlugged) -> None:
    assert plug("valve-actuator", predecessor=Registered("another", "before")).upstream.withdrawn == ["before"]
    assert plug("valve-actuator", predecessor=Registered(IDENTITY, "before")).upstream.withdrawn == [], (
        "it is the same board: it comes back"
    )


@pytest.mark.req("AX-8.3-2")
def test_an_announcement_that_was_lost_is_asked_for_again(plug: MakePlugged) -> None:
    plugged = plug("env-sensor", drop=1)
    assert not plugged.device.online
    plugged.loop.advance(1.0)
    assert plugged.device.online


@BOARDS
def test_firmware_of_another_map_never_goes_online(plug: MakePlugged, board: str) -> None:
    shipped = load_map(MAPS / f"{board}.toml")
    plugged = plug(board, replace(shipped, tools=shipped.tools[:-1]))
    assert not plugged.upstream.requests
    assert "does not fit the device map" in plugged.device.problem
    if board == "env-sensor":
        assert shipped.tools[-1].name in plugged.device.problem, "it names what differs"


@BOARDS
def test_a_debug_build_that_the_map_does_not_know_of_is_called_one(plug: MakePlugged, board: str) -> None:
    plugged = plug(board, load_map(MAPS / f"{board}.toml", debug=True))
    assert not plugged.upstream.requests
    assert "the board runs a debug build: put debug = true" in plugged.device.problem


@BOARDS
def test_a_board_reflashed_under_way_is_degraded_until_it_fits_again(plug: MakePlugged, board: str) -> None:
    plugged = plug(board)
    stub = plugged.transport.stub
    honest = stub.writer
    shipped = plugged.map
    stub.writer = type(honest)(replace(shipped, tools=shipped.tools[:-1]))
    plugged.restart(2)
    assert plugged.upstream.degraded == ["map_mismatch"]
    assert not plugged.device.online
    beats = plugged.upstream.heartbeats
    plugged.loop.advance(5.0)
    assert plugged.upstream.heartbeats == beats, "a board that does not fit is not kept alive"
    stub.writer = honest
    plugged.restart(3)
    assert plugged.device.online


def test_a_registration_that_is_refused_is_told(plug: MakePlugged) -> None:
    plugged = plug("relay-board", refusal=Fault(ErrorKind.NAMESPACE_CONFLICT, "segment 'board' is taken.", hint="Choose another."))
    assert plugged.device.problem == "segment 'board' is taken. Choose another."
    assert not plugged.device.online


def event(plugged: Plugged, number: int, value: Any) -> bytes:
    if plugged.map.name == "relay-board":
        return bytes((Type.EVENT, number, 0, *value))
    message = {Key.JSONRPC: 2, Key.METHOD: Type.EVENT, Key.TOOL: number, Key.RESULT: value, Key.COUNT: 0}
    return cbor2.dumps({int(key): int(each) if isinstance(each, int) else each for key, each in message.items()})


def test_events_are_passed_on_by_name_and_value(plug: MakePlugged) -> None:
    plugged = plug("relay-board")
    plugged.say(event(plugged, 1, b"\x07\x00"))
    assert plugged.upstream.emitted == [Notification("notifications/mcpax/event", {"event": "button", "data": {"presses": 7}})]


@pytest.mark.parametrize(
    ("number", "value", "counter"), [(1, {0: "hot"}, "refused_messages"), (1, {}, "refused_messages"), (9, {0: 1}, "events_dropped")]
)
def test_events_that_break_the_map_are_kept_back(plug: MakePlugged, number: int, value: Any, counter: str) -> None:
    plugged = plug("env-sensor")
    plugged.say(event(plugged, number, value))
    assert not plugged.upstream.emitted
    assert getattr(plugged.counters, counter) == 1


def test_many_events_at_once_all_go_up_in_order_for_the_aggregator_to_limit(plug: MakePlugged) -> None:
    plugged = plug("relay-board")
    plugged.say(*(event(plugged, 1, n.to_bytes(2, "little")) for n in range(900)))
    assert [emitted.params["data"]["presses"] for emitted in plugged.upstream.emitted] == list(range(900))
    assert (plugged.counters.events, plugged.counters.events_dropped) == (900, 0)


@pytest.mark.parametrize(("payload", "counter"), [(b"\x01\x00", "events"), (b"", "refused_messages")], ids=["good", "bad"])
def test_a_flood_of_events_is_not_even_read_and_counted(plug: MakePlugged, payload: bytes, counter: str) -> None:
    plugged = plug("relay-board")
    plugged.say(*[event(plugged, 1, payload)] * 5000)
    assert EVENTS_READ_PER_S <= getattr(plugged.counters, counter) <= EVENTS_READ_PER_S * 1.1
    assert getattr(plugged.counters, counter) + plugged.counters.events_dropped == 5000


def test_a_slow_call_reports_progress(plug: MakePlugged) -> None:
    plugged = plug("relay-board")
    told: list[float] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:  # noqa: ARG001
        told.append(done)

    plugged.transport.to_stub.late_s = 3.2
    plugged.transport.to_stub.fates.append(Fate.LATE)
    plugged.call("set_relay", {"relay": 1, "state": "on"}, progress=progress)
    assert told == [1.0, 2.0, 3.0]


@pytest.mark.req("AX-8.2-3")
def test_bad_arguments_reach_neither_wire_nor_board(plug: MakePlugged) -> None:
    plugged = plug("relay-board")
    sent = len(plugged.transport.sent)
    with pytest.raises(Fault, match="relay"):
        plugged.call("set_relay", {"relay": 0, "state": "on"})
    with pytest.raises(Fault, match="Unknown tool"):
        plugged.call("no_such", {})
    assert len(plugged.transport.sent) == sent
    assert plugged.runs == 0
