"""What `rig.toml` says: which boards there are and how each is had, as plain data that is already checked.

Every key is explained here, and every fault is told with file and line. Starts nothing and opens no port.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from string import Formatter
from typing import Any

from hil.emulator import KINDS
from hil.places import LEASES, ROOT
from mcpax.bridge.maps.load import load_map
from mcpax.bridge.maps.model import DeviceMap
from mcpax.documents.faults import DocumentError, KeyPath, Report, shown
from mcpax.documents.keys import Key, Kind, Table
from mcpax.documents.source import parse, read
from mcpax.documents.structure import tidy_table
from mcpax.names import InvalidName, check_segment

DTR = "dtr"
"""As `reset`: the port's DTR line is the reset button, as on an Arduino."""
PLACEHOLDERS = ("env", "port", "image")
COMMAND_KEYS = ("flash", "reset", "power_off", "power_on")
MAX_BOARDS = 64
MOST_CHARS = {"name": 40, "chip": 60, "app": 60, "env": 60}
"""Names become parts of files' names, and all of them stand in tables."""
MOST_TEXT_CHARS = 1000
"""Of paths and commands."""

BOARD = Table(
    "[[board]]",
    "One board. Paths are relative to the top of the source tree; commands run there, and may use {env}, {port} and {image}.",
    (
        Key("name", Kind.TEXT, "Its name, also its place among the gateway's tools: a-z, 0-9, '_' and '-'.", required=True),
        Key("chip", Kind.TEXT, "The microcontroller, for reports.", required=True),
        Key("app", Kind.TEXT, "The application: names the device map device-maps/APP.toml.", required=True),
        Key("map", Kind.TEXT, "Device map, where it is another file than that."),
        Key("env", Kind.TEXT, "PlatformIO environment that makes its firmware, like uno-valve-actuator."),
        Key("image", Kind.TEXT, "Firmware, where it is another file than build/pio/ENV/firmware.elf."),
        Key("baud", Kind.INTEGER, "Speed of the line, where it is another than the map's.", low=300, high=12_000_000),
        Key("emulator", Kind.TEXT, "Emulated: the kind of emulator.", choices=tuple(KINDS)),
        Key("port", Kind.TEXT, "Real: its serial port, best a name under /dev/serial/by-id."),
        Key("flash", Kind.TEXT, "Real: command that puts the firmware on it."),
        Key("reset", Kind.TEXT, 'Real: command that resets it, or "dtr" if the port\'s DTR line does.'),
        Key("power_off", Kind.TEXT, "Real: command that takes its power away."),
        Key("power_on", Kind.TEXT, "Real: command that gives it power."),
    ),
)
RIG = Table(
    "[rig]",
    "The rig as a whole.",
    (Key("lease_dir", Kind.TEXT, "Where it is noted who holds a board; shared by all who use the same bench.", default=str(LEASES)),),
)
DOCUMENT = Table(
    "top level",
    "A rig.",
    (
        Key("rig", Kind.TABLE, RIG.help, table=RIG),
        Key("board", Kind.TABLES, BOARD.help, required=True, high=MAX_BOARDS, table=BOARD),
    ),
)


class Capability(StrEnum):
    """What a test may need of a board beyond its serial line."""

    FLASH = "flash"
    RESET = "reset"
    POWER = "power"
    CUT = "cut"
    """Lose power in the middle of a frame, at a given byte."""
    STATS = "stats"


LACKING = {
    Capability.FLASH: "no flash command",
    Capability.RESET: "no reset",
    Capability.POWER: "no power switch",
    Capability.CUT: "its power cannot be cut at a given byte; emulated boards can",
    Capability.STATS: "nothing counts inside it; emulated boards do",
}
"""Why a board cannot do it, in words."""


@dataclass(frozen=True, slots=True)
class BoardSpec:
    name: str
    chip: str
    app: str
    map: DeviceMap
    map_file: Path
    image: Path
    env: str = ""
    emulator: str | None = None
    port: str | None = None
    """Of a real board. Exactly one of `emulator` and `port` is given."""
    flash: str | None = None
    reset: str | None = None
    power_off: str | None = None
    power_on: str | None = None

    @property
    def capabilities(self) -> frozenset[Capability]:
        if self.emulator is not None:
            return frozenset(Capability)
        given = {Capability.FLASH: self.flash, Capability.RESET: self.reset, Capability.POWER: self.power_off}
        return frozenset(capability for capability, command in given.items() if command is not None)


@dataclass(frozen=True, slots=True)
class Rig:
    file: Path
    boards: tuple[BoardSpec, ...]
    lease_dir: Path


