"""The C header made from a device map."""

import re
import shutil
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpax.bridge.maps.header import render_header
from mcpax.bridge.maps.load import load_map, load_text
from mcpax.bridge.maps.model import DeviceMap
from mcpax.bridge.wire.dialect import dialect_for
from mcpax.bridge.wire.messages import Registration

ROOT = Path(__file__).resolve().parents[3]
MAPS = sorted((ROOT / "device-maps").glob("*.toml"))
STRINGS = ("text", "bytes")
LIBRARY = ROOT / "firmware/lib/mcpax"


def constants(header: str) -> dict[str, str]:
    return dict(re.findall(r"^#define (\w+) ([^/\n]+?)(?: /\*.*)?$", header, re.MULTILINE))


def table(header: str, name: str) -> list[list[str]]:
    body = re.search(rf"{name}\[\] MCPAX_ROM = {{\n(.*?)^}};", header, re.MULTILINE | re.DOTALL)
    assert body is not None
    return [row.split(", ") for row in re.findall(r"{(.*?)},", body[1])]


def number(cell: str) -> int:
    return int(re.sub(r"UINT(?:16|32)_C\((\w+)\)", r"\1", cell), 0)


def one_tool(fields: str, profile: str = "B", kind: str = "arg") -> DeviceMap:
    head = f'[device]\nname = "d"\nprofile = "{profile}"\nversion = "1.0.0"\n[[tool]]\nid = 1\nname = "t"\ndescription = "x"\n'
    return load_text(f"{head}[[tool.{kind}]]\n{fields}\n", "map")


def limits(fields: str) -> tuple[int, int]:
    low, span, _ = table(render_header(one_tool(f'name = "f"\n{fields}')), "mcpax_arguments")[0]
    return number(low), number(span)


@pytest.mark.parametrize("path", MAPS, ids=lambda path: path.stem)
def test_same_map_same_header(path: Path) -> None:
    assert render_header(load_map(path)) == render_header(load_map(path))


@pytest.mark.parametrize("path", MAPS, ids=lambda path: path.stem)
def test_hash_and_prototypes(path: Path) -> None:
    device = load_map(path)
    header = render_header(device)
    assert constants(header)["MCPAX_MAP_HASH"] == f"UINT32_C(0x{device.hash:08X})"
    for tool in device.tools:
        prototype = f"uint8_t mcpax_tool_{tool.name.replace('-', '_')}(const mcpax_value *args, mcpax_value *results);"
        assert header.count(prototype) == 1
        assert tool.description in header


@pytest.mark.req("AX-8.3-2")
@pytest.mark.parametrize("path", MAPS, ids=lambda path: path.stem)
def test_registration_frame_tells_the_map(path: Path) -> None:
    device = load_map(path)
    header, dialect = render_header(device), dialect_for(device)
    if not dialect.announces:
        assert "mcpax_registration" not in header
        return
    body = header.partition("mcpax_registration[] MCPAX_ROM = {")[2].partition("}")[0]
    frame = bytes(int(byte, 16) for byte in re.findall(r"0x(..)", body))
    assert len(frame) == int(constants(header)["MCPAX_REGISTRATION_LENGTH"])
    (message,) = dialect.framing.decoder(dialect.max_message).feed(frame)
    said = dialect.decode(message)
    assert isinstance(said, Registration)
    assert (said.device, said.map_hash) == (device.name, device.hash)
    assert [(tool.id, tool.name) for tool in said.tools] == [(tool.id, tool.name) for tool in device.tools]
    assert [(event.id, event.name) for event in said.events] == [(event.id, event.name) for event in device.events]


@pytest.mark.req("AX-8.3-1")
def test_profile_a_firmware_holds_numbers_only() -> None:
    """The names are in comments and identifiers, not in what is compiled."""
    header = render_header(load_map(ROOT / "device-maps/relay-board.toml"))
    assert '"' not in header.replace('#include "mcpax_types.h"', "")


def test_limits_of_integers() -> None:
    assert limits('type = "u8"') == (0, 255)
    assert limits('type = "i16"\nscale = 0.01\nmin = -40\nmax = 85') == (-4000 & 0xFFFF, 12500)
    assert limits('type = "i32"') == (0x80000000, 0xFFFFFFFF)
    assert limits('type = "u32"\nmin = 1') == (1, 0xFFFFFFFE)
    assert limits('type = "u8"\nenum = { a = 3, b = 9 }') == (3, 6)
    assert limits('type = "bool"') == (0, 1)
    assert limits('type = "text"\nmax_len = 12') == (0, 12)


