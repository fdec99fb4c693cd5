"""Trust anchors: which public key may speak for which DNS name, one `NAME.pem` each. And the one algorithm that goes with a key.

An anchor speaks for exactly the name of its file, for nothing below it. Knows nothing of what is signed with the keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from mcpax.dns_names import check_dns_name
from mcpax.names import InvalidName

MAX_ANCHORS = 4096
MAX_FILE_BYTES = 1 << 16
AnchorKey = Ed25519PublicKey | ec.EllipticCurvePublicKey
SigningKey = Ed25519PrivateKey | ec.EllipticCurvePrivateKey
Anchors = Mapping[str, AnchorKey]
"""By DNS name in lower case, which is the key id too."""


class AnchorError(Exception):
    """A key cannot be used; the message says which, why, and what to do."""


def read_anchors(directory: Path) -> Anchors:
    """Every `NAME.pem` in a directory. One that cannot be used is a fault: left out silently it would lock its child out."""
    try:
        files = sorted(directory.iterdir())
        files = [file for file in files if file.suffix == ".pem" and not file.name.startswith(".")]
        if len(files) > MAX_ANCHORS:
            raise AnchorError(f"{directory}: holds {len(files)} anchors, at most {MAX_ANCHORS} are read. Is it another directory?")
        return {_name(file): _anchor(file) for file in files}
    except OSError as error:
        raise AnchorError(f"{error.filename}: cannot be read: {error.strerror}. Check the path, and that the gateway's user may.") from None


def algorithm_for(key: AnchorKey | SigningKey) -> str:
    """The key decides, never the token: that is what keeps a token from choosing a weaker one."""
    return "EdDSA" if isinstance(key, Ed25519PublicKey | Ed25519PrivateKey) else "ES256"


def parse_signing_key(pem: bytes) -> SigningKey:
    try:
        key = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise AnchorError("no private key without password in PEM form. Make one: mcpax pki authority NAME.") from None
    if isinstance(key, Ed25519PrivateKey) or (isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP256R1)):
        return key
    raise AnchorError("neither an Ed25519 nor a P-256 key. Make one: mcpax pki authority NAME.")


def parse_anchor(pem: bytes) -> AnchorKey:
    try:
        key = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm):
        raise AnchorError("no public key in PEM form, '-----BEGIN PUBLIC KEY-----'. Copy it from anchors/ of mcpax pki.") from None
    if isinstance(key, Ed25519PublicKey) or (isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1)):
        return key
    raise AnchorError("neither an Ed25519 nor a P-256 key. Make one: mcpax pki authority NAME.")


def _name(file: Path) -> str:
    try:
        return check_dns_name(file.stem)
    except InvalidName as error:
        raise AnchorError(f"{file}: an anchor speaks for the DNS name that its file has, and {error}.") from None


def _anchor(file: Path) -> AnchorKey:
    try:
        with file.open("rb") as stream:
            return parse_anchor(stream.read(MAX_FILE_BYTES))
    except AnchorError as error:
        raise AnchorError(f"{file}: {error}") from None
