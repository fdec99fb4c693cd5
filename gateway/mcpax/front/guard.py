"""Who may come in over HTTP: Host against DNS rebinding, Origin against other people's web pages, and the token.

One ASGI wrapper in front of every path. Knows nothing of what is behind it.
"""

from __future__ import annotations

import hmac
import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

import structlog
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

log = structlog.get_logger("mcpax.guard")

OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""Say only that the process lives; whoever restarts it needs no secret for that."""
MAX_BODY_BYTES = 1 << 20


class InsecureListen(ValueError):
    """Listening as configured would let anyone in the network move real devices."""


@dataclass(frozen=True, slots=True)
class Access:
    token: str | None = None
    hosts: frozenset[str] = frozenset()
    """Host names this server answers to besides loopback. Empty and a token set: any, since a rebound web page lacks the token."""
    origins: frozenset[str] = frozenset()
    """Web origins allowed besides loopback and our own, like https://console.example.com."""
    max_body_bytes: int = MAX_BODY_BYTES
    own_doors: frozenset[str] = frozenset()
    """Paths that ask for credentials of their own: what lets a client in must not let in a child, nor the other way round."""


@dataclass(frozen=True, slots=True)
class Refusal:
    status: int
    error: str
    message: str
    hint: str


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_listen(host: str, token: str | None) -> None:
    if token or is_loopback(host):
        return
    raise InsecureListen(
        f"Will not listen on {host!r} without a token: everybody who reaches it could use the devices. "
        "Name a file that holds one with token_file in [gateway] (docs/configuration.md shows how to make it), or listen on 127.0.0.1."
    )


class Guard:
    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = None if scope["type"] == "lifespan" else self.check(scope["path"], Headers(scope=scope))
        if refusal is None:
            await self._app(scope, receive, send)
            return
        log.info("refused", path=scope["path"], error=refusal.error, peer=(scope.get("client") or ("?",))[0])
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": refusal.error})
            return
        headers = {"WWW-Authenticate": 'Bearer realm="mcpax"'} if refusal.status == 401 else None
        body = {"error": refusal.error, "message": refusal.message, "hint": refusal.hint}
        await JSONResponse(body, refusal.status, headers)(scope, receive, send)

    def check(self, path: str, headers: Headers) -> Refusal | None:
        access = self._access
        host = headers.get("host", "")
        if not self._host_allowed(host):
            return Refusal(421, "host_not_allowed", f"This server does not answer to Host {host[:100]!r}.", "Add it to the allowed hosts.")
        origin = headers.get("origin")
        if origin is not None and not self._origin_allowed(origin, host):
            return Refusal(403, "origin_not_allowed", f"Web pages of {origin[:100]!r} may not come in.", "Add it to the allowed origins.")
        if access.token and path not in OPEN_PATHS | access.own_doors and not _bears(headers.get("authorization", ""), access.token):
            return Refusal(
                401,
                "unauthorized",
                "This server needs a token, and the request has none or a wrong one.",
                "Send the header 'Authorization: Bearer <token>' with the token from the gateway's configuration.",
            )
        return None

    def _host_allowed(self, host: str) -> bool:
        name = _hostname(f"//{host}")
        if name is None:
            return False
        any_host = bool(self._access.token) and not self._access.hosts
        return any_host or is_loopback(name) or name in self._access.hosts

    def _origin_allowed(self, origin: str, host: str) -> bool:
        if origin in self._access.origins or origin in (f"http://{host}", f"https://{host}"):
            return True
        name = _hostname(origin)
        return name is not None and is_loopback(name)


def _hostname(url: str) -> str | None:
    """The host of an origin, or of a Host header behind `//`; None if there is more to it than that."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    plain = not parts.path and not parts.query and not parts.fragment and "@" not in parts.netloc
    return parts.hostname if plain else None


def _bears(authorization: str, token: str) -> bool:
    scheme, _, given = authorization.partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())
