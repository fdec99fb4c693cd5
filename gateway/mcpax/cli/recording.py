"""A recording of frames: one JSON object a line, just as they came from the gateway. Read back with every fault told by its line.

With a device map the frames are decoded anew from their bytes, for example with a map that was mended since. Knows nothing of gateways.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from mcpax.bridge.frames import FrameReader
from mcpax.bridge.maps.model import DeviceMap
from mcpax.cli.output import Failure

Json = dict[str, Any]

KEPT = ("time", "device", "direction", "message")
"""What is a fact of the wire; everything else in a frame is how it was read."""


def replay(path: Path, device: str | None = None, device_map: DeviceMap | None = None) -> Iterator[Json]:
    """The frames of a recording, of one device or of all."""
    reader = None if device_map is None else FrameReader(device_map)
    decoded = device
    for where, frame in _lines(path):
        if frame["kind"] == "dropped":
            yield frame
            continue
        if device is not None and frame["device"] != device:
            continue
        if reader is None:
            yield frame
            continue
        decoded = decoded or str(frame["device"])
        if frame["device"] != decoded:
            hint = f"say whose map it is: mcpax sniff {decoded} --replay {path} --map …"
            raise Failure(f"{where}: a frame of {frame['device']!r} after frames of {decoded!r}, and one map", hint)
        read = reader.read(frame["direction"], bytes.fromhex(frame["message"]))
        yield {**{key: frame[key] for key in KEPT}, **read}


def _lines(path: Path) -> Iterator[tuple[str, Json]]:
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield f"{path}:{number}", _frame(f"{path}:{number}", line)
    except OSError as error:
        raise Failure(f"{path}: cannot be read: {error.strerror}", "check the path and its permissions") from None
    except UnicodeDecodeError:
        raise Failure(f"{path}: not UTF-8 text", "a recording is made with mcpax sniff --record") from None


def _frame(where: str, line: str) -> Json:
    try:
        frame = json.loads(line)
        _check(frame)
    except (ValueError, TypeError, KeyError) as error:
        why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise Failure(f"{where}: not a recorded frame: {why}", "a recording is made with mcpax sniff --record") from None
    return dict(frame)


def _check(frame: Any) -> None:
    """Raises for what the rest of this program could not show."""
    if not isinstance(frame, dict):
        raise TypeError("a JSON object is needed")
    if frame["kind"] == "dropped":
        int(frame["count"])
        return
    if frame["direction"] not in ("tx", "rx"):
        raise ValueError(f"direction is {frame['direction']!r}, not tx or rx")
    datetime.fromisoformat(frame["time"])
    bytes.fromhex(frame["message"])
    if not isinstance(frame["device"], str):
        raise TypeError("device is not text")
