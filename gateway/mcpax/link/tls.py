"""TLS for links: contexts that speak 1.3 and nothing else (draft §10.4), and who the certificate of a peer says it is.

Faults are told to the operator: when a context is made, and in the log when a handshake fails. A peer gets TLS's own alert and nothing
more. Knows nothing of sockets, or of what a name may do.
"""

from __future__ import annotations

import hashlib
import ssl
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import structlog
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from mcpax.link.tls_files import TlsError, read_certificates, read_private_key, refuse_expired

log = structlog.get_logger("mcpax.tls")

_SPKI = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


class ClientCertificates(Enum):
    REQUIRED = ssl.CERT_REQUIRED
    OPTIONAL = ssl.CERT_OPTIONAL
    """Who shows none comes in without names, and needs another proof; who shows a bad one is refused all the same."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is at the other end, as its verified certificate says."""

    names: frozenset[str] = frozenset()
    """DNS names in lower case."""
    fingerprint: str = ""
    """SHA-256 of the certificate in hex; empty: it showed none."""


class _ToldHandshake(ssl.SSLObject):
    """asyncio drops a connection whose handshake fails without a word; whoever runs the server would like to know why nobody gets in."""

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            # The library's own words: nothing that the other side wrote is in them.
            log.warning("tls_refused", reason=getattr(error, "verify_message", "") or error.reason or str(error))
            raise


def server_context(
    certificate: Path, key: Path, *, client_ca: Path | None = None, clients: ClientCertificates = ClientCertificates.REQUIRED
) -> ssl.SSLContext:
    """For the side that listens. Without `client_ca` no client is asked for a certificate."""
    context = _only_tls13(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
    # No resumption: each link is judged by the certificates of today, and a link lives too long for a saved handshake to matter.
    context.num_tickets = 0
    context.sslobject_class = _ToldHandshake
    _show(context, certificate, key)
    if client_ca is not None:
        _trust(context, client_ca)
        context.verify_mode = clients.value
    return context


def client_context(ca: Path | None = None, *, certificate: Path | None = None, key: Path | None = None) -> ssl.SSLContext:
    """For the side that dials; the host name is checked. `ca` None: the authorities that the system trusts."""
    context = _only_tls13(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))  # which brings CERT_REQUIRED and check_hostname
    context.hostname_checks_common_name = False
    if ca is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        _trust(context, ca)
    if (certificate is None) != (key is None):
        raise TlsError(f"{certificate or key}: a certificate and its key go together. Configure both, certificate and key, or neither.")
    if certificate is not None and key is not None:
        _show(context, certificate, key)
    return context


def pinned_context(certificate: Path) -> ssl.SSLContext:
    """For asking one's own server, by whatever address: it must show that certificate, and which name is in it does not matter."""
    context = _only_tls13(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # it vouches for itself
    _trust(context, certificate)
    return context


def peer_of(connection: ssl.SSLObject | ssl.SSLSocket | None) -> Peer:
    """Of a connection after its handshake; nobody, if it is not TLS or nothing was verified."""
    if connection is None or connection.context.verify_mode is ssl.CERT_NONE:
        return Peer()
    der = connection.getpeercert(binary_form=True)
    return read_peer(der) if der else Peer()


def read_peer(der: bytes) -> Peer:
    """Names and fingerprint of a certificate. What has no readable names has none: names give rights, so doubt gives nothing."""
    fingerprint = hashlib.sha256(der).hexdigest()
    try:
        names = x509.load_der_x509_certificate(der).extensions.get_extension_for_class(x509.SubjectAlternativeName)
        return Peer(frozenset(name.lower() for name in names.value.get_values_for_type(x509.DNSName)), fingerprint)
    except (ValueError, x509.ExtensionNotFound, x509.DuplicateExtension):
        return Peer(frozenset(), fingerprint)


def _only_tls13(context: ssl.SSLContext) -> ssl.SSLContext:
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_3
    context.verify_flags |= ssl.VERIFY_X509_STRICT  # the default from Python 3.13 on, and so the same on every Python
    return context


def _show(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    chain = read_certificates(certificate)
    refuse_expired(certificate, min(one.not_valid_after_utc for one in chain))
    own = chain[0]
    if read_private_key(key).public_key().public_bytes(*_SPKI) != own.public_key().public_bytes(*_SPKI):
        raise TlsError(f"{key}: not the key of {certificate}. Configure the two files that were made together, or make both again.")
    try:
        context.load_cert_chain(certificate, key, password="")  # so that nobody is ever asked for one
    except (ssl.SSLError, OSError) as error:
        raise TlsError(f"{certificate}: cannot be used: {error}. Make certificate and key again (mcpax pki).") from None


def _trust(context: ssl.SSLContext, ca: Path) -> None:
    # While an authority is replaced, a file holds the old one and the new one: one that is still good is enough.
    refuse_expired(ca, max(one.not_valid_after_utc for one in read_certificates(ca)))
    try:
        context.load_verify_locations(cafile=ca)
    except (ssl.SSLError, OSError) as error:
        raise TlsError(f"{ca}: cannot be used as CA: {error}. Copy the CA's certificate again, ca.pem of mcpax pki.") from None
