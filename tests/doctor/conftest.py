"""A machine made of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpax.doctor.machine import Machine


class Files:
    """Builds the tree that a `Machine` looks at."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, text: str = "", mode: int = 0o644) -> Path:
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)
        return file

    def link(self, path: str, target: str) -> None:
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to(target)

    def process(self, pid: int, program: str, *open_files: str) -> None:
        self.write(f"/proc/{pid}/comm", f"{program}\n")
        (self.root / f"proc/{pid}/fd").mkdir()
        for number, target in enumerate(open_files):
            self.link(f"/proc/{pid}/fd/{number}", target)

    def machine(self, user: str = "ada", uid: int = 4321, gids: frozenset[int] = frozenset({4321})) -> Machine:
        return Machine(self.root, user, uid, gids)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)
