"""Reads wire.txt, whose format is described at its top. The C tests have their own reader, tests/firmware/vectors.c."""

from dataclasses import dataclass
from pathlib import Path

WIRE = Path(__file__).with_name("wire.txt")


@dataclass(frozen=True)
class Vector:
    line: int
    kind: str
    fields: tuple[str, ...]
    """All behind the kind."""

    def __str__(self) -> str:
        return f"{self.line}: {self.kind} {' '.join(field for field in self.fields[:3] if len(field) < 80)}"


def vectors(*kinds: str) -> list[Vector]:
    found = []
    for number, line in enumerate(WIRE.read_text().splitlines(), start=1):
        kind, *fields = line.split(" | ")
        if kind in kinds:
            found.append(Vector(number, kind, tuple(fields)))
    return found


def unhex(field: str) -> bytes:
    """Bytes of one field; blanks between messages are skipped."""
    return b"" if field == "-" else bytes.fromhex(field)


def messages(field: str) -> list[bytes]:
    return [] if field == "-" else [bytes.fromhex(message) for message in field.split(" ")]
