"""A running program under test: what it prints is gathered as it comes, and tests wait for a line with a deadline."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

MCPAX = Path(sys.executable).with_name("mcpax")
PATIENCE_S = 30.0
"""Nothing takes this long unless it is broken."""
WITH_SIGNALS_OF_A_TERMINAL = ("env", "--default-signal=HUP,INT,TERM")
"""A run of the tests may ignore some of them, as one under nohup does; its children would, and never end."""


class Program:
    def __init__(
        self,
        arguments: Sequence[str | Path],
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
        by: Sequence[str] = (),
    ) -> None:
        """`by`: a command that runs it, like `ip netns exec NAME`."""
        self._process = subprocess.Popen(
            [*by, *WITH_SIGNALS_OF_A_TERMINAL, MCPAX, *arguments],
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        self._changed = threading.Condition()
        self._lines: dict[str, list[str]] = {"stdout": [], "stderr": []}
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._readers = [
            threading.Thread(target=self._read, args=("stdout", self._process.stdout)),
            threading.Thread(target=self._read, args=("stderr", self._process.stderr)),
        ]
        for reader in self._readers:
            reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def stdout(self) -> list[str]:
        return self._lines["stdout"]

    @property
    def stderr(self) -> list[str]:
        return self._lines["stderr"]

    def wait_for(self, what: Callable[[list[str]], bool], stream: str = "stdout") -> list[str]:
        """Wait until the lines of a stream satisfy `what`, and return them."""
        with self._changed:
            satisfied = self._changed.wait_for(lambda: what(self._lines[stream]) or self._ended(), PATIENCE_S)
            assert satisfied, f"not seen on {stream}:\n{self._told()}"
            assert what(self._lines[stream]), f"ended without it on {stream}:\n{self._told()}"
            return list(self._lines[stream])

    def wait_for_text(self, text: str, stream: str = "stdout") -> str:
        """Wait for a line that contains a text, and return it."""
        lines = self.wait_for(lambda lines: any(text in line for line in lines), stream)
        return next(line for line in lines if text in line)

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        """Send a signal and wait for the end; returns the exit code."""
        if self._process.poll() is None:
            self._process.send_signal(number)
        return self.ended()

    def ended(self) -> int:
        code = self._process.wait(PATIENCE_S)
        for reader in self._readers:
            reader.join(PATIENCE_S)
        return code

    def _ended(self) -> bool:
        return self._process.poll() is not None and not any(reader.is_alive() for reader in self._readers)

    def _told(self) -> str:
        return "\n".join([*self.stdout, "--- stderr", *self.stderr])

    def _read(self, stream: str, file: IO[str]) -> None:
        with file:
            for line in file:
                with self._changed:
                    self._lines[stream].append(line.rstrip("\n"))
                    self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self.ended()
