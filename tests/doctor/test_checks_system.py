"""What the system does behind one's back."""

from __future__ import annotations

from mcpax.bridge.ports import Port
from mcpax.doctor.checks_system import check_console, check_latency_timer, check_modem_manager
from mcpax.doctor.finding import Level
from mcpax.doctor.processes import holders, listeners
from tests.doctor.conftest import Files

ACM = Port("/dev/ttyACM0", "/dev/ttyACM0")
UART = Port("/dev/ttyAMA0", "/dev/ttyAMA0")
TCP_HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


def test_modem_manager_matters_only_with_ports_that_it_probes(files: Files) -> None:
    assert check_modem_manager(files.machine(), [ACM]).level is Level.OK
    files.process(5, "ModemManager")
    assert check_modem_manager(files.machine(), [UART]).level is Level.OK
    probing = check_modem_manager(files.machine(), [ACM, UART])
    assert probing.level is Level.WARN
    assert "/dev/ttyACM0" in probing.message
    assert "/dev/ttyAMA0" not in probing.message


def test_the_latency_timer_is_told_with_its_cost(files: Files) -> None:
    files.write("/sys/bus/usb-serial/devices/ttyUSB0/latency_timer", "16\n")
    files.write("/sys/bus/usb-serial/devices/ttyUSB1/latency_timer", "1\n")
    slow, quick = check_latency_timer(files.machine())
    assert (slow.level, quick.level) == (Level.WARN, Level.OK)
    assert "ttyUSB0 holds short answers back for up to 16 ms" in slow.message
    assert slow.hint.endswith("echo 1 | sudo tee /sys/bus/usb-serial/devices/ttyUSB0/latency_timer")


def test_a_console_on_a_board_s_port(files: Files) -> None:
    files.write("/proc/cmdline", "console=serial0,115200 console=tty1 root=PARTUUID=1\n")
    files.link("/dev/serial0", "ttyAMA0")
    (taken,) = check_console(files.machine(), {"/dev/ttyAMA0"})
    assert (taken.level, "/dev/ttyAMA0" in taken.message) == (Level.FAIL, True)
    assert "raspi-config" in taken.hint
    (elsewhere,) = check_console(files.machine(), {"/dev/ttyACM0"})
    assert elsewhere.level is Level.OK


def test_no_serial_console(files: Files) -> None:
    files.write("/proc/cmdline", "console=tty1 quiet\n")
    assert check_console(files.machine(), {"/dev/ttyAMA0"}) == []


def test_who_listens_on_a_port(files: Files) -> None:
    listening = "   0: 0100007F:2210 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1\n"
    connected = "   1: 0100007F:2210 0100007F:9999 01 00000000:00000000 00:00000000 00000000  1000        0 4712 1\n"
    files.write("/proc/net/tcp", TCP_HEADER + listening + connected)
    files.process(10, "mcpax", "socket:[4711]")
    files.process(11, "curl", "socket:[4712]")
    assert [str(process) for process in listeners(files.root, 0x2210)] == ["mcpax (pid 10)"]
    assert listeners(files.root, 80) == []


def test_the_maker_of_a_pseudo_terminal_does_not_hold_it(files: Files) -> None:
    files.process(20, "env-sensor", "/dev/ptmx", "/dev/pts/7")
    files.process(21, "picocom", "/dev/pts/7")
    assert [process.program for process in holders(files.root, "/dev/pts/7")] == ["picocom"]
