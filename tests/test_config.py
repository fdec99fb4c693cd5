"""The configuration: what it means, and every fault with file, line and what to do."""

import contextlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcpax.bridge.maps.model import PortMap, PortMatch, Profile
from mcpax.config import SYSTEM_CONFIG, Config, ConfigError, default_config_path, load_config, parse_listen
from mcpax.core.registration import Budget

TOKEN = "0123456789abcdef"

MAP = """
[device]
name = "{name}"
profile = "B"
version = "1.0.0"
{match}
[[tool]]
id = 1
name = "read"
description = "Reads."
"""
WITH_MATCH = '[port]\nbaud = 57600\nmatch = { by_id = "usb-own-*" }'


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A directory with two maps, of which one says its port, and two tokens."""
    maps = tmp_path / "maps"
    maps.mkdir()
    (maps / "env.toml").write_text(MAP.format(name="env", match=WITH_MATCH))
    (maps / "pump.toml").write_text(MAP.format(name="pump", match=""))
    (maps / "notes.txt").write_text("not a map")
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    (tmp_path / "weak").write_text("short")
    (tmp_path / "empty").mkdir()
    return tmp_path


def load(here: Path, text: str, listen: str | None = None) -> Config:
    path = here / "mcpax.toml"
    path.write_text(text)
    return load_config(path, listen=listen)


def faults(here: Path, text: str) -> list[str]:
    """Each fault as `line: message / hint`; all must name the file."""
    with pytest.raises(ConfigError) as caught:
        load(here, text)
    told = re.findall(r"^(\S+):(\d+): (.*)\n    (.+)$", str(caught.value), re.MULTILINE)
    assert str(caught.value) == "\n".join(f"{file}:{line}: {message}\n    {hint}" for file, line, message, hint in told)
    return [f"{'' if Path(file) == here / 'mcpax.toml' else Path(file).name + ':'}{line}: {m} / {hint}" for file, line, m, hint in told]


def test_an_empty_file_is_a_gateway_with_all_defaults(here: Path) -> None:
    config = load(here, "")
    assert config == Config()
    assert (config.host, config.port, config.segment, config.token, config.grace_s, config.list_ttl_s) == (
        "127.0.0.1",
        8720,
        "edge",
        None,
        300.0,
        60.0,
    )


def test_a_map_that_nothing_binds_to_a_port_is_told(here: Path) -> None:
    assert load(here, '[gateway]\nmaps = ["maps"]').unused_maps == ("pump",)
    bound = '[gateway]\nmaps = ["maps"]\n[[device]]\nsegment = "p"\nmap = "pump"\nport = { vid = 1 }'
    assert load(here, bound).unused_maps == ()


def test_everything_can_be_said_and_paths_are_relative_to_the_file(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    config = load(
        here,
        """
        [gateway]
        segment = "line-3"
        listen = "[::1]:0"
        token_file = "token"
        state_dir = "state"
        maps = ["maps/pump.toml"]
        by_id_dirs = ["/dev/by-id", "~/ids"]
        allowed_hosts = ["pi.local"]
        allowed_origins = ["https://console.example"]
        grace_s = 0
        list_ttl_s = 1.5
        [budget]
        max_calls_per_minute = 60
        max_mutable_calls_per_session = 0
        max_cost_units_per_session = 7
        [[device]]
        segment = "pump-1"
        map = "pump"
        port = { vid = 0x2e8a, serial = "AB*" }
        """,
    )
    assert (config.host, config.port, config.segment, config.token) == ("::1", 0, "line-3", TOKEN)
    assert config.state_dir == here / "state"
    assert config.by_id_dirs == (Path("/dev/by-id"), Path("/home/somebody/ids"))
    assert (config.allowed_hosts, config.allowed_origins) == (("pi.local",), ("https://console.example",))
    assert (config.grace_s, config.list_ttl_s) == (0.0, 1.5)
    assert config.budget == Budget(60, 0, 7)
    [binding] = config.bindings
    assert (binding.segment, binding.map.name, binding.match) == ("pump-1", "pump", PortMatch(vid=0x2E8A, serial="AB*"))


def test_a_map_that_says_its_port_stands_for_one_board_unless_an_entry_names_it(here: Path) -> None:
    everything = 'gateway = { maps = ["maps"] }\n'
    assert [(b.segment, b.match) for b in load(here, everything).bindings] == [("env", PortMatch(by_id="usb-own-*"))]
    named = load(
        here, everything + '[[device]]\nsegment = "one"\nmap = "env"\n[[device]]\nsegment = "two"\nmap = "env"\nport = { vid = 1 }'
    )
    assert [(b.segment, b.match) for b in named.bindings] == [("one", PortMatch(by_id="usb-own-*")), ("two", PortMatch(vid=1))]
    assert {b.map.port.baud for b in named.bindings} == {57600}


@pytest.mark.parametrize(("baud", "expected"), [("", PortMap().baud), ("baud = 9600", 9600)])
def test_a_device_without_a_map_is_a_board_that_describes_itself(here: Path, baud: str, expected: int) -> None:
    [binding] = load(here, f'[[device]]\nsegment = "new"\nport = {{ glob = "/dev/ttyX*" }}\n{baud}').bindings
    assert binding.map.profile is Profile.B
    assert (binding.segment, binding.map.tools, binding.map.port.baud) == ("new", (), expected)


@pytest.mark.req("AX-B.2-2")
def test_the_line_of_a_board_that_describes_itself_has_9600_baud_or_more(here: Path) -> None:
    entry = '[[device]]\nsegment = "new"\nport = { vid = 1 }\nbaud = '
    assert load(here, entry + "9600").bindings[0].map.port.baud == 9600
    assert "4: device 1: baud 9599 is out of bounds / 9600 to 12000000" in faults(here, entry + "9599")[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # keys
        ('[gatway]\nsegment = "x"', ['1: unknown key "gatway" / did you mean "gateway"?']),
        ('[gateway]\n\nsegmnt = "x"', ['3: gateway: unknown key "segmnt" / did you mean "segment"?']),
        ("[budget]\nmax_calls = 3", ['2: budget: unknown key "max_calls" / did you mean "max_calls_per_minute"?']),
        ('[[device]]\nsegment = "a"\nprot = 1', ['3: device 1: unknown key "prot" / did you mean "port"?', "1: device 1: neither"]),
        ("gateway = 3", ["1: gateway must be a table, not 3"]),
        ("[gateway]\nsegment = 3", ["2: gateway: segment must be text, not 3"]),
        ("[gateway]\nmaps = [1]", ["2: gateway: maps must be array of texts"]),
        ("[gateway]\ngrace_s = -1", ["2: gateway: grace_s -1 is out of bounds / 0 to 86400"]),
        ("[gateway]\nlist_ttl_s = inf", ["2: gateway: list_ttl_s must be a number"]),
        ("[gateway]\nlist_ttl_s = 3601", ["2: gateway: list_ttl_s 3601 is out of bounds"]),
        ("[budget]\nmax_calls_per_minute = 0", ["2: budget: max_calls_per_minute 0 is out of bounds"]),
        ("[budget]\nmax_calls_per_minute = true", ["2: budget: max_calls_per_minute must be an integer"]),
        ("device = [1]", ["1: device 1: must be a table, not 1", "1: device 1: neither"]),
        # values
        ('[gateway]\nsegment = "A.b"', ["2: gateway: segment 'A.b' contains a dot"]),
        ('[gateway]\nlisten = "8720"', ["2: gateway: '8720' is not HOST:PORT"]),
        ('[gateway]\ntoken_file = "nowhere"', ["2: gateway: nowhere cannot be read"]),
        ('[gateway]\ntoken_file = "empty"', ["2: gateway: empty cannot be read"]),
        ('[gateway]\ntoken_file = "weak"', ["2: gateway: weak does not hold a usable token / one line of 16 to 4096 characters"]),
        ('[gateway]\ntoken_file = "a\\u0000b"', ["2: gateway: "]),
        ('[gateway]\nstate_dir = "~nobody-is-called-so/x"', ['2: gateway: "~nobody-is-called-so/x" is not a path / relative']),
        ('[gateway]\nby_id_dirs = ["a\\u0000"]', ["2: gateway: "]),
        # maps
        ('[gateway]\nmaps = [\n "maps",\n "empty"]', ["4: gateway maps: empty holds no .toml file / put device maps there"]),
        ('[gateway]\nmaps = ["nowhere.toml"]', ["2: gateway maps: nowhere.toml is not there / paths are relative"]),
        (f'[gateway]\nmaps = ["{"x" * 300}"]', ["2: gateway maps: " + "x" * 300 + " cannot be read: File name too long"]),
        ('[gateway]\nmaps = ["a\\u0000"]', ["2: gateway maps: "]),
        ('[gateway]\nmaps = ["mpas"]', ["2: gateway maps: mpas is not there / paths are relative to this file: "]),
        ('[gateway]\nmaps = ["maps", "maps/pump.toml"]', ["2: gateway maps: "]),
        # devices
        ("[[device]]\nport = { vid = 1 }", ["1: device 1: segment is missing"]),
        ("[[device]]\nport = { vid = 1 }\n[[device]]\nport = { vid = 2 }", ["1: device 1: segment is m", "3: device 2: segment is m"]),
        ('[[device]]\nsegment = "A"\nport = { vid = 1 }', ["2: device 1: segment 'A' contains 'A'"]),
        ('[[device]]\nsegment = "a"', ["1: device 1: neither this entry nor its map says which port / add port = "]),
        ('[[device]]\nsegment = "a"\nport = { vdi = 1 }', ['3: device 1 port: unknown key "vdi"', "3: device 1: neither"]),
        ('[[device]]\nsegment = "a"\nmap = "pmup"', ["3: device 1: no device map is named 'pmup' / nothing is known here"]),
        (
            'gateway.maps = ["maps"]\n[[device]]\nsegment = "a"\nmap = "pmup"',
            ["4: device 1: no device map is named 'pmup' / did you mean \"pump\"?"],
        ),
        (
            'gateway.maps = ["maps"]\n[[device]]\nsegment = "env"\nmap = "pump"\nport = { vid = 1 }',
            ["2: segment 'env' is given to 2 devices / give each [[device]] its own segment"],
        ),
        (
            'gateway.maps = ["maps"]\n[[device]]\nsegment = "a"\nmap = "pump"\nport = { vid = 1 }\nbaud = 9600',
            ["6: device 1: baud is the map's to say / put it into the [port] table"],
        ),
        # several at once, in the order of the file
        (
            '[gateway]\nsegment = ""\nlisten = ":1"\n[budget]\nx = 1',
            ["2: gateway: empty segment", "3: gateway: ':1' is not", "5: budget: unk"],
        ),
        # not TOML
        ("[gateway\n", ["1: not TOML"]),
        ("\n\na = 'x", ["3: not TOML"]),
    ],
)
def test_faults(here: Path, text: str, expected: list[str]) -> None:
    told = faults(here, text)
    assert len(told) == len(expected), told
    for each, beginning in zip(sorted(told), sorted(expected), strict=True):
        assert each.startswith(beginning.split(" / ")[0]), each
        assert beginning.partition(" / ")[2] in each


@pytest.mark.parametrize(
    ("content", "usable"),
    [
        (TOKEN, True),
        (f"\n  {TOKEN}\r\n\n", True),
        ("x" * 15, False),
        ("x" * 4096, True),
        ("x" * 4097, False),
        (f"{TOKEN} {TOKEN}", False),
        (f"{TOKEN}\n{TOKEN}", False),
        (f"{TOKEN}\t{TOKEN}", False),
        (f"{TOKEN}\x7f", False),
        (f"{TOKEN}é", False),
        ("", False),
    ],
)
def test_a_token_is_one_line_of_visible_characters(here: Path, content: str, usable: bool) -> None:
    (here / "token").write_text(content, newline="")
    text = '[gateway]\ntoken_file = "token"'
    if usable:
        assert load(here, text).token == content.strip()
    else:
        told = faults(here, text)[0]
        assert "usable token" in told
        make = told.partition("as made by: ")[2].replace("FILE", "made")
        subprocess.run(["sh", "-c", make], cwd=here, check=True)
        assert load(here, '[gateway]\ntoken_file = "made"').token == (here / "made").read_text()


def test_a_token_that_is_not_text_is_refused(here: Path) -> None:
    (here / "token").write_bytes(b"\xff" * 32)
    assert "cannot be read" in faults(here, '[gateway]\ntoken_file = "token"')[0]


def test_faults_of_a_map_are_told_with_the_maps_own_file_and_line(here: Path) -> None:
    (here / "maps" / "pump.toml").write_text(MAP.format(name="pump", match="").replace("id = 1", "id = 0"))
    told = faults(here, '[gateway]\nmaps = ["maps"]\nx = 1\n[[device]]\nsegment = "p"\nmap = "pump"\nport = { by_id = "usb-x" }')
    assert told == [
        'pump.toml:8: tool "read": id 0 is out of bounds / 1 to 255: number of the tool on the wire; never reuse one for something else.',
        '3: gateway: unknown key "x" / known here: ' + faults(here, "[gateway]\nx = 1")[0].partition("known here: ")[2],
        "6: device 1: no device map is named 'pump' / not all maps could be loaded: mend the faults above first",
    ], "the map first: the rest follows from it, and to name another map would be bad advice"


@pytest.mark.parametrize(
    ("listen", "expected"),
    [
        ("127.0.0.1:8720", ("127.0.0.1", 8720)),
        ("0.0.0.0:0", ("0.0.0.0", 0)),
        ("[::1]:65535", ("::1", 65535)),
        ("pi.local:80", ("pi.local", 80)),
    ],
)
def test_listen(here: Path, listen: str, expected: tuple[str, int]) -> None:
    assert parse_listen(listen) == expected
    config = load(here, '[gateway]\nlisten = "127.0.0.1:1"', listen)
    assert (config.host, config.port) == expected


@pytest.mark.parametrize("listen", ["", ":", "8720", ":8720", "[]:1", "a:", "a:-1", "a:65536", "a:8x", "a:१", "a: 1", "a:" + "9" * 5000])
def test_what_is_no_address_is_refused_wherever_it_was_said(here: Path, listen: str) -> None:
    with pytest.raises(ConfigError, match="is not HOST:PORT"):
        parse_listen(listen)
    with pytest.raises(ConfigError, match=r"^'.*' is not HOST:PORT"):  # the command line's fault, not the file's
        load(here, "", listen)


def test_a_file_that_cannot_be_read_or_is_not_text(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"no\.toml: there is no such file.*--config.*{SYSTEM_CONFIG}: docs/configuration.md"):
        load_config(tmp_path / "no.toml")
    (tmp_path / "latin.toml").write_bytes("# fine\n# gr\xfcn".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"latin\.toml:2: not UTF-8 text\n +save the file as UTF-8"):
        load_config(tmp_path / "latin.toml")


def test_where_the_file_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MCPAX_CONFIG", raising=False)
    assert default_config_path() == SYSTEM_CONFIG
    monkeypatch.setenv("MCPAX_CONFIG", "/x/y.toml")
    assert default_config_path() == Path("/x/y.toml")


WHOLE = """\
[gateway]
segment = "edge"
listen = "127.0.0.1:8720"
token_file = "token"
state_dir = "state"
maps = ["maps"]
grace_s = 1.5
[budget]
max_calls_per_minute = 60
[[device]]
segment = "pump-1"
map = "pump"
port = { by_id = "usb-*", vid = 0x1234 }
[[device]]
segment = "new"
port = { glob = "/dev/ttyX" }
"""
SNIPPETS = [
    "[",
    "]",
    "{",
    "}",
    "=",
    '"',
    "'",
    "\n",
    "[[",
    ".",
    "\\u0000",
    "~x",
    "0",
    "-",
    "1e400",
    "[]",
    "{}",
    "true",
    "\ufeff",
    "#",
    "9" * 30,
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(
    edits=st.lists(
        st.tuples(st.integers(0, len(WHOLE)), st.integers(0, 12), st.one_of(st.sampled_from(SNIPPETS), st.text(max_size=4))), max_size=4
    )
)
def test_mutated_text_is_a_configuration_or_a_config_error(here: Path, edits: list[tuple[int, int, str]]) -> None:
    text = WHOLE
    for start, length, put in edits:
        text = text[:start] + put + text[start + length :]
    (here / "mcpax.toml").write_bytes(text.encode("utf-8", "surrogatepass"))
    with contextlib.suppress(ConfigError):
        config = load_config(here / "mcpax.toml")
        assert config.segment
        assert len({binding.segment for binding in config.bindings}) == len(config.bindings)


def test_the_whole_example_is_good(here: Path) -> None:
    shutil.copy(here / "maps" / "env.toml", here / "maps" / "env.bak")  # not a .toml: not read
    assert [binding.segment for binding in load(here, WHOLE).bindings] == ["pump-1", "new", "env"]
