"""`docs/upstream.md` is true: followed word by word on this machine, with its own names and ports, and its tables held against the code."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect

from mcpax.bridge.maps.load import load_map
from mcpax.config import load_config
from mcpax.core import admission, flow, registration, registry
from mcpax.errors import ErrorKind
from mcpax.front import connections
from mcpax.front.http import MAX_SOCKET_MESSAGE_BYTES
from mcpax.link import authority, caller, introduction, messages, parent, redial, tools, wire
from mcpax.link.endpoint import CHILD_PATH
from mcpax.names import MAX_NAME_CHARS, MAX_SEGMENT_CHARS
from tests.cli.program import PATIENCE_S, Program
from tests.cli.test_demo import boards_of
from tests.virtual import BOARDS, MAPS, ROOT, build_boards

PAGE = (ROOT / "docs/upstream.md").read_text()
CHILD = "edge01.example.com"


def blocks(language: str, text: str = PAGE) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading, without its head."""
    part = PAGE.partition(heading)[2]
    found = re.search(r"(?:^\|.*\n)+", part, re.MULTILINE)
    assert found
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in found[0].splitlines()[2:]]


class Place:
    """A directory where the page is followed, with names and ports of this machine."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ports = {shown: free_port() for shown in ("8720", "8721", "8722")}
        page = PAGE.replace("cloud.example.com", "localhost").replace("wss://edge01.example.com", "wss://localhost")
        for shown, port in self.ports.items():
            page = page.replace(f":{shown}", f":{port}")
        # Whoever adds a block has to say here when it is to be run.
        self.pki, self.gather, self.serve_cloud, self.serve_edge, self.demo_edge, self.look, self.run_client, self.tank = blocks("sh", page)
        self.cloud, self.edge, self.backups, self.dialled, self.dials, self.tank_child = blocks("toml", page)
        self.client, self.tank_program = blocks("python", page)
        self.tree, self.conversation = blocks("text", page)
        (self.degraded,) = blocks("json", page)
        self.exports = self.look.splitlines()[0]

    def shell(self, command: str) -> subprocess.CompletedProcess[str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            ["bash", "-ec", command],
            cwd=self.directory,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def done(self, command: str) -> str:
        done = self.shell(command)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def asked(self, command: str) -> subprocess.CompletedProcess[str]:
        """A command to the aggregator, with the variables that the page sets."""
        return self.shell(f"{self.exports}\n{command}")

    def prepare(self) -> None:
        """Sections 1 and 2."""
        self.done(self.pki)
        self.done(self.gather)
        self.write("cloud/mcpax.toml", self.cloud)
        self.write("edge/mcpax.toml", self.edge)
        (self.directory / "edge/device-maps").symlink_to(MAPS)

    def write(self, file: str, text: str) -> None:
        (self.directory / file).write_text(text)

    def read(self, file: str) -> str:
        return (self.directory / file).read_text()

    def upstream_as(self, upstream: str) -> None:
        """Replace the gateway's [upstream]."""
        self.write("edge/mcpax.toml", self.edge.partition("[upstream]")[0] + upstream)

    @contextlib.contextmanager
    def program(self, shown: str) -> Iterator[Program]:
        """A command that runs until it is ended."""
        name, *words = shown.split()
        assert name == "mcpax"
        options = ["--log-json"] if words[0] == "serve" else ["--verbose"]
        with Program([*words, *options], {"PYTHONUNBUFFERED": "1"}, self.directory) as program:
            yield program

    @contextlib.contextmanager
    def running(self, shown: str) -> Iterator[Program]:
        with self.program(shown) as program:
            program.wait_for_text('"event": "listening"', "stderr")
            yield program
            assert program.end() == 0

    @contextlib.asynccontextmanager
    async def admin(self) -> AsyncIterator[Callable[[str], Any]]:
        """The aggregator's own words."""
        tls = ssl.create_default_context(cafile=self.directory / "cloud/ca.pem")
        headers = {"Authorization": f"Bearer {self.read('cloud/token')}"}
        async with httpx.AsyncClient(
            base_url=f"https://localhost:{self.ports['8720']}", headers=headers, verify=tls, trust_env=False
        ) as http:

            async def get(path: str) -> Any:
                return (await http.get(path)).raise_for_status().json()

            yield get

    async def tools(self, those: set[str]) -> None:
        """Wait until the aggregator has exactly these tools, but for those about itself."""
        await self.becomes("/admin/routes", lambda routes: {name for name in routes if ".mcpax." not in name} == those)

    async def becomes(self, path: str, what: Callable[[Any], bool]) -> None:
        """Wait for something that the aggregator tells to whoever asks."""
        async with self.admin() as get, asyncio.timeout(PATIENCE_S):
            while not what(await get(path)):  # noqa: ASYNC110 - it is another process
                await asyncio.sleep(0.02)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def all_tools(below: str) -> set[str]:
    """Of the virtual boards."""
    maps = [load_map(MAPS / f"{name}.toml") for name in BOARDS]
    return {f"{below}.{board.name}.{tool.name}" for board in maps for tool in board.tools}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    build_boards()
    made = Place(tmp_path)
    made.prepare()
    return made


