"""A socket beside an emulated board's port, through which another program flashes or resets it while tests or `hil up` run it.

    LINK.sock    one command line per connection: load FILE, reset, bootloader on, bootloader off; the answer is one JSON object

So `pio run -t upload` can reach a board that somebody else started. Power is not for outsiders: only who holds the board may cut it.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

Json = dict[str, Any]

COMMANDS = ("load", "reset", "bootloader")
MAX_COMMAND_BYTES = 4096
CLIENT_PATIENCE_S = 5.0
"""For a client to say its line: one that never does must not keep the next one out."""


def control_path(link: Path) -> Path:
    return link.with_name(f"{link.name}.sock")


class ControlSocket:
    """Serves one client at a time on a thread of its own; `obey` gets the command and its answer goes back."""

    def __init__(self, path: Path, obey: Callable[[str], Json]) -> None:
        self._path = path
        self._obey = obey
        self._path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX)
        directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
        try:
            # By way of the directory, because a socket's own path may have 107 bytes only.
            self._listener.bind(f"/proc/self/fd/{directory}/{path.name}")
        finally:
            os.close(directory)
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve, name=f"control {path.name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        self._path.unlink(missing_ok=True)

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # closed
            with client, contextlib.suppress(OSError):
                client.settimeout(CLIENT_PATIENCE_S)
                client.sendall(json.dumps(self._answer(_command(client))).encode() + b"\n")

    def _answer(self, command: str) -> Json:
        if command.partition(" ")[0] not in COMMANDS:
            return {"ok": False, "error": f"{command[:60]!r} is not for this socket; it takes: load FILE, reset, bootloader on|off"}
        try:
            return self._obey(command)
        except Exception as error:  # a client's mistake or a dead board: told to the client, and the socket goes on
            return {"ok": False, "error": str(error)}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _command(client: socket.socket) -> str:
    said = b""
    while b"\n" not in said and len(said) < MAX_COMMAND_BYTES:
        data = client.recv(MAX_COMMAND_BYTES)
        if not data:
            break
        said += data
    return said.partition(b"\n")[0].decode(errors="replace").strip()
