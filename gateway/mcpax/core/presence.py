"""Telling upstream that a subserver is lost, and that it is back (draft §13.1): once for each change, never of one that took its leave.

Follows the registry. Does not know how either is noticed, nor how many such words may pass (see `flows`).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from mcpax.core.registry import RegistryListener, Session
from mcpax.core.subserver import Notification

LOST = "notifications/mcpax/subserver_lost"
BACK = "notifications/mcpax/subserver_back"
ENDED = "session_ended"
"""The reason where none was given: most often it registered anew before anybody noticed that it was gone."""
MISSED_REMEMBERED = 1024
"""How many that were lost and then removed are awaited; of the longest gone it is not told that they are back."""

_Who = tuple[str, str]
"""Subserver and segment: another one in the same place is not the lost one come back, nor is the same one in another place."""


class Presence(RegistryListener):
    def __init__(self, tell: Callable[[Session, Notification], None], now: Callable[[], datetime]) -> None:
        self._tell = tell
        self._now = now
        self._lost: set[str] = set()
        """Sessions that are still there and were told lost."""
        self._missed: dict[_Who, None] = {}

    def added(self, session: Session) -> None:
        who = _who(session)
        if who in self._missed:
            del self._missed[who]
            self._tell(session, Notification(BACK))

    def changed(self, session: Session) -> None:
        """Of a change of its tools too, which is none of its presence."""
        if session.degraded and session.id not in self._lost:
            self._lost.add(session.id)
            self._tell_lost(session)
        elif not session.degraded and session.id in self._lost:
            self._lost.remove(session.id)
            self._tell(session, Notification(BACK))

    def removed(self, session: Session) -> None:
        told = session.id in self._lost
        self._lost.discard(session.id)
        if session.left:
            return
        if not told:
            self._tell_lost(session)
        self._missed[_who(session)] = None
        if len(self._missed) > MISSED_REMEMBERED:
            del self._missed[next(iter(self._missed))]

    def _tell_lost(self, session: Session) -> None:
        since = session.degraded_since or self._now()
        said = {"reason": session.degraded_reason or ENDED, "since": since.isoformat(timespec="seconds").replace("+00:00", "Z")}
        self._tell(session, Notification(LOST, said))


def _who(session: Session) -> _Who:
    return session.request.subserver_id, session.segment
