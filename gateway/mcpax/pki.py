"""A small certificate authority for links between one's own aggregators: makes its certificate, theirs, keys and tokens.

One level: the authority signs servers and clients, and nothing that could sign. Each certificate serves one purpose, so that the one of a
server proves no authority. Returns PEM as bytes and never touches a file (see `pki_directory`).
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID

from mcpax.dns_names import check_dns_name, is_address
from mcpax.names import InvalidName
from mcpax.pki_certificate import Authority, GeneralNames, Leaf, ca_certificate, leaf_certificate, permitted_names

CA_DAYS = 3652
LEAF_DAYS = 397
"""The longest that is widely accepted for a server; renewing stays a yearly task."""
TOKEN_BYTES = 32
PRIVATE_NETWORKS = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "127.0.0.0/8", "fc00::/7", "fe80::/10", "::1/128")


class PkiError(Exception):
    """It cannot be made; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A private key, and what tells others of it: a certificate, or the bare public key. Both PEM."""

    public: bytes
    key: bytes


def make_ca(now: datetime, *, domains: Sequence[str] = ()) -> Pair:
    """An authority; with domains it can vouch for no name outside of them, and for no public address."""
    key = ec.generate_private_key(ec.SECP256R1())
    permitted: list[x509.GeneralName] = [x509.DNSName(_dns(domain)) for domain in domains]
    if domains:
        permitted += [x509.IPAddress(ipaddress.ip_network(network)) for network in PRIVATE_NETWORKS]
    return _pair(ca_certificate(key, permitted, now, now + timedelta(days=CA_DAYS)), key)


def issue_server(ca: Pair, name: str, now: datetime, *, addresses: Sequence[str] = (), days: int = LEAF_DAYS) -> Pair:
    """For a listening aggregator that is reached by that name, or by an address where there is no DNS."""
    names: list[x509.GeneralName] = [] if is_address(name) else [x509.DNSName(_dns(name))]
    for address in (*([name] if is_address(name) else []), *addresses):
        if not is_address(address):
            raise PkiError(f"{address[:80]!r} is not an IP address. Give one like 192.168.1.5.")
        names.append(x509.IPAddress(ipaddress.ip_address(address)))
    return _issue(ca, Leaf(names, ExtendedKeyUsageOID.SERVER_AUTH, "mcpax server"), now, days)


def issue_client(ca: Pair, name: str, now: datetime, *, days: int = LEAF_DAYS) -> Pair:
    """For a child, which proves the authority `dns:name` with it."""
    return _issue(ca, Leaf([x509.DNSName(_dns(name))], ExtendedKeyUsageOID.CLIENT_AUTH, "mcpax client"), now, days)


def make_authority_key() -> Pair:
    """To sign proofs of authority where TLS ends before the parent; the public half is the parent's trust anchor."""
    key = Ed25519PrivateKey.generate()
    return Pair(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), _private(key))


def make_token() -> str:
    return secrets.token_urlsafe(TOKEN_BYTES)


def _issue(ca: Pair, leaf: Leaf, now: datetime, days: int) -> Pair:
    authority = _authority(ca)
    ca_end = authority.certificate.not_valid_after_utc
    if ca_end <= now:
        raise PkiError(f"the CA expired on {ca_end:%Y-%m-%d}. Make a new one: mcpax pki init --force.")
    _check_permitted(permitted_names(authority.certificate), leaf.names)
    key = ec.generate_private_key(ec.SECP256R1())
    return _pair(leaf_certificate(authority, leaf, key.public_key(), now, min(now + timedelta(days=days), ca_end)), key)


def _authority(ca: Pair) -> Authority:
    try:
        certificate = x509.load_pem_x509_certificate(ca.public)
        signer = load_pem_private_key(ca.key, password=None)
    except (ValueError, TypeError):
        raise PkiError("the CA's certificate or key cannot be read. Restore ca.pem and ca.key from a copy.") from None
    if not isinstance(signer, ec.EllipticCurvePrivateKey) or signer.public_key() != certificate.public_key():
        raise PkiError("the CA's key is not that of its certificate. Restore ca.pem and ca.key from the same copy.")
    return Authority(certificate, signer)


def _check_permitted(permitted: GeneralNames, names: GeneralNames) -> None:
    """Refuse here what every verifier would refuse later, and without saying why."""
    domains = [each.value for each in permitted if isinstance(each, x509.DNSName)]
    for name in names if permitted else ():
        if isinstance(name, x509.DNSName) and not any(f".{name.value}".endswith(f".{domain}") for domain in domains):
            raise PkiError(f"{name.value} is outside of what this CA may vouch for. Use a name below {' or '.join(domains)}.")
        if isinstance(name, x509.IPAddress) and not any(
            name.value in each.value  # type: ignore[operator]  # it is a network, as that is what constraints hold
            for each in permitted
            if isinstance(each, x509.IPAddress)
        ):
            raise PkiError(f"{name.value} is a public address, and this CA may vouch for private ones. Use a name below {domains[0]}.")


def _dns(name: str) -> str:
    try:
        return check_dns_name(name)
    except InvalidName as error:
        raise PkiError(f"{error}.") from None


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    return Pair(certificate.public_bytes(Encoding.PEM), _private(key))


def _private(key: ec.EllipticCurvePrivateKey | Ed25519PrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
