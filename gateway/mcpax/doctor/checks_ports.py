"""Checks of the ports that the configuration means: is it there, may this user open it, does another program have it?

Looks from outside only; opens nothing.
"""

from __future__ import annotations

import stat
from collections.abc import Collection, Iterable, Sequence

from mcpax.bridge.device import Binding
from mcpax.bridge.maps.model import PortMatch
from mcpax.bridge.ports import Port, matches
from mcpax.config import MAP_UNUSED, MAP_UNUSED_HINT
from mcpax.doctor.finding import Finding, fail, ok, warn
from mcpax.doctor.machine import Machine
from mcpax.doctor.processes import holders

READ_WRITE = 0o6


def check_ports(
    machine: Machine, bindings: Sequence[Binding], ports: Sequence[Port], served: Collection[str] = (), unused_maps: Iterable[str] = ()
) -> list[Finding]:
    """Everything about the port of each device. `served`: segments whose port a running gateway has, as it should."""
    unused = [
        fail(f"map {name}", MAP_UNUSED, f"{MAP_UNUSED_HINT}; what would match each port stands under 'ports'") for name in unused_maps
    ]
    findings = [finding for binding in bindings for finding in _check(machine, binding, ports, binding.segment in served)]
    missing = [binding for binding in bindings if not fitting(binding, ports)]
    return [*findings, *unused, *([_offer(ports)] if missing or unused else [])]


def free_ports(machine: Machine, bindings: Sequence[Binding], ports: Sequence[Port]) -> list[Binding]:
    """The devices that could be asked right now: their port is there, and nobody has it."""
    found = [(binding, fitting(binding, ports)) for binding in bindings]
    return [
        binding
        for binding, candidates in found
        if candidates and may_open(machine, candidates[0]) and not holders(machine.root, candidates[0].device)
    ]


def fitting(binding: Binding, ports: Sequence[Port]) -> list[Port]:
    return [port for port in ports if matches(port, binding.match)]


def _check(machine: Machine, binding: Binding, ports: Sequence[Port], served: bool) -> list[Finding]:
    check = f"port of {binding.segment}"
    found = fitting(binding, ports)
    if not found:
        hint = "plug the board in, or correct the match in its map or [[device]]: what would match each port stands under 'ports'"
        return [fail(check, f"no port is there that matches {_in_words(binding.match)}", hint)]
    findings = [_permission(machine, check, found[0]), _holder(machine, check, found[0], served)]
    if len(found) > 1:
        hint = "the first is taken; add a [[device]] entry with a narrower match for each board"
        findings.append(warn(check, f"{len(found)} ports match: {', '.join(port.path for port in found)}", hint))
    return findings


def may_open(machine: Machine, port: Port) -> bool:
    if machine.uid == 0:
        return True
    try:
        status = machine.path(port.device).stat()
    except OSError:
        return False
    shift = 6 if status.st_uid == machine.uid else 3 if status.st_gid in machine.gids else 0
    return (stat.S_IMODE(status.st_mode) >> shift) & READ_WRITE == READ_WRITE


def _permission(machine: Machine, check: str, port: Port) -> Finding:
    if may_open(machine, port):
        return ok(check, f"{machine.user} may open {port.path}")
    try:
        status = machine.path(port.device).stat()
    except OSError as error:
        return fail(check, f"{port.path} cannot be looked at: {error.strerror}", "plug the board in again")
    message = f"{machine.user} may not open {port.path} (mode {stat.S_IMODE(status.st_mode):o})"
    group = machine.group(status.st_gid)
    if group is None or (stat.S_IMODE(status.st_mode) >> 3) & READ_WRITE != READ_WRITE:
        return fail(check, message, f"give a group access with a udev rule, or try: sudo chmod g+rw {port.device}")
    if machine.user in group.members:
        return fail(check, message, f"{machine.user} has been added to the group {group.name} since: log out and in again")
    return fail(check, message, f"sudo usermod -aG {group.name} {machine.user}, then log out and in again")


def _holder(machine: Machine, check: str, port: Port, served: bool) -> Finding:
    if served:
        return ok(check, f"{port.path} is in use by the running gateway, as it should be")
    others = holders(machine.root, port.device)
    if others:
        names = ", ".join(map(str, others))
        return fail(check, f"{port.path} is held by another program: {names}", f"end it: kill {' '.join(str(each.pid) for each in others)}")
    return ok(check, f"no other program is seen to have {port.path}")


def _in_words(match: PortMatch) -> str:
    return match_line(match.by_id, match.vid, match.pid, match.serial, match.glob)


def _offer(ports: Sequence[Port]) -> Finding:
    """The ports there are, each with the line that would match it, ready to copy."""
    if not ports:
        hint = "is the board plugged in, with a cable that carries data? 'sudo dmesg -w' shows it arriving"
        return warn("ports", "this machine has no serial port at all", hint)
    return ok("ports", "\n".join(["there are:", *(f"{port.device}: match = {_match_of(port)}" for port in ports)]))


def _match_of(port: Port) -> str:
    if port.by_id:
        return match_line(by_id=port.by_id)
    if port.vid is not None:
        return match_line(vid=port.vid, pid=port.pid, serial=port.serial or None)
    return match_line(glob=port.path)


def match_line(
    by_id: str | None = None, vid: int | None = None, pid: int | None = None, serial: str | None = None, glob: str | None = None
) -> str:
    """As it stands in a device map."""
    texts = [f'{key} = "{value}"' for key, value in (("by_id", by_id), ("serial", serial), ("glob", glob)) if value is not None]
    numbers = [f"{key} = {value:#06x}" for key, value in (("vid", vid), ("pid", pid)) if value is not None]
    return f"{{ {', '.join([*numbers, *texts])} }}"
