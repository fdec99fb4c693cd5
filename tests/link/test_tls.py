"""TLS between aggregators, over real sockets: who is let in, who is not, and what an operator is told about files."""

from __future__ import annotations

import asyncio
import hashlib
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID

from mcpax.link.tls import ClientCertificates, Peer, client_context, peer_of, read_peer, server_context
from mcpax.link.tls_files import TlsError
from mcpax.pki import Pair, issue_client, issue_server, make_ca
from mcpax.pki_certificate import Authority, Leaf, leaf_certificate
from tests.link.credentials import NOW, Files, written

HUB = "hub.example.com"
EDGE = "edge01.example.com"
PATIENCE_S = 10.0
MESSAGE = b"GET / HTTP/1.1\r\n\r\n"
REFUSED = (ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)
"""How it shows: an alert, or asyncio closed before the alert was out. Silence is neither."""
LONG_AGO = NOW - timedelta(days=500)
CA = make_ca(LONG_AGO)  # old enough to have signed what expired since
OTHER_CA = make_ca(NOW)


@dataclass(frozen=True)
class Credentials:
    directory: Path
    ca: Files
    server: Files
    client: Files

    def write(self, name: str, pair: Pair) -> Files:
        return written(self.directory, name, pair)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Credentials:
    directory = tmp_path_factory.mktemp("tls")
    server = issue_server(CA, HUB, NOW, addresses=["127.0.0.1"])
    client = issue_client(CA, EDGE, NOW)
    return Credentials(directory, written(directory, "ca", CA), written(directory, "server", server), written(directory, "client", client))


async def meet(server: ssl.SSLContext, client: ssl.SSLContext | None, *, name: str = HUB) -> tuple[Peer, Peer]:
    """Connect, let a message go there and back, and return whom the server and the client saw. A refusal raises on the client's side."""
    seen: list[Peer] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(peer_of(writer.get_extra_info("ssl_object")))
        writer.write(await reader.readexactly(len(MESSAGE)))
        await writer.drain()
        writer.close()

    async with asyncio.timeout(PATIENCE_S), await asyncio.start_server(serve, "127.0.0.1", 0, ssl=server) as listening:
        port = listening.sockets[0].getsockname()[1]
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client, server_hostname=name if client else None)
            try:
                peer = peer_of(writer.get_extra_info("ssl_object"))
                writer.write(MESSAGE)
                await reader.readexactly(len(MESSAGE))  # a TLS 1.3 client learns only here that its certificate was refused
            finally:
                writer.transport.abort()
        except REFUSED:
            assert not seen, "the server let it in"
            raise
        return seen[0], peer


@contextmanager
def refused() -> Iterator[None]:
    with pytest.raises(REFUSED):
        yield


@pytest.fixture
def strict(made: Credentials) -> ssl.SSLContext:
    return server_context(made.server.public, made.server.key, client_ca=made.ca.public)


@pytest.fixture
def lenient(made: Credentials) -> ssl.SSLContext:
    return server_context(made.server.public, made.server.key, client_ca=made.ca.public, clients=ClientCertificates.OPTIONAL)


@pytest.fixture
def plain_server(made: Credentials) -> ssl.SSLContext:
    return server_context(made.server.public, made.server.key)


@pytest.fixture
def child(made: Credentials) -> ssl.SSLContext:
    return client_context(made.ca.public, certificate=made.client.public, key=made.client.key)


@pytest.fixture
def nameless(made: Credentials) -> ssl.SSLContext:
    return client_context(made.ca.public)


async def test_the_right_ones_meet_and_see_who_the_other_is(strict: ssl.SSLContext, child: ssl.SSLContext, made: Credentials) -> None:
    at_server, at_client = await meet(strict, child)
    der = x509.load_pem_x509_certificate(made.client.public.read_bytes()).public_bytes(Encoding.DER)
    assert at_server == Peer(frozenset({EDGE}), hashlib.sha256(der).hexdigest())
    assert at_client.names == {HUB}


