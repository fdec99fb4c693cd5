"""What there is in a PKI directory, how long it stays valid, and what needs attention. Reads, and changes nothing."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509

from mcpax.pki_directory import PkiDirectory
from mcpax.words import counted

WARN_DAYS = 30
"""Time enough to renew by hand; below it people are told."""
_LASTING = ("token", "authority")
_OTHERS = 0o077


@dataclass(frozen=True, slots=True)
class Entry:
    kind: str
    name: str
    file: Path
    not_after: datetime | None = None
    """None: does not expire."""
    days_left: int | None = None
    """Negative: expired."""
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Survey:
    entries: tuple[Entry, ...]
    warnings: tuple[str, ...]


def look(directory: PkiDirectory, now: datetime) -> Survey:
    entries = tuple(
        Entry(kind, name, file) if kind in _LASTING else _judged(Entry(kind, name, file), directory, now)
        for kind, name, file in directory.found()
    )
    warnings = [f"{entry.file}: {entry.warning}" for entry in entries if entry.warning]
    return Survey(entries, (*warnings, *_open_secrets(directory)))


def _judged(entry: Entry, directory: PkiDirectory, now: datetime) -> Entry:
    if entry.kind == "ca":
        again = f"Make a new one, and every certificate again: {directory.command('init --force')}"
    else:
        again = f"Issue it again: {directory.command(f'{entry.kind} {entry.name} --force')}"
    try:
        end = x509.load_pem_x509_certificate(entry.file.read_bytes()).not_valid_after_utc
    except (ValueError, OSError):
        return replace(entry, warning=f"holds no certificate. {again}")
    days = (end - now) // timedelta(days=1)
    warning = ""
    if days < 0:
        warning = f"expired on {end:%Y-%m-%d}. {again}"
    elif days < WARN_DAYS:
        warning = f"expires in {counted(days, 'day')}. {again}"
    return replace(entry, not_after=end, days_left=days, warning=warning)


def _open_secrets(directory: PkiDirectory) -> Iterator[str]:
    for file in directory.secrets():
        if file.stat().st_mode & _OTHERS:
            yield f"{file}: others can read it. Close it: chmod 600 {shlex.quote(str(file))}"
