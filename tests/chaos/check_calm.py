"""Was the namespace equal to the truth soon enough after the last fault, and did it stay so? Asked of every calm between faults. Pure.

Three heartbeat intervals after a fault has ended: within them a silent loss is noticed and whoever was lost has come back. Two faults
take longer by etcd's ttl, for which nobody may be served by another: a replica killed or stood still (its lease goes on from then), and a
restart of etcd (which begins all leases anew). The clock starts when what was killed answers again, and when a line is mended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tests.chaos.journal import Entry

INTERVALS = 3


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run was meant to be."""

    truth: Sequence[str]
    replicas: Sequence[str]
    heartbeat_s: float
    ttl_s: float


@dataclass(frozen=True, slots=True)
class Calm:
    last_fault: float
    due: float
    """When all must be well."""
    end: float


def calms(faults: Iterable[Entry], plan: Plan) -> Iterator[Calm]:
    begun: dict[int, Entry] = {}
    last, due = 0.0, 0.0
    for entry in faults:
        if entry["event"] == "begin":
            begun[entry["number"]] = entry
        elif entry["event"] == "end":
            last = entry["at"]
            due = max(due, _due(begun.pop(entry["number"]), entry, plan))
        elif entry["event"] == "stir":
            assert not begun, "a calm with faults in it is none"
            yield Calm(last, due, entry["at"])
            due = 0.0


def _due(begin: Entry, end: Entry, plan: Plan) -> float:
    allowed_s = INTERVALS * plan.heartbeat_s
    if begin["kind"] in ("kill", "freeze") and begin["target"] in plan.replicas:
        return float(max(end["at"], begin["at"] + plan.ttl_s) + allowed_s)
    if begin["kind"] == "etcd":
        return float(end["at"] + plan.ttl_s + allowed_s)
    return float(end["at"] + allowed_s)


def converged_s(calm: Calm, listings: Sequence[Entry], plan: Plan) -> float:
    """How long after the last fault the last untrue listing was seen; endless if the last one of a replica is, or there is none."""
    took_s = 0.0
    for replica in plan.replicas:
        seen = [each for each in listings if each["replica"] == replica and calm.last_fault <= each["at"] <= calm.end]
        untrue = [index for index, each in enumerate(seen) if each["names"] != plan.truth or each["degraded"]]
        if not seen or (untrue and untrue[-1] == len(seen) - 1):
            return float("inf")
        if untrue:
            took_s = max(took_s, seen[untrue[-1] + 1]["at"] - calm.last_fault)
    return took_s


def check_calms(found: Sequence[Calm], listings: Sequence[Entry], calls: Sequence[Entry], plan: Plan) -> Iterator[str]:
    if not found:
        yield "there was no calm to judge"
        return
    for number, calm in enumerate(found, 1):
        if calm.end <= calm.due:
            yield f"calm {number} ended before all had to be well"
        took_s = converged_s(calm, listings, plan)
        if calm.last_fault + took_s > calm.due:
            yield f"calm {number}: the lists were true only {took_s:.2f} s after the last fault, allowed {calm.due - calm.last_fault:.2f} s"
    ends = {entry["id"]: entry for entry in calls if entry["event"] == "end"}
    answered: set[tuple[str, str]] = set()
    for begin in calls:
        if begin["event"] != "begin":
            continue
        calm_then = next((calm for calm in found if calm.due <= begin["at"] <= calm.end), None)
        end = ends.get(begin["id"])
        if calm_then is None or end is None or end["at"] > calm_then.end:
            continue
        if end["kind"] != "result":
            yield f"call {begin['id']} ({begin['tool']} at {begin['entry']}) failed while all was well: {end.get('code')} {end.get('text')}"
        elif calm_then is found[-1]:
            answered.add((begin["entry"], begin["tool"]))
    for replica in plan.replicas:
        for tool in plan.truth:
            if (replica, tool) not in answered:
                yield f"{tool} was not called with success at {replica} after the last fault"