# --- Followed word by word


@pytest.mark.slow
async def test_ten_minutes_and_a_link_that_goes_away(place: Place) -> None:
    with place.running(place.serve_cloud):
        with place.program(place.demo_edge) as edge:
            await place.tools(all_tools("cloud.edge01"))
            for command in place.look.splitlines()[1:]:
                done = place.asked(command)
                assert done.returncode == 0, (command, done.stdout, done.stderr)
                if command == "mcpax tree":
                    assert without_time(done.stdout) == without_time(place.tree)
            place.write("client.py", place.client)
            assert "'temperature': " in place.done(place.run_client)

            boards = boards_of(edge.pid)
            for pid in (edge.pid, *boards.values()):
                os.kill(pid, signal.SIGKILL)
            edge.end(signal.SIGKILL)
        await place.becomes("/admin/tree", lambda tree: tree["below"][0]["state"] == "degraded")
        call = "mcpax call cloud.edge01.env-sensor.read_climate --json"
        refused = json.loads(place.asked(call).stdout)["error"]
        refused["data"]["since"] = "2026-05-01T12:00:00Z"
        assert refused == json.loads(place.degraded)
        assert "degraded: link_lost" in place.asked("mcpax tree").stdout
        assert "[degraded]" in place.asked("mcpax tools edge01").stdout

        with place.program(place.demo_edge) as edge:
            async with asyncio.timeout(PATIENCE_S):
                while (await asyncio.to_thread(place.asked, call)).returncode != 0:
                    pass
            edge.end()
        await place.tools(set())  # it said goodbye


def without_time(tree: str) -> str:
    return re.sub(r"[\d.]+ ms away", "", tree)


async def test_a_backup_stands_in(place: Place) -> None:
    place.upstream_as(place.backups)
    backup = place.cloud.replace(f":{place.ports['8720']}", f":{place.ports['8722']}").replace('"state"', '"state-of-backup"')
    place.write("cloud/backup.toml", backup)
    with contextlib.ExitStack() as stack:
        edge = stack.enter_context(place.running(place.serve_edge))
        with place.running("mcpax serve --config cloud/backup.toml"):
            edge.wait_for_text('"event": "registered_upstream"', "stderr")
            stack.enter_context(place.running(place.serve_cloud))
        edge.wait_for(lambda lines: sum('"event": "registered_upstream"' in line for line in lines) == 2, "stderr")
        async with place.admin() as get:
            assert [each["segment"] for each in (await get("/admin/tree"))["below"]] == ["edge01", "mcpax"]


async def test_each_board_by_itself(place: Place) -> None:
    assert 'register = "each"' in PAGE
    place.write("edge/mcpax.toml", place.edge + 'register = "each"\n')
    place.write("cloud/mcpax.toml", re.sub(r'segment = "edge01".*\n', "", place.cloud))
    assert "cloud.env-sensor.read_climate" in all_tools("cloud")
    with place.running(place.serve_cloud), place.program(place.demo_edge) as edge:
        await place.tools(all_tools("cloud"))
        assert place.asked("mcpax call cloud.env-sensor.read_climate").returncode == 0
        edge.end()


