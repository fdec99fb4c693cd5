"""Serial ports: each seen once, known by what stays, and matched by every stated part."""

import os
import pty
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest
from serial.tools import list_ports

from mcpax.bridge import ports
from mcpax.bridge.maps.model import PortMatch
from mcpax.bridge.ports import Port, matches, scan


@pytest.fixture
def dev(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A /dev of files: two USB ports of which one has a by-id name, one port without USB, one name whose board is gone."""
    for name in ("ttyUSB0", "ttyACM0", "ttyTHS1"):
        (tmp_path / name).touch()
    by_id = tmp_path / "by-id"
    by_id.mkdir()
    (by_id / "usb-FTDI_env").symlink_to("../ttyUSB0")
    (by_id / "usb-gone").symlink_to("../ttyUSB9")
    usb = [
        SimpleNamespace(device=str(tmp_path / "ttyUSB0"), vid=0x0403, pid=0x6001, serial_number="A1", description="FT232"),
        SimpleNamespace(device=str(tmp_path / "ttyACM0"), vid=0x2E8A, pid=0x000A, serial_number=None, description=None),
        SimpleNamespace(device=str(tmp_path / "ttyGONE"), vid=1, pid=1, serial_number="x", description="x"),
    ]
    monkeypatch.setattr(list_ports, "comports", lambda: usb)
    monkeypatch.setattr(ports, "_is_device", Path.is_file)
    return tmp_path


def test_every_port_is_seen_once_by_its_best_name(dev: Path) -> None:
    assert scan([dev / "by-id", dev / "nowhere"], [f"{dev}/tty*"]) == [
        Port(f"{dev}/by-id/usb-FTDI_env", f"{dev}/ttyUSB0", "usb-FTDI_env", 0x0403, 0x6001, "A1", "FT232"),
        Port(f"{dev}/ttyACM0", f"{dev}/ttyACM0", "", 0x2E8A, 0x000A),
        Port(f"{dev}/ttyTHS1", f"{dev}/ttyTHS1"),
    ]


def test_only_devices_count_among_the_names(tmp_path: Path) -> None:
    """An emulated board has the socket that obeys commands beside its port."""
    master, slave = pty.openpty()
    try:
        (tmp_path / "usb-board-if00").symlink_to(os.ttyname(slave))
        (tmp_path / "usb-file-if00").touch()
        (tmp_path / "usb-folder-if00").mkdir()
        (tmp_path / "usb-gone-if00").symlink_to("nowhere")
        (tmp_path / "usb-itself-if00").symlink_to("usb-itself-if00")
        with socket.socket(socket.AF_UNIX) as control:
            control.bind(str(tmp_path / "usb-board-if00.sock"))
            assert [port.by_id for port in scan([tmp_path]) if port.by_id] == ["usb-board-if00"]
    finally:
        os.close(master)
        os.close(slave)


def test_without_a_glob_ports_without_usb_are_left_alone(dev: Path) -> None:
    assert [Path(port.device).name for port in scan([dev / "by-id"])] == ["ttyUSB0", "ttyACM0"]


def test_of_two_names_of_one_port_the_first_directorys_counts(dev: Path) -> None:
    other = dev / "other"
    other.mkdir()
    (other / "my-name").symlink_to(dev / "ttyUSB0")
    assert scan([other, dev / "by-id"])[0].by_id == "my-name"
    assert len(scan([other, dev / "by-id"])) == 2


@pytest.mark.parametrize(
    ("port", "identity"),
    [
        (Port("/dev/serial/by-id/usb-x", "/dev/ttyUSB0", "usb-x", 1, 2, "s"), "usb-x"),
        (Port("/dev/ttyACM0", "/dev/ttyACM0", "", 0x2E8A, 0xA, "E66"), "usb:2e8a:000a:E66"),
        (Port("/dev/ttyACM0", "/dev/ttyACM0", "", 0x2E8A), "usb:2e8a:0000:"),
        (Port("/dev/ttyTHS1", "/dev/ttyTHS1"), "/dev/ttyTHS1"),
    ],
)
def test_a_port_is_known_by_what_stays_the_same_when_plugged_in_elsewhere(port: Port, identity: str) -> None:
    assert port.identity == identity


PORT = Port("/dev/serial/by-id/usb-FTDI_env", "/dev/ttyUSB0", "usb-FTDI_env", 0x0403, 0x6001, "A1B2")


@pytest.mark.parametrize(
    ("match", "fits"),
    [
        (PortMatch(by_id="usb-FTDI_env"), True),
        (PortMatch(by_id="usb-FTDI_*"), True),
        (PortMatch(by_id="usb-ftdi_*"), False),
        (PortMatch(by_id="FTDI"), False),
        (PortMatch(vid=0x0403), True),
        (PortMatch(vid=0x0404), False),
        (PortMatch(vid=0), False),
        (PortMatch(vid=0x0403, pid=0x6001), True),
        (PortMatch(vid=0x0403, pid=0x6002), False),
        (PortMatch(serial="A1??"), True),
        (PortMatch(serial="B*"), False),
        (PortMatch(glob="/dev/ttyUSB*"), True),
        (PortMatch(glob="/dev/serial/by-id/*"), True),
        (PortMatch(glob="/dev/ttyACM*"), False),
        (PortMatch(by_id="usb-*", vid=0x0403, pid=0x6001, serial="*", glob="/dev/*"), True),
        (PortMatch(by_id="usb-*", vid=0x0403, pid=0x6001, serial="*", glob="/tmp/*"), False),
        (PortMatch(by_id="usb-*", vid=1), False),
    ],
)
def test_every_stated_part_must_fit(match: PortMatch, fits: bool) -> None:
    assert matches(PORT, match) is fits
