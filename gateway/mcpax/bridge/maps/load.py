"""Device maps from TOML: everything that is wrong, with file, line and hint, or a map to rely on.

The steps are TOML and known keys (`mcpax.documents`), then `rules` and `fields`, then `build` and `debug`.
"""

from __future__ import annotations

from pathlib import Path

from mcpax.bridge.maps.build import build_map
from mcpax.bridge.maps.debug import with_debug_tool
from mcpax.bridge.maps.keys import DOCUMENT
from mcpax.bridge.maps.model import DeviceMap, Profile
from mcpax.bridge.maps.rules import check_document
from mcpax.bridge.wire.dialect import REGISTRATION_BYTES
from mcpax.bridge.wire.profile_b import encode_registration
from mcpax.documents.faults import DocumentError, DocumentFault, Report
from mcpax.documents.source import parse, read
from mcpax.documents.structure import tidy_table


def load_map(path: Path, *, debug: bool = False) -> DeviceMap:
    """Read a device map; raises `DocumentError` with every fault. `debug`: as if the map said `debug = true`."""
    return load_text(read(path), str(path), debug=debug)


def check_map(path: Path) -> list[DocumentFault]:
    """Every fault of a device map, in the order of the file."""
    try:
        load_map(path)
    except DocumentError as error:
        return error.faults
    return []


def check_text(text: str, name: str) -> list[DocumentFault]:
    """As `check_map`, for text from anywhere; `name` stands in for the file."""
    try:
        load_text(text, name)
    except DocumentError as error:
        return error.faults
    return []


def load_text(text: str, name: str, *, debug: bool = False) -> DeviceMap:
    """As `load_map`, for text from anywhere."""
    source = parse(text, name)
    report = Report(name, source.document, source.lines)
    device = source.document.get("device")
    profile = device.get("profile") if isinstance(device, dict) else None
    tidy = tidy_table(source.document, DOCUMENT, (), profile if profile in list(Profile) else None, report)
    if debug:
        tidy.setdefault("device", {})["debug"] = True
    check_document(tidy, report)
    if report.faults:
        raise DocumentError(report.ordered())
    built = build_map(tidy)
    if built.debug:
        built = with_debug_tool(built)
    _check_registration(built, report)
    if report.faults:
        raise DocumentError(report.ordered())
    return built


def _check_registration(device: DeviceMap, report: Report) -> None:
    """What a Profile B board says of itself must fit what the gateway listens to."""
    if device.profile is Profile.B and (size := len(encode_registration(device))) > REGISTRATION_BYTES:
        hint = "use shorter names for tools and fields, or spread them over two devices"
        report.add(("tool",), f"the board's registration would take {size} bytes, more than {REGISTRATION_BYTES}", hint)
