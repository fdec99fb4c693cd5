"""Every fault of a device map is told, on its line, with a hint; any text whatever is survived."""

import json
import re
from pathlib import Path

import cbor2
import pytest
from cobs import cobs
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpax.bridge.maps.load import check_map, check_text, load_map, load_text
from mcpax.bridge.maps.model import Encoding, Profile
from mcpax.bridge.wire.dialect import dialect_for
from mcpax.bridge.wire.framing import CobsFraming
from mcpax.bridge.wire.messages import Response, WireError
from mcpax.bridge.wire.profile_b import decode, encode_call
from mcpax.capability import Capability, InvalidCapability, TransportClass
from mcpax.documents.faults import DocumentError

MAPS = sorted((Path(__file__).parents[3] / "device-maps").glob("*.toml"))

HEAD_B = '[device]\nname = "d"\nprofile = "B"\nversion = "1.2.3"\n'
HEAD_A = HEAD_B.replace('"B"', '"A"')
TOOL = '[[tool]]\nid = 1\nname = "t"\ndescription = "x"\n'
ARG = '[[tool.arg]]\nname = "a"\n'  # lines 9 and 10 after a head and a tool


@pytest.mark.parametrize("path", MAPS, ids=lambda path: path.stem)
def test_shipped_maps_have_no_fault(path: Path) -> None:
    assert check_map(path) == []


@pytest.mark.parametrize("path", MAPS, ids=lambda path: path.stem)
def test_transport_follows_from_the_profile_and_schema_version_from_the_device(path: Path) -> None:
    device = load_map(path)
    expected = TransportClass.UART_BYTES if device.profile is Profile.A else TransportClass.UART_CBOR
    for tool in device.tools:
        assert tool.capability.transport is expected
        assert tool.capability.schema_version == device.version


def test_schema_version_may_be_stated() -> None:
    device = load_text(HEAD_B + TOOL + 'capability = { schema_version = "3.0.0" }', "x")
    assert device.tools[0].capability.schema_version == "3.0.0"


def test_a_dead_mans_switch_may_wait_for_just_two_heartbeats() -> None:
    assert load_text(HEAD_B + TOOL + "[port]\nheartbeat_ms = 500\ndeadman_ms = 1500", "x").port.deadman_ms == 1500
    assert load_text(HEAD_B + TOOL, "x").port.deadman_ms == 0


def test_unannotated_means_mutable_and_irreversible() -> None:
    assert load_text(HEAD_B + TOOL, "x").tools[0].capability.irreversible_mutable


def arg(rest: str) -> str:
    return HEAD_B + TOOL + ARG + rest


