"""The judge of chaos runs is judged itself: logs made by hand, a sound one and one for each kind of violation."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.chaos import journal
from tests.chaos.check import judge
from tests.chaos.check_calm import Plan

PLAN = Plan(["cloud.north.pier.ledger.record"], ["cloud-a", "cloud-b"], heartbeat_s=1.0, ttl_s=3.0)
TOOL = PLAN.truth[0]
CALLS, OWNER, CALM = "every call answered once, and truthfully", "one owner", "true to the tree after the last fault"


def stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


class Logs:
    """A run without a fault in its logs: one replica is killed at 100 and back at 102, the calm lasts from 102 to 115."""

    def __init__(self) -> None:
        self.calls: list[journal.Entry] = []
        self.ledgers: dict[str, list[str]] = {"pier": []}
        self.faults: list[journal.Entry] = [
            {"at": 100.0, "event": "begin", "number": 1, "kind": "kill", "target": "cloud-a"},
            {"at": 102.0, "event": "end", "number": 1, "kind": "kill", "target": "cloud-a"},
            {"at": 102.0, "event": "calm"},
            {"at": 115.0, "event": "stir"},
        ]
        self.holds: list[journal.Entry] = [
            {"at": 90.0, "subserver": "n", "revision": 5, "holder": "a1"},
            {"at": 103.0, "subserver": "n", "revision": 8, "holder": None},
            {"at": 103.5, "subserver": "n", "revision": 9, "holder": "b1"},
        ]
        self.dispatches: dict[str, list[tuple[float, int, bool]]] = {"cloud-a": [(99.0, 5, True)], "cloud-b": [(104.0, 9, True)]}
        self.listings: list[journal.Entry] = []
        for replica in PLAN.replicas:
            for at in range(103, 115):
                self.list(float(at), replica, degraded=[TOOL] if at < 105 else [])
            self.call(f"late-{replica}", 110.0, replica, {"kind": "result"}, done=1)

    def list(self, at: float, replica: str, names: list[str] | None = None, degraded: list[str] | None = None) -> None:
        self.listings.append(
            {"at": at, "replica": replica, "names": list(PLAN.truth) if names is None else names, "degraded": degraded or []}
        )

    def call(self, identifier: str, at: float, entry: str, end: dict[str, Any] | None, done: int = 0) -> None:
        self.calls.append({"at": at, "event": "begin", "id": identifier, "entry": entry, "tool": TOOL})
        if end is not None:
            self.calls.append({"at": at + 0.1, "event": "end", "id": identifier, **end})
        self.ledgers["pier"] += [identifier] * done

    def write(self, directory: Path) -> None:
        (directory / journal.PLAN).write_text(json.dumps(asdict(PLAN)))
        kept = {journal.CALLS: self.calls, journal.FAULTS: self.faults, journal.HOLDS: self.holds, journal.LISTINGS: self.listings}
        for name, entries in kept.items():
            (directory / name).write_text("".join(json.dumps(entry) + "\n" for entry in entries))
        for name, ids in self.ledgers.items():
            (directory / f"{name}.ledger").write_text("".join(f"{identifier}\n" for identifier in ids))
        for replica, made in self.dispatches.items():
            lines = [
                json.dumps({"event": "dispatched", "timestamp": stamp(at), "subserver": "n", "fence": fence, "owned": owned})
                for at, fence, owned in made
            ]
            (directory / journal.NODE_LOG.format(replica)).write_text("\n".join([*lines, "WARNING no json", '{"event": "dispat']))


def error(outcome: str | None = None, code: int = 5003) -> dict[str, Any]:
    return {"kind": "error", "code": code, "outcome": outcome, "text": "it failed"}


def test_a_sound_run_passes_and_is_counted(tmp_path: Path) -> None:
    logs = Logs()
    logs.call("1", 99.0, "cloud-b", {"kind": "result"}, done=1)
    logs.call("2", 99.0, "cloud-b", error("executed"), done=1)
    logs.call("3", 99.0, "cloud-b", error("not_executed"))
    logs.call("4", 99.0, "cloud-b", error("unknown"))
    logs.call("5", 99.0, "cloud-b", error("unknown"), done=1)
    logs.call("6", 99.0, "cloud-b", error(None, -32002))
    logs.call("7", 99.95, "cloud-a", {"kind": "broken"}, done=1)
    logs.call("8", 101.0, "cloud-a", {"kind": "unsent"})
    logs.dispatches["cloud-a"].append((105.0, 5, False))  # passed on to the owner, under the fence known here
    logs.write(tmp_path)
    verdict = judge(tmp_path)
    assert verdict.passed, verdict.text()
    assert verdict.counts["calls"] == 10
    assert {each: verdict.counts[each] for each in ("result", "executed", "not_executed", "unknown")} == {
        "result": 3,
        "executed": 1,
        "not_executed": 3,
        "unknown": 3,
    }
    assert verdict.counts["kills"] == 1
    assert verdict.longest_s == pytest.approx(3.0)


def never_answered(logs: Logs) -> None:
    logs.call("x", 99.0, "cloud-b", None)


def given_up(logs: Logs) -> None:
    logs.call("x", 99.0, "cloud-b", {"kind": "unanswered"})


def answered_twice(logs: Logs) -> None:
    logs.call("x", 99.0, "cloud-b", {"kind": "result"}, done=1)
    logs.calls.append(logs.calls[-1])


def result_not_done(logs: Logs) -> None:
    logs.call("x", 99.0, "cloud-b", {"kind": "result"})


def result_done_twice(logs: Logs) -> None:
    logs.call("x", 99.0, "cloud-b", {"kind": "result"}, done=2)


def done_at_two_leaves(logs: Logs) -> None:
    logs.call("x", 99.0, "cloud-b", {"kind": "result"}, done=1)
    logs.ledgers["quay"] = ["x"]


def done_at_another_leaf(logs: Logs) -> None:
    logs.call("x", 99.0, "cloud-b", {"kind": "result"})
    logs.ledgers["quay"] = ["x"]


def not_executed_done(logs: Logs) -> None:
    logs.call("x", 99.0, "cloud-b", error("not_executed"), done=1)


def degraded_done(logs: Logs) -> None:
    logs.call("x", 99.0, "cloud-b", error(None, -32002), done=1)


def executed_not_done(logs: Logs) -> None:
    logs.call("x", 99.0, "cloud-b", error("executed"))


def unknown_done_twice(logs: Logs) -> None:
    logs.call("x", 99.0, "cloud-b", error("unknown"), done=2)


def outcome_not_told(logs: Logs) -> None:
    logs.call("x", 99.0, "cloud-b", error())


def broken_without_a_kill(logs: Logs) -> None:
    logs.call("x", 99.0, "cloud-b", {"kind": "broken"})


def broken_after_the_kill(logs: Logs) -> None:
    logs.call("x", 103.0, "cloud-a", {"kind": "broken"})


def unsent_but_done(logs: Logs) -> None:
    logs.call("x", 101.0, "cloud-a", {"kind": "unsent"}, done=1)


def done_uncalled(logs: Logs) -> None:
    logs.ledgers["pier"].append("x")


def fence_shrinks(logs: Logs) -> None:
    logs.holds.append({"at": 106.0, "subserver": "n", "revision": 7, "holder": "b1"})


def taken_while_held(logs: Logs) -> None:
    del logs.holds[1]


def interleaved(logs: Logs) -> None:
    logs.dispatches["cloud-a"].append((104.01, 5, True))


def dispatched_after_another_held(logs: Logs) -> None:
    logs.dispatches["cloud-a"].append((103.6, 5, True))


def nobody_saw_a_hold(logs: Logs) -> None:
    logs.holds.clear()


def listed_too_late(logs: Logs) -> None:
    logs.list(106.5, "cloud-b", degraded=[TOOL])
    logs.listings.sort(key=lambda each: each["at"])


def a_tool_missing(logs: Logs) -> None:
    logs.list(114.9, "cloud-a", names=[])


def a_tool_too_many(logs: Logs) -> None:
    logs.list(114.9, "cloud-a", names=[*PLAN.truth, "cloud.ghost"])


def one_replica_not_asked(logs: Logs) -> None:
    logs.listings = [each for each in logs.listings if each["replica"] == "cloud-a"]


def failed_in_the_calm(logs: Logs) -> None:
    logs.call("x", 111.0, "cloud-b", error("not_executed"))


def no_call_at_the_end(logs: Logs) -> None:
    logs.calls = [each for each in logs.calls if each["id"] != "late-cloud-b"]
    logs.ledgers["pier"].remove("late-cloud-b")


def no_calm(logs: Logs) -> None:
    del logs.faults[-1]


@pytest.mark.parametrize(
    ("rule", "spoil"),
    [
        *((CALLS, each) for each in (never_answered, given_up, answered_twice, result_not_done, result_done_twice, done_at_two_leaves)),
        *((CALLS, each) for each in (done_at_another_leaf, not_executed_done, degraded_done, executed_not_done, unknown_done_twice)),
        *((CALLS, each) for each in (outcome_not_told, broken_without_a_kill, broken_after_the_kill, unsent_but_done, done_uncalled)),
        *((OWNER, each) for each in (fence_shrinks, taken_while_held, interleaved, dispatched_after_another_held, nobody_saw_a_hold)),
        *((CALM, each) for each in (listed_too_late, a_tool_missing, a_tool_too_many, one_replica_not_asked)),
        *((CALM, each) for each in (failed_in_the_calm, no_call_at_the_end, no_calm)),
    ],
)
def test_a_violation_is_found(rule: str, spoil: Callable[[Logs], None], tmp_path: Path) -> None:
    logs = Logs()
    spoil(logs)
    logs.write(tmp_path)
    verdict = judge(tmp_path)
    assert [name for name, found in verdict.violations.items() if found] == [rule], verdict.text()
