"""From a checked document to the `DeviceMap` that everyone else uses; fills in what follows from other keys.

Judges nothing: whoever calls this has checked first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcpax.bridge.maps.fields import build_field
from mcpax.bridge.maps.model import (
    ByteOrder,
    Crc,
    DeviceMap,
    Encoding,
    EventMap,
    Field,
    FrameMap,
    PortMap,
    PortMatch,
    Profile,
    ToolMap,
)
from mcpax.capability import Capability, TransportClass

_TRANSPORT = {Profile.A: TransportClass.UART_BYTES, Profile.B: TransportClass.UART_CBOR}


def build_map(document: Mapping[str, Any]) -> DeviceMap:
    device = document["device"]
    profile = Profile(device["profile"])
    return DeviceMap(
        **{**device, "profile": profile},
        port=_build_port(document.get("port", {})),
        frame=_build_frame(document.get("frame", {})),
        tools=tuple(_build_tool(table, profile, device["version"]) for table in document.get("tool", [])),
        events=tuple(_build_event(table, profile) for table in document.get("event", [])),
    )


def build_fields(tables: Sequence[Mapping[str, Any]], profile: Profile, encoding: Encoding) -> tuple[Field, ...]:
    # A struct has no room for a length, so its bytes are always as many as stated.
    exact = profile is Profile.A and encoding is Encoding.STRUCT
    return tuple(build_field(table, exact_bytes=exact) for table in tables)


def build_capability(stated: Mapping[str, Any], version: str, profile: Profile) -> Capability:
    """Raises `InvalidCapability` with all that is wrong."""
    return Capability.parse({"schema_version": version, **stated, "transport": _TRANSPORT[profile]})


def _build_port(table: Mapping[str, Any]) -> PortMap:
    match = table.get("match")
    return PortMap(**{**table, "match": PortMatch(**match) if match is not None else None})


def _build_frame(table: Mapping[str, Any]) -> FrameMap:
    kinds = {"crc": Crc, "byte_order": ByteOrder, "max_payload": int}
    return FrameMap(**{key: kinds[key](value) for key, value in table.items()})


def _build_tool(table: Mapping[str, Any], profile: Profile, version: str) -> ToolMap:
    encoding = Encoding(table.get("encoding", Encoding.STRUCT))
    return ToolMap(
        id=table["id"],
        name=table["name"],
        description=table["description"],
        title=table.get("title", ""),
        capability=build_capability(table.get("capability", {}), version, profile),
        args=build_fields(table.get("arg", []), profile, encoding),
        results=build_fields(table.get("result", []), profile, encoding),
        encoding=encoding,
    )


def _build_event(table: Mapping[str, Any], profile: Profile) -> EventMap:
    encoding = Encoding(table.get("encoding", Encoding.STRUCT))
    return EventMap(
        id=table["id"],
        name=table["name"],
        description=table.get("description", ""),
        fields=build_fields(table.get("field", []), profile, encoding),
        encoding=encoding,
    )
