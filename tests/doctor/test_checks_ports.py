"""Ports from outside: there, permitted, free."""

from __future__ import annotations

import pytest

from mcpax.bridge.device import Binding
from mcpax.bridge.maps.model import DeviceMap, PortMatch, Profile
from mcpax.bridge.ports import Port
from mcpax.doctor.checks_ports import check_ports, free_ports, may_open
from mcpax.doctor.finding import Level
from tests.doctor.conftest import Files

PORT = Port("/dev/serial/by-id/usb-uno", "/dev/ttyACM0", "usb-uno", 0x2341, 0x0043, "557")
BARE = Port("/dev/ttyTHS1", "/dev/ttyTHS1")
USB = Port("/dev/ttyUSB3", "/dev/ttyUSB3", "", 0x0403, 0x6001, "A50285BI")


def binding(match: PortMatch) -> Binding:
    return Binding("uno", DeviceMap("uno", Profile.A, "1.0.0"), match)


UNO = binding(PortMatch(by_id="usb-uno"))


def test_a_port_that_is_there_permitted_and_free(files: Files) -> None:
    files.write("/dev/ttyACM0", mode=0o666)
    findings = check_ports(files.machine(), [UNO], [PORT])
    assert [finding.level for finding in findings] == [Level.OK, Level.OK]
    assert free_ports(files.machine(), [UNO], [PORT]) == [UNO]


def test_no_port_and_the_lines_that_would_match_those_there_are(files: Files) -> None:
    missing, offer = check_ports(files.machine(), [binding(PortMatch(vid=0x1A86, pid=0x7523))], [PORT, BARE, USB])
    assert missing.level is Level.FAIL
    assert missing.message == "no port is there that matches { vid = 0x1a86, pid = 0x7523 }"
    assert offer.message.splitlines()[1:] == [
        '/dev/ttyACM0: match = { by_id = "usb-uno" }',
        '/dev/ttyTHS1: match = { glob = "/dev/ttyTHS1" }',
        '/dev/ttyUSB3: match = { vid = 0x0403, pid = 0x6001, serial = "A50285BI" }',
    ]


def test_no_port_at_all(files: Files) -> None:
    missing, none = check_ports(files.machine(), [UNO], [])
    assert (missing.level, none.message) == (Level.FAIL, "this machine has no serial port at all")
    assert "cable" in none.hint


def test_two_ports_for_one_device(files: Files) -> None:
    files.write("/dev/ttyACM0", mode=0o666)
    files.write("/dev/ttyUSB3", mode=0o666)
    *_, several = check_ports(files.machine(), [binding(PortMatch(by_id="*"))], [PORT, USB])
    assert (several.level, "2 ports match" in several.message) == (Level.WARN, True)


def test_permission_by_owner_group_and_others(files: Files) -> None:
    status = files.write("/dev/ttyACM0", mode=0o660).stat()
    assert may_open(files.machine(uid=status.st_uid, gids=frozenset()), PORT)
    assert may_open(files.machine(gids=frozenset({status.st_gid})), PORT)
    assert not may_open(files.machine(gids=frozenset({status.st_gid + 1})), PORT)
    assert may_open(files.machine(uid=0, gids=frozenset()), PORT)
    files.write("/dev/ttyACM0", mode=0o606)
    assert not may_open(files.machine(gids=frozenset({status.st_gid})), PORT), "the group's own bits count, not the others'"


@pytest.mark.parametrize(
    ("members", "hint"),
    [
        ("bob", "sudo usermod -aG dialout ada, then log out and in again"),
        ("bob,ada", "ada has been added to the group dialout since: log out and in again"),
    ],
)
def test_what_to_do_without_permission(files: Files, members: str, hint: str) -> None:
    gid = files.write("/dev/ttyACM0", mode=0o660).stat().st_gid
    files.write("/etc/group", f"root:x:99999:\ndialout:x:{gid}:{members}\n")
    denied, _ = check_ports(files.machine(uid=4321, gids=frozenset({gid + 1})), [UNO], [PORT])
    assert (denied.level, denied.hint) == (Level.FAIL, hint)
    assert "ada may not open /dev/serial/by-id/usb-uno (mode 660)" in denied.message
    assert free_ports(files.machine(uid=4321, gids=frozenset({gid + 1})), [UNO], [PORT]) == []


def test_a_port_that_no_group_may_open(files: Files) -> None:
    files.write("/dev/ttyACM0", mode=0o600)
    denied, _ = check_ports(files.machine(), [UNO], [PORT])
    assert "udev rule" in denied.hint


def test_who_holds_a_port(files: Files) -> None:
    files.write("/dev/ttyACM0", mode=0o666)
    files.process(77, "minicom", "/dev/null", "/dev/ttyACM0")
    files.process(78, "bash", "/dev/pts/1")
    _, held = check_ports(files.machine(), [UNO], [PORT])
    assert (held.level, held.hint) == (Level.FAIL, "end it: kill 77")
    assert held.message.endswith("is held by another program: minicom (pid 77)")
    assert free_ports(files.machine(), [UNO], [PORT]) == []


def test_the_running_gateway_may_hold_it(files: Files) -> None:
    files.write("/dev/ttyACM0", mode=0o666)
    files.process(77, "mcpax", "/dev/ttyACM0")
    _, held = check_ports(files.machine(), [UNO], [PORT], served={"uno"})
    assert held.level is Level.OK
