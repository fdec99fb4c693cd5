"""Ownership that several aggregators share through etcd: each holds what it serves under one lease of its own, and all see the same.

Nothing is granted without etcd, and nothing counts as held for longer than the lease is certain to last, so two never hold the same
subserver at once. Knows nothing of sessions or tools, nor what a loser of a hold does about it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import structlog

from mcpax.core.ownership import Claim, Hold, Lost
from mcpax.errors import ErrorKind, Fault
from mcpax.store import etcd_claims
from mcpax.store.etcd_access import EtcdError, LeaseGone
from mcpax.store.etcd_claims import Holding, Keys, Replica
from mcpax.store.etcd_client import EtcdClient
from mcpax.store.etcd_lease import CLOCK, Clock, Lease
from mcpax.store.etcd_leftovers import Leftovers
from mcpax.store.etcd_membership import Membership
from mcpax.store.etcd_view import View
from mcpax.store.etcd_wire import KeyValue, Transaction

TTL_S = 9
"""Three heartbeats of three seconds."""
CLAIM_TIMEOUT_S = 2.0

ReplicasChanged = Callable[[Mapping[str, str]], None]


@dataclass(frozen=True, slots=True)
class _Held:
    hold: Hold
    lost: Lost


class EtcdOwnership:
    """`run` must be running for anything to be held; `close` gives everything back at once. The client stays its maker's to close."""

    def __init__(
        self,
        client: EtcdClient,
        replica_id: str,
        *,
        url: str = "",
        keys: Keys | None = None,
        ttl_s: int = TTL_S,
        claim_timeout_s: float = CLAIM_TIMEOUT_S,
        replicas_changed: ReplicasChanged | None = None,
        clock: Clock = CLOCK,
    ) -> None:
        self._client = client
        self._replica_id = replica_id
        self._keys = keys or Keys()
        self._ttl_s = ttl_s
        self._claim_timeout_s = claim_timeout_s
        self._replicas_changed = replicas_changed
        self._me = Membership(client, self._keys.replicas + replica_id, url=url, ttl_s=ttl_s, lost=self._lose_all, clock=clock)
        self._view = View(client, self._keys.prefix, self._changed)
        self._leftovers = Leftovers(client)
        self._held: dict[str, _Held] = {}
        self._claiming: Counter[str] = Counter()
        self._replicas: dict[str, str] = {}
        self._closing = asyncio.Event()
        self._log = structlog.get_logger("mcpax.store")

    # --- what the aggregator asks

    async def claim(self, claim: Claim, lost: Lost) -> Hold:
        """See `Ownership`. One who claims anew what this process holds replaces the hold; the one before is told that it is lost."""
        self._claiming[claim.subserver_id] += 1
        try:
            async with asyncio.timeout(self._claim_timeout_s):
                lease, fence = await self._win(claim)
            if lease is not self._me.lease or not lease.is_valid:
                raise EtcdError("the lease ended while the claim was on its way")
            return self._record(Hold(claim, fence), lost)
        except (EtcdError, TimeoutError) as error:
            self._log.warning("claim_failed", segment=claim.segment, reason=str(error) or "etcd could not be reached in time")
            raise Fault(
                ErrorKind.STORE_UNAVAILABLE,
                "store_unavailable: the registrations that this tree shares cannot be reached; nothing was registered.",
                hint="Try again later; its operator finds the reason in this aggregator's log.",
                retry_after_ms=1000 * self._ttl_s // 3,
            ) from error
        finally:
            self._claiming -= Counter((claim.subserver_id,))  # and forgets whom it has no more of
            self._settle(claim.subserver_id)

    async def release(self, hold: Hold) -> None:
        if not self._is_held(hold):
            return
        del self._held[hold.claim.subserver_id]
        given_back = False
        try:
            await self._client.commit(self._give_back(hold))
            given_back = True
        except EtcdError as error:
            self._log.warning("release_delayed", segment=hold.claim.segment, reason=str(error))
        finally:
            if not given_back:  # it would stay ours for as long as the lease, which goes on
                self._leftovers.add(self._give_back(hold))

    def check(self, hold: Hold) -> bool:
        """Whether it certainly is ours just now. Asked before every call: no I/O, well below a microsecond. Once False, always False."""
        lease = self._me.lease
        return lease is not None and lease.is_valid and self._is_held(hold)

    def replicas(self) -> Mapping[str, str]:
        """The replicas of this aggregator that live, and their URLs, as last heard from etcd."""
        return self._replicas.copy()

    def holders(self) -> Mapping[str, str]:
        """Which replica serves which subserver, in the whole tree, as last heard from etcd."""
        holdings = etcd_claims.values_below(self._keys.holds, self._view.keys, Holding)
        return {subserver_id: holding.holder for subserver_id, holding in holdings.items()}

    # --- its life

    async def run(self) -> None:
        """Stay in touch with etcd, until cancelled or closed."""
        async with asyncio.TaskGroup() as tasks:
            work = [tasks.create_task(each) for each in (self._me.run(), self._view.run(), self._leftovers.run())]
            await self._closing.wait()
            for task in work:
                task.cancel()

    async def close(self) -> None:
        """Give everything back, so that others can take over at once. Nobody is told that anything is lost. Never raises."""
        self._closing.set()
        self._held.clear()
        await self._me.leave()

    # --- holds

    async def _win(self, claim: Claim) -> tuple[Lease, int]:
        while True:
            lease = await self._me.usable()
            try:
                asked = self._first_guess(claim, lease)
                while not (result := await self._client.commit(asked)).done:
                    asked = self._ask(claim, lease, result.found)
                return lease, result.revision
            except LeaseGone:
                self._me.unknown(lease)

    def _first_guess(self, claim: Claim, lease: Lease) -> Transaction:
        try:
            return self._ask(claim, lease, self._view.keys)
        except Fault:
            return self._ask(claim, lease, {})  # our copy may be behind: only etcd itself refuses

    def _ask(self, claim: Claim, lease: Lease, seen: Mapping[str, KeyValue]) -> Transaction:
        return etcd_claims.ask(claim, self._keys, seen, etcd_claims.Asker(self._replica_id, lease.id, self._me.leases))

    def _record(self, hold: Hold, lost: Lost) -> Hold:
        before = self._held.get(hold.claim.subserver_id)
        if before is not None and before.hold.fence > hold.fence:  # two claims at once, and their answers overtook each other
            raise etcd_claims.elsewhere()
        self._held[hold.claim.subserver_id] = _Held(hold, lost)
        if before is not None:
            self._tell(before)
        return hold

    def _is_held(self, hold: Hold) -> bool:
        held = self._held.get(hold.claim.subserver_id)
        return held is not None and held.hold.fence == hold.fence

    def _lose_all(self, reason: str) -> None:
        for held in list(self._held.values()):
            self._lose(held, reason)

    def _lose(self, held: _Held, reason: str) -> None:
        self._log.warning("hold_lost", segment=held.hold.claim.segment, reason=reason)
        del self._held[held.hold.claim.subserver_id]
        self._tell(held)

    def _tell(self, held: _Held) -> None:
        try:
            held.lost(held.hold)
        except Exception:
            # The other holds must be heard of all the same; a bug shows here, with its trace.
            self._log.exception("lost_failed", segment=held.hold.claim.segment)

    def _give_back(self, hold: Hold) -> Transaction:
        return etcd_claims.give_back(hold.claim.subserver_id, hold.claim.segment, hold.fence, self._keys)

    # --- what etcd tells

    def _changed(self, keys: frozenset[str] | None) -> None:
        told = self._view.keys if keys is None else keys
        below = self._keys.holds
        subservers = {key.removeprefix(below) for key in told if key.startswith(below)}
        for subserver_id in subservers.union(self._held if keys is None else ()):
            self._settle(subserver_id)
        if keys is None or any(key.startswith(self._keys.replicas) for key in keys):
            self._update_replicas()

    def _settle(self, subserver_id: str) -> None:
        """Compare what we hold with what etcd has."""
        stored = self._view.keys.get(self._keys.holds + subserver_id)
        by_us = stored is not None and stored.lease in self._me.leases
        if by_us and subserver_id in self._claiming:
            return  # the claim's answer will tell
        held = self._held.get(subserver_id)
        if held is not None and self._view.revision >= held.hold.fence and (stored is None or stored.mod_revision != held.hold.fence):
            self._lose(held, "deleted from etcd, or taken over by another")
            self._leftovers.add(self._give_back(held.hold))  # of two keys, one may have been left
        if by_us and stored is not None and subserver_id not in self._held:
            # A claim whose answer never came: it would be nobody's for as long as the lease, which goes on.
            holding = etcd_claims.value_of(stored, Holding)
            self._leftovers.add(etcd_claims.give_back(subserver_id, holding.segment if holding else "", stored.mod_revision, self._keys))

    def _update_replicas(self) -> None:
        found = etcd_claims.values_below(self._keys.replicas, self._view.keys, Replica)
        now = {replica_id: replica.url for replica_id, replica in found.items()}
        if now == self._replicas:
            return
        self._replicas = now
        if self._replicas_changed is not None:
            try:
                self._replicas_changed(now.copy())
            except Exception:
                self._log.exception("replicas_changed_failed")
