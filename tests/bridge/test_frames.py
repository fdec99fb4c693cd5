"""Messages made readable for a sniffer: names and values, and never an exception whatever passes."""

from pathlib import Path
from typing import Any

import cbor2
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpax.bridge.frames import FrameReader
from mcpax.bridge.maps.load import load_map
from mcpax.bridge.wire import profile_b
from mcpax.bridge.wire.dialect import dialect_for
from tests.vectors.read import Vector, unhex, vectors

MAPS = Path(__file__).resolve().parents[1] / "firmware" / "maps"
A, B = (load_map(MAPS / f"vector-{name}.toml") for name in ("a", "b"))
HUGE = 1 << 16_000


def read(said: dict[Any, Any], direction: str = "rx", reader: FrameReader | None = None) -> dict[str, Any]:
    return (reader or FrameReader(B)).read(direction, cbor2.dumps(said))


def test_a_conversation_of_profile_b() -> None:
    reader = FrameReader(B)
    assert read({0: 2, 1: 1, 2: 7, 3: 1, 4: {0: 5, 1: -3}}, "tx", reader) == {
        "kind": "call",
        "seq": 7,
        "tool": "add",
        "arguments": {"a": 5, "b": -3},
    }
    assert read({0: 2, 2: 7, 5: {0: 2}}, "rx", reader) == {
        "kind": "response",
        "seq": 7,
        "tool": "add",
        "status": "ok",
        "result": {"sum": 2},
    }
    assert read({0: 2, 2: 7, 6: 64}, "rx", reader) == {"kind": "response", "seq": 7, "tool": "add", "status": "device error 64"}
    assert read({0: 2, 1: 4, 2: 7, 8: 513}, "tx") == {"kind": "heartbeat", "seq": 7, "boot_id": 513}
    assert read({0: 2, 1: 4, 2: 7, 7: 0xBEEF, 8: 513, 9: 1, 12: 2}) == {
        "kind": "heartbeat",
        "seq": 7,
        "boot_id": 513,
        "synchronised": True,
        "window": 2,
        "map_hash": "0000beef",
    }
    assert read({0: 2, 1: 3}, "tx") == {"kind": "announce"}
    assert read({0: 2, 1: 5, 3: 1, 13: 4, 5: {0: 513}}) == {"kind": "event", "event": "bell", "count": 4, "data": {"times": 513}}


def test_a_registration() -> None:
    told = FrameReader(B).read("rx", profile_b.encode_registration(B))
    assert (told["kind"], told["name"], told["map_hash"]) == ("registration", "vector-b", f"{B.hash:08x}")
    assert told["tools"] == {tool.name: tool.id for tool in B.tools}


def test_profile_a_says_itself_which_tool_answers() -> None:
    reader = FrameReader(A)
    assert reader.read("tx", bytes.fromhex("01010a 0100 0200"))["arguments"] == {"a": 1, "b": 2}
    assert reader.read("rx", bytes.fromhex("02010a 00 03000000"))["result"] == {"sum": 3}
    assert reader.read("rx", bytes.fromhex("02050a 00 03000000"))["tool"] == "count"
    assert reader.read("rx", bytes.fromhex("040005 1234 01 01"))["map_hash"] is None


@pytest.mark.parametrize(
    ("direction", "said", "part", "shown"),
    [
        ("tx", {0: 2, 1: 1, 2: 7, 3: 99, 4: {0: b"\1"}}, "arguments", {"0": {"base64": "AQ=="}}),
        ("tx", {0: 2, 1: 1, 2: 7, 3: 1, 4: {0: 5}}, "arguments", {"unreadable": {"0": 5}, "reason": "expected fields [0, 1], got 0"}),
        ("rx", {0: 2, 2: 7, 5: [1, {"a": None}]}, "result", [1, {"a": None}]),
        ("rx", {0: 2, 2: 7, 5: {HUGE: HUGE}}, "result", {hex(HUGE): hex(HUGE)}),
        ("rx", {0: 2, 2: 7, 5: 1 << 63}, "result", hex(1 << 63)),
        ("rx", {0: 2, 2: 7, 5: -(1 << 63)}, "result", hex(-(1 << 63))),
        ("rx", {0: 2, 2: 7, 5: (1 << 63) - 1}, "result", (1 << 63) - 1),
        ("rx", {0: 2, 2: 7, 5: cbor2.CBORSimpleValue(99)}, "result", "CBORSimpleValue(99)"),
        ("rx", {0: 2, 1: 5, 3: 77, 13: 0, 5: {0: True}}, "data", {"0": True}),
        ("rx", {0: 2, 1: 5, 3: 1, 13: 0, 5: {0: "x"}}, "data", None),
    ],
)
def test_what_cannot_be_read_is_shown_as_it_is(direction: str, said: dict[Any, Any], part: str, shown: Any) -> None:
    told = read(said, direction)
    assert msgspec.json.encode(told)
    if shown is None:
        assert told[part]["unreadable"] == {"0": "x"}
        assert told[part]["reason"]
    else:
        assert told[part] == shown


def test_unknown_tools_and_events_keep_their_numbers() -> None:
    assert read({0: 2, 1: 1, 2: 7, 3: 99, 4: {}}, "tx")["tool"] == 99
    assert read({0: 2, 1: 5, 3: 77, 13: 0})["event"] == 77
    assert read({0: 2, 2: 9, 5: {}})["tool"] is None


simple = st.one_of(
    st.integers(),
    st.just(16_000).map(lambda bits: 1 << bits),
    st.floats(),
    st.booleans(),
    st.none(),
    st.text(max_size=3),
    st.binary(max_size=3),
)
anything = st.recursive(simple, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.integers(-2, 3) | simple, inner, max_size=3))
messages = st.dictionaries(st.integers(0, 14), st.one_of(st.integers(0, 8), anything), max_size=9).map(lambda said: {0: 2, **said})


@given(st.lists(st.tuples(st.sampled_from(["tx", "rx"]), st.one_of(st.binary(max_size=40), st.builds(cbor2.dumps, messages))), max_size=5))
def test_whatever_passes_is_told_as_json(line: list[tuple[str, bytes]]) -> None:
    for device in (A, B):
        reader = FrameReader(device)
        for direction, message in line:
            assert msgspec.json.decode(msgspec.json.encode(reader.read(direction, message)))["kind"]


@pytest.mark.parametrize("vector", [v for v in vectors("in") if v.fields[0] in ("a/1/1", "b/1/1")], ids=str)
def test_what_the_stub_answered_in_the_vectors_is_readable(vector: Vector) -> None:
    device = A if vector.fields[0].startswith("a") else B
    dialect = dialect_for(device)
    reader = FrameReader(device)
    for message in dialect.framing.decoder(dialect.max_message).feed(unhex(vector.fields[3])):
        assert reader.read("rx", message)["kind"] in {"response", "heartbeat", "registration", "event"}
