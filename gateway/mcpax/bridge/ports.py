"""Which serial ports there are, what they tell of themselves, and which of them a device map means.

A port is known by its by-id name or its USB numbers, never by /dev/ttyUSBn, which changes with the order of plugging.
Only looks; opens nothing.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from serial.tools import list_ports

from mcpax.bridge.maps.model import PortMatch

BY_ID_DIR = Path("/dev/serial/by-id")


@dataclass(frozen=True, slots=True)
class Port:
    path: str
    """What to open: the stable name if there is one."""
    device: str
    """What that name stands for at the moment."""
    by_id: str = ""
    vid: int | None = None
    pid: int | None = None
    serial: str = ""
    description: str = ""

    @property
    def identity(self) -> str:
        """What stays the same when the board is plugged in again, elsewhere or later."""
        if self.by_id:
            return self.by_id
        if self.vid is not None:
            return f"usb:{self.vid:04x}:{self.pid or 0:04x}:{self.serial}"
        return self.path


def scan(by_id_dirs: Sequence[Path] = (BY_ID_DIR,), globs: Sequence[str] = ()) -> list[Port]:
    """All ports that can be seen now, each once, the best known name first."""
    usb = {info.device: info for info in list_ports.comports()}
    ports: dict[str, Port] = {}
    for path in _by_id_names(by_id_dirs):
        ports.setdefault(os.path.realpath(path), _port(path, usb, by_id=path.name))
    for device in (*usb, *(path for pattern in globs for path in sorted(glob.glob(pattern)))):
        ports.setdefault(os.path.realpath(device), _port(Path(device), usb))
    return [port for port in ports.values() if os.path.exists(port.device)]


def _by_id_names(directories: Sequence[Path]) -> list[Path]:
    names: list[Path] = []
    for directory in directories:
        try:
            names += sorted(name for name in directory.iterdir() if _is_device(name))
        except OSError:
            continue  # no board is plugged in, or not on this system
    return names


def _is_device(name: Path) -> bool:
    """A device, behind a link or not; whatever else lies beside the names, such as the socket of an emulated board, is none."""
    try:
        return stat.S_ISCHR(name.stat().st_mode)
    except OSError:
        return False  # its board has just gone


def _port(path: Path, usb: dict[str, list_ports.ListPortInfo], by_id: str = "") -> Port:  # type: ignore[name-defined]
    device = os.path.realpath(path)
    info = usb.get(device) or usb.get(str(path))
    if info is None:
        return Port(str(path), device, by_id)
    return Port(str(path), device, by_id, info.vid, info.pid, info.serial_number or "", info.description or "")


def matches(port: Port, match: PortMatch) -> bool:
    """Every stated part must fit."""
    return (
        (match.by_id is None or fnmatchcase(port.by_id, match.by_id))
        and (match.vid is None or port.vid == match.vid)
        and (match.pid is None or port.pid == match.pid)
        and (match.serial is None or fnmatchcase(port.serial, match.serial))
        and (match.glob is None or fnmatchcase(port.path, match.glob) or fnmatchcase(port.device, match.glob))
    )
