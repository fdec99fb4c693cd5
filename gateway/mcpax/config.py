"""The gateway's configuration: one TOML file, every key known and explained here, faults told with file and line.

Turns the file into plain data that is already checked: maps loaded, devices bound to maps. Knows nothing of running.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mcpax.bridge.device import Binding
from mcpax.bridge.maps.keys import MATCH
from mcpax.bridge.maps.load import load_map
from mcpax.bridge.maps.model import DeviceMap, PortMap, PortMatch, Profile
from mcpax.bridge.ports import BY_ID_DIR
from mcpax.config_links import LINK_KEYS, LINK_TABLES, Links, read_links
from mcpax.config_reading import INVALID_SEGMENT, Reading
from mcpax.core.registration import Budget
from mcpax.core.registry import GRACE_S
from mcpax.documents.faults import DocumentError, KeyPath, Report, nearest
from mcpax.documents.keys import Key, Kind, Table
from mcpax.documents.source import parse, read
from mcpax.documents.structure import tidy_table

SYSTEM_CONFIG = Path("/etc/mcpax/mcpax.toml")
SYSTEM_STATE_DIR = "/var/lib/mcpax"
DEFAULT_LISTEN = "127.0.0.1:8720"
MAP_UNUSED = "no board is looked for: the map has no port.match, and no [[device]] names it"
MAP_UNUSED_HINT = 'add match = { by_id = "usb-…" } to the [port] of the map, or a [[device]] with this map and a port to the configuration'
_PORT_NUMBER = re.compile(r"[0-9]{1,5}")

GATEWAY = Table(
    "[gateway]",
    "The gateway itself.",
    (
        Key("segment", Kind.TEXT, "First part of every tool name: 1 to 63 of a-z, 0-9, '_' and '-'.", default="edge"),
        Key("listen", Kind.TEXT, "Address and port. Other than loopback needs a token.", default=DEFAULT_LISTEN),
        Key("token_file", Kind.TEXT, "File with the token that clients must send as 'Authorization: Bearer'."),
        Key("state_dir", Kind.TEXT, "Where identity is kept.", default=SYSTEM_STATE_DIR),
        Key("maps", Kind.TEXTS, "Device maps: files, or directories of .toml files.", default=[]),
        Key("by_id_dirs", Kind.TEXTS, "Where stable names of serial ports are.", default=[str(BY_ID_DIR)]),
        Key("allowed_hosts", Kind.TEXTS, "Host names that clients may use besides loopback.", default=[]),
        Key("allowed_origins", Kind.TEXTS, "Web origins that may come in besides loopback.", default=[]),
        Key("grace_s", Kind.NUMBER, "How long tools of a lost board stay listed as degraded.", low=0, high=86_400, default=GRACE_S),
        Key("list_ttl_s", Kind.NUMBER, "How long the merged list is used before asking again.", low=0, high=3600, default=60),
        Key("own_tools", Kind.FLAG, "List the gateway's own tools too, below the segment mcpax.", default=True),
    ),
)
BUDGET = Table(
    "[budget]",
    "What each registered board may be asked to do; not stated is no limit.",
    (
        Key("max_calls_per_minute", Kind.INTEGER, "Calls in any 60 seconds.", low=1, high=1_000_000),
        Key(
            "max_mutable_calls_per_session",
            Kind.INTEGER,
            "Calls that change something, while it stays connected.",
            low=0,
            high=1_000_000_000,
        ),
        Key("max_cost_units_per_session", Kind.INTEGER, "Metered calls count 1, expensive ones 10.", low=0, high=1_000_000_000),
    ),
)
DEVICE = Table(
    "[[device]]",
    "One board, where the map alone does not say which: two boards of a kind, another name, another port.",
    (
        Key("segment", Kind.TEXT, "Its place in the namespace.", required=True),
        Key("map", Kind.TEXT, "Name of its device map. Without it a Profile B board is listed but nothing on it can be called."),
        Key("port", Kind.TABLE, "Which port; without it the map says.", table=MATCH),
        Key("baud", Kind.INTEGER, "Without a map: speed of the line.", low=9600, high=12_000_000, default=PortMap().baud),
    ),
)
DOCUMENT = Table(
    "top level",
    "The configuration.",
    (
        Key("gateway", Kind.TABLE, GATEWAY.help, table=GATEWAY),
        Key("budget", Kind.TABLE, BUDGET.help, table=BUDGET),
        Key("device", Kind.TABLES, DEVICE.help, high=256, table=DEVICE),
        *LINK_KEYS,
    ),
)
TABLES = (GATEWAY, BUDGET, DEVICE, replace(MATCH, name="device.port"), *LINK_TABLES)
"""Every table, in the order in which people meet them."""


class ConfigError(Exception):
    """The configuration cannot be used; the message holds every fault."""


@dataclass(frozen=True, slots=True)
class Config:
    segment: str = "edge"
    host: str = "127.0.0.1"
    port: int = 8720
    token: str | None = None
    state_dir: Path = Path(SYSTEM_STATE_DIR)
    by_id_dirs: tuple[Path, ...] = (BY_ID_DIR,)
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    grace_s: float = GRACE_S
    list_ttl_s: float = 60.0
    own_tools: bool = True
    budget: Budget = field(default_factory=Budget)
    bindings: tuple[Binding, ...] = ()
    links: Links = field(default_factory=Links)
    unused_maps: tuple[str, ...] = ()
    """Maps that were loaded and that nothing binds to a port; `MAP_UNUSED` says why."""


def default_config_path() -> Path:
    """`MCPAX_CONFIG`, or the system's file."""
    return Path(os.environ.get("MCPAX_CONFIG", SYSTEM_CONFIG))


