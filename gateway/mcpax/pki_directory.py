"""The directory that holds what `mcpax.pki` made: where each file lies, and writing that never leaves half a file or loses a key.

    ca.pem  ca.key                              the authority; ca.key stays here
    NAME.server.pem  NAME.server.key            for a parent
    NAME.client.pem  NAME.client.key            for a child
    anchors/NAME.pem  NAME.authority.key        proof of authority without a client certificate
    NAME.token                                  shared by a child and its parent

File names tell the kind, as one aggregator may be parent and child and keeps them all beside its configuration. Knows nothing of what
the files mean to TLS.
"""

from __future__ import annotations

import os
import secrets
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mcpax.pki import Pair, PkiError

SECRET = 0o600
PUBLIC = 0o644
DEFAULT = Path("pki")
ANCHORS = "anchors"
"""A parent is given this directory as a whole, so no private key may lie in it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pair lies."""

    public: Path
    key: Path


class PkiDirectory:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.ca = Place(path / "ca.pem", path / "ca.key")

    def command(self, arguments: str) -> str:
        """The command line that works on this directory, for messages."""
        return f"mcpax pki {arguments}" + ("" if self.path == DEFAULT else f" --dir {shlex.quote(str(self.path))}")

    def server(self, name: str) -> Place:
        return self._pair(f"{name}.server")

    def client(self, name: str) -> Place:
        return self._pair(f"{name}.client")

    def authority(self, name: str) -> Place:
        return Place(self.path / ANCHORS / f"{name}.pem", self.path / f"{name}.authority.key")

    def token(self, name: str) -> Path:
        return self.path / f"{name}.token"

    def _pair(self, stem: str) -> Place:
        return Place(self.path / f"{stem}.pem", self.path / f"{stem}.key")

    def read_ca(self) -> Pair:
        try:
            return Pair(self.ca.public.read_bytes(), self.ca.key.read_bytes())
        except FileNotFoundError as error:
            raise PkiError(f"{error.filename}: there is no CA yet. Make one first: {self.command('init')}") from None
        except OSError as error:
            raise PkiError(f"{error.filename}: cannot be read: {error.strerror}. Use the account that made the CA.") from None

    def _check_free(self, *files: Path, force: bool) -> None:
        """A key that is overwritten is lost, and with it everything that relies on it."""
        for file in files if not force else ():
            if file.exists():
                raise PkiError(f"{file} is there already. Keep it, or replace it with --force: what was copied elsewhere stops working.")

    def write_pair(self, place: Place, pair: Pair, *, force: bool) -> None:
        """The key first: a certificate without its key looks complete and is not."""
        self._check_free(place.key, place.public, force=force)
        self.write(place.key, pair.key, SECRET, force=force)
        self.write(place.public, pair.public, PUBLIC, force=force)

    def write(self, file: Path, content: bytes, mode: int, *, force: bool) -> None:
        """All of it or nothing, on the disk when this returns. Without force an existing file survives, even one made this moment."""
        try:
            for directory in (self.path, file.parent):
                directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            _write(file, content, mode, force=force)
        except OSError as error:
            self._check_free(file, force=not isinstance(error, FileExistsError))
            raise PkiError(f"{file}: cannot be written: {error.strerror}. Check owner, free space, and that it is no FAT disk.") from None

    def found(self) -> Sequence[tuple[str, str, Path]]:
        """What there is, as (kind, name, file), in the order in which it is made; of a pair the public file."""
        found = [("ca", "", self.ca.public)] if self.ca.public.exists() else []
        for kind, below, suffix in (
            ("server", ".", ".server.pem"),
            ("client", ".", ".client.pem"),
            ("token", ".", ".token"),
            ("authority", ANCHORS, ".pem"),
        ):
            files = sorted((self.path / below).glob(f"[!.]*{suffix}"))
            found += [(kind, file.name.removesuffix(suffix), file) for file in files]
        return found

    def secrets(self) -> Sequence[Path]:
        return sorted([*self.path.glob("[!.]*.key"), *self.path.glob("[!.]*.token")])


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
