"""Tokens that were used already: each works once. Bounded, and forgets a token when it would be refused as expired anyway.

In memory only: the caller must refuse tokens from before it started. Knows nothing of what a token says.
"""

from __future__ import annotations

MAX_PER_NAME = 1024
"""More unexpired tokens than this no honest child uses. Counted by name, so that one child cannot use up the room of the others."""


class Replayed(Exception):
    """Used before, or there is no room to remember it; for the log."""


class UsedTokens:
    def __init__(self, max_per_name: int = MAX_PER_NAME) -> None:
        self._max_per_name = max_per_name
        self._used: dict[str, dict[str, float]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._used.values()))

    def use(self, name: str, jti: str, expires: float, now: float) -> None:
        """Remember it as used; raises `Replayed` if it was, and when full, as forgetting another would let that one in again."""
        used = self._used[name] = {each: end for each, end in self._used.get(name, {}).items() if end > now}
        if jti in used:
            raise Replayed("the token was used before")
        if len(used) >= self._max_per_name:
            raise Replayed(f"more than {self._max_per_name} tokens of this name are in use; is its child in a loop?")
        used[jti] = expires
