"""The directory that holds what `mcpax.pki` made: where each file lies, and writing that never leaves half a file or loses a key.

    ca.pem ca.key                     the authority; ca.key stays here
    server/NAME.pem server/NAME.key   for a parent
    client/NAME.pem client/NAME.key   for a child
    anchors/NAME.pem authority/NAME.key   proof of authority without a client certificate
    token/NAME                        shared by a child and its parent

Knows nothing of what the files mean to TLS.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mcpax.pki import Pair, PkiError

SECRET = 0o600
PUBLIC = 0o644
_KEY_DIRECTORY = {"anchors": "authority"}
"""The parent is given the directory of anchors as a whole, so no private key may lie in it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pair lies."""

    public: Path
    key: Path


class PkiDirectory:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.ca = Place(path / "ca.pem", path / "ca.key")

    def place(self, kind: str, name: str) -> Place:
        """Of a server, client or anchors pair; the name was checked when its pair was made."""
        return Place(self.path / kind / f"{name}.pem", self.path / _KEY_DIRECTORY.get(kind, kind) / f"{name}.key")

    def token(self, name: str) -> Path:
        return self.path / "token" / name

    def read_ca(self) -> Pair:
        try:
            return Pair(self.ca.public.read_bytes(), self.ca.key.read_bytes())
        except FileNotFoundError as error:
            raise PkiError(f"{error.filename}: there is no CA yet. Make one first: mcpax pki init --dir {self.path}") from None
        except OSError as error:
            raise PkiError(f"{error.filename}: cannot be read: {error.strerror}. Use the account that made the CA.") from None

    def check_free(self, *files: Path, force: bool) -> None:
        """Before anything is made: a key that is overwritten is lost, and with it everything that relies on it."""
        for file in files if not force else ():
            if file.exists():
                raise PkiError(f"{file} is there already. Keep it, or replace it with --force: what was copied elsewhere stops working.")

    def write_pair(self, place: Place, pair: Pair, *, force: bool) -> None:
        """The key first: a certificate without its key looks complete and is not."""
        self.check_free(place.key, place.public, force=force)
        self.write(place.key, pair.key, SECRET, force=force)
        self.write(place.public, pair.public, PUBLIC, force=force)

    def write(self, file: Path, content: bytes, mode: int, *, force: bool) -> None:
        """All of it or nothing, on the disk when this returns. Without force an existing file survives, even one made this moment."""
        try:
            for directory in (self.path, file.parent):
                directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            _write(file, content, mode, force=force)
        except OSError as error:
            self.check_free(file, force=not isinstance(error, FileExistsError))
            raise PkiError(f"{file}: cannot be written: {error.strerror}. Check owner, free space, and that it is no FAT disk.") from None

    def places(self) -> Sequence[tuple[str, Path]]:
        """Every certificate and public key there is, as (kind, file), in a stable order."""
        found = [("ca", self.ca.public)] if self.ca.public.exists() else []
        return found + [(kind, file) for kind in ("server", "client", "anchors") for file in sorted((self.path / kind).glob("*.pem"))]

    def secrets(self) -> Sequence[Path]:
        """Every private key and token."""
        return [*sorted(self.path.rglob("*.key")), *self.tokens()]

    def tokens(self) -> Sequence[Path]:
        return sorted(file for file in (self.path / "token").glob("*") if file.is_file() and not file.name.startswith("."))


def _write(file: Path, content: bytes, mode: int, *, force: bool) -> None:
    temporary = file.parent / f".{file.name[:100]}.{secrets.token_hex(8)}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        if force:
            temporary.replace(file)
        else:
            os.link(temporary, file)  # unlike a rename, refuses where there is a file
    finally:
        temporary.unlink(missing_ok=True)
    directory = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
