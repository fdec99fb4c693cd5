"""The part of etcd's v3 JSON gateway that mcpax speaks, as bytes of requests and answers.

Keys and values travel in base64, every int64 as a string, and whatever is zero is left out. Knows nothing of connections, nor of what the
keys mean.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class KeyValue:
    """A key as it stands."""

    key: str
    value: bytes
    mod_revision: int
    """The revision of the whole store at which this key was last written."""
    lease: int = 0
    """0: it stays until deleted."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A key that must stand as it was seen, for a transaction to be carried out."""

    key: str
    mod_revision: int
    """0: the key must be absent."""


@dataclass(frozen=True, slots=True)
class Put:
    key: str
    value: bytes
    lease: int = 0


@dataclass(frozen=True, slots=True)
class Delete:
    key: str
    mod_revision: int
    """Delete it only if it still stands as it was seen."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """All writes if all pins hold, and otherwise none.

    May be sent twice, and is when an answer is lost: pin a key that is put, and the second time does nothing.
    """

    pins: tuple[Pin, ...]
    writes: tuple[Put | Delete, ...]
    reads: tuple[str, ...] = ()
    """Keys to report if a pin does not hold."""


@dataclass(frozen=True, slots=True)
class TransactionResult:
    done: bool
    revision: int
    """If done, the mod_revision of all that was put."""
    found: Mapping[str, KeyValue]
    """If not done, those of `reads` that exist."""


@dataclass(frozen=True, slots=True)
class Event:
    key: str
    now: KeyValue | None
    """None: deleted, or gone with its lease."""
    revision: int


def transaction(asked: Transaction) -> Json:
    return {
        "compare": [_compare(pin) for pin in asked.pins],
        "success": [_write(write) for write in asked.writes],
        "failure": [{"request_range": {"key": _text(key)}} for key in asked.reads],
    }


def transaction_result(answer: Json) -> TransactionResult:
    found = (kv for part in answer.get("responses", ()) for kv in key_values(part.get("response_range", {})))
    return TransactionResult(bool(answer.get("succeeded")), revision_of(answer), {kv.key: kv for kv in found})


def prefix_range(prefix: str) -> Json:
    """Of all keys that begin like this."""
    if not prefix:
        raise ValueError("a prefix is needed: without one, the whole store would be read")
    end = prefix.encode()
    return {"key": _text(prefix), "range_end": base64.b64encode(end[:-1] + bytes((end[-1] + 1,))).decode()}


def key_values(answer: Json) -> Iterator[KeyValue]:
    for kv in answer.get("kvs", ()):
        yield _key_value(kv)


def events(result: Json) -> Iterator[Event]:
    for event in result.get("events", ()):
        kv = _key_value(event["kv"])
        yield Event(kv.key, None if event.get("type") == "DELETE" else kv, kv.mod_revision)


def revision_of(answer: Json) -> int:
    return int(answer["header"].get("revision", 0))


def _compare(pin: Pin) -> Json:
    if pin.mod_revision == 0:
        return {"key": _text(pin.key), "target": "CREATE", "result": "EQUAL", "create_revision": "0"}
    return {"key": _text(pin.key), "target": "MOD", "result": "EQUAL", "mod_revision": str(pin.mod_revision)}


def _write(write: Put | Delete) -> Json:
    if isinstance(write, Delete):
        deletion = {"request_delete_range": {"key": _text(write.key)}}
        return {"request_txn": {"compare": [_compare(Pin(write.key, write.mod_revision))], "success": [deletion]}}
    value = base64.b64encode(write.value).decode()
    return {"request_put": {"key": _text(write.key), "value": value, "lease": str(write.lease)}}


def _key_value(kv: Json) -> KeyValue:
    # Others may write below our prefix what is no text: a key that reads strangely is better than a watch that ends.
    key = base64.b64decode(kv["key"]).decode(errors="replace")
    return KeyValue(key, base64.b64decode(kv.get("value", "")), int(kv.get("mod_revision", 0)), int(kv.get("lease", 0)))


def _text(key: str) -> str:
    return base64.b64encode(key.encode()).decode()
