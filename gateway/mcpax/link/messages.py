"""JSON-RPC messages on a link, and the one character before each that says which of its two directions it belongs to.

Upward the child asks and the parent answers (`mcpax/register` …); downward the parent asks and the child answers (`tools/call` …). The
two are separate sessions with ids of their own: otherwise a cancellation or a sign of progress could be taken for the other's. Parameters
and results stay the bytes they came in. Pure; knows nothing of sockets or methods.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from mcpax.errors import Fault

MAX_MESSAGE_BYTES = 8 << 20
"""A longer message ends the link: a result of this size is nobody's sensor."""
MAX_ERROR_CHARS = 4000


class Direction(StrEnum):
    UP = "U"
    DOWN = "D"


class Message(msgspec.Struct, omit_defaults=True, frozen=True):
    """Request, notification or response, told apart by what is set."""

    jsonrpc: str
    id: int | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: RemoteError | UnsetType = UNSET


class RemoteError(msgspec.Struct, omit_defaults=True, frozen=True):
    code: int
    message: str
    data: dict[str, Any] | None = None


class BadMessage(ValueError):
    """Not a message of a link; says what is wrong with it."""


_decoder = msgspec.json.Decoder(Message)


def decode(text: str) -> tuple[Direction, Message]:
    try:
        direction = Direction(text[:1])
    except ValueError:
        raise BadMessage(f"a message must begin with U or D, not {text[:1]!r}") from None
    try:
        message = _decoder.decode(text[1:])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadMessage(f"not a JSON-RPC message: {error}") from None
    if message.jsonrpc != "2.0":
        raise BadMessage('"jsonrpc" must be "2.0"')
    return direction, message


def request(direction: Direction, identifier: int, method: str, params: Any) -> str:
    return _text(direction, {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params})


def notification(direction: Direction, method: str, params: Any) -> str:
    return _text(direction, {"jsonrpc": "2.0", "method": method, "params": params})


def result(direction: Direction, identifier: int, value: Any) -> str:
    return _text(direction, {"jsonrpc": "2.0", "id": identifier, "result": value})


def error(direction: Direction, identifier: int, fault: Fault) -> str:
    told = {"code": fault.code, "message": fault.message[:MAX_ERROR_CHARS], "data": fault.data()}
    return _text(direction, {"jsonrpc": "2.0", "id": identifier, "error": told})


def _text(direction: Direction, message: dict[str, Any]) -> str:
    return direction + msgspec.json.encode(message).decode()
