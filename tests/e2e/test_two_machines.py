"""An aggregator and its child on two machines, as users start them: the right ones link, and everybody else is refused.

Whoever is refused learns only that; the reason is in a log. The machines are network namespaces; credentials are made by `mcpax pki`.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import re
import ssl
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from websockets.asyncio.client import ClientConnection, connect

from mcpax.cli.main import main
from mcpax.link.authority import sign_authority
from mcpax.link.endpoint import CHILD_PATH
from mcpax.pki import Pair, issue_client, issue_server
from tests.cli.program import MCPAX, PATIENCE_S, Program
from tests.harness.namespaces import Machine, NoNamespaces, two_machines
from tests.virtual import MAPS, VirtualBoard

pytestmark = pytest.mark.slow

EDGE, THIEF, VICTIM = "edge01.example.com", "edge02.example.com", "edge03.example.com"
PORT = 8720
TOOL = "cloud.edge01.env-sensor.read_climate"
LONG_AGO = datetime.now(UTC) - timedelta(days=500)

PARENT = """
[gateway]
segment = "cloud"
listen = "{address}:{port}"
token_file = "token"
state_dir = "{state}"

{tls}

[links]
anchors = "anchors"
{links}

[[child]]
name = "{edge}"
segment = "edge01"
token_file = "{edge}.token"
{certificate}

[[child]]
name = "{thief}"
token_file = "{thief}.token"

[[child]]
name = "{victim}"
token_file = "{victim}.token"
"""
TLS = """[tls]
certificate = "cloud.example.com.server.pem"
key = "cloud.example.com.server.key"
client_ca = "ca.pem"
"""
CHILD = """
[gateway]
segment = "edge01"
listen = "127.0.0.1:{port}"
state_dir = "{state}"
by_id_dirs = ["by-id"]
maps = ["env-sensor.toml"]

[links]
plain = {plain}

