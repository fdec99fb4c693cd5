"""The command line that makes credentials: from nothing to a link that works, and what it refuses."""

from __future__ import annotations

import asyncio
import json
import shlex
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mcpax.cli.main import main
from mcpax.cli.pki import command
from mcpax.config import load_config
from mcpax.errors import Fault
from mcpax.link.anchors import read_anchors
from mcpax.link.authority import AuthorityProof, sign_authority
from mcpax.link.tls import Peer, client_context, peer_of, server_context
from mcpax.pki import issue_server, make_ca
from mcpax.pki_directory import PkiDirectory

HUB = "hub.example.com"
EDGE = "edge01.example.com"
SUBSERVER = "550e8400-e29b-41d4-a716-446655440000"
NAMED = ["server", "client", "token", "authority"]
PATIENCE_S = 10.0


class Shell:
    """Runs `mcpax pki …` in one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def __call__(self, *arguments: str) -> Result:
        return CliRunner().invoke(main, ["pki", *arguments])

    def made(self, *arguments: str) -> str:
        result = self(*arguments)
        assert result.exit_code == 0, result.stderr
        return result.stdout


@pytest.fixture
def pki(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path / "pki")


def configured(told: str, where: str) -> dict[str, Any]:
    """The configuration that a command told people to have there."""
    part = told.partition(f"On the {where}: copy there")[2].partition("\n\n")[0]
    return tomllib.loads(part.partition("and have in that mcpax.toml\n")[2])


def copied(told: str, where: str, to: Path) -> None:
    """Do what a command told people to do with files."""
    to.mkdir(exist_ok=True)
    part = told.partition(f"On the {where}: copy there")[2].partition("\n\n")[0]
    for line in part.partition("and have in")[0].splitlines()[1:]:
        file = Path(line.split()[0])
        (to / file.name).write_bytes(file.read_bytes())


async def meet(parent: Path, tls: dict[str, str], child: Path, upstream: dict[str, str], host: str) -> Peer:
    """Whom the parent sees when the child dials, both configured as they were told."""
    seen: asyncio.Future[Peer] = asyncio.get_running_loop().create_future()

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.set_result(peer_of(writer.get_extra_info("ssl_object")))
        writer.close()

    server = server_context(parent / tls["certificate"], parent / tls["key"], client_ca=parent / tls["client_ca"])
    client = client_context(child / upstream["ca"], certificate=child / upstream["certificate"], key=child / upstream["key"])
    async with asyncio.timeout(PATIENCE_S), await asyncio.start_server(serve, "127.0.0.1", 0, ssl=server) as listening:
        port = listening.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client, server_hostname=host)
        assert await reader.read() == b""
        writer.transport.abort()
        return await seen


def test_the_commands_of_the_help_make_a_link_that_works(pki: Shell, tmp_path: Path) -> None:
    parent, child = tmp_path / "parent", tmp_path / "child"
    lines = [line.strip() for line in pki.made("-h").splitlines() if line.strip().startswith("mcpax pki ")]
    assert len(lines) == 5
    told = {words[2]: pki.made(*words[2:]) for words in map(shlex.split, lines)}
    for text in told.values():
        copied(text, "parent", parent)
        copied(text, "child", child)
    tls, upstream = configured(told["server"], "parent")["tls"], configured(told["client"], "child")["upstream"]
    assert upstream["url"] == f"wss://{HUB}:8720"
    peer = asyncio.run(meet(parent, tls, child, upstream, HUB))

    accepted = configured(told["token"], "parent")["child"][0]
    assert accepted == {"name": EDGE, "segment": "edge01", "token_file": f"{EDGE}.token", "certificate": EDGE, "scope": "read"}
    assert (parent / accepted["token_file"]).read_bytes() == (child / upstream["token_file"]).read_bytes()
    AuthorityProof({}, "hub").verify(upstream["authority"], jwt=None, certificate_names=peer.names, subserver_id=SUBSERVER)
    assert list(tmp_path.glob("*/ca.key")) == [pki.directory / "ca.key"], "it stays where it was made"


def test_the_authority_key_proves_the_name(pki: Shell, tmp_path: Path) -> None:
    parent, child = tmp_path / "parent", tmp_path / "child"
    told = pki.made("authority", EDGE)
    assert configured(told, "parent") == {"anchors": "anchors"}
    copied(told, "parent", parent)
    copied(told, "child", child)
    key = (child / configured(told, "child")["authority_key"]).read_bytes()
    now = datetime.now(UTC).timestamp()
    signed = sign_authority(key, EDGE, "hub", SUBSERVER, now)
    proof = AuthorityProof(read_anchors(parent), "hub", lambda: now)
    with pytest.raises(Fault):
        proof.verify(f"dns:{HUB}", jwt=signed, certificate_names=frozenset(), subserver_id=SUBSERVER)
    proof.verify(f"dns:{EDGE}", jwt=signed, certificate_names=frozenset(), subserver_id=SUBSERVER)


def test_a_token_is_one_that_the_gateway_takes(pki: Shell, tmp_path: Path) -> None:
    told = pki.made("token", EDGE)
    token = (pki.directory / f"{EDGE}.token").read_text().strip()
    assert token not in told, "secrets stay in their files"
    config = tmp_path / "mcpax.toml"
    config.write_text(f'[gateway]\ntoken_file = "pki/{EDGE}.token"\n')
    assert load_config(config).token == token


def test_no_private_key_is_printed(pki: Shell) -> None:
    for arguments in (["init"], ["server", HUB], ["client", EDGE], ["authority", EDGE]):
        assert "PRIVATE" not in pki.made(*arguments, "--json" if arguments[0] == "client" else "--force")


def test_an_address_where_there_is_no_name(pki: Shell) -> None:
    pki.made("init", "--domain", "example.com")
    pki.made("server", "192.168.1.5", "--ip", "fd00::5")
    assert configured(pki.made("client", EDGE), "child")["upstream"]["url"] == "wss://192.168.1.5:8720"
    pki.made("server", HUB)
    assert configured(pki.made("client", EDGE, "--force"), "child")["upstream"]["url"] == "wss://PARENT:8720", "which of the two?"
    outside = pki("client", "edge01.example.org")
    assert (outside.exit_code, outside.stdout) == (1, "")
    assert "edge01.example.org is outside of what this CA may vouch for. Use a name below example.com." in outside.stderr
    public = pki("server", "more.example.com", "--ip", "203.0.113.5")
    assert "203.0.113.5 is a public address" in public.stderr


def test_an_ipv6_address_is_written_as_urls_have_it(pki: Shell) -> None:
    pki.made("init")
    pki.made("server", "FD00:0::5")
    assert configured(pki.made("client", EDGE), "child")["upstream"]["url"] == "wss://[fd00::5]:8720"


@pytest.mark.parametrize("arguments", [["init"], *([kind, EDGE] for kind in NAMED)], ids=lambda arguments: arguments[0])
def test_nothing_is_lost_unless_forced(pki: Shell, arguments: list[str]) -> None:
    pki.made("init")
    if arguments != ["init"]:
        pki.made(*arguments)
    before = {file: file.read_bytes() for file in pki.directory.rglob("*.*") if file.is_file()}
    again = pki(*arguments)
    assert (again.exit_code, again.stdout) == (1, "")
    assert "is there already. Keep it, or replace it with --force" in again.stderr
    assert {file: file.read_bytes() for file in before} == before
    pki.made(*arguments, "--force")
    assert sum(file.read_bytes() != content for file, content in before.items()) in (1, 2)


@pytest.mark.parametrize("kind", NAMED)
@pytest.mark.parametrize("name", ["../ca", "*.example.com", "", "a b", "-x-"])
def test_names_that_are_none_are_wrong_use(pki: Shell, kind: str, name: str) -> None:
    pki.made("init")
    before = sorted(pki.directory.rglob("*"))
    result = pki(kind, "--", name)
    assert result.exit_code == 2
    assert "is not a DNS name" in result.stderr
    assert sorted(pki.directory.rglob("*")) == before


@pytest.mark.parametrize("kind", ["client", "token", "authority"])
def test_an_address_is_no_authority(pki: Shell, kind: str) -> None:
    assert pki(kind, "192.168.1.5").exit_code == 2


def test_a_name_has_one_spelling(pki: Shell) -> None:
    pki.made("token", EDGE.upper())
    assert pki("token", EDGE).exit_code == 1
    assert [file.name for file in pki.directory.iterdir()] == [f"{EDGE}.token"]


def test_without_an_authority_it_is_told_how_to_make_one(pki: Shell) -> None:
    for arguments in (["server", HUB], ["client", EDGE]):
        result = pki(*arguments)
        assert (result.exit_code, result.stdout) == (1, "")
        assert "there is no CA yet. Make one first: mcpax pki init\n" in result.stderr
    assert "mcpax pki init --dir here" in pki("server", HUB, "--dir", "here").stderr
    shown = pki("show")
    assert shown.exit_code == 1
    assert "pki: nothing is there yet\n    start with mcpax pki init" in shown.stderr


def test_another_directory_is_kept_to(pki: Shell, tmp_path: Path) -> None:
    there = str(tmp_path / "there")
    assert f"mcpax pki server NAME --dir {there}" in pki.made("init", "--dir", there)
    for kind in NAMED:
        pki.made(kind, EDGE, "--dir", there)
    assert not pki.directory.exists()
    assert len(json.loads(pki.made("show", "--dir", there, "--json"))["entries"]) == 5


def test_what_was_made_for_programs(pki: Shell) -> None:
    pki.made("init")
    for kind, files in {"server": 3, "client": 3, "token": 1, "authority": 1}.items():
        told = json.loads(pki.made(kind, EDGE, "--json"))
        assert all(Path(file).is_file() for file in told["files"])
        for step in told["steps"]:
            assert step["where"] in ("parent", "child")
            assert len(step["copy"]) == files
            assert tomllib.loads(step["config"])
            assert not any(file.endswith("ca.key") for file in step["copy"])


def test_show_warns_before_the_end(pki: Shell) -> None:
    now = datetime.now(UTC)
    directory = PkiDirectory(pki.directory)
    ca = make_ca(now)
    directory.write_pair(directory.ca, ca, force=False)
    directory.write_pair(directory.server(HUB), issue_server(ca, HUB, now + timedelta(hours=1), days=29), force=False)
    directory.write_pair(directory.server("fine"), issue_server(ca, "fine", now, days=32), force=False)
    pki.made("token", EDGE)
    people = pki("show")
    assert people.exit_code == 0
    [row] = [line.split() for line in people.stdout.splitlines() if HUB in line]
    assert row == ["server", HUB, f"{now + timedelta(days=29, hours=1):%Y-%m-%d}", "29", f"pki/{HUB}.server.pem"]
    assert f"warning: {directory.server(HUB).public.relative_to(pki.directory.parent)}: expires in 29 days." in people.stderr
    assert len(people.stderr.splitlines()) == 1
    programs = json.loads(pki.made("show", "--json"))
    assert [entry["days_left"] for entry in programs["entries"]] == [3651, 31, 29, None]
    assert [bool(entry["warning"]) for entry in programs["entries"]] == [False, False, True, False]
    assert len(programs["warnings"]) == 1
    assert datetime.fromisoformat(programs["entries"][0]["not_after"]) > now


def test_days_are_chosen(pki: Shell) -> None:
    pki.made("init")
    pki.made("client", EDGE, "--days", "7")
    assert json.loads(pki.made("show", "--json"))["entries"][1]["days_left"] == 6
    assert pki("client", EDGE, "--force", "--days", "0").exit_code == 2


def test_every_command_offers_json() -> None:
    for name in command.commands:
        assert "--json" in CliRunner().invoke(main, ["pki", name, "-h"]).stdout, name
