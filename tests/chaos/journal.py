"""What a chaos run writes down: one JSON object a line, each with the time it was written, in one file per kind.

Every line is one write to a file opened for appending, so that a line is there whole or not at all. Knows nothing of what lines mean.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Entry = dict[str, Any]

CALLS, FAULTS, HOLDS, LISTINGS = "calls.jsonl", "faults.jsonl", "holds.jsonl", "listings.jsonl"
PLAN = "plan.json"
"""What the run was meant to be: the tools that there are, the replicas, the times allowed."""
LEDGERS = "*.ledger"
NODE_LOG = "{}.log"


class Journal:
    def __init__(self, file: Path) -> None:
        self._descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write(self, **entry: Any) -> float:
        """Returns the time that was written down."""
        at = time.time()
        os.write(self._descriptor, json.dumps({"at": at, **entry}).encode() + b"\n")
        return at

    def close(self) -> None:
        os.close(self._descriptor)


def read(file: Path) -> Iterator[Entry]:
    """Lines that are no JSON object are left out: libraries write to a node's log, too, and a killed node may leave half a line."""
    if not file.exists():
        return
    with file.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict):
                yield entry
