"""Puts an image into an emulated board, by way of the socket of whoever runs it.

    control.py LINK.sock load FILE.elf         the emulator takes the image itself
    control.py LINK.sock flash COMMAND …       the command hands the image to the board's bootloader, which is on meanwhile

One connection takes one command line and gives one line of JSON back, {"ok": true, …} or {"ok": false, "error": "…"}. What the commands
mean is the emulator's business.
"""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

PATIENCE_S = 30.0
NO_ANSWER = '{"ok": false, "error": "closed the connection without an answer"}'


def connect(control: Path) -> socket.socket:
    """By way of the folder, because a socket's own path may have 107 bytes only."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(PATIENCE_S)
    folder = os.open(control.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        connection.connect(f"/proc/self/fd/{folder}/{control.name}")
    except OSError:
        connection.close()
        raise
    finally:
        os.close(folder)
    return connection


def send(control: Path, command: str) -> None:
    """Have a command line obeyed."""
    try:
        with connect(control) as connection, connection.makefile(encoding="utf-8") as lines:
            connection.sendall(command.encode() + b"\n")
            answer = json.loads(lines.readline() or NO_ANSWER)
    except (OSError, ValueError) as error:
        sys.exit(f"{control}: {error}. Is the emulated board still running?")
    if not answer.get("ok"):
        sys.exit(f"{control}: {answer.get('error')}")


def flash(control: Path, command: list[str]) -> int:
    """Run an uploader that speaks to the bootloader, and return its status."""
    send(control, "bootloader on")
    try:
        return subprocess.run(command, check=False).returncode
    finally:
        send(control, "bootloader off")


def main() -> None:
    """Do as the command line says; what goes wrong is said on stderr, with a status other than 0."""
    control, action, *words = sys.argv[1:]
    if action == "flash":
        sys.exit(flash(Path(control), words))
    send(Path(control), " ".join([action, *words]))


if __name__ == "__main__":
    main()
