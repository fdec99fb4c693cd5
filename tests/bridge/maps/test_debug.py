"""The debug build's own tool: behind all others, readable, told from the release build, and never in another tool's way."""

from pathlib import Path

import pytest

from mcpax.bridge.maps.debug import NAME, other_build
from mcpax.bridge.maps.diff import explain_difference, explain_hash
from mcpax.bridge.maps.header import render_header
from mcpax.bridge.maps.load import check_text, load_map, load_text
from mcpax.bridge.maps.model import DeviceMap
from mcpax.bridge.wire.messages import Registration
from mcpax.bridge.wire.profile_b import decode, encode_registration

MAPS = sorted((Path(__file__).parents[3] / "device-maps").glob("*.toml"))
HEAD = '[device]\nname = "d"\nprofile = "B"\nversion = "1.2.3"\n'
TOOL = '[[tool]]\nid = {}\nname = "{}"\ndescription = "x"\n'

each_map = pytest.mark.parametrize("path", MAPS, ids=lambda path: path.stem)


@each_map
def test_it_comes_behind_the_maps_own_tools_and_reads_only(path: Path) -> None:
    release, debug = load_map(path), load_map(path, debug=True)
    *own, added = debug.tools
    assert tuple(own) == release.tools
    assert (added.id, added.name) == (max(tool.id for tool in own) + 1, NAME)
    assert not added.capability.mutable
    assert added.capability.transport == own[0].capability.transport
    assert [field.name for field in added.results] == ["static_ram", "stack_max", "ram_free"]


@each_map
def test_saying_so_in_the_map_is_the_same_as_asking_for_it(path: Path) -> None:
    said = load_text(path.read_text().replace("[device]\n", "[device]\ndebug = true\n"), str(path))
    assert said == load_map(path, debug=True)
    assert said.debug
    assert not load_map(path).debug


@each_map
def test_either_build_is_had_from_the_other(path: Path) -> None:
    release, debug = load_map(path), load_map(path, debug=True)
    assert other_build(release) == debug
    assert other_build(debug) == release
    assert release.hash != debug.hash


def test_its_header_names_the_handler_and_leaves_ids_places() -> None:
    text = render_header(load_map(MAPS[0], debug=True))
    assert "uint8_t mcpax_tool_read_memory(const mcpax_value *args, mcpax_value *results);" in text
    assert "#define MCPAX_TOOL_IDS_ARE_PLACES 1" in text
    assert NAME not in render_header(load_map(MAPS[0]))


@pytest.mark.parametrize("name", ["read_memory", "read-memory"])
def test_its_name_is_taken_in_debug_builds_only(name: str) -> None:
    text = HEAD + TOOL.format(1, name)
    assert check_text(text, "x") == []
    [fault] = check_text(text.replace("version", "debug = true\nversion"), "x")
    assert (fault.line, fault.where) == (8, f'tool "{name}"')
    assert "is that of the debug build's own tool" in fault.message


def test_there_must_be_a_number_left() -> None:
    text = HEAD + TOOL.format(255, "last")
    [fault] = check_text(text.replace("version", "debug = true\nversion"), "x")
    assert (fault.line, fault.message) == (7, "id 255 is the last there is")
    assert "choose one below 255" in fault.hint
    release = load_text(text, "x")
    assert other_build(release) is None
    assert explain_hash(release, 1) == f"its map hash is 00000001, this map's is {release.hash:08x}"


def announced(device: DeviceMap) -> Registration:
    registration = decode(encode_registration(device))
    assert isinstance(registration, Registration)
    return registration


IS_DEBUG = "the board runs a debug build: put debug = true under [device] in the map, or flash the release build"
IS_RELEASE = "the board runs the release build, and the map says debug = true: remove that from the map, or flash the debug build"


@pytest.mark.parametrize(("debug", "words"), [(False, IS_DEBUG), (True, IS_RELEASE)], ids=["map of the release", "map of the debug build"])
def test_the_other_build_on_the_board_is_told_with_what_to_do(debug: bool, words: str) -> None:
    device = load_map(MAPS[0], debug=debug)
    other = load_map(MAPS[0], debug=not debug)
    assert explain_difference(device, announced(other)) == [words]
    assert explain_hash(device, other.hash) == words


def test_a_debug_build_of_another_map_is_told_by_its_differences() -> None:
    device = load_map(MAPS[0], debug=True)
    assert explain_difference(device, Registration(1, device.name, announced(device).tools[:-1], announced(device).events)) == [
        f'tool {device.tools[-1].id} "read_memory" is in the map and not on the board'
    ]
