"""Reads tests/vectors/wire.txt, the byte vectors that the C tests read too."""

from dataclasses import dataclass
from pathlib import Path

from mcpax.bridge.maps.model import Crc
from mcpax.bridge.wire.framing import CobsFraming, Framing, SofFraming

FILE = Path(__file__).resolve().parents[2] / "vectors" / "wire.txt"
FRAMINGS: dict[str, Framing] = {"sof-crc8": SofFraming(Crc.CRC8), "sof-crc16": SofFraming(Crc.CRC16), "cobs": CobsFraming()}


@dataclass(frozen=True)
class Vector:
    line: int
    kind: str
    fields: tuple[str, ...]

    def __str__(self) -> str:
        return f"wire.txt:{self.line}"


def vectors(*kinds: str) -> list[Vector]:
    """The vectors of some kinds, in the order of the file."""
    found = []
    for number, row in enumerate(FILE.read_text().splitlines(), 1):
        if row and not row.startswith("#"):
            kind, *fields = row.split(" | ")
            if kind in kinds:
                found.append(Vector(number, kind, tuple(fields)))
    return found


def octets(text: str) -> bytes:
    return b"" if text == "-" else bytes.fromhex(text)
