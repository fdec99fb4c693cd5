"""Certificate and key files, read and judged before TLS uses them.

OpenSSL would ask for a password at the terminal of a service, and explain the rest in a few words without the file. Knows nothing of peers.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import load_pem_private_key

MAX_FILE_BYTES = 1 << 20


class TlsError(Exception):
    """A certificate or key cannot be used; the message says which file, why, and what to do."""


def read_certificates(path: Path) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(_bytes(path))
    except ValueError:
        raise TlsError(f"{path}: holds no certificate in PEM form, '-----BEGIN CERTIFICATE-----'. Is it another file?") from None


def refuse_expired(path: Path, end: datetime) -> None:
    # One that is not valid yet passes: a Raspberry Pi starts in the past, and the peer judges with its own clock.
    if end < datetime.now(UTC):
        raise TlsError(f"{path}: expired on {end:%Y-%m-%d}. Issue it again (mcpax pki … --force) and copy it here.")


def read_private_key(path: Path) -> PrivateKeyTypes:
    try:
        return load_pem_private_key(_bytes(path), password=None)
    except TypeError:
        raise TlsError(f"{path}: the key is encrypted, and nobody is there to type its password. Store it without, mode 0600.") from None
    except (ValueError, UnsupportedAlgorithm):
        raise TlsError(f"{path}: holds no private key in PEM form, '-----BEGIN PRIVATE KEY-----'. Is it another file?") from None


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_FILE_BYTES)
    except OSError as error:
        raise TlsError(f"{path}: cannot be read: {error.strerror}. Check the path, and that the gateway's user may read it.") from None
