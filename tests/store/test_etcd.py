"""Ownership shared through a real etcd: never two holders at once, none for ever, and nothing granted that etcd does not know."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import signal
import sys
import time
import timeit
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from mcpax.core.ownership import Claim, Hold, Ownership
from mcpax.errors import ErrorKind, Fault
from mcpax.store.etcd import EtcdOwnership
from mcpax.store.etcd_access import EtcdAccess, EtcdUnavailable
from mcpax.store.etcd_claims import Keys
from mcpax.store.etcd_client import EtcdClient
from mcpax.store.etcd_wire import Delete, Put, Transaction, TransactionResult
from tests.harness.etcd_server import EtcdServer, needs_etcd
from tests.harness.stalling_proxy import StallingProxy
from tests.store.test_etcd_client import PATIENCE_S, compact

pytestmark = needs_etcd

ROOT = Path(__file__).resolve().parents[2]
SHORT_S = 2
"""A lease to be waited for."""
LONG_S = 30
"""One that does not end during a test."""
ROUNDS = 200


@dataclass
class Replica:
    """One aggregator's ownership, running, and what it was told."""

    ownership: EtcdOwnership
    client: EtcdClient
    running: asyncio.Task[None]
    lost: list[Hold] = field(default_factory=list)
    was_lost: asyncio.Event = field(default_factory=asyncio.Event)
    replicas: asyncio.Queue[dict[str, str]] = field(default_factory=asyncio.Queue)

    def note(self, hold: Hold) -> None:
        self.lost.append(hold)
        self.was_lost.set()

    async def claim(self, claim: Claim) -> Hold:
        return await self.ownership.claim(claim, self.note)

    async def replicas_become(self, expected: dict[str, str]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while await self.replicas.get() != expected:
                pass


Join = Callable[..., Awaitable[Replica]]


@pytest.fixture
async def join(etcd: EtcdServer, prefix: str) -> AsyncIterator[Join]:
    """Start a replica; all are ended after the test."""
    async with contextlib.AsyncExitStack() as ending:

        async def start(name: str, *, url: str = etcd.url, ttl_s: int = LONG_S, place: str = "", timeout_s: float = 2.0) -> Replica:
            client = await ending.enter_async_context(EtcdClient(EtcdAccess((url,), timeout_s=timeout_s)))
            told: asyncio.Queue[dict[str, str]] = asyncio.Queue()
            ownership = EtcdOwnership(
                client,
                name,
                url=f"https://{name}",
                keys=Keys(prefix, place),
                ttl_s=ttl_s,
                claim_timeout_s=timeout_s,
                replicas_changed=lambda now: told.put_nowait(dict(now)),
            )
            running = asyncio.create_task(ownership.run())

            async def end() -> None:
                running.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await running
                await ownership.close()

            ending.push_async_callback(end)
            return Replica(ownership, client, running, replicas=told)

        yield start


def a_claim(segment: str = "pump", authority: str | None = None) -> Claim:
    return Claim(str(uuid.uuid4()), segment, authority)


async def refused(replica: Replica, claim: Claim) -> Fault:
    with pytest.raises(Fault) as caught:
        await replica.claim(claim)
    return caught.value


async def gone(client: EtcdClient, key: str) -> None:
    """Returns when etcd has deleted it."""
    read = await client.read(key)
    if key in read.found:
        async with asyncio.timeout(PATIENCE_S), contextlib.aclosing(client.watch(key, read.revision)) as batches:
            async for events in batches:
                if any(event.key == key and event.now is None for event in events):
                    return


async def until(replica: Replica, condition: Callable[[], bool]) -> None:
    """Asks etcd something all the while, so that its events come in between."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await replica.client.read("/nothing/")


def test_it_is_an_ownership() -> None:
    _: type[Ownership] = EtcdOwnership


# --- claims


@pytest.mark.req("AX-13.4-1")
async def test_of_two_that_race_exactly_one_wins_and_fences_grow(join: Join) -> None:
    a, b = await join("a"), await join("b")
    fences = []
    wins = {"a": 0, "b": 0}
    claim = a_claim()
    for _ in range(ROUNDS):
        results = await asyncio.gather(a.claim(claim), b.claim(claim), return_exceptions=True)
        (hold,) = [result for result in results if isinstance(result, Hold)]
        (fault,) = [result for result in results if isinstance(result, Fault)]
        assert fault.kind is ErrorKind.REGISTERED_ELSEWHERE
        winner, loser = (a, b) if results[0] is hold else (b, a)
        assert winner.ownership.check(hold)
        assert not loser.ownership.check(hold)
        fences.append(hold.fence)
        wins["a" if winner is a else "b"] += 1
        await winner.ownership.release(hold)
        assert not winner.ownership.check(hold)
    assert fences == sorted(set(fences))
    assert all(wins.values()), f"no race: {wins}"
    assert not a.lost
    assert not b.lost


@pytest.mark.req("AX-13.4-1")
async def test_one_that_is_registered_elsewhere_is_refused_and_learns_nothing_of_where(join: Join) -> None:
    a, b = await join("aggregator-a"), await join("aggregator-b", place="edge")
    claim = a_claim()
    hold = await a.claim(claim)
    fault = await refused(b, claim)
    assert fault.kind is ErrorKind.REGISTERED_ELSEWHERE
    assert fault.retryable
    assert "aggregator-" not in f"{fault.text()} {fault.data()}"
    assert a.ownership.check(hold)
    await a.ownership.release(hold)
    assert (await b.claim(claim)).fence > hold.fence


async def test_another_subserver_cannot_take_a_segment_that_is_in_use_at_another_replica(join: Join) -> None:
    a, b, below = await join("a"), await join("b"), await join("c", place="edge")
    first, second = a_claim("pump"), a_claim("pump")
    hold = await a.claim(first)
    for replica in (a, b):
        fault = await refused(replica, second)
        assert (fault.kind, fault.details) == (ErrorKind.NAMESPACE_CONFLICT, {"segment": "pump"})
    await below.claim(second)  # the same word in another aggregator's namespace
    await a.ownership.release(hold)
    await b.claim(a_claim("pump"))


async def test_one_that_comes_back_to_the_same_replica_replaces_itself(join: Join) -> None:
    a, b = await join("a"), await join("b")
    first = a_claim("old")
    old = await a.claim(first)
    new = await a.claim(Claim(first.subserver_id, "new"))
    assert new.fence > old.fence
    assert (a.ownership.check(old), a.ownership.check(new)) == (False, True)
    assert a.lost == [old]
    await a.ownership.release(old)  # its session ends late, and must not take the new one along
    assert a.ownership.check(new)
    assert (await refused(b, first)).kind is ErrorKind.REGISTERED_ELSEWHERE
    await b.claim(a_claim("old"))  # which it has left
    assert (await refused(b, a_claim("new"))).kind is ErrorKind.NAMESPACE_CONFLICT
    assert a.lost == [old]


async def test_claims_of_one_subserver_at_once_leave_exactly_one(join: Join) -> None:
    a = await join("a")
    claim = a_claim()
    results = await asyncio.gather(*(a.claim(claim) for _ in range(20)), return_exceptions=True)
    holds = [result for result in results if isinstance(result, Hold)]
    assert all(
        isinstance(result, Hold) or (isinstance(result, Fault) and result.kind is ErrorKind.REGISTERED_ELSEWHERE) for result in results
    )
    valid = [hold for hold in holds if a.ownership.check(hold)]
    assert valid == [max(holds, key=lambda hold: hold.fence)]
    assert sorted(hold.fence for hold in a.lost) == sorted(hold.fence for hold in holds if hold is not valid[0])


async def test_a_claim_whose_answer_was_overtaken_by_that_of_a_later_one_is_refused(join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    a = await join("a")
    await a.claim(a_claim("other"))
    commit, overtaken, committed = a.client.commit, asyncio.Event(), asyncio.Event()

    async def first_is_late(asked: Transaction) -> TransactionResult:
        result = await commit(asked)
        if not committed.is_set():
            committed.set()
            await overtaken.wait()
        return result

    monkeypatch.setattr(a.client, "commit", first_is_late)
    claim = a_claim()
    first = asyncio.create_task(a.claim(claim))
    await committed.wait()
    second = await a.claim(claim)
    overtaken.set()
    with pytest.raises(Fault) as caught:
        await first
    assert caught.value.kind is ErrorKind.REGISTERED_ELSEWHERE
    assert a.ownership.check(second)
    assert not a.lost


@pytest.mark.req("AX-4.2-2")
async def test_a_segment_stays_with_its_authority_after_the_session_and_the_aggregator_are_gone(join: Join) -> None:
    a = await join("a")
    mine, theirs = "dns:edge01.example.com", "dns:rogue.example.com"
    await a.claim(a_claim("pump", mine))
    await a.ownership.close()
    b = await join("b")
    for rogue in (theirs, None):
        fault = await refused(b, a_claim("pump", rogue))
        assert fault.kind is ErrorKind.NAMESPACE_CONFLICT
        assert mine not in f"{fault.text()} {fault.data()}"
    hold = await b.claim(a_claim("pump", mine))
    assert b.ownership.check(hold)
    await b.ownership.release(hold)
    assert (await refused(b, a_claim("pump", theirs))).kind is ErrorKind.NAMESPACE_CONFLICT


async def test_a_refused_claim_leaves_no_title_behind(join: Join) -> None:
    a = await join("a")
    taken = a_claim("pump")
    hold = await a.claim(taken)
    await refused(a, a_claim("pump", "dns:rogue.example.com"))
    await a.ownership.release(hold)
    await a.claim(a_claim("pump", "dns:edge01.example.com"))


# --- holders that die, hang, or leave


@contextlib.asynccontextmanager
async def holder_process(etcd: EtcdServer, prefix: str, subserver_id: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.store.etcd_holder", etcd.url, prefix, str(SHORT_S), subserver_id),
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT / 'gateway'}:{ROOT}"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        assert (await answer_of(process)).startswith("held ")
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def answer_of(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE_S):
        return (await process.stdout.readline()).decode().strip()


async def ask(process: asyncio.subprocess.Process, question: str) -> str:
    assert process.stdin is not None
    process.stdin.write(f"{question}\n".encode())
    return await answer_of(process)


@pytest.mark.req("AX-13.4-1")
async def test_a_holder_that_is_killed_frees_its_holds_within_the_lease(etcd: EtcdServer, join: Join, prefix: str) -> None:
    b = await join("b")
    claim = a_claim()
    async with holder_process(etcd, prefix, claim.subserver_id) as holder:
        assert (await refused(b, claim)).kind is ErrorKind.REGISTERED_ELSEWHERE
        holder.kill()
        killed = time.monotonic()
        await gone(b.client, f"{prefix}holds/{claim.subserver_id}")
        hold = await b.claim(claim)
        assert time.monotonic() - killed < SHORT_S + 1.0  # etcd looks for leases to end twice a second
        assert b.ownership.check(hold)


async def test_a_holder_that_was_stopped_knows_at_once_that_it_may_have_lost(etcd: EtcdServer, join: Join, prefix: str) -> None:
    b = await join("b")
    claim = a_claim()
    async with holder_process(etcd, prefix, claim.subserver_id) as holder:
        assert await ask(holder, "?") == "holds 0"
        holder.send_signal(signal.SIGSTOP)
        await gone(b.client, f"{prefix}holds/{claim.subserver_id}")
        hold = await b.claim(claim)
        holder.send_signal(signal.SIGCONT)
        assert (await ask(holder, "?")).startswith("does not hold")
        assert await ask(holder, "lost?") == "does not hold 1"
        assert b.ownership.check(hold)


async def test_a_holder_that_is_cut_off_stops_before_another_can_begin(join: Join, proxy: StallingProxy, prefix: str) -> None:
    a, b = await join("a", url=proxy.url, ttl_s=SHORT_S, timeout_s=0.5), await join("b")
    claims = [a_claim(f"pump-{number}") for number in range(3)]
    holds = [await a.claim(claim) for claim in claims]
    order: list[str] = []

    async def a_stops() -> None:
        await a.was_lost.wait()
        order.append("a stopped")

    async def b_begins() -> None:
        await gone(b.client, f"{prefix}holds/{claims[0].subserver_id}")
        order.append("b may begin" if not any(map(a.ownership.check, holds)) else "a still believes")
        await b.claim(claims[0])

    proxy.stall()
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(a_stops(), b_begins())
    assert order == ["a stopped", "b may begin"]
    assert sorted(hold.fence for hold in a.lost) == [hold.fence for hold in holds]

    proxy.go_on()  # it takes another lease, and what nobody took meanwhile can be claimed anew
    proxy.cut()
    again = await claimed_at_last(a, claims[1])
    assert again.fence > holds[1].fence
    assert (await refused(a, claims[0])).kind is ErrorKind.REGISTERED_ELSEWHERE
    assert len(a.lost) == 3


async def claimed_at_last(replica: Replica, claim: Claim) -> Hold:
    """Tried again while the store cannot be reached, as whoever registers is told to."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                return await replica.claim(claim)
            except Fault as fault:
                if fault.kind is not ErrorKind.STORE_UNAVAILABLE:
                    raise


async def test_one_that_leaves_can_be_followed_at_once(join: Join) -> None:
    a, b = await join("a"), await join("b")
    claims = [a_claim(f"pump-{number}") for number in range(3)]
    holds = [await a.claim(claim) for claim in claims]
    await a.ownership.close()
    assert not any(map(a.ownership.check, holds))
    assert not a.lost
    for claim in claims:
        await b.claim(claim)
    async with asyncio.timeout(PATIENCE_S):
        await a.running
    assert (await refused(a, a_claim("late"))).kind is ErrorKind.STORE_UNAVAILABLE


async def test_a_claim_that_was_won_under_a_lease_lost_meanwhile_is_no_hold(
    join: Join, monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    a, b = await join("a", ttl_s=SHORT_S), await join("b")
    await a.claim(a_claim("other"))
    commit, committed = a.client.commit, asyncio.Event()

    async def late(asked: Transaction) -> TransactionResult:
        result = await commit(asked)
        if not committed.is_set():
            committed.set()
            await a.was_lost.wait()
        return result

    async def unheard(_lease: int) -> int:
        raise EtcdUnavailable("cut off")

    monkeypatch.setattr(a.client, "commit", late)
    monkeypatch.setattr(a.client, "keep_alive", unheard)
    claim = a_claim()
    claiming = asyncio.create_task(a.claim(claim))
    await committed.wait()
    with pytest.raises(Fault) as caught:
        await claiming
    assert caught.value.kind is ErrorKind.STORE_UNAVAILABLE
    assert len(a.lost) == 1
    await gone(b.client, f"{prefix}holds/{claim.subserver_id}")
    await b.claim(claim)


async def test_a_lease_that_etcd_forgot_is_noticed_by_the_next_claim(etcd: EtcdServer, join: Join) -> None:
    a = await join("a")
    old = await a.claim(a_claim("old"))
    async with httpx.AsyncClient(base_url=f"{etcd.url}/v3/") as http:
        for lease in (await http.post("lease/leases", json={})).json()["leases"]:
            await http.post("lease/revoke", json=lease)
    hold = await a.claim(a_claim("new"))  # though the next renewal is ten seconds away
    assert a.lost == [old]
    assert (a.ownership.check(old), a.ownership.check(hold)) == (False, True)


# --- what others do to our keys


async def test_a_hold_that_was_deleted_or_taken_is_lost_and_gives_up_its_segment(etcd: EtcdServer, join: Join, prefix: str) -> None:
    a, b = await join("a"), await join("b")
    claims = [a_claim("deleted"), a_claim("taken"), a_claim("kept")]
    holds = [await a.claim(claim) for claim in claims]
    read = await a.client.read(prefix)
    async with httpx.AsyncClient() as http:
        for claim in claims[:2]:
            key = f"{prefix}holds/{claim.subserver_id}"
            assert key in read.found
            (await http.post(f"{etcd.url}/v3/kv/deleterange", json={"key": base64.b64encode(key.encode()).decode()})).raise_for_status()
    taken = await b.claim(Claim(claims[1].subserver_id, "elsewhere"))
    await until(a, lambda: len(a.lost) == 2)
    assert sorted(a.lost, key=lambda hold: hold.fence) == holds[:2]  # both may come in one batch
    assert [a.ownership.check(hold) for hold in holds] == [False, False, True]
    for segment in ("deleted", "taken"):
        await gone(b.client, f"{prefix}segments/{segment}")
        await b.claim(a_claim(segment))
    assert b.ownership.check(taken)


async def test_a_hold_lost_while_the_watch_was_away_is_lost_though_its_events_are_gone(
    etcd: EtcdServer, join: Join, proxy: StallingProxy, prefix: str
) -> None:
    a, b = await join("a", url=proxy.url, timeout_s=0.5), await join("b")
    claim = a_claim()
    hold = await a.claim(claim)
    proxy.stall()
    key = f"{prefix}holds/{claim.subserver_id}"
    deleted = await b.client.commit(Transaction((), (Delete(key, hold.fence),)))
    await compact(etcd, deleted.revision)
    proxy.cut()
    proxy.go_on()
    async with asyncio.timeout(PATIENCE_S):
        await a.was_lost.wait()
    assert a.lost == [hold]
    assert not a.ownership.check(hold)
    assert (await a.claim(claim)).fence > hold.fence


@pytest.mark.parametrize("cancelled", [False, True], ids=["timed out", "cancelled"])
async def test_a_claim_whose_answer_never_came_is_nobodys_in_the_end(
    join: Join, proxy: StallingProxy, prefix: str, cancelled: bool
) -> None:
    a, b = await join("a", url=proxy.url, timeout_s=0.5), await join("b")
    await a.claim(a_claim("other"))
    claim = a_claim()
    key = f"{prefix}holds/{claim.subserver_id}"
    revision = (await b.client.read(key)).revision
    proxy.lose_answers()
    claiming = asyncio.create_task(a.claim(claim))
    async with asyncio.timeout(PATIENCE_S), contextlib.aclosing(b.client.watch(key, revision)) as batches:
        while not await anext(batches):
            pass
    if cancelled:
        claiming.cancel()
    with pytest.raises(asyncio.CancelledError if cancelled else Fault):
        await claiming
    proxy.go_on()
    proxy.cut()
    await gone(b.client, key)
    assert b.ownership.check(await b.claim(claim))
    assert not a.lost


async def test_a_release_that_etcd_did_not_hear_is_made_good(join: Join, proxy: StallingProxy, prefix: str) -> None:
    a, b = await join("a", url=proxy.url, timeout_s=0.3), await join("b")
    claim = a_claim()
    hold = await a.claim(claim)
    await until(a, lambda: claim.subserver_id in a.ownership.holders())  # or it would be found as nobody's when its event comes
    proxy.stall()
    await a.ownership.release(hold)
    assert not a.ownership.check(hold)
    assert (await refused(b, claim)).kind is ErrorKind.REGISTERED_ELSEWHERE
    proxy.cut()
    proxy.go_on()
    await gone(b.client, f"{prefix}holds/{claim.subserver_id}")
    await b.claim(claim)


# --- etcd itself


async def test_without_etcd_nothing_is_granted_and_what_is_held_stays_for_its_time(own_etcd: EtcdServer, join: Join) -> None:
    a = await join("a", url=own_etcd.url, ttl_s=4, timeout_s=0.5)
    claim = a_claim("pump", "dns:edge01.example.com")
    hold = await a.claim(claim)
    own_etcd.kill()
    for refuses in ("is gone", "hangs"):
        started = time.monotonic()
        fault = await refused(a, a_claim(refuses.replace(" ", "_")))
        assert time.monotonic() - started < 1.0, refuses
        assert fault.kind is ErrorKind.STORE_UNAVAILABLE
        assert fault.retryable
        assert fault.retry_after_ms
        assert a.ownership.check(hold)
        if refuses == "is gone":
            own_etcd.start()
            own_etcd.signal(signal.SIGSTOP)
    async with asyncio.timeout(PATIENCE_S):
        await a.was_lost.wait()
    assert (a.lost, a.ownership.check(hold)) == ([hold], False)
    own_etcd.signal(signal.SIGCONT)
    again = await claimed_at_last(a, claim)
    assert again.fence > hold.fence
    assert a.ownership.check(again)
    assert (await refused(a, a_claim("pump", "dns:rogue.example.com"))).kind is ErrorKind.NAMESPACE_CONFLICT


async def test_a_restart_of_etcd_in_time_loses_nothing(own_etcd: EtcdServer, join: Join) -> None:
    a, b = await join("a", url=own_etcd.url), await join("b", url=own_etcd.url)
    claim = a_claim("pump", "dns:edge01.example.com")
    hold = await a.claim(claim)
    own_etcd.kill()
    own_etcd.start()
    assert (await refused(b, claim)).kind is ErrorKind.REGISTERED_ELSEWHERE
    assert (await refused(b, a_claim("pump", "dns:edge01.example.com"))).kind is ErrorKind.NAMESPACE_CONFLICT
    assert a.ownership.check(hold)
    later = await b.claim(a_claim("valve"))
    await until(a, lambda: later.claim.subserver_id in a.ownership.holders())  # a's watch has resumed
    assert not a.lost


async def test_it_waits_for_an_etcd_that_is_not_there_yet(own_etcd: EtcdServer, join: Join) -> None:
    own_etcd.kill()
    a = await join("a", url=own_etcd.url, timeout_s=0.3)
    assert (await refused(a, a_claim())).kind is ErrorKind.STORE_UNAVAILABLE
    own_etcd.start()
    assert a.ownership.check(await claimed_at_last(a, a_claim()))


# --- for operators and for the router


async def test_who_is_there_and_who_serves_what(join: Join) -> None:
    a = await join("a")
    await a.replicas_become({"a": "https://a"})
    b = await join("b")
    elsewhere = await join("c", place="edge")
    await a.replicas_become({"a": "https://a", "b": "https://b"})
    claims = [a_claim("pump"), a_claim("valve"), a_claim("lamp")]
    for replica, claim in zip((a, b, elsewhere), claims, strict=True):
        await replica.claim(claim)
    expected = dict(zip((claim.subserver_id for claim in claims), "abc", strict=True))
    for replica in (a, b, elsewhere):
        await until(replica, lambda: replica.ownership.holders() == expected)  # noqa: B023
    await b.ownership.close()
    await a.replicas_become({"a": "https://a"})
    assert a.ownership.replicas() == {"a": "https://a"}
    await until(a, lambda: len(a.ownership.holders()) == 2)


async def test_what_others_write_below_the_prefix_is_passed_over(join: Join, prefix: str) -> None:
    a = await join("a")
    strange = tuple(Put(f"{prefix}{key}", b"\xff{") for key in ("replicas/x", "holds/x", "holds/", "other"))
    await a.client.commit(Transaction((), strange))
    hold = await a.claim(a_claim())
    await until(a, lambda: list(a.ownership.holders()) == [hold.claim.subserver_id])
    assert a.ownership.replicas() == {"a": "https://a"}
    assert (await refused(a, Claim("x", "pump-2"))).kind is ErrorKind.REGISTERED_ELSEWHERE


async def test_a_callback_that_fails_keeps_nobody_from_hearing(join: Join) -> None:
    a = await join("a")

    def fails(_hold: Hold) -> None:
        raise RuntimeError("a bug")

    first = a_claim("first")
    await a.ownership.claim(first, fails)
    await a.claim(first)
    await a.claim(first)
    assert len(a.lost) == 1
    assert not a.running.done()


async def test_a_check_costs_less_than_a_microsecond(join: Join) -> None:
    a = await join("a")
    for number in range(100):
        hold = await a.claim(a_claim(f"pump-{number}"))
    seconds = min(timeit.repeat(lambda: a.ownership.check(hold), number=10_000, repeat=20)) / 10_000
    assert seconds < 1e-6, f"{seconds * 1e9:.0f} ns"


def test_a_prefix_must_be_a_folder() -> None:
    with pytest.raises(ValueError, match="must end with '/'"):
        Keys("/mcpax")
