"""Waiting until a gateway lists the tools of a board that has just been flashed.

A gateway may take a moment to see that a board has started anew; until then it still lists what was there before. So what counts is a
boot id other than the one it knew. Knows nothing of building and uploading.
"""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from mcpax.bridge.device import MISFIT
from mcpax.bridge.maps.model import DeviceMap
from mcpax.cli.client import Target
from mcpax.cli.output import Failure
from mcpax.words import HOW_TO_START

Json = dict[str, Any]

CONNECT_S = 2.0
LOOK_EVERY_S = 0.1
START_ANEW = f"{HOW_TO_START}, or systemctl restart mcpax-gateway"
RESTART = f"a gateway reads its maps when it starts: if this one was changed, start the gateway anew ({START_ANEW})"
PATIENCE_S = 30.0
"""Three lost heartbeats of five seconds and a port that is tried again every five fit in."""


@dataclass(frozen=True, slots=True)
class Listed:
    device: str
    """The board's place in the gateway's namespace."""
    tools: list[str]


class Watch:
    """Begun before the upload, so that it knows what the gateway knew of the board then."""

    def __init__(self, target: Target, port: str | None, device_map: DeviceMap) -> None:
        self._target = target
        self._port = port
        self._map = device_map
        self._boots_before = {each["segment"]: each["boot_id"] for each in self._ours()} if self.gateway_runs() else {}

    def gateway_runs(self) -> bool:
        """Somebody listens there; whether it is a gateway, and lets us in, shows when it is asked."""
        address = urlsplit(self._target.url)
        try:
            with socket.create_connection((address.hostname, address.port or {"https": 443}.get(address.scheme, 80)), CONNECT_S):
                return True
        except OSError:
            return False

    def wait(self, patience_s: float = PATIENCE_S) -> Listed:
        """Raises `Failure` if the gateway cannot list it, or does not in time."""
        deadline = time.monotonic() + patience_s
        while True:
            ours = self._ours()
            if not ours:
                raise self._not_served()
            started = [each for each in ours if each["boot_id"] and each["boot_id"] != self._boots_before.get(each["segment"])]
            for each in started:
                if each["state"] == "online" and (tools := self._tools(each["segment"])):
                    return Listed(each["segment"], tools)
                if each["problem"].startswith(MISFIT):
                    raise Failure(f"uploaded, but {each['segment']} is not listed: {each['problem']}", RESTART)
            if time.monotonic() > deadline:
                told = "; ".join(f"{each['segment']}: {each['problem'] or 'has not started anew'}" for each in ours)
                raise Failure(f"uploaded, but not listed by the gateway within {patience_s:g} s: {told}", "'mcpax doctor' tells more")
            time.sleep(LOOK_EVERY_S)

    def _ours(self) -> list[Json]:
        """Whatever is served on its port; as long as nothing is, whatever could be."""
        devices: list[Json] = self._target.get("/admin/devices")
        on_port = [each for each in devices if self._port and each["port"] and _same(each["port"], self._port)]
        return on_port or [each for each in devices if each["map"] == self._map.name and (self._port is None or each["port"] is None)]

    def _tools(self, segment: str) -> list[str]:
        """Its tools as callers name them; empty as long as one that the map has is missing."""
        listed = [str(tool["name"]) for tool in self._target.tools() if tool["name"].split(".")[1] == segment]
        own = {name.rpartition(".")[2] for name in listed}
        return listed if {tool.name for tool in self._map.tools} <= own else []

    def _not_served(self) -> Failure:
        where = f'port = {{ glob = "{self._port}" }}' if self._port else "port = …"
        return Failure(
            f"uploaded, but the gateway at {self._target.url} has no device with the map {self._map.name} on that port",
            f'add to its configuration: [[device]] segment = "{self._map.name}", map = "{self._map.name}", {where}, and start it anew '
            f"({START_ANEW})",
        )


def _same(port: str, other: str) -> bool:
    return os.path.realpath(port) == os.path.realpath(other)
