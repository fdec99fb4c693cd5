"""Every key that a device map may hold: its kind, bounds and meaning. The one source for the loader, the editor's schema and the docs.

Only what can be said of a key by itself; rules between keys are in `fields` and `rules`.
"""

from __future__ import annotations

from dataclasses import fields, replace
from enum import StrEnum
from typing import get_type_hints

from mcpax.bridge.maps.model import MAX_FIELDS, ByteOrder, Crc, Encoding, FieldType, FrameMap, PortMap, Profile
from mcpax.capability import Capability
from mcpax.documents.keys import Key, Kind, Table

_PORT, _FRAME = PortMap(), FrameMap()


def _capability_keys() -> tuple[Key, ...]:
    """From the annotation itself; `transport` is left out because the profile decides it."""
    kinds = get_type_hints(Capability)
    keys = []
    for field in fields(Capability):
        kind = kinds[field.name]
        if field.name == "transport":
            continue
        if issubclass(kind, StrEnum):
            default = None if field.name == "auth_scope" else str(field.default)  # follows from `mutable`
            keys.append(Key(field.name, Kind.TEXT, _CAPABILITY_HELP[field.name], choices=tuple(kind), default=default))
        elif kind is bool:
            keys.append(Key(field.name, Kind.FLAG, _CAPABILITY_HELP[field.name], default=field.default))
        else:
            keys.append(Key(field.name, Kind.TEXT, _CAPABILITY_HELP[field.name]))
    return tuple(keys)


_CAPABILITY_HELP = {
    "latency_class": "How long a call may take: realtime 0.5 s, fast 5 s, standard 30 s, slow 2 min, batch as the caller says.",
    "consistency": "Whether a read sees the last write: strong, eventual or best_effort.",
    "mutable": "Whether a call changes anything in the world. Not stated means true.",
    "reversible": "Whether the change can be undone by another call. Not stated means false.",
    "idempotent": "Whether a second identical call changes nothing more; only then may it be tried again when its outcome is unknown.",
    "auth_scope": "What a caller needs: read, write or admin. Not stated: write if mutable, else read.",
    "cost_class": "What a call costs: free, metered or expensive.",
    "availability": "When the tool can be called: always, scheduled, best_effort or degraded.",
    "schema_version": "Version of the tool's arguments and results, like 1.0.0. Not stated: the device's version.",
}

CAPABILITY = Table("capability", "What a caller may know of a tool before calling it.", _capability_keys())

FIELD = Table(
    "[[tool.result]], [[event.field]]",
    "One value that the board sends. Their order is their order on the wire.",
    (
        Key("name", Kind.TEXT, "Name of the value: 1 to 63 of a-z, 0-9, '_' and '-'.", required=True),
        Key("type", Kind.TEXT, "Type on the wire.", required=True, choices=tuple(FieldType)),
        Key("description", Kind.TEXT, "For people and models.", default=""),
        Key("unit", Kind.TEXT, "Unit of the value as people see it, like °C or ml.", default=""),
        Key("min", Kind.NUMBER, "Smallest value, in the unit that people see. Integer types and f32."),
        Key("max", Kind.NUMBER, "Largest value, in the unit that people see. Integer types and f32."),
        Key("scale", Kind.NUMBER, "Value of one raw step: value = raw × scale. Integer types only.", default=1),
        Key("enum", Kind.LABELS, "Labels that people see and the raw number of each. Integer types only."),
        Key("max_len", Kind.INTEGER, "Bytes at most. Required for text and bytes, and only there.", low=1, high=4096),
    ),
)

ARGUMENT = Table(
    "[[tool.arg]]",
    "One value that the caller gives. Their order is their order on the wire.",
    (*FIELD.keys, Key("default", Kind.SCALAR, "Used when the caller leaves the argument out; without it the argument is required.")),
)

_ENCODING = Key(
    "encoding",
    Kind.TEXT,
    "Layout of the payload: struct (fixed), tlv (tag, length, value) or raw (one bytes or text field).",
    choices=tuple(Encoding),
    profile=Profile.A,
    default=str(Encoding.STRUCT),
)

TOOL = Table(
    "[[tool]]",
    "One tool of the board.",
    (
        Key("id", Kind.INTEGER, "Number of the tool on the wire; never reuse one for something else.", required=True, low=1, high=255),
        Key("name", Kind.TEXT, "Last part of the tool's name: 1 to 63 of a-z, 0-9, '_' and '-'.", required=True),
        Key("description", Kind.TEXT, "What it does, for the model that chooses it.", required=True),
        Key("title", Kind.TEXT, "Name for people.", default=""),
        Key("capability", Kind.TABLE, "Effects, latency and cost. Not stated: mutable and irreversible.", table=CAPABILITY, whole=True),
        replace(_ENCODING, help=_ENCODING.help + " Of arguments and result alike."),
        Key("arg", Kind.TABLES, "Arguments, in the order of the wire.", high=MAX_FIELDS, table=ARGUMENT),
        Key("result", Kind.TABLES, "Results, in the order of the wire.", high=MAX_FIELDS, table=FIELD),
    ),
)

