"""The first draft of a device map, from what a board says of itself or from a few answers.

The draft passes the check as it stands, and is cautious: capabilities are left out, so every tool counts as mutable and
irreversible until someone who knows says otherwise. Knows nothing of ports or prompts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from mcpax.bridge.maps.model import FieldType, Profile
from mcpax.bridge.maps.notes import PLACEHOLDER
from mcpax.bridge.wire.messages import AnnouncedEvent, AnnouncedTool, Registration

SCHEMA_FILE = "device-map.schema.json"
"""What editors look for beside a map that begins with `#:schema`."""
ASSUMED_MAX_LEN = 32
"""A board does not say how long its texts get."""

_Fields = tuple[tuple[str, FieldType], ...]

_CAPABILITY = """\
# No capability yet, on purpose: unannotated means mutable and irreversible, and clients are told so.
# Say what is true, for example for a tool that only reads:
# capability = { latency_class = "fast", mutable = false, reversible = true, idempotent = true }"""

_NUMBER = "# unit, min, max, scale and enum say what the number means; without them it is any {kind}."
_TEXT = "max_len = {max_len}  # a guess: put the firmware's own limit here"


def scaffold(announced: Registration, profile: Profile = Profile.B, baud: int = 115200, by_id: str = "") -> str:
    """Commented TOML; its map hash becomes the firmware's once limits, scales and labels agree."""
    blocks = [_head(announced, profile, baud, by_id)]
    for tool in announced.tools:
        blocks += [_tool(tool), *_fields("tool.arg", tool.args), *_fields("tool.result", tool.results)]
    for event in announced.events:
        blocks += [_event(event), *_fields("event.field", event.fields)]
    return "\n\n".join(blocks) + "\n"


def schema_line(beside: bool) -> str:
    """The first line of a draft. `beside`: whether the editor's schema is in the same directory."""
    if beside:
        return f"#:schema ./{SCHEMA_FILE}\n"
    return f"# Completion in editors: mcpax map schema -o {SCHEMA_FILE}, and make this line: #:schema ./{SCHEMA_FILE}\n"


def parse_fields(words: str) -> _Fields:
    """Read `relay:u8 on:bool`; raises ValueError naming the word that cannot be read."""
    fields = []
    for word in words.replace(",", " ").split():
        name, colon, kind = word.partition(":")
        if not colon or kind not in list(FieldType):
            raise ValueError(f"{word!r} is not name:type; types are {', '.join(FieldType)}")
        fields.append((name, FieldType(kind)))
    return tuple(fields)


def _head(announced: Registration, profile: Profile, baud: int, by_id: str) -> str:
    port = f"match = {{ by_id = {_quoted(by_id)} }}" if by_id else '# match = { by_id = "usb-…" }  # see ls /dev/serial/by-id'
    lines = [
        "# A draft: fill in what only you know, then run `mcpax map check` on it.",
    ]
    if announced.map_hash:
        lines += [
            f"# The firmware carries map hash {announced.map_hash:#010x}. This file has that hash once its limits, scales and labels are",
            "# those of the map the firmware was built from; or build the firmware anew with `mcpax map header`.",
        ]
    lines += [
        "",
        "[device]",
        f"name = {_quoted(announced.device)}",
        f'profile = "{profile}"',
        'version = "0.1.0"',
        'description = ""',
        "",
        "[port]",
        f"baud = {baud}",
        port,
    ]
    return "\n".join(lines)


def _tool(tool: AnnouncedTool) -> str:
    description = f'description = "{PLACEHOLDER}: what it does, for the model that chooses it."'
    return f"[[tool]]\nid = {tool.id}\nname = {_quoted(tool.name)}\n{description}\n{_CAPABILITY}"


def _event(event: AnnouncedEvent) -> str:
    return f'[[event]]\nid = {event.id}\nname = {_quoted(event.name)}\ndescription = ""'


def _fields(table: str, fields: _Fields) -> Iterable[str]:
    for name, kind in fields:
        lines = [f"[[{table}]]", f"name = {_quoted(name)}", f'type = "{kind}"', 'description = ""']
        if kind in (FieldType.TEXT, FieldType.BYTES):
            lines.append(_TEXT.format(max_len=ASSUMED_MAX_LEN))
        elif kind is not FieldType.BOOL:
            lines.append(_NUMBER.format(kind=kind))
        yield "\n".join(lines)


def _quoted(text: str) -> str:
    """A TOML string: JSON's escapes are all TOML's, but for DEL, which JSON leaves as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
