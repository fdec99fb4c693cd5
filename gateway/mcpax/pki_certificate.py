"""What a certificate of `mcpax.pki` looks like inside: extensions, serial, validity. Knows nothing of what it is issued for, or kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

SKEW = timedelta(minutes=5)
"""Certificates are valid from a little earlier on: the clock of a board may be behind ours."""
GeneralNames = Sequence[x509.GeneralName]


@dataclass(frozen=True, slots=True)
class Authority:
    certificate: x509.Certificate
    signer: ec.EllipticCurvePrivateKey


@dataclass(frozen=True, slots=True)
class Leaf:
    names: GeneralNames
    purpose: x509.ObjectIdentifier
    title: str
    """For people: verifiers read the names, and a common name is too short for a DNS name."""


def ca_certificate(key: ec.EllipticCurvePrivateKey, permitted: GeneralNames, now: datetime, end: datetime) -> x509.Certificate:
    """Signs itself, and may sign leaves only. `permitted` empty: for any name."""
    own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    subject = _name(f"mcpax CA {own.digest.hex()[:8]}")  # two authorities never share a name: verifiers look issuers up by it
    builder = _builder(subject, subject, key.public_key(), now, end)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
    builder = builder.add_extension(own, critical=False)
    if permitted:
        builder = builder.add_extension(x509.NameConstraints(permitted, excluded_subtrees=None), critical=True)
    return builder.sign(key, hashes.SHA256())


def leaf_certificate(
    authority: Authority, leaf: Leaf, public_key: ec.EllipticCurvePublicKey, now: datetime, end: datetime
) -> x509.Certificate:
    builder = _builder(_name(leaf.title), authority.certificate.subject, public_key, now, end)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([leaf.purpose]), critical=False)
    builder = builder.add_extension(x509.SubjectAlternativeName(leaf.names), critical=False)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    builder = builder.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.signer.public_key()), critical=False)
    return builder.sign(authority.signer, hashes.SHA256())


def permitted_names(issuer: x509.Certificate) -> GeneralNames:
    """What its name constraints let it sign; empty: anything."""
    try:
        return issuer.extensions.get_extension_for_class(x509.NameConstraints).value.permitted_subtrees or ()
    except x509.ExtensionNotFound:
        return ()


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey, now: datetime, end: datetime
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(public_key)
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now.astimezone(UTC) - SKEW).not_valid_after(end.astimezone(UTC))


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(title: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "mcpax"), x509.NameAttribute(NameOID.COMMON_NAME, title)])
