"""A certificate authority for a test, and one certificate of it for 127.0.0.1, as files."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID


def make_certificates(directory: Path) -> None:
    """`ca.pem`, and a certificate for 127.0.0.1 signed by it, which serves both sides."""
    now = datetime.datetime.now(datetime.UTC)
    keys = {name: ec.generate_private_key(ec.SECP256R1()) for name in ("ca", "leaf")}
    issuer = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test CA")])
    for name, key in keys.items():
        is_ca = name == "ca"
        usage = x509.KeyUsage(True, False, False, False, False, is_ca, is_ca, False, False)
        builder = (
            x509.CertificateBuilder()
            .subject_name(issuer if is_ca else x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")]))
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(x509.BasicConstraints(is_ca, None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(keys["ca"].public_key()), critical=False)
        )
        if not is_ca:
            host = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
            purposes = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
            builder = builder.add_extension(host, critical=False).add_extension(purposes, critical=False)
        certificate = builder.sign(keys["ca"], hashes.SHA256())
        (directory / f"{name}.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        encoding = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        (directory / f"{name}.key").write_bytes(key.private_bytes(*encoding))