FAULTS = {
    # name: (text, line, part of where, part of message, part of hint)
    "syntax": (HEAD_B + "[port]\nbaud = fast", 6, "", "not TOML: invalid value", "quotes"),
    "unclosed": (HEAD_B + "x = [1,\n2\n\n[port]\n", 5, "", "unclosed array", "opened here"),
    "twice": (HEAD_B + TOOL + "id = 2", 9, "", "cannot overwrite", "header missing"),
    "unknown key": (
        HEAD_B + TOOL + '[[tool.result]]\nname = "r"\ntype = "u8"\nuint = "V"', 12, 'tool "t" result 1 "r"', "unknown", '"unit"'),
    "unknown table": (HEAD_B + TOOL + "[prot]", 9, "", '"prot"', '"port"'),
    "missing key": ('[device]\nname = "d"\nprofile = "B"\n' + TOOL, 1, "device", "version is missing", "1.0.0"),
    "missing device": (TOOL, 1, "", "device is missing", "board"),
    "missing name": (HEAD_B + '[[tool]]\nid = 1\ndescription = "x"', 5, "tool 1", "name is missing", "a-z"),
    "wrong kind": (HEAD_B + '[port]\nbaud = "9600"', 6, "port", 'must be an integer, not "9600"', "9600 to"),
    "flag": (HEAD_B + "[port]\nreset_on_open = 1", 6, "port", "true or false", "DTR"),
    "tool as table": (HEAD_B + "[tool]\nid = 1", 5, "", "array of tables", "[[tool]]"),
    "item not a table": ("tool = [\n1]\n" + HEAD_B, 2, "tool 1", "must be a table, not 1", "[[tool]]"),
    "choice": (arg('type = "u9"'), 11, 'arg 1 "a"', '"u9"', "u8"),
    "empty text": (HEAD_B + '[[tool]]\nid = 1\nname = "t"\ndescription = " "', 8, 'tool "t"', "empty", "model"),
    "device name": (HEAD_B.replace('"d"', '"My Device"') + TOOL, 2, "device", "bad name", "a-z"),
    "dotted name": (HEAD_B + TOOL.replace('"t"', '"a.b"'), 7, 'tool "a.b"', "dot", "aggregators"),
    "version": (HEAD_B.replace("1.2.3", "1.2") + TOOL, 4, "device", '"1.2"', "1.0.0"),
    "field name": (HEAD_B + TOOL + '[[tool.arg]]\nname = "A"\ntype = "u8"', 10, 'arg 1 "A"', "bad name", "a-z"),
    "id low": (HEAD_B + TOOL.replace("id = 1", "id = 0"), 6, 'tool "t"', "id 0", "1 to 255"),
    "id high": (HEAD_B + TOOL.replace("id = 1", "id = 256"), 6, 'tool "t"', "id 256", "1 to 255"),
    "id twice": (HEAD_B + TOOL + TOOL.replace('"t"', '"u"'), 10, 'tool "u"', "already taken by tool 1", "2 is free"),
    "name twice": (HEAD_B + TOOL + TOOL.replace("id = 1", "id = 2"), 11, 'tool "t"', "twice", "own"),
    "name twice in C": (
        HEAD_B + TOOL.replace('"t"', '"a-b"') + TOOL.replace("id = 1", "id = 2").replace('"t"', '"a_b"'), 11, 'tool "a_b"', "in C", "'_'"),
    "field twice": (arg('type = "u8"\n' + ARG + 'type = "u8"'), 13, 'arg 2 "a"', "twice", "own"),
    "no tools": (HEAD_B, 1, "", "neither", "[[tool]]"),
    "min over max": (arg('type = "u8"\nmin = 5\nmax = 4'), 13, 'arg 1 "a"', "less than min 5", "swap"),
    "max beyond type": (arg('type = "u8"\nmax = 256'), 12, 'arg 1 "a"', "256 does not fit u8", "0 to 255"),
    "min beyond type": (arg('type = "u8"\nmin = -1'), 12, 'arg 1 "a"', "-1 does not fit u8", "0 to 255"),
    "max beyond scale": (arg('type = "u8"\nscale = 0.5\nmax = 128'), 13, 'arg 1 "a"', "with scale 0.5", "0 to 127.5"),
    "limit between steps": (arg('type = "u8"\nscale = 0.5\nmax = 3.3'), 13, 'arg 1 "a"', "between two steps", "like 3.0"),
    "fraction of an integer": (arg('type = "u8"\nmax = 3.5'), 12, 'arg 1 "a"', "between two steps", "or a scale"),
    "limit of f32": (arg('type = "f32"\nmax = 1e39'), 12, 'arg 1 "a"', "does not fit f32", "e+38"),
    "limit not finite": (arg('type = "f32"\nmax = inf'), 12, 'arg 1 "a"', "must be a number", "Largest"),
    "limit of text": (arg('type = "text"\nmax_len = 4\nmax = 4'), 13, 'arg 1 "a"', "does not go with", "max_len"),
    "default out of range": (arg('type = "u8"\nmax = 4\ndefault = 5'), 13, 'arg 1 "a"', "5 is out of range", "unit"),
    "default of wrong type": (arg('type = "bool"\ndefault = 1'), 12, 'arg 1 "a"', "default 1", "argument"),
    "default not a label": (arg('type = "u8"\nenum = { on = 1 }\ndefault = 1'), 13, 'arg 1 "a"', "default 1", "argument"),
    "default without type": (HEAD_B + TOOL + ARG + "default = 5", 9, 'arg 1 "a"', "type is missing", "u8"),
    "default and bad length": (arg('type = "text"\nmax_len = 0\ndefault = "x"'), 12, 'arg 1 "a"', "max_len 0", "1 to 4096"),
    "default of a struct": (
        HEAD_A + TOOL + ARG + 'type = "bytes"\nmax_len = 3\ndefault = "AAA="', 13, 'arg 1 "a"', "2 bytes given", "argument"),
    "default of a result": (
        HEAD_B + TOOL + '[[tool.result]]\nname = "a"\ntype = "u8"\ndefault = 5', 12, 'result 1 "a"', '"default"', "known here"),
    "enum on text": (arg('type = "text"\nmax_len = 4\nenum = { a = 1 }'), 13, 'arg 1 "a"', "does not go with", "u8"),
    "enum out of range": (arg('type = "u8"\nenum = { a = 1, b = 256 }'), 12, 'arg 1 "a" enum', "256", "0 to 255"),
    "enum not integer": (arg('type = "u8"\n[tool.arg.enum]\na = 1\nb = true'), 14, 'arg 1 "a" enum', "true", "0 to 255"),
    "enum number twice": (arg('type = "u8"\nenum = { a = 1, b = 1 }'), 12, 'arg 1 "a" enum', 'as "a" does', "one label"),
    "enum label": (arg('type = "u8"\nenum = { "A b" = 1 }'), 12, 'arg 1 "a" enum', "bad label", "a-z"),
    "enum label twice in C": (arg('type = "u8"\nenum = { a-b = 1, a_b = 2 }'), 12, 'arg 1 "a" enum', "in C", "'_'"),
    "enum empty": (arg('type = "u8"\nenum = {}'), 12, 'arg 1 "a"', "empty", "off"),
    "enum with limits": (arg('type = "u8"\nenum = { a = 1 }\nmax = 1'), 13, 'arg 1 "a"', "max does not go with an enum", "remove"),
    "max_len missing": (arg('type = "bytes"'), 9, 'arg 1 "a"', "max_len is missing", "max_len = 16"),
    "max_len too large": (arg('type = "bytes"\nmax_len = 5000'), 12, 'arg 1 "a"', "max_len 5000", "1 to 4096"),
    "max_len of a number": (arg('type = "u8"\nmax_len = 5'), 12, 'arg 1 "a"', "does not go with", "max"),
    "scale on text": (arg('type = "text"\nmax_len = 4\nscale = 2'), 13, 'arg 1 "a"', "scale does not go with", "integer"),
    "scale on bool": (arg('type = "bool"\nscale = 2'), 12, 'arg 1 "a"', "scale does not go with", "integer"),
    "scale zero": (arg('type = "u8"\nscale = 0'), 12, 'arg 1 "a"', "scale 0", "0.01"),
    "too many fields": (
        HEAD_B + TOOL + "".join(f'[[tool.arg]]\nname = "a{n}"\ntype = "u8"\n' for n in range(9)), 9, 'tool "t"', "9 of arg", "split"),
    "payload": (arg('type = "bytes"\nmax_len = 512'), 9, 'tool "t"', "517 bytes, more than max_payload 512", "max_payload"),
    "payload of a result": (
        HEAD_A + TOOL + '[[tool.result]]\nname = "a"\ntype = "bytes"\nmax_len = 512', 9, 'tool "t"', "513 bytes", "max_payload"),
    "raw": (HEAD_A + TOOL + 'encoding = "raw"\n' + ARG + 'type = "u8"', 10, 'tool "t"', "raw encoding", "struct"),
    "tlv": (HEAD_A + TOOL + 'encoding = "tlv"\n' + ARG + 'type = "text"\nmax_len = 256', 13, 'arg 1 "a"', "too long for tlv", "255"),
    "encoding in B": (HEAD_B + TOOL + 'encoding = "raw"', 9, 'tool "t"', "profile A only", "remove"),
    "crc in B": (HEAD_B + TOOL + '[frame]\ncrc = "crc8"', 10, "frame", "profile A only", "remove"),
    "max_payload": (HEAD_A + TOOL + "[frame]\nmax_payload = 32765", 10, "frame", "32765", "16 to 32764"),
    "capability value": (HEAD_B + TOOL + 'capability = { mutable = "no" }', 9, 'tool "t" capability', "mutable must be", "changes"),
    "capability key": (HEAD_B + TOOL + "capability.mutabel = true", 9, 'tool "t" capability', "mutabel", '"mutable"'),
    "transport": (HEAD_B + TOOL + 'capability = { transport = "uart_cbor" }', 9, 'tool "t" capability', "transport", "profile"),
    "baud": (HEAD_B + TOOL + "[port]\nbaud = 9599", 10, "port", "baud 9599", "9600 to"),
    "heartbeat": (HEAD_B + TOOL + "[port]\nheartbeat_ms = 50", 10, "port", "50", "100 to"),
    "deadman": (HEAD_B + TOOL + "[port]\nheartbeat_ms = 500\ndeadman_ms = 1499", 11, "port", "1499 is so short", "1500"),
    "deadman and usual heartbeat": (HEAD_B + TOOL + "[port]\ndeadman_ms = 14999", 10, "port", "heartbeat of 5000 ms", "15000"),
    "match empty": (HEAD_B + TOOL + "[port]\nmatch = {}", 10, "port match", "any port", "by_id"),
    "by_id path": (HEAD_B + TOOL + '[port.match]\nby_id = "/dev/serial/by-id/x"', 10, "port match", "not a path", "glob"),
    "by_id empty": (HEAD_B + TOOL + '[port.match]\nby_id = ""', 10, "port match", "empty", "pattern"),
    "vid": (HEAD_B + TOOL + "[port.match]\nvid = 0x10000", 10, "port match", "65536", "0 to 65535"),
    "pid alone": (HEAD_B + TOOL + "[port.match]\npid = 1", 10, "port match", "pid without vid", "vendor"),
    "glob relative": (HEAD_B + TOOL + '[port.match]\nglob = "ttyS0"', 10, "port match", "absolute", "/dev/"),
    "glob unstable": (HEAD_B + TOOL + '[port.match]\nglob = "/dev/ttyUSB*"', 10, "port match", "one board from another", "by_id"),
    "registration": (
        HEAD_B + "".join(f'[[tool]]\nid = {n}\nname = "{"t" * 50}{n}"\ndescription = "x"\n' for n in range(1, 25)),
        5, "", "registration would take", "shorter"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_fault(name: str) -> None:
    text, line, where, message, hint = FAULTS[name]
    [fault] = check_text(text, "some.toml")
    assert (fault.file, fault.line) == ("some.toml", line)
    assert fault.where.endswith(where)
    assert message in fault.message
    assert hint in fault.hint


DRAFT_VALUES: dict[str, list[object]] = {
    "latency_class": ["realtime", "fast", "standard", "slow", "batch"],
    "consistency": ["strong", "eventual", "best_effort"],
    "mutable": [True, False],
    "reversible": [True, False],
    "idempotent": [True, False],
    "transport": ["native", "uart_cbor", "ble_cbor"],
    "auth_scope": ["read", "write", "admin"],
    "cost_class": ["free", "metered", "expensive"],
    "availability": ["always", "scheduled", "best_effort", "degraded"],
    "schema_version": ["1.0.0", "2.3.4-rc.1"],
}


@pytest.mark.req("AX-9.1-1")
@pytest.mark.parametrize("key", DRAFT_VALUES)
def test_annotation_takes_the_drafts_values_and_refuses_others(key: str) -> None:
    for good in DRAFT_VALUES[key]:
        assert Capability.parse({key: good}).to_json()[key] == good
        if key != "transport":  # which the gateway sets
            assert check_text(HEAD_B + TOOL + f"capability = {{ {key} = {json.dumps(good)} }}", "x") == []
    wrong: list[object] = ["sometimes", 1, []]
    for bad in [*wrong, "", 0, None]:
        with pytest.raises(InvalidCapability):
            Capability.parse({key: bad})
    for bad in wrong:
        [fault] = check_text(HEAD_B + TOOL + f"capability = {{ {key} = {json.dumps(bad)} }}", "x")
        assert (fault.line, key in fault.message) == (9, True)


@pytest.mark.parametrize(("baud", "faults"), [(9599, 1), (9600, 0), (115200, 0)])
def test_lines_start_at_9600_baud(baud: int, faults: int) -> None:
    assert len(check_text(HEAD_B + TOOL + f"[port]\nbaud = {baud}", "x")) == faults


@pytest.mark.req("AX-B.2-2")
def test_profile_b_is_9600_baud_or_more_cobs_and_maps() -> None:
    assert check_text(HEAD_B + TOOL + "[port]\nbaud = 9599", "x")
    assert not check_text(HEAD_B + TOOL + "[port]\nbaud = 9600", "x")
    frame = CobsFraming().encode(encode_call(0, 1, {0: 0}))
    assert frame.index(0) == len(frame) - 1
    message = cobs.decode(frame[:-1])[:-2]  # without the CRC
    assert isinstance(cbor2.loads(message), dict)
    for other in ([0, 2], 2, "x", None):
        with pytest.raises(WireError, match="expected a CBOR map"):
            decode(cbor2.dumps(other))


@pytest.mark.req("AX-B.1-3")
@pytest.mark.parametrize("encoding", list(Encoding))
def test_a_map_chooses_the_layout_of_a_payload(encoding: Encoding) -> None:
    fields = '[[tool.{0}]]\nname = "a"\ntype = "bytes"\nmax_len = 3\n'
    if encoding is not Encoding.RAW:
        fields += '[[tool.{0}]]\nname = "b"\ntype = "u16"\n'
    device = load_text(HEAD_A + TOOL + f'encoding = "{encoding}"\n' + fields.format("arg") + fields.format("result"), "x")
    tool, dialect = device.tools[0], dialect_for(device)
    layout = {Encoding.STRUCT: b"abc\x07\x00", Encoding.TLV: b"\x01\x03abc\x02\x02\x07\x00", Encoding.RAW: b"abc"}[encoding]
    raw = [b"abc", 7][: len(tool.args)]
    assert dialect.call(tool, 5, raw) == b"\x01\x01\x05" + layout
    response = dialect.decode(b"\x02\x01\x05\x00" + layout)  # response, tool, sequence, status
    assert isinstance(response, Response)
    assert (response.seq, response.status, dialect.result(tool, response.payload)) == (5, 0, raw)


def test_all_faults_are_told_in_the_order_of_the_file() -> None:
    text = '[device]\nname = "X"\nprofile = "C"\n[port]\nbaud = 1\n[[tool]]\nid = 0\nfoo = 1\n[[tool.arg]]\ntype = "u8"\nmax = 999\n'
    faults = check_text(text, "x")
    assert [fault.line for fault in faults] == [1, 2, 3, 5, 6, 6, 7, 8, 9, 11]
    assert all(fault.hint for fault in faults)


def test_all_syntax_faults_are_told() -> None:
    text = "a = yes\n[b\nc = 1\n\nd = 'open\ne = 2\n"
    assert [fault.line for fault in check_text(text, "x")] == [1, 2, 5]


def test_load_raises_with_all_faults() -> None:
    with pytest.raises(DocumentError) as caught:
        load_text("a = 1\nb = 2", "x")
    assert len(caught.value.faults) == 3  # both keys, and the device that is missing
    assert "x:2" in str(caught.value)


def test_unreadable_files_are_faults_too(tmp_path: Path) -> None:
    [missing] = check_map(tmp_path / "no.toml")
    assert "No such file" in missing.message
    (tmp_path / "bad.toml").write_bytes(b"a = 1\nb = '\xff'")
    [encoding] = check_map(tmp_path / "bad.toml")
    assert (encoding.line, "UTF-8" in encoding.message) == (2, True)


def assert_survived(text: str) -> None:
    faults = check_text(text, "x")
    lines = text.count("\n") + 1
    for fault in faults:
        assert 1 <= fault.line <= lines
        assert fault.message
        assert fault.hint
    if not faults:
        load_text(text, "x")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_is_survived(text: str) -> None:
    assert_survived(text)


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 2000, "a = " + "9" * 5000, "a = 0x" + "f" * 9000, "[port]\nbaud = 0x" + "f" * 9000, "\ufeff"]
)
def test_hostile_texts_are_survived(text: str) -> None:
    assert check_text(text, "x")
    assert_survived(text)


TOKENS = ["[", "]", "[[", "]]", "=", "{", "}", '"', "'''", "tool", "device", "enum", "default", "max", "type"]
VALUES = ["-1", "256", "1e400", "nan", "true", "0.1", '"u8"', '"text"', '"B"', "1979-05-27", "[]", "{}", "[1]", "0xffffffffffffffffff"]
LINES = ["\n", "[[tool]]\n", "[[tool.arg]]\n", "[tool.arg]\n", "port = 1\n", "\ndefault = 1\n"]


@settings(max_examples=300, deadline=None)  # an open bracket makes the search for its line longer
@given(st.sampled_from(MAPS), st.data())
def test_damaged_maps_are_survived(path: Path, data: st.DataObject) -> None:
    pieces = re.findall(r"\w+|\s+|[^\w\s]", path.read_text())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(pieces) - 1))
        cut = data.draw(st.integers(0, 6))
        pieces[at : at + cut] = data.draw(st.lists(st.sampled_from(TOKENS + VALUES + LINES), max_size=2))
    assert_survived("".join(pieces))
