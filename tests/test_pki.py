"""What the small authority makes, and what becomes of it on a disk."""

from __future__ import annotations

import base64
import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID

from mcpax.pki import Pair, PkiError, issue_client, issue_server, make_authority_key, make_ca, make_token
from mcpax.pki_directory import PUBLIC, SECRET, PkiDirectory
from mcpax.pki_survey import look

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
CA = make_ca(NOW)
EDGE = "edge01.factory.example.com"


def read(pair: Pair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.public)


def dns(certificate: x509.Certificate) -> list[str]:
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return names.get_values_for_type(x509.DNSName) + [str(each) for each in names.get_values_for_type(x509.IPAddress)]


def test_the_authority_signs_leaves_and_only_leaves() -> None:
    certificate = read(CA)
    constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    assert (constraints.critical, constraints.value.ca, constraints.value.path_length) == (True, True, 0)
    usage = certificate.extensions.get_extension_for_class(x509.KeyUsage)
    assert (usage.critical, usage.value.key_cert_sign, usage.value.digital_signature) == (True, True, False)
    key = load_pem_private_key(CA.key, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    assert key.curve.name == "secp256r1"
    assert certificate.not_valid_before_utc == NOW - timedelta(minutes=5)
    assert certificate.not_valid_after_utc == datetime(2036, 2, 29, 12, 0, tzinfo=UTC)
    certificate.verify_directly_issued_by(certificate)
    assert read(make_ca(NOW)).subject != certificate.subject, "two authorities are told apart by name"


@pytest.mark.parametrize(
    ("pair", "purpose", "names"),
    [
        (issue_server(CA, "Hub.Example.com", NOW), ExtendedKeyUsageOID.SERVER_AUTH, ["hub.example.com"]),
        (issue_server(CA, "hub", NOW, addresses=["10.0.0.1", "::1"]), ExtendedKeyUsageOID.SERVER_AUTH, ["hub", "10.0.0.1", "::1"]),
        (issue_server(CA, "192.168.1.5", NOW), ExtendedKeyUsageOID.SERVER_AUTH, ["192.168.1.5"]),
        (issue_client(CA, EDGE, NOW), ExtendedKeyUsageOID.CLIENT_AUTH, [EDGE]),
        (issue_client(CA, f"{'a' * 63}.{'b' * 63}.{'c' * 63}.{'d' * 61}", NOW), ExtendedKeyUsageOID.CLIENT_AUTH, None),
    ],
)
def test_a_leaf_serves_one_purpose(pair: Pair, purpose: x509.ObjectIdentifier, names: list[str] | None) -> None:
    certificate = read(pair)
    certificate.verify_directly_issued_by(read(CA))
    assert names is None or dns(certificate) == names
    assert list(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [purpose]
    constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    assert (constraints.critical, constraints.value.ca) == (True, False)
    usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    assert (usage.digital_signature, usage.key_cert_sign) == (True, False)
    assert certificate.not_valid_before_utc == NOW - timedelta(minutes=5)
    assert certificate.not_valid_after_utc == NOW + timedelta(days=397)
    assert certificate.public_key() == load_pem_private_key(pair.key, None).public_key()


def test_serials_are_random_and_long() -> None:
    serials = [read(pair).serial_number for pair in (CA, issue_client(CA, EDGE, NOW), issue_client(CA, EDGE, NOW))]
    assert len(set(serials)) == 3
    assert min(serials).bit_length() > 64


def test_no_leaf_outlives_its_authority() -> None:
    late = NOW + timedelta(days=3600)
    assert read(issue_server(CA, "hub", late)).not_valid_after_utc == read(CA).not_valid_after_utc
    with pytest.raises(PkiError, match=r"the CA expired on 2036-02-29\. Make a new one"):
        issue_server(CA, "hub", NOW + timedelta(days=4000))


@pytest.mark.parametrize(
    "name", ["", ".", "a..b", "*.example.com", "../ca", "a/b", "-a", "a-", "é.example.com", "\u212aey", "a b", "x" * 64, "a.\n", "a\0"]
)
def test_names_that_are_none(name: str) -> None:
    for issue in (issue_server, issue_client):
        with pytest.raises(PkiError, match="is not a DNS name: use letters"):
            issue(CA, name, NOW)


def test_addresses_that_are_none() -> None:
    with pytest.raises(PkiError, match=r"'hub' is not an IP address\. Give one"):
        issue_server(CA, "hub", NOW, addresses=["hub"])
    with pytest.raises(PkiError, match="is not a DNS name"):
        issue_client(CA, "192.168.1.5", NOW)


def test_an_authority_for_one_domain() -> None:
    ca = make_ca(NOW, domains=["factory.example.com", "lab"])
    constraints = read(ca).extensions.get_extension_for_class(x509.NameConstraints)
    assert constraints.critical
    for name in (EDGE, "factory.example.com", "bench.lab", "192.168.1.5"):
        assert dns(read(issue_server(ca, name, NOW))) == [name]
    for name in ("example.com", "notfactory.example.com", "factory.example.com.evil.org"):
        with pytest.raises(PkiError, match=r"outside of what this CA may vouch for\. Use a name below factory\.example\.com or lab"):
            issue_client(ca, name, NOW)
    with pytest.raises(PkiError, match=r"203\.0\.113\.5 is a public address"):
        issue_server(ca, EDGE, NOW, addresses=["203.0.113.5"])


@pytest.mark.parametrize(
    ("ca", "what"),
    [
        (Pair(b"", CA.key), "cannot be read"),
        (Pair(CA.public, b"junk"), "cannot be read"),
        (Pair(CA.public, make_ca(NOW).key), "not that of its certificate"),
        (Pair(CA.public, make_authority_key().key), "not that of its certificate"),
    ],
)
def test_an_authority_that_is_broken_is_told(ca: Pair, what: str) -> None:
    with pytest.raises(PkiError, match=what):
        issue_client(ca, EDGE, NOW)


def test_keys_and_tokens() -> None:
    pair = make_authority_key()
    key = load_pem_private_key(pair.key, None)
    assert isinstance(key, Ed25519PrivateKey)
    assert pair.public == key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    token = make_token()
    assert len(base64.urlsafe_b64decode(token + "=")) == 32
    assert token != make_token()


@pytest.fixture
def directory(tmp_path: Path) -> PkiDirectory:
    return PkiDirectory(tmp_path / "pki")


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.fixture(params=[0o000, 0o077], ids=["open umask", "tight umask"])
def umask(request: pytest.FixtureRequest) -> object:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_private_keys_are_for_their_owner_only(directory: PkiDirectory) -> None:
    for place in (directory.ca, directory.server("hub"), directory.authority(EDGE)):
        directory.write_pair(place, CA, force=False)
        assert mode(place.key) == 0o600
        assert (place.key.read_bytes(), place.public.read_bytes()) == (CA.key, CA.public)
    assert mode(directory.path) == 0o700
    assert directory.read_ca() == CA
    assert list((directory.path / "anchors").iterdir()) == [directory.path / "anchors" / f"{EDGE}.pem"], "given away as a whole"


def test_nothing_is_overwritten_unless_forced(directory: PkiDirectory) -> None:
    place = directory.server("hub")
    directory.write_pair(place, Pair(b"old", b"old"), force=False)
    with pytest.raises(PkiError, match=r"hub\.server\.key is there already\. Keep it, or replace it with --force"):
        directory.write_pair(place, CA, force=False)
    place.key.unlink()
    with pytest.raises(PkiError, match=r"hub\.server\.pem is there already"):
        directory.write_pair(place, CA, force=False)
    assert not place.key.exists(), "looked at before anything was written"
    assert place.public.read_bytes() == b"old"
    directory.write_pair(place, CA, force=True)
    assert place.public.read_bytes() == CA.public


def test_a_file_made_meanwhile_survives(directory: PkiDirectory) -> None:
    file = directory.server("hub").key
    file.parent.mkdir(parents=True)
    file.write_bytes(b"the other's")
    with pytest.raises(PkiError, match=r"hub\.server\.key is there already"):
        directory.write(file, b"ours", SECRET, force=False)  # which is after the look, in `write_pair`
    assert file.read_bytes() == b"the other's"
    assert list(file.parent.iterdir()) == [file], "nothing is left behind"


def test_a_file_where_the_directory_should_be(directory: PkiDirectory) -> None:
    directory.path.write_bytes(b"")
    with pytest.raises(PkiError, match=r"ca\.key: cannot be written: "):
        directory.write_pair(directory.ca, CA, force=False)


def test_an_interrupted_write_leaves_what_was_there(directory: PkiDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    file = directory.path / "ca.key"
    directory.write(file, b"old", SECRET, force=False)

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(PkiError, match=r"ca\.key: cannot be written: No space left on device\. Check"):
        directory.write(file, b"new", SECRET, force=True)
    assert file.read_bytes() == b"old"
    assert list(directory.path.iterdir()) == [file]


def test_a_file_is_on_the_disk_and_so_is_its_name(directory: PkiDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(stat.S_ISDIR(os.fstat(descriptor).st_mode)))
    directory.write(directory.ca.key, b"key", SECRET, force=False)
    assert synced == [False, True], "the file, then the directory"


def test_a_link_in_the_way_is_replaced_and_not_followed(directory: PkiDirectory, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    directory.path.mkdir()
    file = directory.path / "ca.pem"
    file.symlink_to(victim)
    directory.write(file, b"new", PUBLIC, force=True)
    assert (victim.read_bytes(), file.read_bytes(), file.is_symlink()) == (b"mine", b"new", False)


def test_without_an_authority_it_is_told_how_to_make_one(directory: PkiDirectory) -> None:
    with pytest.raises(PkiError, match=r"ca\.pem: there is no CA yet\. Make one first: mcpax pki init --dir "):
        directory.read_ca()


def test_what_there_is(directory: PkiDirectory) -> None:
    assert (directory.found(), directory.secrets()) == ([], [])
    directory.write_pair(directory.authority(EDGE), CA, force=False)
    directory.write_pair(directory.client(EDGE), CA, force=False)
    directory.write_pair(directory.server(EDGE), CA, force=False)
    directory.write_pair(directory.ca, CA, force=False)
    directory.write(directory.token(EDGE), b"t", SECRET, force=False)
    (directory.path / f".{EDGE}.client.pem.12ab").touch()
    (directory.path / f".{EDGE}.client.pem").touch()
    assert directory.found() == [
        ("ca", "", directory.ca.public),
        ("server", EDGE, directory.server(EDGE).public),
        ("client", EDGE, directory.client(EDGE).public),
        ("token", EDGE, directory.token(EDGE)),
        ("authority", EDGE, directory.authority(EDGE).public),
    ]
    assert [file.name for file in directory.secrets()] == [
        "ca.key",
        f"{EDGE}.authority.key",
        f"{EDGE}.client.key",
        f"{EDGE}.server.key",
        f"{EDGE}.token",
    ]


def test_no_two_files_share_a_name(directory: PkiDirectory) -> None:
    """They are copied into one directory, where an aggregator is child and parent."""
    places = (directory.ca, directory.server(EDGE), directory.client(EDGE), directory.authority(EDGE))
    names = [file.name for place in places for file in (place.public, place.key)] + [directory.token(EDGE).name]
    assert len(set(names)) == len(names)


def survey_of(directory: PkiDirectory, days: float) -> tuple[list[int | None], list[str]]:
    """Days left, and warnings, that many days after everything was made."""
    survey = look(directory, NOW + timedelta(days=days))
    return [entry.days_left for entry in survey.entries], list(survey.warnings)


def test_commands_in_messages_work_as_they_stand() -> None:
    assert PkiDirectory(Path("pki")).command("init") == "mcpax pki init"
    assert PkiDirectory(Path("my pki")).command("init") == "mcpax pki init --dir 'my pki'"


def test_what_needs_attention(directory: PkiDirectory) -> None:
    directory.write_pair(directory.ca, CA, force=False)
    directory.write_pair(directory.server("hub"), issue_server(CA, "hub", NOW), force=False)
    directory.write_pair(directory.client(EDGE), issue_client(CA, EDGE, NOW, days=500), force=False)
    directory.write_pair(directory.authority(EDGE), make_authority_key(), force=False)
    directory.write(directory.token(EDGE), b"t", SECRET, force=False)
    assert survey_of(directory, 0) == ([3652, 397, 500, None, None], [])
    assert survey_of(directory, 367) == ([3285, 30, 133, None, None], [])
    at = f"--force --dir {directory.path}"
    hub = directory.server("hub").public
    assert survey_of(directory, 367.5) == (
        [3284, 29, 132, None, None],
        [f"{hub}: expires in 29 days. Issue it again: mcpax pki server hub {at}"],
    )
    assert survey_of(directory, 397.5) == (
        [3254, -1, 102, None, None],
        [f"{hub}: expired on 2027-04-02. Issue it again: mcpax pki server hub {at}"],
    )
    _, [ca, *_] = survey_of(directory, 3640)
    assert ca == f"{directory.ca.public}: expires in 12 days. Make a new one, and every certificate again: mcpax pki init {at}"


def test_files_that_others_can_read_and_files_that_hold_something_else_are_told(directory: PkiDirectory) -> None:
    directory.write_pair(directory.ca, CA, force=False)
    directory.ca.key.chmod(0o640)
    directory.write(directory.client(EDGE).public, b"junk", PUBLIC, force=False)
    entries, warnings = survey_of(directory, 0)
    assert entries == [3652, None]
    assert warnings == [
        f"{directory.client(EDGE).public}: holds no certificate. Issue it again: mcpax pki client {EDGE} --force --dir {directory.path}",
        f"{directory.ca.key}: others can read it. Close it: chmod 600 {directory.ca.key}",
    ]
