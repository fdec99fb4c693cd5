"""Where things are in the source tree and under build/. Knows nothing else."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DEFAULT_RIG = ROOT / "hil/rig.toml"
PORTS = ROOT / "build/hil/ports"
"""Links to the terminals of emulated boards, named as udev names real ones."""
LEASES = ROOT / "build/hil/leases"
RESULTS = ROOT / "build/hil/results.json"
REPORT = ROOT / "build/hil/report.html"
FOOTPRINT = ROOT / "build/footprint.json"
