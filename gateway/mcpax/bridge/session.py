"""The conversation with one stub: synchronise, keep alive, and run each call at most once (docs/wire-format.md §5 and §6).

Deals in tools, raw values and messages. Knows nothing of names, schemas or JSON above, nor of framing or ports below. It never blocks and
keeps at most a window of calls outstanding and a bounded queue behind them.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import structlog

from mcpax.bridge.complaints import Complaints
from mcpax.bridge.counters import DeviceCounters
from mcpax.bridge.maps.model import ToolMap
from mcpax.bridge.timing import RoundTripEstimator
from mcpax.bridge.transport import Transport
from mcpax.bridge.wire.dialect import Dialect
from mcpax.bridge.wire.messages import (
    Event,
    Heartbeat,
    HiddenFrame,
    Message,
    Registration,
    Response,
    Status,
    WireError,
    outcome_of,
    status_name,
)
from mcpax.errors import ErrorKind, Fault, Outcome

MAX_QUEUE = 64
"""Calls that may wait for their turn; one more is refused as busy."""
MISSED_HEARTBEATS = 3
HEARTBEAT_ANSWER_BYTES = 32
OPEN_PATIENCE_S = 3.0
"""An Arduino's bootloader listens for two seconds before the stub does."""
OPEN_BEAT_S = 0.25
SILENT_WORK_S = 300.0
"""How long a board may be at work on calls without a word; after that it is lost, also to a caller who would wait for ever."""
MAX_RESTARTS = 2
"""Of the board during one idempotent call: one that brings the board down again and again is not run for ever."""
RESTART_PAUSE_S = 0.02
"""Between two attempts to synchronise, so that a board that does nothing but restart costs next to nothing."""
REFUSALS = frozenset({Status.UNKNOWN_TOOL, Status.BAD_ARGUMENTS, Status.OUT_OF_RANGE})
SEQUENCES = 256
MAX_UNCONFIRMED = 64
"""How far calls may run ahead of what the board has shown to have reached: half of what it takes for new (§5.3), to be sure."""
MAX_SKIPPED = 8
"""Sequences that calls which cannot be sent may use up: whoever makes such calls must not drive the session to `MAX_UNCONFIRMED`."""
ADOPTION_STRIDE = 16
"""Sequences to skip when taking over a board that was synchronised before: copies of an earlier owner's last calls may still come."""

Tap = Callable[[str, bytes], None]
"""Sees every message: "tx" or "rx", and its bytes."""


class SessionListener(Protocol):
    """Who owns the session: the device."""

    def heard(self) -> None:
        """It spoke, or is at work on a call that has not timed out."""
        ...

    def synchronised(self, heartbeat: Heartbeat) -> None:
        """After connecting, and again after every reboot of the board."""
        ...

    def registered(self, registration: Registration) -> None: ...

    def event(self, event: Event) -> None: ...

    def lost(self, reason: str) -> None: ...


class _State(StrEnum):
    OPENING = "opening"
    READY = "ready"
    LOST = "lost"


@dataclass(slots=True, eq=False)
class _Pending:
    """One call on the wire."""

    tool: int
    message: bytes
    answer: asyncio.Future[Response]
    sent: int = 0
    first_sent: float = 0.0
    timer: asyncio.TimerHandle | None = None


class _BoardRestarted(Exception):
    """The board lost its memory while a call was outstanding."""

    def __init__(self, *, cannot_have_run: bool) -> None:
        super().__init__("the board restarted")
        self.cannot_have_run = cannot_have_run