def fields(*types: str) -> str:
    """So many fields of one tool; those of text and bytes are short."""
    lines = [f'name = "f{place}"\ntype = "{kind}"\n' + "max_len = 4\n" * (kind in STRINGS) for place, kind in enumerate(types)]
    return "[[tool.arg]]\n".join(lines)


@pytest.mark.parametrize(
    ("types", "bits"), [(["u8"], 16), (["u16", "i16", "bool", "bytes"], 16), (["u32"], 32), (["u8", "i32"], 32), (["f32"], 32)]
)
def test_numbers_are_as_wide_as_the_widest_field(types: list[str], bits: int) -> None:
    header = render_header(one_tool(fields(*types)))
    defined = constants(header)
    assert defined["MCPAX_VALUE_BITS"] == str(bits)
    assert (defined["MCPAX_UNSIGNED_TYPE"], defined["MCPAX_SIGNED_TYPE"]) == (f"uint{bits}_t", f"int{bits}_t")
    assert all(cell.startswith(f"UINT{bits}_C(") for row in table(header, "mcpax_arguments") for cell in row[:2])


def test_types_in_use_are_told_as_bits_of_their_codes() -> None:
    defined = constants(render_header(one_tool(fields("bool", "u8", "u8", "f32"))))
    assert int(defined["MCPAX_ARGUMENT_TYPES"].rstrip("u"), 16) == 1 << 0 | 1 << 1 | 1 << 7
    assert int(defined["MCPAX_OUTPUT_TYPES"].rstrip("u"), 16) == 0
    assert (defined["MCPAX_USES_F32"], defined["MCPAX_USES_STRINGS"]) == ("1", "0")
    assert constants(render_header(one_tool(fields("text"))))["MCPAX_USES_STRINGS"] == "1"


@pytest.mark.parametrize(
    ("profile", "kind", "rows", "kinds"),
    [
        ("B", "u16", None, "0x00"),  # Profile B tells integers apart by their sign alone
        ("B", "i16", None, "0x01"),
        ("B", "bool", [["MCPAX_BOOL"]], "mcpax_outputs + 0"),
        ("B", "bytes", [["4", "MCPAX_BYTES"]], "mcpax_outputs + 0"),
        ("A", "u16", [["0", "MCPAX_U16"]], "mcpax_outputs + 0"),
    ],
)
def test_results_have_rows_where_a_stub_must_know_more_than_their_sign(
    profile: str, kind: str, rows: list[list[str]] | None, kinds: str
) -> None:
    header = render_header(one_tool(fields(kind), profile, kind="result"))
    assert ("mcpax_outputs" in header) == (rows is not None)
    assert rows is None or table(header, "mcpax_outputs") == rows
    ((handler, arguments, told, *numbers),) = table(header, "mcpax_tools")
    assert (handler, arguments, told) == ("mcpax_tool_t", "mcpax_arguments + 0", kinds)
    assert numbers == ["1", "0", "1", *(["MCPAX_STRUCT"] if profile == "A" else [])]


@pytest.mark.parametrize(("ids", "places"), [([1, 2, 3], "1"), ([1, 3], "0"), ([2, 1], "0")])
def test_tools_numbered_in_order_need_no_search(ids: list[int], places: str) -> None:
    device = one_tool(fields("u8"))
    tools = tuple(replace(device.tools[0], id=number, name=f"t{number}") for number in ids)
    assert constants(render_header(replace(device, tools=tools)))["MCPAX_TOOL_IDS_ARE_PLACES"] == places


@pytest.mark.parametrize(
    ("path", "name", "cells"),
    [
        ("env-sensor", "EVENT_OVERHEAT", "1, 1, 0x01"),
        ("relay-board-b", "EVENT_BUTTON", "1, 1, 0x00"),
        ("relay-board", "EVENT_BUTTON", "1, 1, mcpax_outputs + 5, MCPAX_STRUCT"),
    ],
)
def test_an_events_name_is_all_that_a_stub_must_know_of_it(path: str, name: str, cells: str) -> None:
    """Its id, how many fields it has and of which kind: the arguments of mcpax_notify before the values."""
    assert constants(render_header(load_map(ROOT / f"device-maps/{path}.toml")))[name] == cells


def test_port_of_the_firmware() -> None:
    valve = constants(render_header(load_map(ROOT / "device-maps/valve-actuator.toml")))
    assert (valve["MCPAX_BAUD"], valve["MCPAX_DEADMAN_MS"]) == ("115200", "6000")
    assert constants(render_header(one_tool(fields("u8"))))["MCPAX_DEADMAN_MS"] == "0"


