"""What SDCC and its linker say about an image for the 8051: which variable of which file takes which bytes of RAM, and where things are.

Reads the listings that the linker has put final addresses into (.rst), its summary (.mem), and the debug information of a file (.adb).
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RAM_SEGMENTS = ("DSEG", "OSEG", "ISEG")
"""Directly addressed, directly addressed and shared by functions that call no others, indirectly addressed."""
_AREA = re.compile(r"\.area\s+(\w+)")
_LABEL = re.compile(r"\s+[0-9A-F]{6}\s.*\s_(\w+):+$")
_SPACE = re.compile(r"\s+([0-9A-F]{6})\s+\d+\s+\.ds\s+(\d+)$")
_MEMBER = re.compile(r"S:S\$(\w+)\$[^(]*\(\{(\d+)\}")


@dataclass(frozen=True)
class Variable:
    file: str
    name: str
    segment: str
    address: int
    size: int

    @property
    def places(self) -> range:
        return range(self.address, self.address + self.size)


def make(target: Path, **settings: str) -> None:
    """One file, with other settings than the firmware's Makefile has."""
    words = ["make", "-C", str(ROOT / "firmware"), str(target), *(f"{name}={value}" for name, value in settings.items())]
    made = subprocess.run(words, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout[-4000:] + made.stderr


def variables(image: Path) -> list[Variable]:
    """All bytes of RAM but the registers, single bits, the boot id at a fixed address, and the stack."""
    return [variable for listing in sorted(image.with_suffix("").glob("*.rst")) for variable in _variables(listing)]


def _variables(listing: Path) -> list[Variable]:
    found, segment, label = [], "", ""
    for line in listing.read_text(encoding="utf-8", errors="replace").splitlines():
        if area := _AREA.search(line):
            segment = area[1]
        elif named := _LABEL.match(line):
            label = named[1]
        elif (space := _SPACE.match(line)) and segment in RAM_SEGMENTS:
            found.append(Variable(listing.stem, label, segment, int(space[1], 16), int(space[2])))
    return found


def labels(image: Path, file: str, segment: str) -> list[str]:
    """Names of what one file has in a segment of flash: CSEG has its functions, CONST its constants."""
    names, at = [], ""
    for line in (image.with_suffix("") / f"{file}.rst").read_text(encoding="utf-8", errors="replace").splitlines():
        if area := _AREA.search(line):
            at = area[1]
        elif (named := _LABEL.match(line)) and at == segment:
            names.append(named[1])
    return names


def stack_start(image: Path) -> int:
    found = re.search(r"Stack starts at: 0x([0-9a-f]+)", image.with_suffix(".mem").read_text())
    assert found is not None
    return int(found[1], 16)


def members(debug_information: Path, one_of_them: str) -> dict[str, int]:
    """Of the struct that has this member: the bytes that each takes."""
    found = [line for line in debug_information.read_text().splitlines() if line.startswith("T:") and f"S:S${one_of_them}$" in line]
    assert len(found) == 1, f"{debug_information.name} has {len(found)} structs with a member {one_of_them}"
    return {name: int(size) for name, size in _MEMBER.findall(found[0])}