class StubSession:
    def __init__(
        self,
        dialect: Dialect,
        transport: Transport,
        listener: SessionListener,
        counters: DeviceCounters,
        *,
        heartbeat_s: float,
        turnaround_s: float,
        tap: Tap,
        name: str,
    ) -> None:
        self._dialect = dialect
        self._transport = transport
        self._listener = listener
        self._counters = counters
        self._heartbeat_s = heartbeat_s
        self._tap = tap
        self._log = structlog.get_logger("mcpax.session").bind(device=name)
        self._complaints = Complaints(self._log)
        self._loop = asyncio.get_running_loop()
        self._estimator = RoundTripEstimator(transport.limits.byte_s, turnaround_s)
        self._state = _State.OPENING
        self._seq = 0
        self._confirmed = 0
        """The newest sequence that the board is known to have reached. Far ahead of it, a new call would look old to the board."""
        self._boot_id = 0
        self._window = 1
        self._pending: dict[int, _Pending] = {}
        self._queue: deque[asyncio.Future[None]] = deque()
        self._heartbeats_missed = 0
        self._heartbeat_timer: asyncio.TimerHandle | None = None
        self._last_heard = self._last_answered = self._opening_since = self._loop.time()
        self._last_beat = -math.inf
        self._boot_in_doubt = False
        self._timed_out_since_heard = False

    @property
    def boot_id(self) -> int:
        return self._boot_id

    def start(self) -> None:
        """Begin: listen, ask a self-describing board to announce itself, and synchronise."""
        self._transport.start(self)
        if self._dialect.announces:
            self._send(self._dialect.announce_request())
        self._beat()

    def ask_to_announce(self) -> None:
        self._send(self._dialect.announce_request())

    def close(self, reason: str = "closed") -> None:
        if self._state is not _State.LOST:
            self._lose(reason)

    # --- calls

    async def call(self, tool: ToolMap, raw: Sequence[Any], deadline: float | None) -> Response:
        """Run a tool and return the stub's answer, whatever its status. Raises `Fault` with a truthful outcome if there is none."""
        self._counters.calls += 1
        ran_before_restart = False
        """It may have: this call was on its way when the board restarted. Whatever comes of the next attempt, that stays true."""
        restarts = 0
        while True:
            try:
                seq = await self._turn(deadline)
                response = await self._exchange(seq, tool.id, self._message(tool, seq, raw), deadline)
            except _BoardRestarted as restart:
                ran_before_restart |= not restart.cannot_have_run
                restarts += 1
                if not ran_before_restart or (tool.capability.idempotent and restarts <= MAX_RESTARTS):
                    continue
                raise _restarted_during_call() from None
            except Fault as fault:
                if ran_before_restart and fault.outcome is Outcome.NOT_EXECUTED:
                    raise _restarted_during_call() from fault
                raise
            self._counters.answered += 1
            if ran_before_restart and outcome_of(response.status) is Outcome.NOT_EXECUTED:
                raise _restarted_during_call()
            return response

    def _message(self, tool: ToolMap, seq: int, raw: Sequence[Any]) -> bytes:
        try:
            return self._dialect.call(tool, seq, raw)
        except HiddenFrame:
            # It may be by accident, of these arguments with this sequence: the next attempt gets another.
            if self._ahead(seq) > MAX_SKIPPED:
                self._seq = (seq - 1) % SEQUENCES
            self._wake()  # the turn that is not taken
            raise _hides_frame(tool) from None

    async def _turn(self, deadline: float | None) -> int:
        """Wait until the board is synchronised and can take one more call; returns the call's sequence."""
        waited = False
        while not self._has_room() or (self._queue and not waited):
            if self._state is _State.LOST:
                raise Fault(ErrorKind.DEVICE_LOST, "The board is not connected.", outcome=Outcome.NOT_EXECUTED)
            if len(self._queue) >= MAX_QUEUE:
                raise Fault(
                    ErrorKind.DEVICE_BUSY,
                    f"{MAX_QUEUE} calls are already waiting for this board.",
                    hint="Call less often, or wait for answers before calling again.",
                    outcome=Outcome.NOT_EXECUTED,
                    retry_after_ms=1000,
                )
            await self._queued(deadline, first=waited)
            waited = True
        if deadline is not None and self._loop.time() >= deadline:
            self._wake()  # the turn that is not taken
            raise _no_time()
        if self._ahead(self._seq + 1) > MAX_UNCONFIRMED:
            self._lose("sequences_unconfirmed")  # only a new start tells where the board really is
            raise Fault(ErrorKind.DEVICE_LOST, "The board takes no calls any more; starting over with it.", outcome=Outcome.NOT_EXECUTED)
        self._seq = (self._seq + 1) % SEQUENCES
        return self._seq

    async def _queued(self, deadline: float | None, *, first: bool) -> None:
        """Stand in the queue; `first`: had a turn already and lost it, so stands in front."""
        turn: asyncio.Future[None] = self._loop.create_future()
        (self._queue.appendleft if first else self._queue.append)(turn)
        try:
            async with asyncio.timeout_at(deadline):
                await turn
        except BaseException as error:
            self._queue.remove(turn)
            self._wake()  # a turn that came at the same moment goes to the next
            if isinstance(error, TimeoutError):
                raise _no_time() from None
            raise
        self._queue.remove(turn)

    def _has_room(self) -> bool:
        if self._state is not _State.READY:
            return False
        if not self._pending:
            return True
        oldest = next(iter(self._pending))
        return (self._seq + 1 - oldest) % SEQUENCES < self._window

    def _wake(self) -> None:
        """Give the next in the queue its turn, if there is room; everyone, if there is no hope."""
        if self._state is _State.LOST or self._has_room():
            for turn in self._queue:
                if not turn.done():
                    turn.set_result(None)
                    if self._state is not _State.LOST:
                        return

    async def _exchange(self, seq: int, tool: int, message: bytes, deadline: float | None) -> Response:
        pending = _Pending(tool, message, self._loop.create_future())
        self._pending[seq] = pending
        self._wake()  # the window may have room for the next in the queue, too
        try:
            self._transmit(pending)
            async with asyncio.timeout_at(deadline):
                return await pending.answer
        except TimeoutError:
            self._counters.timeouts += 1
            self._timed_out_since_heard = True
            raise Fault(
                ErrorKind.DEVICE_TIMEOUT,
                f"The board did not answer, asked {pending.sent} times.",
                hint="It may have run all the same. Read the state back before trying again." if pending.sent else "",
                outcome=Outcome.UNKNOWN if pending.sent else Outcome.NOT_EXECUTED,
            ) from None
        finally:
            if pending.timer is not None:
                pending.timer.cancel()
            del self._pending[seq]
            if not pending.sent and seq == self._seq:
                self._seq = (seq - 1) % SEQUENCES  # the board never saw it
            self._wake()

    def _transmit(self, pending: _Pending) -> None:
        """Send it, for the first time or again, and set the time for the next."""
        if pending.answer.done():
            return  # its end came in the same moment as the time for another copy
        now = self._loop.time()
        if self._transport.send(pending.message, again=pending.sent > 0):
            self._tap("tx", pending.message)
            self._counters.sent += 1
            self._counters.retries += pending.sent > 0
            pending.first_sent = pending.first_sent or now
            pending.sent += 1
        wait = self._estimator.timeout_s(2 * len(pending.message), max(pending.sent, 1))
        pending.timer = self._loop.call_later(wait, self._transmit, pending)

    # --- what the board says

    def message_received(self, message: bytes) -> None:
        self._tap("rx", message)
        self._counters.received += 1
        try:
            decoded = self._dialect.decode(message)
        except WireError as error:
            self._counters.refused_messages += 1
            self._complaints.warn("message_refused", reason=str(error), message=message[:64].hex())
            return
        self._heartbeats_missed = 0
        self._last_heard = self._loop.time()
        if isinstance(decoded, Response | Heartbeat):
            self._last_answered = self._last_heard
        self._timed_out_since_heard = False
        self._handle(decoded, len(message))
        if self._state is not _State.LOST:
            self._listener.heard()

    def _handle(self, message: Message, size: int) -> None:
        match message:
            case Response():
                self._answered(message, size)
            case Heartbeat():
                self._alive(message)
            case Registration():
                self._listener.registered(message)
                self._check_boot()
            case Event():
                self._listener.event(message)

    def _answered(self, response: Response, size: int) -> None:
        if response.status != Status.UNSYNCHRONISED:
            self._confirm(response.seq)
        pending = self._pending.get(response.seq)
        if pending is None or pending.answer.done():
            self._counters.duplicates_suppressed += 1
            return
        if response.tool not in (None, pending.tool) or not pending.sent:
            self._counters.refused_messages += 1
            self._complaints.warn("answer_to_no_call", asked=pending.tool, answered=response.tool, seq=response.seq, sent=pending.sent)
            return
        if response.status == Status.UNSYNCHRONISED:
            # It restarted. Only an earlier copy of this call can have run, before the restart.
            pending.answer.set_exception(_BoardRestarted(cannot_have_run=pending.sent == 1))
            self._restarted("unsynchronised")
            return
        if response.status in REFUSALS and pending.sent > 1:
            pending.answer.set_exception(_copy_refused(response.status))
            return
        if pending.sent == 1:
            elapsed = self._loop.time() - pending.first_sent
            self._counters.round_trips_s.append(elapsed)
            self._estimator.measured(elapsed, len(pending.message) + size)
        pending.answer.set_result(response)

    def _ahead(self, seq: int) -> int:
        return (seq - self._confirmed) % SEQUENCES

    def _confirm(self, seq: int) -> None:
        if self._ahead(seq) <= self._ahead(self._seq):  # else it is from long ago, or was never given out
            self._confirmed = seq

    # --- presence

    def _check_boot(self) -> None:
        """An announcement may mean a restart: ask soon, unless calls are outstanding, whose answers will tell."""
        if self._state is _State.READY and not self._pending:
            self._boot_in_doubt = True
            self._beat_soon()

    def _beat_soon(self) -> None:
        """At once, but not again and again: the board chooses how often it gives cause."""
        self._next_beat(max(0.0, self._last_beat + RESTART_PAUSE_S - self._loop.time()))

    def _beat(self) -> None:
        """Ask whether the board is there and which boot it is in, and set the time to ask again."""
        if self._silent_for_too_long():
            self._lose("heartbeat_timeout")
            return
        # Only an answer shows that the board hears us, as its dead man's switch must: one that sends events all the time is asked too.
        fresh = self._loop.time() - self._last_answered < self._heartbeat_s / 2 and not self._boot_in_doubt
        if self._state is _State.READY and (self._pending or fresh):
            # Calls are heartbeat enough, and a heartbeat must not overtake one (§5.4). A board at work on one counts as heard.
            self._listener.heard()
            self._next_beat(self._heartbeat_s)
            return
        self._heartbeats_missed += 1
        self._boot_in_doubt = False
        self._last_beat = self._loop.time()
        message = self._dialect.heartbeat(self._seq, self._boot_id)
        self._send(message, again=self._heartbeats_missed > 1)
        if self._state is _State.READY:
            self._next_beat(self._heartbeat_s)
        else:
            self._next_beat(min(OPEN_BEAT_S, self._estimator.timeout_s(len(message) + HEARTBEAT_ANSWER_BYTES, self._heartbeats_missed)))

    def _silent_for_too_long(self) -> bool:
        now = self._loop.time()
        if self._state is _State.OPENING:
            return now - self._opening_since > max(OPEN_PATIENCE_S, MISSED_HEARTBEATS * self._heartbeat_s)
        if self._pending:
            # A slow tool may keep a board quiet for long; only together with a call that timed out does silence soon mean loss.
            patience_s = MISSED_HEARTBEATS * self._heartbeat_s if self._timed_out_since_heard else SILENT_WORK_S
            return now - self._last_heard > patience_s
        return self._heartbeats_missed >= MISSED_HEARTBEATS

    def _next_beat(self, wait_s: float) -> None:
        if self._heartbeat_timer is not None:
            self._heartbeat_timer.cancel()
        self._heartbeat_timer = self._loop.call_later(wait_s, self._beat)

    def _alive(self, heartbeat: Heartbeat) -> None:
        known = heartbeat.boot_id == self._boot_id
        self._boot_id = heartbeat.boot_id
        self._window = heartbeat.window
        if self._state is _State.READY:
            if known and heartbeat.synchronised:
                self._confirm(heartbeat.highest_seq)
                self._next_beat(self._heartbeat_s)
            else:
                self._restarted("boot_id")
        elif not known:
            # It may be an answer to an earlier owner of the line. Whoever answers to this boot id now, answers to us.
            self._beat_soon()
        elif heartbeat.synchronised:  # one that stays deaf is asked again in time
            self._confirmed = heartbeat.highest_seq
            self._seq = (heartbeat.highest_seq + ADOPTION_STRIDE) % SEQUENCES
            self._state = _State.READY
            self._next_beat(self._heartbeat_s)
            self._listener.synchronised(heartbeat)
            self._wake()

    def _restarted(self, sign: str) -> None:
        """Its memory is gone: what was outstanding ends, and everything starts from synchronising."""
        for pending in self._pending.values():
            if not pending.answer.done():
                pending.answer.set_exception(_BoardRestarted(cannot_have_run=pending.sent == 0))
        if self._state is _State.READY:
            self._counters.reboots += 1
            self._log.warning("board_restarted", sign=sign)
            self._state = _State.OPENING
            self._opening_since = self._loop.time()
            self._next_beat(RESTART_PAUSE_S)

    def _send(self, message: bytes, *, again: bool = False) -> None:
        if self._transport.send(message, again=again):
            self._tap("tx", message)
            self._counters.sent += 1

    # --- the end

    def transport_lost(self, reason: str) -> None:
        if self._state is not _State.LOST:
            self._lose(reason)

    def _lose(self, reason: str) -> None:
        self._state = _State.LOST
        if self._heartbeat_timer is not None:
            self._heartbeat_timer.cancel()
        # First the calls in flight fail, and truthfully; then the namespace changes.
        for pending in self._pending.values():
            if not pending.answer.done():
                pending.answer.set_exception(_lost(reason, sent=pending.sent > 0))
        self._wake()
        self._transport.close()
        self._listener.lost(reason)


