"""Was any subserver ever served by two replicas? By the holds that etcd had, and by what each replica handed down with which fence. Pure.

A replica without the child's link passes a call on to the one that has it; that is no claim to own the child, and is logged as not owned.
Those dispatches are not held to an order: the fence that they carry is the one the other replica showed last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from tests.chaos.journal import Entry

RESOLUTION_S = 0.001
"""Of the clocks that are compared: one machine's, read in different processes."""


@dataclass(frozen=True, slots=True)
class Dispatch:
    at: float
    replica: str
    subserver: str
    fence: int


def dispatches(logs: Mapping[str, Iterable[Entry]]) -> list[Dispatch]:
    """All that replicas handed down as owners, in the order of time."""
    found = (
        Dispatch(datetime.fromisoformat(entry["timestamp"]).timestamp(), replica, entry["subserver"], entry["fence"])
        for replica, log in logs.items()
        for entry in log
        if entry.get("event") == "dispatched" and entry["owned"]
    )
    return sorted(found, key=lambda each: each.at)


def check_holds(holds: Iterable[Entry]) -> Iterator[str]:
    """Fences grow, and a hold ends before another's begins."""
    last: dict[str, int] = {}
    holders: dict[str, str | None] = {}
    for entry in holds:
        subserver, revision, holder = entry["subserver"], entry["revision"], entry["holder"]
        if revision <= last.get(subserver, 0):
            yield f"{subserver}: the fence went from {last[subserver]} to {revision}"
        before = holders.get(subserver)
        if holder is not None and before not in (None, holder):
            yield f"{subserver}: {holder} took it at {revision} while {before} held it"
        last[subserver], holders[subserver] = revision, holder


def check_dispatches(made: Iterable[Dispatch], holds: Iterable[Entry]) -> Iterator[str]:
    """No smaller fence after a larger one, and none that another holder's hold had ended already."""
    ended = _ended(holds)
    largest: dict[str, Dispatch] = {}
    for each in made:
        before = largest.get(each.subserver)
        if before is not None and each.fence < before.fence and each.at > before.at + RESOLUTION_S:
            late_ms = (each.at - before.at) * 1000
            yield (
                f"{each.subserver}: {each.replica} dispatched with fence {each.fence}, "
                f"{late_ms:.1f} ms after {before.replica} had with {before.fence}"
            )
        if before is None or each.fence > before.fence:
            largest[each.subserver] = each
        end = ended.get((each.subserver, each.fence))
        if end is not None and each.at > end + RESOLUTION_S:
            yield f"{each.subserver}: {each.replica} dispatched with fence {each.fence} {each.at - end:.3f} s after another held it"


def _ended(holds: Iterable[Entry]) -> dict[tuple[str, int], float]:
    """When, at the latest, a hold was another's: by subserver and fence. What was seen had happened already."""
    ended: dict[tuple[str, int], float] = {}
    current: dict[str, tuple[int, str]] = {}
    for entry in holds:
        if entry["holder"] is None:
            continue
        before = current.get(entry["subserver"])
        if before is not None and before[1] != entry["holder"]:
            ended[entry["subserver"], before[0]] = entry["at"]
        current[entry["subserver"]] = (entry["revision"], entry["holder"])
    return ended
