"""QEMU as a child process: one run of a machine from given contents of memory, with its UART and its monitor on sockets.

Knows nothing of chips. What happens to the run from outside and from within, a reset or a crash, ends it; the owner starts the next.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import socket
import struct
import subprocess
import tempfile
import termios
from collections.abc import Mapping, Sequence
from typing import Any

from hil.emulators.board import BoardError

ANSWER_S = 5.0
"""Nothing takes this long unless it is broken."""
READ_BYTES = 4096
END_WITH_US = ("setpriv", "--pdeathsig", "KILL")
"""However this process ends, QEMU must not outlive it."""


class QemuGone(BoardError):
    """It has ended, or hangs; says its last words."""


class QemuRun:
    """A machine from its start to its end. `memory` is what it begins with, by address."""

    def __init__(self, machine: Sequence[str], memory: Mapping[int, bytes]) -> None:
        self.uart, its_uart = socket.socketpair()
        self.monitor, its_monitor = socket.socketpair()
        self._pins, its_pins = socket.socketpair()
        self.uart.setblocking(False)
        self.monitor.settimeout(ANSWER_S)
        self._pins.settimeout(ANSWER_S)
        self._unread = b""
        self._shut_down = False
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._exchange = os.memfd_create("memory of the chip")
        files = {address: _file_with(content) for address, content in memory.items()}
        command = [*END_WITH_US, "qemu-system-arm", *machine, "-nodefaults", "-display", "none"]
        # A reset by the program stops the machine instead, because QEMU would then write `memory` anew.
        command += ["-action", "reboot=shutdown,shutdown=pause"]
        command += ["-chardev", f"socket,id=uart,fd={its_uart.fileno()}", "-serial", "chardev:uart"]
        command += ["-chardev", f"socket,id=monitor,fd={its_monitor.fileno()}", "-mon", "chardev=monitor,mode=control"]
        # The interface for QEMU's own tests, which alone can move pins.
        command += ["-chardev", f"socket,id=pins,fd={its_pins.fileno()}", "-object", "qtest,id=qtest,chardev=pins,log=/dev/null"]
        for address, file in files.items():
            command += ["-device", f"loader,file=/dev/fd/{file},addr={address:#x},force-raw=on"]
        shared = (its_uart.fileno(), its_monitor.fileno(), its_pins.fileno(), self._exchange, *files.values())
        try:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self._said, stderr=self._said, pass_fds=shared)
        except OSError as error:
            raise BoardError(f"{command[0]}: cannot be started: {error.strerror}; install the Debian package qemu-system-arm") from error
        finally:
            its_uart.close()
            its_monitor.close()
            its_pins.close()
            for file in files.values():
                os.close(file)
        try:
            self._message()  # the greeting
            self.execute("qmp_capabilities")
        except QemuGone:
            self.end()
            raise

    def execute(self, command: str, **arguments: Any) -> Any:
        """Ask the monitor; raises `QemuGone` if nobody is there any more."""
        try:
            self.monitor.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
        except OSError as error:
            raise QemuGone(self.last_words()) from error
        while True:
            message = self._message()
            if "return" in message:
                return message["return"]
            if "error" in message:
                raise BoardError(f"QEMU refused {command}: {message['error'].get('desc')}")

    # As the processor sees them: QEMU's physical memory holds nothing of a chip that has a bus of its own.

    def register(self, address: int) -> int:
        """A peripheral's register."""
        said: str = self.execute("human-monitor-command", **{"command-line": f"x /1wx {address:#x}"})
        return int(said.rpartition(":")[2], 16)

    def read_memory(self, memory: range) -> bytes:
        self.execute("memsave", val=memory.start, size=len(memory), filename=f"/dev/fd/{self._exchange}")
        return os.pread(self._exchange, len(memory), 0)

    def set_pin(self, device: str, number: int, high: bool) -> None:
        """An input pin, held from outside. `device` is its path in QEMU's tree."""
        answer = b""
        with contextlib.suppress(OSError):
            self._pins.sendall(f"set_irq_in {device} unnamed-gpio-in {number} {int(high)}\n".encode())
            answer = self._pins.recv(READ_BYTES)
        if answer.strip() != b"OK":
            raise QemuGone(f"pin {number} of {device} cannot be held: {answer!r}. {self.last_words()}")

    def unread(self) -> int:
        """Roughly how many bytes it has not yet fetched from its UART's socket."""
        queued = fcntl.ioctl(self.uart, termios.TIOCOUTQ, bytes(4))
        return int(struct.unpack("i", queued)[0]) // QUEUED_BYTES_OF_ONE

    def has_reset_itself(self) -> bool:
        """Whether the program has asked for a reset; the machine stands still since."""
        with contextlib.suppress(QemuGone):
            while b"\n" in self._unread or select.select([self.monitor], [], [], 0)[0]:
                self._message()
        return self._shut_down

    def crashed(self) -> bool:
        return self._process.poll() is not None

    def last_words(self) -> str:
        self._said.seek(0)
        return self._said.read().decode(errors="replace").strip()

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self.uart.close()
        self.monitor.close()
        self._pins.close()
        self._said.close()
        os.close(self._exchange)

    def _message(self) -> dict[str, Any]:
        while b"\n" not in self._unread:
            data = b""
            with contextlib.suppress(OSError):
                data = self.monitor.recv(READ_BYTES)
            if not data:
                raise QemuGone(self.last_words())
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        self._shut_down = self._shut_down or message.get("event") == "SHUTDOWN"
        return message


QUEUED_BYTES_OF_ONE = 768
"""What a single byte occupies in a socket's queue, by the kernel's account."""


def _file_with(content: bytes) -> int:
    file = os.memfd_create("contents")
    os.write(file, content)
    return file