def _restarted_during_call() -> Fault:
    return Fault(
        ErrorKind.DEVICE_LOST,
        "The board restarted during the call.",
        hint="It may have run before the restart. Read the state back before trying again.",
        outcome=Outcome.UNKNOWN,
    )


def _copy_refused(status: int) -> Fault:
    return Fault(
        ErrorKind.DEVICE_ERROR,
        f"The board refused one of several copies of the call ({status_name(status)}): the line damaged it, or the firmware does not fit.",
        hint="Another copy may have run. Read the state back before trying again.",
        outcome=Outcome.UNKNOWN,
        details={"status": status},
    )


def _hides_frame(tool: ToolMap) -> Fault:
    return Fault(
        ErrorKind.INVALID_TOOL_ARGS,
        f"Arguments of {tool.name}: their bytes contain a whole frame of the board's protocol, "
        "which could run as a call of its own if the line damaged this one. Nothing was sent.",
        hint="Send the bytes in two calls, cut within that frame (it begins with A5).",
        outcome=Outcome.NOT_EXECUTED,
    )


def _no_time() -> Fault:
    return Fault(ErrorKind.DEVICE_TIMEOUT, "The board had no time for this call before its deadline.", outcome=Outcome.NOT_EXECUTED)


def _lost(reason: str, *, sent: bool) -> Fault:
    return Fault(
        ErrorKind.DEVICE_LOST,
        f"The connection to the board was lost during the call ({reason}).",
        hint="It may have run all the same. Read the state back before trying again." if sent else "",
        outcome=Outcome.UNKNOWN if sent else Outcome.NOT_EXECUTED,
    )
