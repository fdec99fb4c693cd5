"""Where the first draft of a device map comes from: a connected board, a file of answers, or questions at the terminal.

Part of `mcpax map new`; the draft itself is made in `mcpax.bridge.maps.scaffold`.
"""

from __future__ import annotations

import errno
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
import serial

from mcpax.bridge.maps.model import Profile
from mcpax.bridge.maps.scaffold import parse_fields, scaffold
from mcpax.bridge.transports.uart import explain_open_error
from mcpax.bridge.wire.dialect import REGISTRATION_BYTES
from mcpax.bridge.wire.framing import CobsFraming
from mcpax.bridge.wire.messages import AnnouncedEvent, AnnouncedTool, Registration, WireError
from mcpax.bridge.wire.profile_b import decode, encode_announce_request
from mcpax.cli.output import Failure
from mcpax.names import check_segment

ASK_EVERY_S = 0.5
"""Long enough for the longest registration at 9600 baud to have begun."""
PATIENCE_S = 10.0
"""A board that resets on opening may sit in its bootloader for some seconds."""
ANSWERS_HINT = "'mcpax map new -h' shows the form"
BY_ID = Path("/dev/serial/by-id")


def from_board(path: str, baud: int, reset: bool) -> str:
    port = serial.Serial()
    port.port, port.baudrate, port.timeout, port.exclusive = path, baud, ASK_EVERY_S, True
    port.dtr = reset
    try:
        port.open()
    except (OSError, ValueError) as error:  # SerialException is an OSError
        held = getattr(error, "errno", None) in (errno.EBUSY, errno.EAGAIN)
        hint = "if it is a running gateway, stop that first: Ctrl-C, or systemctl stop mcpax-gateway where it is a service" if held else ""
        raise Failure(explain_open_error(path, error), hint) from None
    try:
        with port:
            announced = ask(port, PATIENCE_S)
    except OSError as error:
        raise Failure(f"{path}: lost while the board was asked: {error}", "is it still plugged in?") from None
    if announced is None:
        hint = "is it a Profile B board, is the speed right (--baud), does it have native USB (--reset)?"
        raise Failure(f"the board on {path} did not announce itself within {PATIENCE_S:g} s", hint)
    return scaffold(announced, baud=baud, by_id=_by_id(path))


def ask(port: serial.Serial, patience_s: float) -> Registration | None:
    """Ask again and again until the board announces itself; None if it never does."""
    framing = CobsFraming()
    decoder = framing.decoder(REGISTRATION_BYTES)
    give_up = time.monotonic() + patience_s
    while time.monotonic() < give_up:
        port.write(b"\0" + framing.encode(encode_announce_request()))  # the zero ends whatever noise came before
        while data := port.read(max(1, port.in_waiting)):
            for message in decoder.feed(data):
                try:
                    heard = decode(message)
                except WireError:
                    continue  # something else is talking too; the registration is still to come
                if isinstance(heard, Registration):
                    return heard
            if time.monotonic() >= give_up:
                break
    return None


def from_answers(path: Path) -> str:
    """The form of the file stands in the help of `mcpax map new`."""
    try:
        return _draft(json.loads(path.read_text(encoding="utf-8")))
    except KeyError as error:
        raise Failure(f"{path}: {error.args[0]} is missing", ANSWERS_HINT) from None
    except (TypeError, AttributeError):
        raise Failure(f"{path}: not answers", ANSWERS_HINT) from None
    except json.JSONDecodeError as error:
        raise Failure(f"{path}: not JSON: {error}", ANSWERS_HINT) from None
    except ValueError as error:
        raise Failure(f"{path}: {error}", ANSWERS_HINT) from None


def from_questions() -> str:
    """Asks on stderr, so that stdout has the map alone."""
    device = click.prompt("Name of the device (a-z, 0-9, _ and -)", value_proc=_again(check_segment), err=True)
    click.echo("A is for the smallest chips: the board knows numbers only. In B it speaks CBOR and announces its tools itself.", err=True)
    profile = click.prompt("Profile", type=click.Choice(list(Profile)), default="B", err=True)
    tools = []
    while name := _asked("Name of a tool, empty to end", check_segment):
        args = _asked("  its arguments, like relay:u8 on:bool", parse_fields)
        tools.append({"name": name, "args": args, "results": _asked("  its results", parse_fields)})
    return _draft({"device": device, "profile": profile, "tools": tools})


def _asked(question: str, judge: Callable[[str], object]) -> str:
    answer: str = click.prompt(question, default="", show_default=False, value_proc=_again(judge), err=True)
    return answer


def _again(judge: Callable[[str], object]) -> Callable[[str], str]:
    """Makes click ask again until the answer passes the judge; an empty one always does."""

    def judged(answer: str) -> str:
        try:
            if answer:
                judge(answer)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        return answer

    return judged


def _draft(answers: Mapping[str, Any]) -> str:
    tools = tuple(
        AnnouncedTool(number, tool["name"], parse_fields(tool.get("args", "")), parse_fields(tool.get("results", "")))
        for number, tool in enumerate(answers.get("tools", []), 1)
    )
    events = tuple(
        AnnouncedEvent(number, event["name"], parse_fields(event.get("fields", "")))
        for number, event in enumerate(answers.get("events", []), 1)
    )
    return scaffold(Registration(0, answers["device"], tools, events), Profile(answers.get("profile", "B")))


def _by_id(path: str) -> str:
    """The port's lasting name, if it has one."""
    if Path(path).parent.name == BY_ID.name:
        return Path(path).name
    target = Path(path).resolve()
    names = sorted(BY_ID.iterdir()) if BY_ID.is_dir() else []
    return next((link.name for link in names if link.resolve() == target), "")
