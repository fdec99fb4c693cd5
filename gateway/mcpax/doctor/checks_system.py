"""Checks of what a system does to serial ports behind one's back: programs that grab them, a console on them, a driver that waits."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from mcpax.bridge.ports import Port
from mcpax.doctor.finding import Finding, fail, ok, warn
from mcpax.doctor.machine import Machine
from mcpax.doctor.processes import running

LATENCY_TIMERS = "sys/bus/usb-serial/devices/*/latency_timer"
PROBED = ("/dev/ttyACM", "/dev/ttyUSB")
"""What ModemManager takes for a modem."""


def check_modem_manager(machine: Machine, ports: Sequence[Port]) -> Finding:
    check = "ModemManager"
    probed = [port.device for port in ports if port.device.startswith(PROBED)]
    if not running(machine.root, "ModemManager"):
        return ok(check, "not running")
    if not probed:
        return ok(check, "running, but no port is there that it would probe")
    return warn(
        check,
        f"running: it opens {', '.join(probed)} for some seconds after plugging in, and sends modem commands to the board",
        'sudo systemctl disable --now ModemManager, or give the boards a udev rule with ENV{ID_MM_DEVICE_IGNORE}="1"',
    )


def check_latency_timer(machine: Machine) -> list[Finding]:
    check = "latency timer"
    findings = []
    for file in sorted(machine.root.glob(LATENCY_TIMERS)):
        text = machine.text(str(file.relative_to(machine.root))).strip()
        port = file.parent.name
        if text.isdigit() and int(text) > 1:
            message = f"{port} holds short answers back for up to {text} ms; every call takes that much longer"
            hint = f"mcpax lowers it while it has the port open; to be sure: echo 1 | sudo tee /{file.relative_to(machine.root)}"
            findings.append(warn(check, message, hint))
        else:
            findings.append(ok(check, f"{port}: {text} ms"))
    return findings


def check_console(machine: Machine, devices: Collection[str]) -> list[Finding]:
    """The Pi's own UART is the system's console until it is told otherwise. `devices`: the ports that boards are on."""
    check = "serial console"
    findings = []
    for console in _consoles(machine):
        if console in devices:
            hint = "sudo raspi-config, Interface Options, Serial Port: no login shell, but keep the port enabled; then reboot"
            findings.append(fail(check, f"the kernel and its login prompt talk on {console}, where a board is meant to be", hint))
        else:
            findings.append(ok(check, f"{console} is the console; no board is meant to be there"))
    return findings


def _consoles(machine: Machine) -> list[str]:
    words = machine.text("/proc/cmdline").split()
    names = [word.removeprefix("console=").partition(",")[0] for word in words if word.startswith("console=tty") or "=serial" in word]
    return [_real(machine, name) for name in names if not name.removeprefix("tty").isdigit()]


def _real(machine: Machine, name: str) -> str:
    """The Pi calls it serial0, which is a link to the UART that is meant."""
    link = machine.path(f"/dev/{name}")
    return f"/dev/{link.readlink().name}" if link.is_symlink() else f"/dev/{name}"