async def test_the_parent_dials(place: Place) -> None:
    place.write("edge/mcpax.toml", place.dialled.replace(f"{CHILD}.server", "localhost.server"))
    for ending in ("pem", "key"):
        place.write(f"edge/localhost.server.{ending}", place.read(f"pki/localhost.server.{ending}"))
    place.write("edge/token", "for-the-gateways-own-clients")
    place.write("cloud/mcpax.toml", place.cloud.partition("[[child]]")[0] + place.dials)
    with place.running(place.serve_cloud), place.program(place.demo_edge) as edge:
        await place.tools(all_tools("cloud.edge01"))
        assert place.asked("mcpax call cloud.edge01.env-sensor.read_climate").returncode == 0
        edge.end()


def test_a_child_of_ones_own(place: Place) -> None:
    place.write("cloud/mcpax.toml", place.cloud + place.tank_child)
    place.write("tank.py", place.tank_program)
    assert len(place.tank_program.splitlines()) < 60
    *prepare, start = place.tank.splitlines()
    place.done("\n".join(prepare))
    with place.running(place.serve_cloud) as cloud:
        child = subprocess.Popen([sys.executable, *start.split()[1:]], cwd=place.directory, stdout=subprocess.PIPE, text=True)
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "registered\n"
            assert "1.2 m" in place.asked("mcpax call cloud.tank.read_level").stdout
            assert child.poll() is None
        finally:
            child.kill()
            child.communicate()
        cloud.wait_for_text('"event": "degraded"', "stderr")


async def test_the_conversation_goes_as_shown(place: Place) -> None:
    """Played against a real aggregator: what is marked as the child's is sent, what is marked as the parent's must come."""
    place.write("cloud/mcpax.toml", place.cloud + place.tank_child)
    place.done("\n".join(place.tank.splitlines()[:2]))
    token = place.read("cloud/tank.example.com.token").strip()
    tls = ssl.create_default_context(cafile=place.directory / "cloud/ca.pem")
    url = f"wss://localhost:{place.ports['8720']}{CHILD_PATH}"
    headers = {"Authorization": f"Bearer {token}"}
    real: dict[str, str] = {}
    with place.running(place.serve_cloud):
        async with (
            asyncio.timeout(PATIENCE_S),
            connect(url, ssl=tls, additional_headers=headers, subprotocols=["mcpax.v1"]) as link,  # type: ignore[list-item]
        ):
            calling: asyncio.Task[subprocess.CompletedProcess[str]] | None = None
            for line in place.conversation.splitlines():
                sender, text = line[0], line[2:]
                messages.decode(text)
                if sender == ">":
                    await link.send(text.replace("SESSION", real.get("SESSION", "")))
                    continue
                if '"tools/call"' in text:
                    calling = asyncio.create_task(asyncio.to_thread(place.asked, "mcpax call cloud.tank.read_level"))
                same(str(await link.recv()), text, real)
            assert calling is not None
            assert "1.2 m" in (await calling).stdout


def same(came: str, shown: str, real: dict[str, str]) -> None:
    """But for what differs each time, which is learnt."""
    assert came[0] == shown[0]
    got, expected = json.loads(came[1:]), json.loads(shown[1:])
    for key, name in (("session_id", "SESSION"), ("x-mcpax-aggregator-id", "PARENT")):
        if key in expected.get("result", {}):
            real[name] = got["result"][key]
            expected["result"][key] = real[name]
    if "x-mcpax-deadline-ms" in expected.get("params", {}).get("_meta", {}):
        left = got["params"]["_meta"]["x-mcpax-deadline-ms"]
        assert 0 < left <= 5000
        expected["params"]["_meta"]["x-mcpax-deadline-ms"] = left
    assert got == expected


# --- Held against the code


def test_the_configurations_load_with_every_file_they_name(place: Place) -> None:
    cloud = load_config(place.directory / "cloud/mcpax.toml").links
    edge = load_config(place.directory / "edge/mcpax.toml").links
    assert cloud.tls is not None
    assert cloud.children[0].token == (edge.upstream.token if edge.upstream else None)
    assert not (place.directory / "cloud/ca.key").exists()
    assert not (place.directory / "edge/ca.key").exists()
    assert {file.name for file in (place.directory / "edge").iterdir() if file.stat().st_mode & 0o077 == 0} == {
        f"{CHILD}.client.key",
        f"{CHILD}.token",
    }