def test_what_is_read_of_a_call_too_short_is_still_in_the_buffer() -> None:
    """A boolean takes one byte, but whatever comes in its place is read before it is refused."""
    defined = constants(render_header(one_tool(fields(*["bool"] * 8))))
    head, key, widest = 13, 1, 5  # the head is A5, 00 02, 01 01, 02 18 FF, 03 18 FF, 04 A8
    assert int(defined["MCPAX_RECEIVE_ROOM"]) == head + 8 * (key + widest)
    assert int(defined["MCPAX_REQUEST_MAX"]) == head + 8 * (key + 1)


def order_number(value: float) -> int:
    """As `mcpax_within` in stub.c does it."""
    bits: int = struct.unpack(">I", struct.pack(">f", value))[0]
    return ~bits & 0xFFFFFFFF if bits & 0x80000000 else bits | 0x80000000


binary32 = st.floats(width=32)


@given(binary32.filter(lambda x: abs(x) < 1e30), binary32.filter(lambda x: abs(x) < 1e30), binary32)
def test_limits_of_floats_judge_as_floats_do(one: float, other: float, value: float) -> None:
    low, high = sorted((one, other))
    start, span = limits(f'type = "f32"\nmin = {low!r}\nmax = {high!r}')
    within = (order_number(value) - start) & 0xFFFFFFFF <= span
    assert within == (low <= value <= high)


@pytest.mark.parametrize("value", [float("nan"), -float("nan"), float("inf"), float("-inf")])
def test_float_without_limits_is_finite(value: float) -> None:
    start, span = limits('type = "f32"')
    assert (order_number(value) - start) & 0xFFFFFFFF > span
    assert (order_number(3.4e38) - start) & 0xFFFFFFFF <= span


@pytest.mark.parametrize(
    ("profile", "length", "kind"), [("A", 200, "uint8_t"), ("A", 300, "uint16_t"), ("B", 200, "uint8_t"), ("B", 300, "uint16_t")]
)
def test_sizes_in_eight_bits_where_they_fit(profile: str, length: int, kind: str) -> None:
    header = render_header(one_tool(f'name = "f"\ntype = "bytes"\nmax_len = {length}', profile))
    assert constants(header)["MCPAX_SIZE_TYPE"] == kind
    assert int(constants(header)["MCPAX_REQUEST_MAX"]) >= length + 3


@pytest.mark.parametrize("path", MAPS, ids=lambda path: path.stem)
def test_the_largest_calls_fit_the_request_buffer(path: Path) -> None:
    device = load_map(path)
    dialect, room = dialect_for(device), int(constants(render_header(device))["MCPAX_REQUEST_MAX"])
    for tool in device.tools:
        largest = [b"x" * field.max_len if field.max_len else (field.raw_range or (0, 0))[1] for field in tool.args]
        assert len(dialect.call(tool, 255, largest)) <= room
    assert len(dialect.heartbeat(255, 65535)) <= room


def test_names_that_would_be_one_in_c_are_refused() -> None:
    device = one_tool('name = "b-c"\ntype = "u8"')
    tool = device.tools[0]
    both = replace(device, tools=(replace(tool, name="t"), replace(tool, id=2, name="t-b", args=(replace(tool.args[0], name="c"),))))
    with pytest.raises(ValueError, match="ARG_T_B_C"):
        render_header(both)


def test_text_of_the_map_cannot_leave_its_comment() -> None:
    device = one_tool('name = "f"\ntype = "u8"\ndescription = "ends */ int x; /* here"')
    assert "*/ int x;" not in render_header(device)


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
@pytest.mark.parametrize(
    "device",
    [
        *(pytest.param(load_map(path), id=path.stem) for path in MAPS),
        pytest.param(one_tool('name = "f"\ntype = "u8"', kind="result"), id="no arguments"),
        pytest.param(replace(load_map(MAPS[0]), tools=()), id="no tools"),
        pytest.param(replace(load_map(MAPS[1]), tools=(), events=()), id="nothing at all"),
    ],
)
def test_library_compiles_without_a_warning(device: DeviceMap, tmp_path: Path) -> None:
    (tmp_path / "mcpax_map.h").write_text(render_header(device), encoding="utf-8")
    flags = [
        "-std=c99",
        "-pedantic",
        "-Wall",
        "-Wextra",
        "-Wconversion",
        "-Werror",
        "-fsyntax-only",
        f"-I{LIBRARY / 'include'}",
        f"-I{tmp_path}",
    ]
    sources = sorted(map(str, (LIBRARY / "src").glob("*.c")))
    done = subprocess.run(["cc", *flags, *sources], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
