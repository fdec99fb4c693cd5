"""Certificates for the tests of links, made as `mcpax pki` makes them and written where a test wants them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from mcpax.pki import Pair

NOW = datetime.now(UTC)


@dataclass(frozen=True)
class Files:
    public: Path
    key: Path


def written(directory: Path, name: str, pair: Pair) -> Files:
    files = Files(directory / f"{name}.pem", directory / f"{name}.key")
    files.public.write_bytes(pair.public)
    files.key.write_bytes(pair.key)
    return files
