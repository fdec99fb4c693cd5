"""Where links come in: who may, by token or certificate, over what kind of connection; then hands the socket to the right end of a link.

Children come to `/mcpax/link`, a parent that dials us to `/mcpax/link/parent`, other replicas of us to `/mcpax/link/replica`. Whoever is
refused learns nothing but that; the log has the reason. Knows nothing of registrations.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

import structlog
from starlette.routing import WebSocketRoute
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from mcpax.core.principal import Principal
from mcpax.link.wire import SUBPROTOCOL, AcceptedWire, Wire

log = structlog.get_logger("mcpax.link")

CHILD_PATH = "/mcpax/link"
PARENT_PATH = "/mcpax/link/parent"
REPLICA_PATH = "/mcpax/link/replica"


@dataclass(frozen=True, slots=True)
class Pass:
    """What lets somebody in. All that it states must be shown."""

    principal: Principal
    token: str | None = field(default=None, repr=False)
    certificate: str | None = None
    """A DNS name that the certificate must carry."""


PeerNames = Callable[[WebSocket], frozenset[str]]
ServeLink = Callable[[Wire, Principal], Awaitable[str]]


class Endpoint:
    """An ASGI app."""

    def __init__(self, passes: Sequence[Pass], serve: ServeLink, peer_names: PeerNames, *, allow_plain: bool = False) -> None:
        """`peer_names`: the DNS names that a connection's certificate proves. `allow_plain`: also from other machines without TLS."""
        self._peer_names = peer_names
        self._passes = passes
        self._serve = serve
        self._allow_plain = allow_plain

    def route(self, path: str) -> WebSocketRoute:
        return WebSocketRoute(path, self)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        socket = WebSocket(scope, receive, send)
        refusal, principal = self._judge(socket)
        peer = socket.client.host if socket.client else "?"
        if principal is None:
            log.warning("link_rejected", path=socket.url.path, peer=peer, reason=refusal)
            await socket.close(1008)  # before it is accepted: the other side gets HTTP 403 and nothing more
            return
        await socket.accept(SUBPROTOCOL)
        log.info("link_accepted", child=principal.name, peer=peer)
        wire = AcceptedWire(receive, send)
        try:
            await self._serve(wire, principal)
        finally:
            await wire.close("stopping")

    def _judge(self, socket: WebSocket) -> tuple[str, Principal | None]:
        """(why not, nobody) or ("", who)."""
        if socket.url.scheme != "wss" and not self._allow_plain and not _local(socket):
            return "not TLS, and not from this machine", None
        if SUBPROTOCOL not in socket.scope.get("subprotocols", ()):
            return f"does not speak {SUBPROTOCOL}", None
        kind, _, token = socket.headers.get("authorization", "").partition(" ")
        shown = token.strip() if kind.lower() == "bearer" else ""
        names = self._peer_names(socket)
        found: Principal | None = None
        for each in self._passes:  # all of them, so that the time taken does not tell which came close
            token_fits = each.token is None or hmac.compare_digest(each.token.encode(), shown.encode())
            if token_fits and (each.certificate is None or each.certificate in names):
                found = found or replace(each.principal, dns_names=names)
        return ("neither token nor certificate is one that we know" if found is None else ""), found


def _local(socket: WebSocket) -> bool:
    return socket.client is not None and socket.client.host in ("127.0.0.1", "::1")