def load_rig(path: Path) -> Rig:
    """Read a rig; raises `DocumentError` with every fault."""
    source = parse(read(path), str(path))
    report = Report(str(path), source.document, source.lines)
    tidy = tidy_table(source.document, DOCUMENT, (), None, report)
    _check_texts(tidy.get("rig", {}), ("rig",), report)
    boards = [_board(entry, ("board", index), report) for index, entry in enumerate(tidy.get("board", []))]
    for name, count in Counter(entry.get("name") for entry in tidy.get("board", [])).items():
        if name is not None and count > 1:
            report.add(("board",), f"{count} boards are named {shown(name)}", "give each its own name")
    if not boards and not report.faults:
        report.add(("board",), "no board is described", "add a [[board]] with name, chip, app and emulator or port")
    if report.faults:
        raise DocumentError(report.ordered())
    lease_dir = ROOT / tidy.get("rig", {}).get("lease_dir", LEASES)
    return Rig(path, tuple(board for board in boards if board is not None), lease_dir)


def _board(entry: dict[str, Any], where: KeyPath, report: Report) -> BoardSpec | None:
    _check_texts(entry, where, report)
    _check_had(entry, where, report)
    for key in COMMAND_KEYS:
        _check_command(entry, key, where, report)
    if ("power_off" in entry) != ("power_on" in entry):
        given, other = ("power_off", "power_on") if "power_off" in entry else ("power_on", "power_off")
        report.add((*where, given), f"{given} without {other}", f"add {other}: a board that goes must come back")
    if "name" in entry and report.clean((*where, "name")):
        try:
            check_segment(entry["name"])
        except InvalidName as error:
            report.add((*where, "name"), str(error), "like uno or nucleo-2")
    file = ROOT / entry.get("map", f"device-maps/{entry.get('app')}.toml")
    device = _map(entry, file, where, report)
    if device is None or not report.clean(where):
        return None
    if "baud" in entry:
        device = replace(device, port=replace(device.port, baud=entry["baud"]))
    known = {key: entry.get(key) for key in ("emulator", "port", *COMMAND_KEYS)}
    return BoardSpec(entry["name"], entry["chip"], entry["app"], device, file, _image(entry), entry.get("env", ""), **known)


def _image(entry: dict[str, Any]) -> Path:
    made = f"build/virtual/{entry['app']}" if entry.get("emulator") == "virtual" else f"build/pio/{entry.get('env')}/firmware.elf"
    return ROOT / str(entry.get("image", made))


def _check_texts(entry: dict[str, Any], where: KeyPath, report: Report) -> None:
    for key, value in entry.items():
        if not isinstance(value, str):
            continue
        most = MOST_CHARS.get(key, MOST_TEXT_CHARS)
        if not value.strip():
            report.add((*where, key), f"{key} is empty", "remove it, or say what it is")
        elif not value.isprintable():
            bad = next(character for character in value if not character.isprintable())
            report.add((*where, key), f"{key} contains the character U+{ord(bad):04X}", "write it on one line, without control characters")
        elif len(value) > most:
            report.add((*where, key), f"{key} has {len(value)} characters, at most {most} allowed", "shorten it")


def _check_had(entry: dict[str, Any], where: KeyPath, report: Report) -> None:
    if not report.clean((*where, "emulator")) or not report.clean((*where, "port")):
        return
    emulated, real = "emulator" in entry, "port" in entry
    if emulated == real:
        what = "both emulator and port are given" if emulated else "neither emulator nor port is given"
        report.add((*where, "emulator"), what, f"emulator = one of {', '.join(KINDS)} for an emulated board, port for a real one")
    for key in COMMAND_KEYS if emulated else ():
        if key in entry:
            report.add((*where, key), f"{key} is for real boards", "remove it: an emulator needs no command for that")
    if "env" not in entry and "image" not in entry and entry.get("emulator") != "virtual":
        report.add((*where, "env"), "nothing says which firmware belongs on it", "add env = a PlatformIO environment, or image = a file")


def _check_command(entry: dict[str, Any], key: str, where: KeyPath, report: Report) -> None:
    if key not in entry:
        return
    known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
    try:
        used = [part[1:] for part in Formatter().parse(entry[key]) if part[1] is not None]
    except ValueError as error:
        report.add((*where, key), f"{key}: {error}", f"braces stand for {known}; write {{{{ and }}}} for braces themselves")
        return
    for name, form, conversion in used:
        if form or conversion:
            report.add((*where, key), f"{key} gives {{{name}}} a format or conversion", f"write {known}, without ':' or '!'")
        elif name not in PLACEHOLDERS:
            report.add((*where, key), f"{key} uses {{{name}}}, which stands for nothing", f"known: {known}")
        elif name == "env" and "env" not in entry:
            report.add((*where, key), f"{key} uses {{env}}, and there is none", "add env = a PlatformIO environment")


def _map(entry: dict[str, Any], file: Path, where: KeyPath, report: Report) -> DeviceMap | None:
    if "app" not in entry:
        return None
    if not file.exists():
        key = "map" if "map" in entry else "app"
        report.add((*where, key), f"there is no device map {file}", "name an application that has one, or give map = its file")
        return None
    try:
        return load_map(file)
    except DocumentError as error:
        report.add((*where, "app"), f"its device map has {len(error.faults)} faults, the first: {error.faults[0]}", error.faults[0].hint)
        return None
