"""DNS names as certificates and authorities carry them: ASCII, lower case, no wildcard. Knows nothing of resolving them."""

from __future__ import annotations

import ipaddress
import re

from mcpax.names import InvalidName

_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*")
_SCHEME = "dns:"


def check_dns_name(text: str) -> str:
    """The name in lower case, or `InvalidName`. What passes is safe as the name of a file, too."""
    name = text.lower()
    # 192.168.1.5 keeps every rule of a host name, and is none.
    if not text.isascii() or not _NAME.fullmatch(name) or is_address(name):
        raise InvalidName(f"{text[:80]!r} is not a DNS name: use letters, digits and '-' between dots, like edge01.factory.example.com")
    return name


def authority_name(authority: str) -> str:
    """The name in `dns:NAME`, or `InvalidName`."""
    if authority[: len(_SCHEME)].lower() != _SCHEME:
        raise InvalidName(f"{authority[:80]!r} is not an authority: use 'dns:' and a DNS name")
    return check_dns_name(authority[len(_SCHEME) :])


def is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
