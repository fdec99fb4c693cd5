"""What outlives restarts, in one small SQLite file: who this aggregator is, which board is which subserver, whose a segment is.

Few writes by design (SD cards wear): a row is written when a board is first seen and at most once a day after that. Bounded: the boards not
seen for longest go first. Knows nothing of sessions or tools.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

SCHEMA_VERSION = 2
MAX_SUBSERVERS = 4096
REFRESH_S = 24 * 3600.0
BUSY_S = 0.1
"""How long to wait for another program that holds the file: the event loop waits as well."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS identity (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS subserver (hardware TEXT PRIMARY KEY, id TEXT NOT NULL UNIQUE, seen REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS title (segment TEXT PRIMARY KEY, authority TEXT NOT NULL) WITHOUT ROWID;
"""


class StoreError(Exception):
    """The file cannot be used; says which and what to do."""


class Store:
    def __init__(self, path: Path, *, now: Callable[[], float] = time.time, max_subservers: int = MAX_SUBSERVERS) -> None:
        self._now = now
        self._max_subservers = max_subservers
        self._path = path
        with self._told():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.touch(mode=0o600)  # ids are no secrets, but nobody else's business either; SQLite's other files follow this one
            self._db = sqlite3.connect(path, isolation_level=None, timeout=BUSY_S)
        try:
            with self._told():
                self._prepare()
        except StoreError:
            self._db.close()
            raise

    def _prepare(self) -> None:
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA_VERSION:
            raise StoreError(f"{self._path}: written by a newer mcpax (schema {version}, this one knows {SCHEMA_VERSION}). Upgrade mcpax.")
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")  # writes are so rare that each may be durable
        if version < SCHEMA_VERSION:
            self._db.executescript(_SCHEMA)
            self._db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Whatever goes wrong with the file, say which one it is and what to do."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StoreError(
                f"{self._path}: cannot be used as state file: {error}. Check owner and free space, or set another state_dir."
            ) from error

    def aggregator_id(self) -> str:
        """Made at the first start, the same ever after."""
        with self._told():
            self._db.execute("INSERT OR IGNORE INTO identity VALUES ('aggregator_id', ?)", (str(uuid.uuid4()),))
            row = self._db.execute("SELECT value FROM identity WHERE key = 'aggregator_id'").fetchone()
            return str(row[0])

    def subserver_id(self, hardware: str) -> str:
        """The stable id of a board, known by what its hardware tells of itself."""
        with self._told():
            return self._subserver_id(hardware, self._now())

    def _subserver_id(self, hardware: str, now: float) -> str:
        row = self._db.execute("SELECT id, seen FROM subserver WHERE hardware = ?", (hardware,)).fetchone()
        if row is None:
            new = str(uuid.uuid4())
            self._db.execute("INSERT INTO subserver VALUES (?, ?, ?)", (hardware, new, now))
            # The new one first, whatever the clock says: a Raspberry Pi starts in the past.
            self._db.execute(
                "DELETE FROM subserver WHERE hardware IN"
                " (SELECT hardware FROM subserver ORDER BY hardware = ? DESC, seen DESC LIMIT -1 OFFSET ?)",
                (hardware, self._max_subservers),
            )
            return new
        if abs(now - row[1]) > REFRESH_S:
            self._db.execute("UPDATE subserver SET seen = ? WHERE hardware = ?", (now, hardware))
        return str(row[0])

    def authority_of(self, segment: str) -> str | None:
        """Whom a segment belongs to, whether or not anybody uses it now."""
        with self._told():
            row = self._db.execute("SELECT authority FROM title WHERE segment = ?", (segment,)).fetchone()
            return None if row is None else str(row[0])

    def give(self, segment: str, authority: str) -> None:
        """First come, first served: who has a segment keeps it."""
        with self._told():
            self._db.execute("INSERT OR IGNORE INTO title VALUES (?, ?)", (segment, authority))

    def close(self) -> None:
        self._db.close()
