"""Checks of the program itself: does the configuration load, is a gateway running, is it this version? Opens no ports."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import mcpax
from mcpax.config import Config, ConfigError, load_config
from mcpax.doctor.finding import Finding, fail, ok, warn
from mcpax.words import HOW_TO_START, counted

Json = dict[str, Any]


def check_config(path: Path) -> tuple[Config | None, Finding]:
    """The configuration if it loads, with all its maps."""
    if not path.exists():
        hint = "docs/configuration.md shows how to write one; name it with --config. 'mcpax demo' needs none"
        return None, fail("configuration", f"there is no {path}", hint)
    try:
        config = load_config(path)
    except ConfigError as error:
        return None, fail("configuration", f"cannot be used:\n{error}", "mend these faults; 'mcpax map check' tells more of a map")
    children = config.links.children
    if not config.bindings and not config.unused_maps and children:
        return config, ok("configuration", f"{path} is fine, for {counted(len(children), 'aggregator')} below and no device")
    if not config.bindings and not config.unused_maps:
        return config, warn("configuration", f"{path} is fine, but names no device", "set maps in [gateway], or add [[device]]")
    segments = ", ".join(binding.segment for binding in config.bindings) or "none yet"
    return config, ok("configuration", f"{path} is fine, with {counted(len(config.bindings), 'device')}: {segments}")


def check_status(url: str, status: Json | None, problem: str) -> Finding:
    """`status` is what the gateway says of itself; None if it says nothing, and `problem` is why."""
    if status is None:
        return warn("gateway", problem, f"start it with: {HOW_TO_START}")
    if status["version"] != mcpax.__version__:
        message = f"{url} runs version {status['version']}, this is {mcpax.__version__}"
        return warn("gateway", message, "restart it after an upgrade; where it is installed as a service: systemctl restart mcpax-gateway")
    return ok("gateway", f"runs at {url}, version {status['version']}, {counted(status['tools'], 'tool')}")


def check_knows(url: str, devices: Iterable[Json], config: Config) -> list[Finding]:
    """Whether the gateway that runs is the one of this configuration. `devices` is what it says of those it has."""
    known = {device["segment"] for device in devices}
    unknown = [binding.segment for binding in config.bindings if binding.segment not in known]
    if not unknown:
        return []
    message = (
        f"the one at {url} does not know {', '.join(unknown)}: it was started with another configuration, or before this one was changed"
    )
    return [fail("gateway", message, "stop it, and start it with this configuration")]
