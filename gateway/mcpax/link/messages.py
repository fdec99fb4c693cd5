"""JSON-RPC messages on a link, and the one character before each that says which of its two directions it belongs to.

Upward the child asks and the parent answers (`mcpax/register` …); downward the parent asks and the child answers (`tools/call` …). The
two are separate sessions with ids of their own: otherwise a cancellation or a sign of progress could be taken for the other's. Parameters
and results stay the bytes they came in. Pure; knows nothing of sockets or methods.
"""

from __future__ import annotations

from enum import StrEnum
from math import isfinite
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from mcpax.errors import ErrorKind, Fault, Outcome

T = TypeVar("T")

MAX_MESSAGE_BYTES = 8 << 20
"""A longer message ends the link: a result of this size is nobody's sensor."""
MAX_ERROR_CHARS = 4000
MAX_ERROR_DATA_BYTES = 64 << 10
"""What an error says besides its message. Read and written anew at each hop it may grow, and must not cost the link above."""


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
    code: Annotated[int, Meta(ge=-(1 << 31), lt=1 << 31)]
    message: str
    data: Any = None

    def details(self) -> dict[str, Any] | None:
        """The data as an object, which ours always is; JSON-RPC lets others send any value."""
        return self.data if self.data is None or isinstance(self.data, dict) else {"data": self.data}


class BadMessage(ValueError):
    """Not a message of a link; says what is wrong with it."""


_decoder = msgspec.json.Decoder(Message)
_UNWRITABLE = (TypeError, ValueError, OverflowError, RecursionError)


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


def read(raw: Raw, kind: type[T], fault: ErrorKind = ErrorKind.INVALID_PARAMS) -> T:
    """Parameters or a result as what they should be, or `Fault`: nothing has been done with them yet."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Fault(fault, f"Not as expected: {error!s:.300}.", outcome=Outcome.NOT_EXECUTED) from None


def request(direction: Direction, identifier: int, method: str, params: Any) -> str:
    """Raises `BadMessage` for what cannot be said on a link."""
    return _sendable(direction, {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params})


def notification(direction: Direction, method: str, params: Any) -> str:
    """Raises `BadMessage` for what cannot be said on a link."""
    return _sendable(direction, {"jsonrpc": "2.0", "method": method, "params": params})


def result(direction: Direction, identifier: int, value: Any) -> str:
    return _text(direction, {"jsonrpc": "2.0", "id": identifier, "result": value})


def error(direction: Direction, identifier: int, fault: Fault) -> str:
    message = fault.message[:MAX_ERROR_CHARS].encode(errors="replace").decode()
    told = {"code": fault.code, "message": message, "data": _error_data(fault.data())}
    return _text(direction, {"jsonrpc": "2.0", "id": identifier, "error": told})


def too_long(text: str) -> int:
    """The size in bytes if it is more than a link takes, else 0."""
    if len(text) <= MAX_MESSAGE_BYTES // 4:  # a character takes four bytes at most; only long texts are measured
        return 0
    size = len(text.encode())
    return size if size > MAX_MESSAGE_BYTES else 0


def _error_data(data: dict[str, Any]) -> Any:
    try:
        raw = msgspec.json.encode(data)
    except _UNWRITABLE as error:
        return {"withheld": f"it cannot be written as JSON ({type(error).__name__})"}
    return Raw(raw) if len(raw) <= MAX_ERROR_DATA_BYTES else {"withheld": f"{len(raw)} bytes, at most {MAX_ERROR_DATA_BYTES} pass a link"}


def _sendable(direction: Direction, message: dict[str, Any]) -> str:
    try:
        text = _text(direction, message)
    except _UNWRITABLE as error:
        raise BadMessage(f"not to be written as JSON: {error}") from None
    if "null" in text and not _finite(message["params"]):
        raise BadMessage("not to be written as JSON: a number that is not finite")
    if size := too_long(text):
        raise BadMessage(f"{size} bytes, at most {MAX_MESSAGE_BYTES} pass a link")
    return text


def _finite(value: Any) -> bool:
    """Infinities would be written as null, which is another value."""
    if isinstance(value, dict):
        return all(map(_finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_finite, value))
    return not isinstance(value, float) or isfinite(value)


def _text(direction: Direction, message: dict[str, Any]) -> str:
    return direction + msgspec.json.encode(message).decode()