LIMITS = {
    "segment; whole name": f"{MAX_SEGMENT_CHARS}; {MAX_NAME_CHARS} characters",
    "message on a link": f"{messages.MAX_MESSAGE_BYTES} bytes",
    "tools of an aggregator's subtree; of any other child": f"{admission.MAX_TOOLS_PER_AGGREGATOR}; {admission.MAX_TOOLS_PER_SUBSERVER}",
    "hops to a tool": f"{tools.MAX_HOPS}",
    "description, title or other text of a tool": f"{tools.MAX_TEXT_CHARS} characters",
    "registrations on one link": f"{parent.MAX_REGISTRATIONS}",
    "aggregators below a child": f"{registration.MAX_SUBTREE_IDS}",
    "requests waiting for answers on a link, in each direction": f"{caller.MAX_IN_FLIGHT}",
    "notifications of a subserver": (
        f"{flow.DEFAULT_LIMITS.per_s:g} a second, {flow.DEFAULT_LIMITS.depth} waiting, then the oldest is dropped"
    ),
    "one notification; all that wait": f"{flow.DEFAULT_LIMITS.notification_bytes}; {flow.DEFAULT_LIMITS.buffer_bytes} bytes",
    "heartbeat interval": (
        f"{registration.MIN_HEARTBEAT_MS} to {registration.MAX_HEARTBEAT_MS} ms; lost after {registration.MISSED_HEARTBEATS} missed"
    ),
    "degraded tools of an aggregator; of any other child (`grace_s`) stay listed": (
        f"{registration.MISSED_HEARTBEATS} heartbeats; {registry.GRACE_S:g} s"
    ),
    "listing tools at registration": f"{parent.REGISTER_S:g} s",
    "dialling": (
        f"{wire.OPEN_S:g} s; again after {redial.FIRST_PAUSE_S:g} to {redial.LONGEST_PAUSE_S:g} s, "
        f"or {introduction.REFUSED_PAUSE_S:g} s if refused"
    ),
    "sign of life of the socket": f"every {wire.PING_S:g} s",
    "proof of authority": f"{authority.MAX_TOKEN_CHARS} characters, valid for {authority.MAX_LIFETIME_S} s at most",
    "connections to an aggregator": f"{connections.MAX_CONNECTIONS}, or half of its file descriptors",
}


def test_the_limits_are_those_of_the_code() -> None:
    assert dict(map(tuple, rows("## Limits"))) == LIMITS  # type: ignore[arg-type]
    assert messages.MAX_MESSAGE_BYTES == MAX_SOCKET_MESSAGE_BYTES


def test_the_errors_are_those_of_the_code() -> None:
    listed = {name.strip("`"): int(code) for code, name, _, _ in rows("Errors of `mcpax/register`")}
    known = {kind.wire_name: kind.value.code for kind in ErrorKind}
    assert listed.items() <= known.items()
    raised = {
        "namespace_conflict",
        "registration_cycle",
        "registered_elsewhere",
        "authority_unproven",
        "unknown_session",
        "store_unavailable",
    }
    assert raised <= listed.keys()
    assert f"{ErrorKind.PERMISSION_DENIED.value.code} `permission_denied`" in PAGE


def test_the_log_events_are_those_of_the_code() -> None:
    source = "".join(path.read_text() for path in (ROOT / "gateway/mcpax/link").glob("*.py"))
    for event, _, _ in rows("## When it does not work"):
        assert f'"{event.strip("`")}"' in source, event


def test_links_lead_somewhere() -> None:
    targets = re.findall(r"\]\(([^)]+)\)", PAGE)
    assert targets
    for target in targets:
        assert (ROOT / "docs" / target.partition("#")[0]).exists(), target
    for file in re.findall(r"`(tests/[\w./]+)`", PAGE):
        assert (ROOT / file).exists(), file
