"""Judges a chaos run by its logs alone: were calls answered exactly once and truthfully, did everything have one owner, was order restored?

    python -m tests.chaos.check DIRECTORY [--json]

Exits with 1 if anything was violated, and says what.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.chaos import journal
from tests.chaos.check_calls import check_calls, outcome
from tests.chaos.check_calm import Plan, calms, check_calms, converged_s
from tests.chaos.check_owners import check_dispatches, check_holds, dispatches

MOST_TOLD = 20


@dataclass(frozen=True, slots=True)
class Verdict:
    violations: Mapping[str, list[str]]
    """By what they violate."""
    counts: Mapping[str, int]
    longest_s: float
    """To converge after the last fault before a calm."""
    converged_s: list[float] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return not any(self.violations.values())

    def text(self) -> str:
        lines = [", ".join(f"{name} {count}" for name, count in self.counts.items())]
        lines.append(f"longest time to converge {self.longest_s:.2f} s, in {len(self.converged_s)} calms")
        for rule, broken in self.violations.items():
            lines += [f"VIOLATED {rule}: {each}" for each in broken[:MOST_TOLD]]
            if len(broken) > MOST_TOLD:
                lines.append(f"VIOLATED {rule}: and {len(broken) - MOST_TOLD} more")
        return "\n".join([*lines, "passed" if self.passed else "FAILED"])


def judge(directory: Path) -> Verdict:
    plan = Plan(**json.loads((directory / journal.PLAN).read_text()))
    calls, faults, holds, listings = (
        list(journal.read(directory / name)) for name in (journal.CALLS, journal.FAULTS, journal.HOLDS, journal.LISTINGS)
    )
    ledgers = {file.stem: file.read_text().split() for file in sorted(directory.glob(journal.LEDGERS))}
    made = dispatches({name: journal.read(directory / journal.NODE_LOG.format(name)) for name in plan.replicas})
    found = list(calms(faults, plan))
    took = [converged_s(calm, listings, plan) for calm in found]
    violations = {
        "every call answered once, and truthfully": list(check_calls(calls, faults, ledgers)),
        "one owner": [*check_holds(holds), *check_dispatches(made, holds), *([] if made and holds else ["no holds or no dispatches seen"])],
        "true to the tree after the last fault": list(check_calms(found, listings, calls, plan)),
    }
    told = Counter(outcome(entry) for entry in calls if entry["event"] == "end" and entry["kind"] != "unanswered")
    broken = Counter(entry["kind"] for entry in faults if entry["event"] == "begin")
    counts = {
        "calls": sum(entry["event"] == "begin" for entry in calls),
        **{each: told[each] for each in ("result", "executed", "not_executed", "unknown")},
        **{f"{each}s": broken[each] for each in ("kill", "freeze", "cut", "silence", "delay")},
        "etcd restarts": broken["etcd"],
        "holds": sum(entry["holder"] is not None for entry in holds),
        "owned dispatches": len(made),
    }
    return Verdict(violations, counts, max(took, default=0.0), [round(each, 3) for each in took])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.check")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    verdict = judge(options.directory)
    print(json.dumps(asdict(verdict) | {"passed": verdict.passed}) if options.json else verdict.text())
    return 0 if verdict.passed else 1


if __name__ == "__main__":
    sys.exit(main())
