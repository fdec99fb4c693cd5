"""An emulated board as a process, for tests of the emulators themselves: start it, give it orders, hold its port open.

with Board("avr", link, image=image) as board, board.port() as port:
    port.write(b"…"); port.read(1); board.ask("stats")
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import subprocess
import tty
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "build/emulators"

ANSWER_S = 10.0
"""Nothing takes this long unless it is broken."""


@cache
def build_emulators() -> None:
    """Once per run; make finds nothing to do when they are there. The lock is for test runs side by side."""
    PROGRAMS.mkdir(parents=True, exist_ok=True)
    with (PROGRAMS / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        built = subprocess.run(["make", "-C", str(ROOT / "hil/emulators"), "all", "tests"], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr


class Port:
    """The host's side of a board's port, open."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_NOCTTY)
        tty.setraw(self._file)

    def write(self, data: bytes) -> None:
        assert os.write(self._file, data) == len(data)

    def read(self, count: int, timeout_s: float = ANSWER_S) -> bytes:
        """That many bytes, or fewer if the board hangs up."""
        data = b""
        while len(data) < count:
            readable, _, _ = select.select([self._file], [], [], timeout_s)
            assert readable, f"only {data!r} came, {count} bytes were expected"
            got = os.read(self._file, count - len(data))
            if not got:
                break
            data += got
        return data

    def exchange(self, data: bytes, answers: int) -> bytes:
        self.write(data)
        return self.read(answers)

    def close(self) -> None:
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Board:
    """One process."""

    def __init__(self, chip: str, link: Path, *, image: Path | None = None, options: Sequence[str] = ()) -> None:
        build_emulators()
        self.link = link
        command = [str(PROGRAMS / chip), "--link", str(link), *(["--image", str(image)] if image else []), *options]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
        )
        ready = self._answer()
        assert ready["ready"], ready

    def ask(self, order: str) -> dict[str, Any]:
        """Give an order; its answer, whatever that is."""
        assert self.process.stdin is not None
        self.process.stdin.write(order + "\n")
        return self._answer()

    def do(self, order: str) -> dict[str, Any]:
        """Give an order that must succeed."""
        answer = self.ask(order)
        assert answer["ok"], f"{order}: {answer['error']}"
        return answer

    def stats(self) -> dict[str, Any]:
        return self.do("stats")

    def peek(self, address: int, size: int) -> bytes:
        return bytes.fromhex(self.do(f"peek {address:#x} {size}")["hex"])

    def port(self) -> Port:
        return Port(self.link)

    def cpu_s(self) -> float:
        """Processor time it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        user, system = int(fields[11]), int(fields[12])
        return (user + system) / os.sysconf("SC_CLK_TCK")

    def close(self) -> str:
        """End it, as the end of its input does; what it had to say on stderr."""
        _, said = self.process.communicate(timeout=ANSWER_S)
        assert self.process.returncode == 0, said
        return said

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], ANSWER_S)
        line = self.process.stdout.readline() if readable else ""
        if not line:
            self.process.kill()
            _, said = self.process.communicate(timeout=ANSWER_S)
            raise AssertionError(f"no answer from the board; it said: {said}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.close()
