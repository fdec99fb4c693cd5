"""One frame of a line as one line of text: when, which board, which way, what. Takes the JSON that sniffing gives; knows no bytes."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import click

Json = dict[str, Any]

ARROWS = {"tx": "→", "rx": "←"}
"""To the board, and from it."""
COLOURS = {"call": "cyan", "response": "green", "event": "magenta", "unreadable": "red"}
ENVELOPE = ("time", "device", "direction", "message", "kind")
SUBJECTS = ("tool", "event", "name")
VALUES = ("arguments", "result", "data")
DEVICE_WIDTH = 14
KIND_WIDTH = 12


def frame_text(frame: Json, *, with_hex: bool) -> str:
    if frame["kind"] == "dropped":
        return click.style(f"{frame['count']} frames were dropped here: they came faster than they could be shown", fg="yellow")
    kind = str(frame["kind"])
    words = " ".join(_words(frame))
    head = f"{_clock(frame['time'])}  {frame['device']:{DEVICE_WIDTH}} {ARROWS[frame['direction']]} "
    line = f"{head}{click.style(f'{kind:{KIND_WIDTH}}', fg=COLOURS.get(kind))} {words}".rstrip()
    # What cannot be read is never hidden.
    return f"{line}\n{' ' * 14}{bytes.fromhex(frame['message']).hex(' ')}" if with_hex or kind == "unreadable" else line


def _words(frame: Json) -> list[str]:
    """The subject first, then its values, then everything else that was said: nothing is left out."""
    subjects = [str(frame[key]) for key in SUBJECTS if key in frame]
    values = [f"{name}={_plain(value)}" for key in VALUES for name, value in _items(frame.get(key))]
    rest = [f"{key}={_plain(value)}" for key, value in frame.items() if key not in (*ENVELOPE, *SUBJECTS, *VALUES)]
    return [*subjects, *values, *(click.style(word, dim=True) for word in rest)]


def _items(values: Any) -> list[tuple[str, Any]]:
    return list(values.items()) if isinstance(values, dict) else [] if values is None else [("payload", values)]


def _plain(value: Any) -> str:
    return value if isinstance(value, str) and value.isalnum() else json.dumps(value, ensure_ascii=False)


def _clock(time: str) -> str:
    """The time of day here, to the millisecond."""
    return datetime.fromisoformat(time).astimezone().strftime("%H:%M:%S.%f")[:-3]