async def test_a_server_is_found_by_its_address_too(strict: ssl.SSLContext, child: ssl.SSLContext) -> None:
    await meet(strict, child, name="127.0.0.1")
    with refused():
        await meet(strict, child, name="127.0.0.2")


async def test_a_client_without_a_certificate(
    strict: ssl.SSLContext, lenient: ssl.SSLContext, plain_server: ssl.SSLContext, nameless: ssl.SSLContext
) -> None:
    with refused():
        await meet(strict, nameless)
    for server in (lenient, plain_server):
        at_server, _ = await meet(server, nameless)
        assert at_server == Peer()


async def test_a_certificate_that_nobody_verified_gives_no_names(plain_server: ssl.SSLContext) -> None:
    careless = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    careless.check_hostname = False
    careless.verify_mode = ssl.CERT_NONE
    _, at_client = await meet(plain_server, careless)
    assert at_client == Peer()


async def test_a_certificate_that_nobody_asked_for_gives_no_names(plain_server: ssl.SSLContext, child: ssl.SSLContext) -> None:
    at_server, _ = await meet(plain_server, child)
    assert at_server == Peer()


@pytest.mark.parametrize("mode", ClientCertificates)
@pytest.mark.parametrize(
    "pair",
    [
        pytest.param(issue_client(OTHER_CA, EDGE, NOW), id="of another authority"),
        pytest.param(issue_client(CA, EDGE, LONG_AGO), id="expired"),
        pytest.param(issue_client(CA, EDGE, NOW + timedelta(days=2)), id="not valid yet"),
        pytest.param(issue_server(CA, EDGE, NOW), id="made for a server"),
    ],
)
async def test_a_client_with_a_bad_certificate_is_refused(made: Credentials, pair: Pair, mode: ClientCertificates) -> None:
    server = server_context(made.server.public, made.server.key, client_ca=made.ca.public, clients=mode)
    bad = made.write("bad", pair)
    client = client_context(made.ca.public)
    client.load_cert_chain(bad.public, bad.key)  # past our own checks, as an attacker would
    with refused():
        await meet(server, client)


@pytest.mark.parametrize(
    "pair",
    [
        pytest.param(issue_server(OTHER_CA, HUB, NOW), id="of another authority"),
        pytest.param(issue_server(CA, HUB, LONG_AGO), id="expired"),
        pytest.param(issue_server(CA, "other.example.com", NOW), id="of another host"),
        pytest.param(issue_client(CA, HUB, NOW), id="made for a client"),
    ],
)
async def test_a_client_refuses_a_server_with_a_bad_certificate(made: Credentials, child: ssl.SSLContext, pair: Pair) -> None:
    bad = made.write("bad", pair)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(bad.public, bad.key)
    with pytest.raises(ssl.SSLCertVerificationError):
        await meet(server, child)


async def test_what_the_system_trusts_is_not_our_authority(strict: ssl.SSLContext) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        await meet(strict, client_context())


async def test_tls_1_2_is_refused_by_both_sides(plain_server: ssl.SSLContext, nameless: ssl.SSLContext, made: Credentials) -> None:
    old_client = ssl.create_default_context(cafile=str(made.ca.public))
    await meet(plain_server, old_client)
    old_client.maximum_version = ssl.TLSVersion.TLSv1_2
    with refused():
        await meet(plain_server, old_client)
    old_server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    old_server.load_cert_chain(made.server.public, made.server.key)
    await meet(old_server, nameless)
    old_server.maximum_version = ssl.TLSVersion.TLSv1_2
    with refused():
        await meet(old_server, nameless)


async def test_plain_text_is_refused(strict: ssl.SSLContext) -> None:
    with refused():
        await meet(strict, None)


async def test_names_of_a_ca_with_constraints_are_held_to_them(tmp_path: Path) -> None:
    ca = make_ca(NOW, domains=["example.com"])
    trusted = written(tmp_path, "ca", ca)
    for name in (HUB, "127.0.0.1"):
        server = written(tmp_path, "server", issue_server(ca, name, NOW))
        await meet(server_context(server.public, server.key), client_context(trusted.public), name=name)


