"""The rules that span a whole map: ports, names and numbers, capabilities, and whether every payload fits its frame.

Works on a tidied document (`structure`); the rules within one field are in `fields`.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

from mcpax.bridge.maps.build import build_capability, build_fields
from mcpax.bridge.maps.debug import MAX_TOOL_ID
from mcpax.bridge.maps.debug import NAME as DEBUG_TOOL
from mcpax.bridge.maps.fields import check_defaults, check_fields
from mcpax.bridge.maps.keys import CAPABILITY
from mcpax.bridge.maps.model import Encoding, FieldType, FrameMap, PortMap, Profile
from mcpax.bridge.maps.names import check_names, names_in
from mcpax.bridge.maps.sizes import STATUS_BYTES, payload_size
from mcpax.capability import SEMVER, InvalidCapability
from mcpax.documents.faults import KeyPath, Report, nearest, shown
from mcpax.documents.structure import Tidy

TLV_VALUE_BYTES = 255
"""A TLV element states its length in one byte."""
DEADMAN_HEARTBEATS = 3
"""The gateway may let one and a half pass without a word, and one may be lost."""
_LENGTHY = (FieldType.BYTES, FieldType.TEXT)
_UNSTABLE_PORTS = ("/dev/ttyUSB0", "/dev/ttyACM0")


def check_document(document: Tidy, report: Report) -> None:
    device: Tidy = document.get("device", {})
    if "name" in device:
        check_names([(("device", "name"), device["name"])], report)
    if "version" in device and not SEMVER.fullmatch(device["version"]):
        report.add(("device", "version"), f"version {shown(device['version'])} is not a version", "three numbers, like 1.0.0")
    if "match" in document.get("port", {}):
        _check_match(document["port"]["match"], ("port", "match"), report)
    _check_deadman(document.get("port", {}), report)
    if not document.get("tool") and not document.get("event") and not report.faults:
        report.add(("tool",), "the map has neither a tool nor an event", "add a [[tool]] table")
    if device.get("debug", False):
        _check_debug(document.get("tool", []), report)
    for kind, parts in (("tool", ("arg", "result")), ("event", ("field",))):
        entries = document.get(kind, [])
        check_names(names_in(entries, (kind,)), report)
        _check_ids(entries, kind, report)
        for index, entry in enumerate(entries):
            path: KeyPath = (kind, index)
            _check_capability(entry.get("capability", {}), (*path, "capability"), report)
            for part in parts:
                check_fields(entry.get(part, []), (*path, part), report)
                if report.clean((*path, part)):
                    _check_payload(document, entry, part, (*path, part), report)


def _check_deadman(port: Tidy, report: Report) -> None:
    deadman, heartbeat = port.get("deadman_ms", 0), port.get("heartbeat_ms", PortMap().heartbeat_ms)
    if 0 < deadman < DEADMAN_HEARTBEATS * heartbeat:
        hint = f"at least three heartbeats: {DEADMAN_HEARTBEATS * heartbeat}, or a shorter heartbeat_ms"
        report.add(("port", "deadman_ms"), f"deadman_ms {deadman} is so short that one lost heartbeat of {heartbeat} ms sets it off", hint)


def _check_match(match: Tidy, path: KeyPath, report: Report) -> None:
    if not match and report.clean(path):
        report.add((*path, ""), "match is empty and would take any port", 'say which, like { by_id = "usb-mcpax_*" }')
    for key in ("by_id", "serial", "glob"):
        if match.get(key) == "":
            report.add((*path, key), f"{key} is empty", "give a pattern, or remove it")
    if "pid" in match and "vid" not in match:
        report.add((*path, "pid"), "pid without vid", "product numbers mean something only together with their vendor's: add vid")
    if "/" in match.get("by_id", ""):
        report.add((*path, "by_id"), "by_id is a name, not a path", "leave out /dev/serial/by-id/; for paths use glob")
    glob = match.get("glob", "/")
    if glob and not glob.startswith("/"):
        report.add((*path, "glob"), f"glob {shown(glob)} is not an absolute path", "like /dev/ttyTHS*")
    if len(match) == 1 and any(fnmatchcase(port, glob) for port in _UNSTABLE_PORTS):
        hint = "the number depends on the order of plugging in: use by_id, or vid with pid and serial"
        report.add((*path, "glob"), f"glob {shown(glob)} does not tell one board from another", hint)


def _check_ids(entries: list[Tidy], kind: str, report: Report) -> None:
    taken: dict[int, int] = {}
    for index, entry in enumerate(entries):
        number = entry.get("id")
        if number in taken:
            free = next((n for n in range(1, 256) if n not in {e.get("id") for e in entries}), None)
            report.add((kind, index, "id"), f"id {number} is already taken by {kind} {taken[number] + 1}", f"{free} is free")
        elif number is not None:
            taken[number] = index


def _check_debug(tools: list[Tidy], report: Report) -> None:
    """There must be a name and a number left for the debug build's own tool."""
    for index, tool in enumerate(tools):
        if tool.get("name", "").replace("-", "_") == DEBUG_TOOL:
            hint = "choose another name, or leave the debug build"
            report.add(("tool", index, "name"), f"name {shown(tool['name'])} is that of the debug build's own tool", hint)
        if tool.get("id") == MAX_TOOL_ID:
            hint = f"the debug build's own tool needs the next number: choose one below {MAX_TOOL_ID}, or leave the debug build"
            report.add(("tool", index, "id"), f"id {MAX_TOOL_ID} is the last there is", hint)


def _check_capability(stated: dict[str, Any], path: KeyPath, report: Report) -> None:
    if "transport" in stated:
        report.add((*path, "transport"), "transport is not for a map to state", "remove it: it follows from the profile")
    try:
        build_capability({key: value for key, value in stated.items() if key != "transport"}, version="0.0.0", profile=Profile.B)
    except InvalidCapability as error:
        for field, message in error.faults:
            key = CAPABILITY.get(field)
            report.add((*path, field), f"{field} {message.split('; ')[0]}", key.help if key else nearest(field, CAPABILITY.names))


def _check_payload(document: Tidy, entry: Tidy, part: str, path: KeyPath, report: Report) -> None:
    """Only for fields without faults of their own."""
    stated = document.get("device", {}).get("profile")
    profile, encoding = Profile(stated or Profile.B), Encoding(entry.get("encoding", Encoding.STRUCT))
    fields = build_fields(entry.get(part, []), profile, encoding)
    check_defaults(fields, path, report)
    if stated is None:
        return
    if profile is Profile.A and encoding is Encoding.RAW and [field.type in _LENGTHY for field in fields] not in ([], [True]):
        report.add(path, "raw encoding needs exactly one field, of type bytes or text", "use struct or tlv for anything else")
    if profile is Profile.A and encoding is Encoding.TLV:
        for index, field in enumerate(fields):
            if (field.max_len or 0) > TLV_VALUE_BYTES:
                report.add((*path, index, "max_len"), f"max_len {field.max_len} is too long for tlv", f"at most {TLV_VALUE_BYTES}")
    limit = document.get("frame", {}).get("max_payload", FrameMap().max_payload)
    status = STATUS_BYTES if part == "result" and profile is Profile.A else 0
    size = status + payload_size(profile, encoding, fields)
    if size > limit:
        hint = (
            f"shorten fields or split the {'event' if part == 'field' else 'tool'}, or raise [frame] max_payload if the board has the room"
        )
        report.add(path, f"the payload of {part}s can take {size} bytes, more than max_payload {limit}", hint)
