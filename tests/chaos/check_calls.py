"""Were calls answered exactly once, and truthfully? Holds what callers were told against what the ledgers say was done. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tests.chaos.journal import Entry

NOT_EXECUTED_CODES = frozenset({-32002, -32601, -32003})
"""Tool degraded, tool not found, budget exceeded: their codes alone say that nothing was done."""
RESULT, EXECUTED, NOT_EXECUTED, UNKNOWN, UNTOLD = "result", "executed", "not_executed", "unknown", "untold"
ALLOWED: Mapping[str, Sequence[int]] = {RESULT: (1,), EXECUTED: (1,), NOT_EXECUTED: (0,), UNKNOWN: (0, 1), UNTOLD: (0, 1)}
"""How often a call may be in the ledgers, by what its caller was told."""


def outcome(end: Entry) -> str:
    """What the caller knows by its answer."""
    if end["kind"] == "result":
        return RESULT
    if end["kind"] == "unsent":
        return NOT_EXECUTED
    if end["kind"] == "broken":
        return UNKNOWN
    if end.get("outcome") in (EXECUTED, NOT_EXECUTED, UNKNOWN):
        return str(end["outcome"])
    return NOT_EXECUTED if end.get("code") in NOT_EXECUTED_CODES else UNTOLD


def check_calls(calls: Iterable[Entry], faults: Sequence[Entry], ledgers: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """`ledgers`: the ids in each, in order. Yields what is wrong."""
    begun: dict[str, Entry] = {}
    ends: dict[str, list[Entry]] = {}
    for entry in calls:
        if entry["event"] == "begin":
            begun[entry["id"]] = entry
        else:
            ends.setdefault(entry["id"], []).append(entry)
    done = Counter(identifier for ids in ledgers.values() for identifier in ids)
    places = {identifier: name for name, ids in ledgers.items() for identifier in ids}
    down = list(_down_times(faults))

    for identifier, begin in begun.items():
        answers = ends.get(identifier, [])
        if len(answers) != 1 or answers[0]["kind"] == "unanswered":
            yield f"call {identifier} ({begin['tool']} at {begin['entry']}) was answered {_times(answers)}, not once"
            continue
        end = answers[0]
        if end["kind"] in ("broken", "unsent") and not _was_down(down, begin["entry"], begin["at"], end["at"]):
            yield f"call {identifier}: its connection to {begin['entry']} failed ({end.get('text')}), which was not killed then"
        known, count = outcome(end), done[identifier]
        if known == UNTOLD:
            yield f"call {identifier} failed and its outcome was not told: {end.get('code')} {end.get('text')}"
        if count not in ALLOWED[known]:
            yield f"call {identifier} ({begin['tool']} at {begin['entry']}): told {known} ({end.get('text')}), done {count} times"
        if count and places[identifier] not in begin["tool"].split("."):
            yield f"call {identifier} for {begin['tool']} was done by {places[identifier]}"
    for identifier, count in done.items():
        if count > 1 and identifier not in begun:
            yield f"{identifier}, which nobody called for, was done {count} times"
        elif identifier not in begun:
            yield f"{identifier}, which nobody called for, was done"


def _times(answers: Sequence[Entry]) -> str:
    return f"{sum(each['kind'] != 'unanswered' for each in answers)} times"


def _down_times(faults: Iterable[Entry]) -> Iterator[tuple[str, float, float]]:
    """(node, from, to) of every kill."""
    open_kills: dict[int, Entry] = {}
    for entry in faults:
        if entry.get("kind") != "kill":
            continue
        if entry["event"] == "begin":
            open_kills[entry["number"]] = entry
        else:
            begin = open_kills.pop(entry["number"])
            yield begin["target"], begin["at"], entry["at"]
    yield from ((begin["target"], begin["at"], float("inf")) for begin in open_kills.values())


def _was_down(down: Iterable[tuple[str, float, float]], node: str, begin: float, end: float) -> bool:
    return any(target == node and start <= end and begin <= stop for target, start, stop in down)
