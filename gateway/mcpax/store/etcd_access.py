"""Where etcd is, how to prove who we are, and what can go wrong with it: settings and exceptions, no I/O but reading certificates."""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

TIMEOUT_S = 2.0


class EtcdError(Exception):
    """Something with etcd; says what, where and what to do."""


class EtcdUnavailable(EtcdError):
    """No endpoint answered in time. What was asked for may have been done, or still be done."""


class EtcdRefused(EtcdError):
    """etcd answered, and would not: it tells why."""


class LeaseGone(EtcdError):
    """The lease is unknown: it expired or was revoked, and all keys under it are gone."""


class Compacted(EtcdError):
    """The events asked for are no longer kept. Read everything anew, and watch from there."""


@dataclass(frozen=True, slots=True)
class EtcdAccess:
    """How to reach a cluster."""

    endpoints: tuple[str, ...]
    """Client URLs of its members, in order of preference."""
    timeout_s: float = TIMEOUT_S
    """For one request, all fail-over included."""
    ca: Path | None = None
    """Trust this authority, instead of those of the system."""
    certificate: Path | None = None
    key: Path | None = None
    user: str = ""
    password: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not self.endpoints:
            raise ValueError("etcd: no endpoints: name at least one, like https://etcd-1.example.com:2379")
        if (self.certificate is None) != (self.key is None):
            raise ValueError("etcd: certificate and key go together: give both or neither")
        for endpoint in self.endpoints:
            self._check(endpoint)

    def _check(self, endpoint: str) -> None:
        url = urlsplit(endpoint)
        if url.scheme not in ("http", "https") or not url.hostname or url.username is not None or url.path not in ("", "/"):
            raise ValueError(f"etcd: endpoint {url.hostname or endpoint!r}: use https://host:port, with nothing before or behind it")
        if url.scheme == "http" and self.user and not _is_loopback(url.hostname):
            raise ValueError(f"etcd: endpoint {endpoint}: a password would be readable on the way: use https")

    def tls(self) -> ssl.SSLContext:
        """Raises `OSError` (of which `ssl.SSLError` is one) for files that cannot be used."""
        context = ssl.create_default_context(cafile=self.ca)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        if self.certificate is not None:
            context.load_cert_chain(self.certificate, self.key)
        return context


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