[upstream]
"""


@pytest.fixture(scope="module")
def machines() -> Iterator[tuple[Machine, Machine]]:
    with contextlib.ExitStack() as stack:
        try:
            made = stack.enter_context(two_machines())
        except NoNamespaces as error:
            pytest.skip(f"no network namespaces: {error}")
        yield made


@dataclass
class Scene:
    """Two machines, and a directory with what both of them need."""

    cloud: Machine
    edge: Machine
    directory: Path
    secrets: list[str] = field(default_factory=list)
    _count: Iterator[int] = field(default_factory=itertools.count)

    def pki(self, *words: str, directory: str = "pki") -> None:
        done = CliRunner().invoke(main, ["pki", *words, "--dir", str(self.directory / directory)])
        assert done.exit_code == 0, done.output

    def write(self, file: str, text: str | bytes) -> Path:
        path = self.directory / file
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def write_pair(self, name: str, pair: Pair) -> None:
        self.write(f"{name}.pem", pair.public)
        self.write(f"{name}.key", pair.key)

    def read(self, file: str) -> bytes:
        return (self.directory / file).read_bytes()

    def token(self, name: str) -> str:
        return self.read(f"pki/{name}.token").decode().strip()

    @property
    def ca(self) -> Pair:
        return Pair(self.read("pki/ca.pem"), self.read("pki/ca.key"))

    # --- the parent

    @contextlib.contextmanager
    def parent(self, *, tls: bool = True, plain: bool = False) -> Iterator[Program]:
        config = PARENT.format(
            address=self.cloud.address,
            port=PORT,
            state=f"state-{next(self._count)}",  # titles outlive sessions, and should not outlive a test
            tls=TLS if tls else "",
            links="plain = true" if plain else "",
            certificate=f'certificate = "{EDGE}"' if tls else "",
            edge=EDGE,
            thief=THIEF,
            victim=VICTIM,
        )
        file = self.write("pki/parent.toml", config)
        with Program(["serve", "--config", file, "--log-json"], by=self.cloud.exec) as program:
            program.wait_for_text('"event": "listening"', "stderr")
            yield program
            assert program.end() == 0
            self.check_secret(program)

    def check_secret(self, program: Program) -> None:
        """Reasons go to the log, secrets never."""
        log = "\n".join(program.stderr)
        assert not [secret for secret in self.secrets if secret in log]

    # --- the child

    def child_config(self, *, plain: bool = False, **upstream: str) -> Path:
        """The right one, but for what is given."""
        stated = {
            "url": f"wss://{self.cloud.address}:{PORT}",
            "ca": "ca.pem",
            "certificate": f"{EDGE}.client.pem",
            "key": f"{EDGE}.client.key",
            "token_file": f"{EDGE}.token",
            "authority": f"dns:{EDGE}",
            **upstream,
        }
        lines = [f"{key} = {json.dumps(value)}" for key, value in stated.items() if value]
        return self.write(
            "pki/child.toml", CHILD.format(port=0, state="state-of-child", plain=str(plain).lower()) + "\n".join(lines) + "\n"
        )

    @contextlib.contextmanager
    def child(self, config: Path) -> Iterator[Program]:
        with Program(["serve", "--config", config, "--log-json"], by=self.edge.exec) as program:
            yield program
            assert program.end() == 0
            self.check_secret(program)

    @contextlib.contextmanager
    def linked(self) -> Iterator[Program]:
        with self.child(self.child_config()) as program:
            program.wait_for_text('"event": "registered_upstream"', "stderr")
            yield program

    # --- somebody with a socket

    def tls(self, certificate: str | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.directory / "pki/ca.pem")
        if certificate is not None:
            context.load_cert_chain(self.directory / f"{certificate}.pem", self.directory / f"{certificate}.key")
        return context

    @contextlib.asynccontextmanager
    async def link(self, token: str, certificate: str | None = None) -> AsyncIterator[Link]:
        """A link from the other machine, by somebody who knows the protocol."""
        async with (
            asyncio.timeout(PATIENCE_S),
            connect(
                f"wss://{self.cloud.address}:{PORT}{CHILD_PATH}",
                sock=self.edge.connect(self.cloud.address, PORT),
                ssl=self.tls(certificate),
                server_hostname=self.cloud.address,
                additional_headers={"Authorization": f"Bearer {token}"},
                subprotocols=["mcpax.v1"],  # type: ignore[list-item]
            ) as socket,
        ):
            yield Link(socket)

    def upgrade(self, context: ssl.SSLContext | None, *headers: str) -> bytes:
        """Ask for a WebSocket, as a child does."""
        upgrade = ("Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
        return self.exchange(context, CHILD_PATH, "Connection: Upgrade", *upgrade, "Sec-WebSocket-Protocol: mcpax.v1", *headers)

    def get(self, path: str, *headers: str) -> bytes:
        return self.exchange(self.tls(), path, "Connection: close", *headers)

    def exchange(self, context: ssl.SSLContext | None, path: str, *headers: str) -> bytes:
        """Send a request, and return all that comes back, but for the time of day; nothing, if TLS did not come about."""
        plain = self.edge.connect(self.cloud.address, PORT)
        came = b""
        # An alert of TLS, or none at all: asyncio often closes before it is out.
        with (
            contextlib.suppress(ssl.SSLError, ConnectionError),
            context.wrap_socket(plain, server_hostname=self.cloud.address) if context else plain as sock,
        ):
            sock.sendall("\r\n".join([f"GET {path} HTTP/1.1", f"Host: {self.cloud.address}:{PORT}", *headers, "", ""]).encode())
            while part := sock.recv(65536):
                came += part
        return re.sub(rb"(?i)^date: .*\r\n", b"", came, flags=re.MULTILINE)

    def asked(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A client of the aggregator, on the other machine."""
        options = ["--url", f"https://{self.cloud.address}:{PORT}", "--ca", str(self.directory / "pki/ca.pem")]
        options += ["--token-file", str(self.directory / "pki/token")]
        return subprocess.run([*self.edge.exec, MCPAX, *words, *options], capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    def sessions(self) -> dict[str, Any]:
        """By segment, as the aggregator tells its operator."""
        tree = json.loads(self.asked("tree", "--json").stdout)
        return {each["segment"]: each for each in tree["below"] if each["segment"] != "mcpax"}


class Link:
    """The child's side of the protocol, with nothing of mcpax in it."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._id = 0
        self.sent: list[str] = []

    async def ask(self, method: str, **params: Any) -> Any:
        self._id += 1
        return await self.say("U" + json.dumps({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}))

    async def say(self, text: str) -> Any:
        """Send a request, answer whatever the parent asks meanwhile, and return its answer."""
        self.sent.append(text)
        await self._socket.send(text)
        wanted = json.loads(text[1:])["id"]
        while True:
            came = str(await self._socket.recv())
            message = json.loads(came[1:])
            if came[0] == "D":
                answers: dict[str, Any] = {
                    "mcpax/parent": {"parent_id": None},
                    "tools/list": {"tools": [{"name": "open_valve"}]},
                    "ping": {},
                }
                reply = {"jsonrpc": "2.0", "id": message["id"], "result": answers[message["method"]]}
                await self._socket.send("D" + json.dumps(reply))
            elif message["id"] == wanted:
                return message.get("error") or message["result"]


@contextlib.contextmanager
def impostor(machine: Machine, context: ssl.SSLContext, port: int) -> Iterator[None]:
    """Somebody in the parent's place, who would take whatever comes."""
    with machine.listen(port) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    accepted, _ = listener.accept()
                    with contextlib.suppress(OSError), context.wrap_socket(accepted, server_side=True) as sock:
                        heard.append(sock.recv(65536))

        heard: list[bytes] = []
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            listener.shutdown(2)
            thread.join(PATIENCE_S)
        assert b"".join(heard) == b"", "not a byte of a request, and so no token, was sent"


@pytest.fixture(scope="module")
def scene(machines: tuple[Machine, Machine], tmp_path_factory: pytest.TempPathFactory) -> Scene:
    scene = Scene(*machines, tmp_path_factory.mktemp("two-machines"))
    scene.pki("init")
    scene.pki("server", "cloud.example.com", "--ip", scene.cloud.address)
    for name in (EDGE, THIEF, VICTIM):
        scene.pki("client", name)
        scene.pki("token", name)
    scene.pki("authority", VICTIM)
    scene.pki("init", directory="other")
    scene.pki("server", "cloud.example.com", "--ip", scene.cloud.address, directory="other")
    scene.pki("client", EDGE, directory="other")
    scene.write("pki/token", "for-the-clients-of-the-cloud")
    scene.write("pki/env-sensor.toml", (MAPS / "env-sensor.toml").read_bytes())
    (scene.directory / "pki/by-id").mkdir()
    scene.write("pki/wrong.token", "not-the-token-that-was-agreed-upon")
    scene.secrets = [scene.token(name) for name in (EDGE, THIEF, VICTIM)] + ["for-the-clients-of-the-cloud", "not-the-token"]
    return scene


@pytest.fixture
def parent(scene: Scene) -> Iterator[Program]:
    with scene.parent() as program:
        yield program


def reasons(program: Program, event: str) -> list[str]:
    """Of every such line of the log."""
    lines = [json.loads(line) for line in program.stderr if f'"event": "{event}"' in line]
    return [str(line.get("reason") or line.get("problem") or line.get("error")) for line in lines]


def told(program: Program, event: str, reason: str) -> None:
    """Wait for a line of the log with a reason."""
    program.wait_for(lambda _: any(reason in each for each in reasons(program, event)), "stderr")


# --- The right ones


@pytest.mark.req("AX-1.1-b", "AX-10.4-1")
def test_the_right_ones_link_and_a_call_passes(scene: Scene, parent: Program) -> None:
    with VirtualBoard("env-sensor", scene.directory / "pki/by-id"), scene.linked() as child:
        child.wait_for_text('"event": "online"', "stderr")
        accepted = json.loads(parent.wait_for_text('"event": "link_accepted"', "stderr"))
        assert (accepted["child"], accepted["peer"]) == (EDGE, scene.edge.address)
        give_up = datetime.now(UTC) + timedelta(seconds=PATIENCE_S)
        while (done := scene.asked("call", TOOL, "--json")).returncode != 0 and datetime.now(UTC) < give_up:
            pass  # the board came after the link, and its tools are on their way up
        assert set(json.loads(done.stdout)["structuredContent"]) == {"temperature", "humidity"}
    parent.wait_for_text('"event": "deregistered"', "stderr")


# --- Certificates


@pytest.mark.req("AX-10.4-1")
def test_a_parent_of_another_ca_gets_no_token(scene: Scene) -> None:
    with impostor(scene.cloud, server_context(scene, "other/cloud.example.com.server"), PORT), scene.child(scene.child_config()) as child:
        told(child, "cannot_dial", "unable to get local issuer certificate")


def test_a_child_with_the_wrong_ca_does_not_believe_the_parent(scene: Scene, parent: Program) -> None:
    with scene.child(scene.child_config(ca="../other/ca.pem")) as child:
        told(child, "cannot_dial", "certificate verify failed")
    assert not reasons(parent, "link_accepted")


def test_a_child_of_another_ca_is_refused(scene: Scene, parent: Program) -> None:
    config = scene.child_config(certificate=f"../other/{EDGE}.client.pem", key=f"../other/{EDGE}.client.key")
    with scene.child(config) as child:
        told(parent, "tls_refused", "unable to get local issuer certificate")
        told(child, "cannot_dial", "hangs up without an answer: does it trust the certificate that we show?")
    assert not reasons(parent, "link_accepted")


def test_an_expired_child_does_not_start_and_is_refused_if_it_does(scene: Scene, parent: Program) -> None:
    scene.write_pair("pki/expired", issue_client(scene.ca, EDGE, LONG_AGO))
    config = scene.child_config(certificate="expired.pem", key="expired.key")
    with Program(["serve", "--config", config], by=scene.edge.exec) as child:
        assert child.ended() == 1
        assert "expired on" in "\n".join(child.stderr)
    assert scene.upgrade(scene.tls("pki/expired"), f"Authorization: Bearer {scene.token(EDGE)}") == b""
    told(parent, "tls_refused", "certificate has expired")
    assert not reasons(parent, "link_accepted")


def test_an_expired_parent_gets_no_token(scene: Scene) -> None:
    scene.write_pair("pki/expired-server", issue_server(scene.ca, "cloud.example.com", LONG_AGO, addresses=[scene.cloud.address]))
    with impostor(scene.cloud, server_context(scene, "pki/expired-server"), PORT), scene.child(scene.child_config()) as child:
        told(child, "cannot_dial", "certificate has expired")


def server_context(scene: Scene, certificate: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(scene.directory / f"{certificate}.pem", scene.directory / f"{certificate}.key")
    return context


# --- TLS 1.2, and none


@pytest.mark.req("AX-10.4-1")
def test_tls_1_2_is_refused_by_the_parent(scene: Scene, parent: Program) -> None:
    weaker = scene.tls(f"pki/{EDGE}.client")
    weaker.maximum_version = ssl.TLSVersion.TLSv1_2
    assert scene.upgrade(weaker, f"Authorization: Bearer {scene.token(EDGE)}") == b""
    told(parent, "tls_refused", "UNSUPPORTED_PROTOCOL")


@pytest.mark.req("AX-10.4-1")
def test_tls_1_2_is_refused_by_the_child(scene: Scene) -> None:
    weaker = server_context(scene, "pki/cloud.example.com.server")
    weaker.maximum_version = ssl.TLSVersion.TLSv1_2
    with impostor(scene.cloud, weaker, PORT), scene.child(scene.child_config()) as child:
        told(child, "cannot_dial", "alert protocol version")


@pytest.mark.req("AX-10.4-1")
def test_a_child_does_not_start_that_would_speak_plainly_to_another_machine(scene: Scene) -> None:
    config = scene.child_config(url=f"ws://{scene.cloud.address}:{PORT}", ca="", certificate="", key="")
    with Program(["serve", "--config", config], by=scene.edge.exec) as child:
        assert child.ended() == 1
        assert f"ws://{scene.cloud.address}:{PORT}: a link to another machine needs TLS" in child.stderr[-1]


@pytest.mark.req("AX-10.4-1")
def test_a_parent_takes_nothing_plain_from_another_machine(scene: Scene, parent: Program) -> None:
    assert scene.upgrade(None, f"Authorization: Bearer {scene.token(EDGE)}") == b""
    told(parent, "tls_refused", "HTTP_REQUEST")


@pytest.mark.req("AX-10.4-1")
def test_nor_does_a_parent_without_tls(scene: Scene) -> None:
    with scene.parent(tls=False) as parent:
        answer = scene.upgrade(None, f"Authorization: Bearer {scene.token(EDGE)}")
        told(parent, "link_rejected", "not TLS, and not from this machine")
    assert answer.startswith(b"HTTP/1.1 403 Forbidden\r\n")


@pytest.mark.req("AX-10.4-1")
def test_unless_both_sides_say_that_they_want_it(scene: Scene) -> None:
    config = scene.child_config(plain=True, url=f"ws://{scene.cloud.address}:{PORT}", ca="", certificate="", key="", authority="")
    with scene.parent(tls=False, plain=True), scene.child(config) as child:
        child.wait_for_text('"event": "registered_upstream"', "stderr")


# --- Tokens


def test_a_wrong_token_none_and_a_wrong_certificate_get_the_same_answer(scene: Scene, parent: Program) -> None:
    right, nobody, thief = scene.tls(f"pki/{EDGE}.client"), scene.tls(), scene.tls(f"pki/{THIEF}.client")
    answers = {
        scene.upgrade(right, "Authorization: Bearer not-the-token"),
        scene.upgrade(right),
        scene.upgrade(nobody, f"Authorization: Bearer {scene.token(EDGE)}"),
        scene.upgrade(thief, f"Authorization: Bearer {scene.token(EDGE)}"),
        scene.upgrade(right, "Authorization: Bearer for-the-clients-of-the-cloud"),
    }
    (answer,) = answers
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 403 Forbidden\r\n")
    assert not re.search(rb"mcpax|token|certificate|version", answer, re.IGNORECASE)
    assert len(body) < 20
    parent.wait_for(lambda _: len(reasons(parent, "link_rejected")) == 5, "stderr")
    assert set(reasons(parent, "link_rejected")) == {"neither token nor certificate is one that we know"}


def test_a_childs_token_opens_nothing_but_the_link(scene: Scene, parent: Program) -> None:
    for path in ("/mcp", "/admin/tree", "/metrics"):
        answer = scene.get(path, f"Authorization: Bearer {scene.token(EDGE)}")
        assert answer.startswith(b"HTTP/1.1 401 Unauthorized\r\n")
    told(parent, "refused", "unauthorized")


@pytest.mark.parametrize("token_file", ["wrong.token", ""], ids=["wrong", "none"])
def test_a_child_without_the_right_token_is_refused(scene: Scene, parent: Program, token_file: str) -> None:
    with scene.child(scene.child_config(token_file=token_file)) as child:
        told(child, "cannot_dial", "refuses us (HTTP 403): are token, certificate and address those that it expects?")
        told(parent, "link_rejected", "neither token nor certificate is one that we know")


# --- What was stolen on the way


async def test_a_stolen_session_id_is_of_no_use(scene: Scene, parent: Program) -> None:
    with scene.linked():
        registered = json.loads(parent.wait_for_text(f'"principal": "{EDGE}"', "stderr"))
        stolen, unknown = registered["session"], "0" * 32
        async with scene.link(scene.token(THIEF)) as thief:
            for method in ("mcpax/heartbeat", "mcpax/deregister"):
                refused = await thief.ask(method, session_id=stolen)
                assert refused["code"] == 2010
                assert refused == await thief.ask(method, session_id=unknown), "not even that it exists is told"
            told(parent, "session_refused", "another link's")
            told(parent, "session_refused", "there is none")
        assert scene.sessions()["edge01"]["state"] == "active"
    assert not any('"deregistered"' in line for line in parent.stderr[: parent.stderr.index(json_line(parent, "link_ended"))])


def json_line(program: Program, event: str) -> str:
    return next(line for line in program.stderr if f'"event": "{event}"' in line)


async def test_a_replayed_registration_is_of_no_use(scene: Scene, parent: Program) -> None:
    """With its proof of authority, word by word, from another link: while the victim is there, and after it has gone."""
    key = scene.read(f"pki/{VICTIM}.authority.key")
    subserver_id = "550e8400-e29b-41d4-a716-446655440000"
    me = {
        "subserver_id": subserver_id,
        "segment": "valve",
        "transport_class": "native",
        "version": "2026-05-01",
        "authority": f"dns:{VICTIM}",
    }
    async with scene.link(scene.token(VICTIM)) as victim, scene.link(scene.token(THIEF)) as thief, scene.link(scene.token(VICTIM)) as twin:
        audience = (await victim.ask("mcpax/identity"))["x-mcpax-aggregator-id"]

        def proof() -> str:
            return sign_authority(key, VICTIM, audience, subserver_id, datetime.now(UTC).timestamp())

        registered = await victim.ask("mcpax/register", **me, **{"x-mcpax-authority-proof": proof()})
        assert registered["status"] == "registered"
        captured = victim.sent[-1]

        assert (await thief.say(captured))["code"] == 4012, "the victim is there"
        await victim.ask("mcpax/deregister", session_id=registered["session_id"])
        refused = await thief.say(captured)
        assert refused["code"] == 1020
        assert refused == await thief.ask("mcpax/register", **me, **{"x-mcpax-authority-proof": "nonsense"}), "why is not told"
        told(parent, "authority_unproven", "the token was used before")
        assert (await twin.say(captured))["code"] == 1020, "not even with the victim's own token"
        assert (await thief.ask("mcpax/register", **{**me, "authority": None}))["code"] == 4010, "the segment stays the victim's"
        assert "valve" not in scene.sessions()

        again = await victim.ask("mcpax/register", **me, **{"x-mcpax-authority-proof": proof()})
        assert again["status"] == "registered"
    assert len(reasons(parent, "registration_refused")) == 5