EVENT = Table(
    "[[event]]",
    "Something that the board tells without being asked.",
    (
        Key("id", Kind.INTEGER, "Number of the event on the wire, apart from the tools' numbers.", required=True, low=1, high=255),
        Key("name", Kind.TEXT, "Name of the event: 1 to 63 of a-z, 0-9, '_' and '-'.", required=True),
        Key("description", Kind.TEXT, "What it means.", default=""),
        _ENCODING,
        Key("field", Kind.TABLES, "Values that come with it, in the order of the wire.", high=MAX_FIELDS, table=FIELD),
    ),
)

MATCH = Table(
    "port.match",
    "Which serial port the device is on. Every stated part must match; patterns are shell globs.",
    (
        Key("by_id", Kind.TEXT, "Name under /dev/serial/by-id."),
        Key("vid", Kind.INTEGER, "USB vendor, like 0x2e8a.", low=0, high=0xFFFF),
        Key("pid", Kind.INTEGER, "USB product; needs vid.", low=0, high=0xFFFF),
        Key("serial", Kind.TEXT, "USB serial number."),
        Key("glob", Kind.TEXT, "Path, for ports without USB identity, like /dev/ttyTHS*."),
    ),
)

PORT = Table(
    "[port]",
    "How the board is connected.",
    (
        Key("match", Kind.TABLE, "Which port to take; without it the gateway's configuration says.", table=MATCH),
        Key("baud", Kind.INTEGER, "Speed of the line.", low=9600, high=12_000_000, default=_PORT.baud),
        Key(
            "heartbeat_ms",
            Kind.INTEGER,
            "Silence after which the gateway asks whether the board is there.",
            low=100,
            high=600_000,
            default=_PORT.heartbeat_ms,
        ),
        Key(
            "deadman_ms",
            Kind.INTEGER,
            "Silence of the gateway after which the firmware goes to its safe state by itself; 0: never. At least three heartbeats.",
            low=0,
            high=3_600_000,
            default=_PORT.deadman_ms,
        ),
        Key("reset_on_open", Kind.FLAG, "Let opening the port reset an Arduino by its DTR line.", default=_PORT.reset_on_open),
        Key(
            "turnaround_ms",
            Kind.INTEGER,
            "What the board needs at most between a quick call's last byte and its answer's first.",
            low=0,
            high=10_000,
            default=_PORT.turnaround_ms,
        ),
    ),
)

FRAME = Table(
    "[frame]",
    "How messages are framed.",
    (
        Key("crc", Kind.TEXT, "Check of a frame.", choices=tuple(Crc), profile=Profile.A, default=str(_FRAME.crc)),
        Key(
            "byte_order",
            Kind.TEXT,
            "Of numbers in a payload.",
            choices=tuple(ByteOrder),
            profile=Profile.A,
            default=str(_FRAME.byte_order),
        ),
        Key(
            "max_payload",
            Kind.INTEGER,
            "Bytes of the largest payload that the board takes or sends.",
            low=16,
            high=32_764,
            default=_FRAME.max_payload,
        ),
    ),
)

DEVICE = Table(
    "[device]",
    "What the board is.",
    (
        Key("name", Kind.TEXT, "Default place of the device in the namespace: 1 to 63 of a-z, 0-9, '_' and '-'.", required=True),
        Key(
            "profile",
            Kind.TEXT,
            "A: byte frames, the board knows numbers only. B: CBOR, the board announces itself.",
            required=True,
            choices=tuple(Profile),
        ),
        Key("version", Kind.TEXT, "Version of this map, like 1.0.0.", required=True),
        Key("description", Kind.TEXT, "For people.", default=""),
        Key("debug", Kind.FLAG, "The board runs a debug build, which has the tool read_memory besides those stated here.", default=False),
    ),
)

DOCUMENT = Table(
    "top level",
    "A device map.",
    (
        Key("device", Kind.TABLE, DEVICE.help, required=True, table=DEVICE),
        Key("port", Kind.TABLE, PORT.help, table=PORT),
        Key("frame", Kind.TABLE, FRAME.help, table=FRAME),
        Key("tool", Kind.TABLES, TOOL.help, high=255, table=TOOL),
        Key("event", Kind.TABLES, EVENT.help, high=255, table=EVENT),
    ),
)

TABLES = (DEVICE, PORT, MATCH, FRAME, TOOL, CAPABILITY, ARGUMENT, FIELD, EVENT)
"""Every table, in the order in which people meet them."""
