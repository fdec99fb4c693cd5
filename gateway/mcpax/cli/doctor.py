"""`mcpax doctor`: looks at everything between the configuration and the board, and says in plain words what is wrong and what to do.

Only gathers what the checks of `mcpax.doctor` need, and prints what they find.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from mcpax import logs
from mcpax.bridge.ports import BY_ID_DIR, scan
from mcpax.cli.client import Target, local_url
from mcpax.cli.output import FAULT_EXIT, Failure, json_option, print_json
from mcpax.config import Config, default_config_path
from mcpax.doctor.checks_baud import check_baud
from mcpax.doctor.checks_boards import PATIENCE_S, ask_boards, check_boards, misread
from mcpax.doctor.checks_gateway import check_config, check_knows, check_status
from mcpax.doctor.checks_ports import check_ports, fitting, free_ports
from mcpax.doctor.checks_system import check_console, check_latency_timer, check_modem_manager
from mcpax.doctor.finding import Finding, Level
from mcpax.doctor.machine import Machine

Json = dict[str, Any]

GATEWAY_PATIENCE_S = 3.0
COLOURS = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "red"}


@click.command("doctor")
@click.option("--config", "config_path", type=click.Path(path_type=Path), help="Configuration file. [/etc/mcpax/mcpax.toml]")
@click.option("--no-ask", is_flag=True, help="Do not open ports to ask the boards; opening resets some.")
@click.option("--patience", default=PATIENCE_S, show_default=True, type=click.FloatRange(min=0), help="Seconds that boards have to answer.")
@json_option
def command(*, config_path: Path | None, no_ask: bool, patience: float, as_json: bool) -> None:
    """Find out why something does not work. The exit code is 1 if something is wrong.

    \b
    mcpax doctor                         with the system's configuration
    mcpax doctor --config mcpax.toml     with another
    """
    logs.configure("critical")  # what the boards' side would log, the checks say better
    findings = _examine(Machine.here(), config_path or default_config_path(), None if no_ask else patience)
    failed = any(finding.level is Level.FAIL for finding in findings)
    if as_json:
        print_json({"ok": not failed, "findings": [asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            _show(finding)
    if failed:
        raise SystemExit(FAULT_EXIT)


def _examine(machine: Machine, config_path: Path, patience_s: float | None) -> list[Finding]:
    """All checks. `patience_s` None: boards are not asked."""
    loaded, configuration = check_config(config_path)
    config = loaded or Config(bindings=())
    ports = scan(config.by_id_dirs if loaded else (BY_ID_DIR,), [each.match.glob for each in config.bindings if each.match.glob])
    gateway, devices = _gateway(config)
    served = {device["segment"] for device in devices if device["port"]}
    known = {device["segment"] for device in devices}
    asked = [each for each in free_ports(machine, config.bindings, ports) if each.segment not in known]
    meant = {port.device for binding in config.bindings for port in fitting(binding, ports)}
    boards = [*devices, *([] if patience_s is None else asyncio.run(ask_boards(asked, config.by_id_dirs, patience_s)))]
    return [
        configuration,
        *gateway,
        *check_ports(machine, config.bindings, ports, served, config.unused_maps),
        *check_console(machine, meant),
        check_modem_manager(machine, ports),
        *check_latency_timer(machine),
        *check_boards(boards),
        *check_baud(board["baud"] for board in boards if misread(board)),
    ]


def _gateway(config: Config) -> tuple[list[Finding], list[Json]]:
    """What the gateway at this configuration's address says, and what of that is about this configuration's devices."""
    tls = config.links.tls
    # Not by the name in its certificate, which is for others: by being the one that this configuration names.
    target = Target(local_url(config.host, config.port, tls=tls is not None), config.token, pin=None if tls is None else tls.certificate)
    try:
        status = target.get("/admin/status", GATEWAY_PATIENCE_S)
        devices = target.get("/admin/devices", GATEWAY_PATIENCE_S)
    except Failure as failure:
        return [check_status(target.url, None, failure.message)], []
    return [check_status(target.url, status, ""), *check_knows(target.url, devices, config)], [
        device for device in devices if device["segment"] in {binding.segment for binding in config.bindings}
    ]


def _show(finding: Finding) -> None:
    level = click.style(f"{finding.level:4}", fg=COLOURS[finding.level])
    first, *more = f"{finding.check}: {finding.message}".splitlines()
    click.echo(f"{level}  {first}")
    for line in [*more, *finding.hint.splitlines()]:
        click.echo(f"      {line}")
