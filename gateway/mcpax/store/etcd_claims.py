"""How ownership is written down in etcd: the keys, their values, and the one transaction that a claim is.

    holds/<subserver_id>            leased    who serves the subserver; unique in the whole tree
    segments/[<place>/]<segment>    leased    the subserver that uses a segment: first wins, across all replicas of an aggregator
    titles/[<place>/]<segment>      durable   the authority that a segment belongs to
    replicas/[<place>/]<id>         leased    the replicas of an aggregator, and where they are reached

`<place>` tells aggregators of one tree apart: `pump` below one is not `pump` below another. Replicas of the same aggregator have the same.
Knows nothing of connections or of time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from mcpax.core.ownership import Claim, check_title
from mcpax.errors import ErrorKind, Fault
from mcpax.store.etcd_wire import Delete, KeyValue, Pin, Put, Transaction

PREFIX = "/mcpax/"
TRY_AGAIN_MS = 1000
"""When one that another holds may ask again: most often it is moving, and its old hold ends soon."""

T = TypeVar("T", "Holding", "Replica")


@dataclass(frozen=True, slots=True)
class Holding:
    """The value of a hold. Its fence is the key's mod_revision, which etcd gives."""

    holder: str
    segment: str
    authority: str | None = None


@dataclass(frozen=True, slots=True)
class Replica:
    """The value of a replica."""

    url: str
    started: int
    """Seconds since 1970."""


class Keys:
    def __init__(self, prefix: str = PREFIX, place: str = "") -> None:
        if not prefix.endswith("/"):
            raise ValueError(f"etcd: prefix {prefix!r}: must end with '/': {prefix}other would be below it, too")
        below = f"{place}/" if place else ""
        self.prefix = prefix
        self.holds = f"{prefix}holds/"
        self.segments = f"{prefix}segments/{below}"
        self.titles = f"{prefix}titles/{below}"
        self.replicas = f"{prefix}replicas/{below}"


@dataclass(frozen=True, slots=True)
class Asker:
    """Who claims."""

    holder: str
    lease: int
    leases: Collection[int]
    """That and the earlier ones: only what is under one of these may be replaced. The holder's name would not do, for a process that was
    started twice."""


def ask(claim: Claim, keys: Keys, seen: Mapping[str, KeyValue], asker: Asker) -> Transaction:
    """Make what was seen into the transaction that is done only if it still is so. Raises `Fault` where it allows no claim."""
    hold_key, segment_key, title_key = keys.holds + claim.subserver_id, keys.segments + claim.segment, keys.titles + claim.segment
    hold, segment, title = seen.get(hold_key), seen.get(segment_key), seen.get(title_key)
    if hold is not None and hold.lease not in asker.leases:
        raise elsewhere()
    if segment is not None and segment.value != claim.subserver_id.encode():
        raise Fault(
            ErrorKind.NAMESPACE_CONFLICT,
            f"namespace_conflict: segment {claim.segment!r} is in use by another subserver.",
            hint="Choose another segment; the first to register keeps it.",
            details={"segment": claim.segment},
        )
    check_title(claim, None if title is None else title.value.decode(errors="replace"))

    value = msgspec.json.encode(Holding(asker.holder, claim.segment, claim.authority))
    writes: list[Put | Delete] = [Put(hold_key, value, asker.lease), Put(segment_key, claim.subserver_id.encode(), asker.lease)]
    if title is None and claim.authority is not None:
        writes.append(Put(title_key, claim.authority.encode()))
    if hold is not None and (before := value_of(hold, Holding)) is not None and before.segment != claim.segment:
        writes.append(Delete(keys.segments + before.segment, hold.mod_revision))
    pins = (_pin(hold_key, hold), _pin(segment_key, segment), _pin(title_key, title))
    return Transaction(pins, tuple(writes), reads=(hold_key, segment_key, title_key))


def give_back(subserver_id: str, segment: str, fence: int, keys: Keys) -> Transaction:
    """Both keys were put by one transaction, so both have the fence as their mod_revision, or are somebody else's by now."""
    return Transaction((), (Delete(keys.holds + subserver_id, fence), Delete(keys.segments + segment, fence)))


def value_of(stored: KeyValue, kind: type[T]) -> T | None:
    """None: it was not written by mcpax."""
    try:
        return msgspec.json.decode(stored.value, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def values_below(prefix: str, stored: Mapping[str, KeyValue], kind: type[T]) -> dict[str, T]:
    """By the rest of their keys. Not those another level below, which are of another place."""
    rests = ((key.removeprefix(prefix), each) for key, each in stored.items() if key.startswith(prefix))
    found = ((rest, value_of(each, kind)) for rest, each in rests if "/" not in rest)
    return {rest: value for rest, value in found if value is not None}


def elsewhere() -> Fault:
    return Fault(
        ErrorKind.REGISTERED_ELSEWHERE,
        "registered_elsewhere: this subserver is registered with another aggregator of the tree.",
        hint="End that registration, or wait until it expires, then register again.",
        retry_after_ms=TRY_AGAIN_MS,
    )


def _pin(key: str, seen: KeyValue | None) -> Pin:
    return Pin(key, 0 if seen is None else seen.mod_revision)
