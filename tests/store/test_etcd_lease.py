"""A lease by its holder's own clock: never longer than etcd's, and never valid again once it was not."""

from __future__ import annotations

import asyncio
import time
from typing import cast

import pytest

from mcpax.store.etcd_access import EtcdUnavailable, LeaseGone
from mcpax.store.etcd_client import EtcdClient, Granted
from mcpax.store.etcd_lease import CLOCK, Lease, margin_s
from tests.harness.virtual_time import VirtualTimeLoop

TTL_S = 9


class Etcd:
    """Grants and renews like etcd does, after as long a time as a test says."""

    def __init__(self, loop: VirtualTimeLoop) -> None:
        self._loop = loop
        self.takes_s = 0.0
        self.fails: Exception | None = None
        self.expires = 0.0
        self.renewals: list[float] = []

    async def grant(self, ttl_s: int) -> Granted:
        self.expires = self._loop.time() + ttl_s  # as early as it may begin to count
        await asyncio.sleep(self.takes_s)
        return Granted(1, ttl_s)

    async def keep_alive(self, lease: int) -> int:
        assert lease == 1
        if self.fails is not None:
            raise self.fails
        self.renewals.append(self._loop.time())
        self.expires = self._loop.time() + TTL_S
        await asyncio.sleep(self.takes_s)
        return TTL_S


@pytest.fixture
def loop() -> VirtualTimeLoop:
    return VirtualTimeLoop()


@pytest.fixture
def etcd(loop: VirtualTimeLoop) -> Etcd:
    return Etcd(loop)


def take(loop: VirtualTimeLoop, etcd: Etcd) -> Lease:
    return loop.finish(Lease.take(cast(EtcdClient, etcd), TTL_S, loop.time))


def end_of(loop: VirtualTimeLoop, lease: Lease) -> float:
    while lease.is_valid:
        loop.advance(0.01)
    return loop.time()


def test_it_counts_from_the_question_not_from_the_answer(loop: VirtualTimeLoop, etcd: Etcd) -> None:
    etcd.takes_s = 3.0
    lease = take(loop, etcd)
    assert end_of(loop, lease) == pytest.approx(etcd.expires - margin_s(TTL_S), abs=0.02)


def test_the_margin_outlasts_an_election() -> None:
    assert margin_s(TTL_S) > 1.0
    assert margin_s(2) == 0.5


def test_it_is_renewed_thrice_in_its_time_for_as_long_as_that_works(loop: VirtualTimeLoop, etcd: Etcd) -> None:
    lease = take(loop, etcd)
    kept = loop.create_task(lease.keep())
    loop.advance(3600.5)
    assert lease.is_valid
    assert not kept.done()
    assert len(etcd.renewals) == 3600 / (TTL_S / 3)


def test_slow_renewals_count_from_their_question(loop: VirtualTimeLoop, etcd: Etcd) -> None:
    lease = take(loop, etcd)
    etcd.takes_s = 2.0
    kept = loop.create_task(lease.keep())
    loop.advance(5.5)
    assert len(etcd.renewals) == 1
    etcd.fails = EtcdUnavailable("gone")
    assert end_of(loop, lease) == pytest.approx(etcd.expires - margin_s(TTL_S), abs=0.02)
    assert loop.run_until_complete(kept) == "not renewed in time: gone"


def test_trouble_that_ends_in_time_is_no_loss_and_is_tried_often(loop: VirtualTimeLoop, etcd: Etcd) -> None:
    lease = take(loop, etcd)
    kept = loop.create_task(lease.keep())
    etcd.fails = EtcdUnavailable("gone")
    loop.advance(6.5)
    etcd.fails = None
    loop.advance(0.8)
    assert etcd.renewals
    assert lease.is_valid
    loop.advance(100)
    assert not kept.done()


def test_an_answer_that_never_comes_does_not_delay_the_end(loop: VirtualTimeLoop, etcd: Etcd) -> None:
    lease = take(loop, etcd)
    etcd.takes_s = 1000.0
    began = loop.time()
    assert loop.finish(lease.keep()).startswith("not renewed in time")
    assert not lease.is_valid
    assert loop.time() - began == pytest.approx(TTL_S - margin_s(TTL_S), abs=0.02)


def test_a_lease_that_etcd_forgot_ends_at_the_next_renewal(loop: VirtualTimeLoop, etcd: Etcd) -> None:
    lease = take(loop, etcd)
    etcd.fails = LeaseGone("gone")
    began = loop.time()
    assert loop.finish(lease.keep()) == "etcd no longer knows it"
    assert loop.time() - began == pytest.approx(TTL_S / 3)
    assert not lease.is_valid


def test_whoever_learns_first_that_it_is_gone_ends_it_at_once(loop: VirtualTimeLoop, etcd: Etcd) -> None:
    lease = take(loop, etcd)
    kept = loop.create_task(lease.keep())
    loop.advance(1)
    lease.end()
    assert not lease.is_valid
    assert loop.run_until_complete(kept) == "etcd no longer knows it"
    assert loop.time() == pytest.approx(1001)
    assert not etcd.renewals


def test_a_renewal_that_came_too_late_does_not_revive_it() -> None:
    """After a stop of the process, etcd may still know the lease. What was lost meanwhile stays lost."""

    class Late:
        async def keep_alive(self, _lease: int) -> int:
            now[0] += 100.0  # the process stood still with the request on its way
            return TTL_S

    async def kept() -> str:
        return await asyncio.wait_for(lease.keep(), 5)

    now = [0.0]
    lease = Lease(cast(EtcdClient, Late()), 1, 0.6, 0.0, lambda: now[0])
    assert lease.is_valid
    assert asyncio.run(kept()) == "not renewed in time: this process stood still"
    assert not lease.is_valid


def test_the_clock_goes_on_while_the_machine_sleeps() -> None:
    assert CLOCK() == pytest.approx(time.clock_gettime(time.CLOCK_BOOTTIME), abs=1)