def load_config(path: Path, *, listen: str | None = None) -> Config:
    """Read and check a configuration file with the maps it names; raises `ConfigError` with every fault."""
    if not path.exists():
        remedy = f"Name one with --config, or write {SYSTEM_CONFIG}: docs/configuration.md shows how."
        raise ConfigError(f"{path}: there is no such file. {remedy}")
    if listen is not None:
        parse_listen(listen)  # not the file's fault, so not told as one
    try:
        source = parse(read(path), str(path))
        report = Report(str(path), source.document, source.lines)
        config = _Reader(path.parent, report).read(source.document, listen)
    except DocumentError as error:
        raise ConfigError(str(error)) from None
    if report.faults:
        raise ConfigError(str(DocumentError(report.ordered())))
    return config


def parse_listen(listen: str) -> tuple[str, int]:
    """HOST:PORT, with IPv6 hosts in brackets."""
    host, colon, port = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not _PORT_NUMBER.fullmatch(port) or int(port) > 0xFFFF:
        raise ConfigError(f"{listen!r} is not HOST:PORT, like {DEFAULT_LISTEN} or [::1]:8720")
    return host, int(port)


class _Reader(Reading):
    """Reads one document."""

    _all_maps_loaded = True

    def read(self, document: Mapping[str, Any], listen: str | None) -> Config:
        tidy = tidy_table(document, DOCUMENT, (), None, self.report)
        gateway = {key.name: key.default for key in GATEWAY.keys} | tidy.get("gateway", {})
        host, port = self._listen(listen or gateway["listen"])
        before = len(self.report.faults)
        maps = self._maps(gateway["maps"])
        self._all_maps_loaded = len(self.report.faults) == before
        segment = self.segment(gateway["segment"], ("gateway", "segment"))
        bindings = self._bindings(tidy.get("device", []), maps)
        if bindings and "cluster" in tidy:
            self.report.add(("cluster",), "replicas of a cluster have no boards", "give the boards a gateway that registers here")
        used = {binding.map.name for binding in bindings}
        return Config(
            segment=segment,
            host=host,
            port=port,
            token=self.token(gateway["token_file"], ("gateway", "token_file")),
            state_dir=self.path(gateway["state_dir"], ("gateway", "state_dir")) or self.base,
            by_id_dirs=tuple(filter(None, (self.path(each, ("gateway", "by_id_dirs")) for each in gateway["by_id_dirs"]))),
            allowed_hosts=tuple(gateway["allowed_hosts"]),
            allowed_origins=tuple(gateway["allowed_origins"]),
            grace_s=float(gateway["grace_s"]),
            list_ttl_s=float(gateway["list_ttl_s"]),
            own_tools=gateway["own_tools"],
            budget=Budget(**tidy.get("budget", {})),
            bindings=bindings,
            links=read_links(self, tidy, segment),
            unused_maps=tuple(name for name in maps if name not in used),
        )

    def _listen(self, listen: str) -> tuple[str, int]:
        try:
            return parse_listen(listen)
        except ConfigError as error:
            self.report.add(("gateway", "listen"), str(error), "address and port, separated by a colon")
            return "127.0.0.1", 0

    def _maps(self, entries: Iterable[str]) -> dict[str, DeviceMap]:
        maps: dict[str, DeviceMap] = {}
        for index, entry in enumerate(entries):
            where = ("gateway", "maps", index)
            path = self.path(entry, where)
            if path is None:
                continue
            try:
                if not path.exists():
                    self.report.add(where, f"{entry} is not there", f"paths are relative to this file: {path}")
                    continue
                files = sorted(path.glob("*.toml")) if path.is_dir() else [path]
            except OSError as error:
                self.report.add(where, f"{entry} cannot be read: {error.strerror}", "the gateway's user must be able to read it")
                continue
            if not files:
                self.report.add(where, f"{entry} holds no .toml file", "put device maps there, or name another directory")
            for file in files:
                try:
                    device = load_map(file)
                except DocumentError as error:
                    self.report.faults += error.faults
                    continue
                if device.name in maps:
                    self.report.add(where, f"{file} is a second map named {device.name!r}", "give each map its own device name")
                maps[device.name] = device
        return maps

    def _bindings(self, entries: list[dict[str, Any]], maps: dict[str, DeviceMap]) -> tuple[Binding, ...]:
        bindings = [binding for index, entry in enumerate(entries) if (binding := self._binding(index, entry, maps))]
        named = {entry.get("map") for entry in entries}
        # A map that no entry mentions stands for the one board that its own match finds.
        bindings += [
            Binding(device.name, device, device.port.match) for device in maps.values() if device.name not in named and device.port.match
        ]
        for segment, count in Counter(binding.segment for binding in bindings).items():
            if count > 1 and segment != INVALID_SEGMENT:
                self.report.add(("device",), f"segment {segment!r} is given to {count} devices", "give each [[device]] its own segment")
        return tuple(bindings)

    def _binding(self, index: int, entry: dict[str, Any], maps: dict[str, DeviceMap]) -> Binding | None:
        where: KeyPath = ("device", index)
        segment = self.segment(entry["segment"], (*where, "segment")) if "segment" in entry else INVALID_SEGMENT
        name = entry.get("map")
        if name is not None and "baud" in entry:
            self.report.add((*where, "baud"), "baud is the map's to say where there is one", "put it into the [port] table of the map")
        if name is None:
            device: DeviceMap | None = DeviceMap(segment, Profile.B, "0.0.0", port=PortMap(baud=entry.get("baud", PortMap().baud)))
        else:
            device = maps.get(name)
        if device is None:
            # While one could not be loaded, it may be the very one; another's name would be bad advice.
            hint = nearest(str(name), maps) if self._all_maps_loaded else "not all maps could be loaded: mend the faults above first"
            self.report.add((*where, "map"), f"no device map is named {name!r}", hint)
            return None
        match = PortMatch(**entry["port"]) if entry.get("port") else device.port.match
        if match is None:
            self.report.add((*where, "port"), "neither this entry nor its map says which port", 'add port = { by_id = "usb-…" }')
            return None
        return Binding(segment, device, match)
