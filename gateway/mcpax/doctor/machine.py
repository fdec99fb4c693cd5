"""The machine as the checks see it: its files below a root, and who is asking. Tests give them a directory tree instead."""

from __future__ import annotations

import getpass
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    members: frozenset[str]


@dataclass(frozen=True, slots=True)
class Machine:
    root: Path
    user: str
    uid: int
    gids: frozenset[int]
    """The groups that this process has: those of the time of login, not those of /etc/group."""

    @classmethod
    def here(cls) -> Machine:
        try:
            user = getpass.getuser()
        except (KeyError, OSError):  # a user by number only, as in a container
            user = f"user {os.geteuid()}"
        return cls(Path("/"), user, os.geteuid(), frozenset({os.getegid(), *os.getgroups()}))

    def path(self, absolute: str) -> Path:
        return self.root / absolute.lstrip("/")

    def text(self, absolute: str) -> str:
        """What a file says; nothing if it is not there."""
        try:
            return self.path(absolute).read_text(errors="replace")
        except OSError:
            return ""

    def group(self, gid: int) -> Group | None:
        for line in self.text("/etc/group").splitlines():
            name, _, rest = line.partition(":")
            _, number, members = [*rest.split(":"), "", "", ""][:3]
            if number == str(gid):
                return Group(name, frozenset(filter(None, members.split(","))))
        return None