async def test_while_an_authority_is_replaced_both_are_trusted(made: Credentials, strict: ssl.SSLContext) -> None:
    old = make_ca(NOW - timedelta(days=5000))
    both = made.write("both", Pair(old.public + CA.public, b"")).public
    await meet(strict, client_context(both, certificate=made.client.public, key=made.client.key))
    with pytest.raises(TlsError, match=r"expired on \d{4}-"):
        client_context(made.write("old", old).public)


def encrypted(pair: Pair) -> Pair:
    key = load_pem_private_key(pair.key, password=None)
    return Pair(pair.public, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")))


SERVER = issue_server(CA, HUB, NOW)


@pytest.mark.parametrize(
    ("pair", "file", "what", "remedy"),
    [
        pytest.param(Pair(SERVER.public, CA.key), "bad.key", "not the key of", "make both again", id="another's key"),
        pytest.param(encrypted(SERVER), "bad.key", "is encrypted", "mode 0600", id="encrypted key"),
        pytest.param(issue_server(CA, HUB, LONG_AGO), "bad.pem", "expired on ", "Issue it again", id="expired"),
        pytest.param(Pair(b"what?", SERVER.key), "bad.pem", "no certificate in PEM form", "another file", id="no certificate"),
        pytest.param(Pair(SERVER.public, SERVER.public), "bad.key", "no private key in PEM form", "another file", id="no key"),
    ],
)
def test_faults_of_files_name_the_file_and_the_remedy(made: Credentials, pair: Pair, file: str, what: str, remedy: str) -> None:
    bad = made.write("bad", pair)
    makers: tuple[Callable[[], ssl.SSLContext], ...] = (
        lambda: server_context(bad.public, bad.key),
        lambda: client_context(made.ca.public, certificate=bad.public, key=bad.key),
    )
    for make in makers:
        with pytest.raises(TlsError) as error:
            make()
        assert str(error.value).startswith(f"{made.directory / file}: ")
        assert what in str(error.value)
        assert remedy in str(error.value)


def test_files_that_are_not_there(made: Credentials, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere.pem"
    makers: tuple[Callable[[], ssl.SSLContext], ...] = (
        lambda: server_context(nowhere, made.server.key),
        lambda: server_context(made.server.public, nowhere),
        lambda: server_context(made.server.public, made.server.key, client_ca=nowhere),
        lambda: client_context(nowhere),
    )
    for make in makers:
        with pytest.raises(TlsError, match=r"nowhere\.pem: cannot be read: No such file or directory\. Check the path"):
            make()


def test_half_a_pair_is_told(made: Credentials) -> None:
    for half in ({"certificate": made.client.public}, {"key": made.client.key}):
        with pytest.raises(TlsError, match="go together"):
            client_context(made.ca.public, **half)


def test_a_certificate_that_cannot_be_read_has_no_names_and_still_a_fingerprint() -> None:
    assert read_peer(b"junk") == Peer(frozenset(), hashlib.sha256(b"junk").hexdigest())
    ca = x509.load_pem_x509_certificate(CA.public).public_bytes(Encoding.DER)
    assert read_peer(ca).names == frozenset(), "it has no alternative names"
    assert peer_of(None) == Peer()


def test_names_are_in_lower_case_and_no_other_kind_counts() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    authority = Authority(x509.load_pem_x509_certificate(CA.public), key)
    names = [x509.DNSName("EDGE01.Example.com"), x509.RFC822Name("hub.example.com"), x509.IPAddress(ip_address("10.0.0.1"))]
    leaf = leaf_certificate(authority, Leaf(names, ExtendedKeyUsageOID.CLIENT_AUTH, HUB), key.public_key(), NOW, NOW + timedelta(days=1))
    assert read_peer(leaf.public_bytes(Encoding.DER)).names == {EDGE}
