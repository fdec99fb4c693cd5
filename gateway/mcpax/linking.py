"""The links of one aggregator put together from the configuration: the doors for others, the way up, the ways down.

Knows every part of `link`; none of them knows it, nor any file.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from ssl import SSLContext
from urllib.parse import urlsplit

import structlog
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket

from mcpax.config_links import Child, Links, Upstream
from mcpax.core.aggregator import Aggregator
from mcpax.core.principal import Principal
from mcpax.core.registration import RegistrationRequest
from mcpax.core.registry import Vouch
from mcpax.core.subserver import Json
from mcpax.dns_names import authority_name
from mcpax.front.connections import PEER_CERTIFICATE
from mcpax.front.guard import is_loopback
from mcpax.link.anchors import read_anchors
from mcpax.link.authority import AuthorityProof, sign_authority
from mcpax.link.child import ChildEnd
from mcpax.link.downlink import Downlink
from mcpax.link.endpoint import CHILD_PATH, PARENT_PATH, REPLICA_PATH, Endpoint, Pass
from mcpax.link.introduction import Introduction, LinkRefused, Parentage
from mcpax.link.parent import ParentEnd
from mcpax.link.redial import Target
from mcpax.link.tls import ClientCertificates, client_context, read_peer, server_context
from mcpax.link.tree import tree
from mcpax.link.uplink import Uplink
from mcpax.link.wire import Wire

log = structlog.get_logger("mcpax.linking")

DOORS = frozenset({CHILD_PATH, PARENT_PATH, REPLICA_PATH})


class InsecureLink(ValueError):
    """A link as configured would carry tokens and calls in the open."""


def server_tls(links: Links) -> SSLContext | None:
    if links.tls is None:
        return None
    # Optional: clients that are no aggregators come to the same port, and have tokens.
    return server_context(links.tls.certificate, links.tls.key, client_ca=links.tls.client_ca, clients=ClientCertificates.OPTIONAL)


def voucher(links: Links, aggregator_id: str) -> Vouch:
    """How authorities are judged (draft §4.2): proven, or harmless, or accepted by configuration."""
    proof = AuthorityProof(read_anchors(links.anchors) if links.anchors is not None else {}, aggregator_id)

    def vouch(request: RegistrationRequest, principal: Principal, mutable: bool) -> str | None:
        if request.authority is None or principal.trusted:
            return request.authority
        if request.authority_proof is None and not principal.dns_names and (links.accept_unproven or not mutable):
            # Nothing durable comes of a claim that nobody proved: the segment stays free for whoever can.
            return None
        proof.verify(
            request.authority,
            jwt=request.authority_proof,
            certificate_names=principal.dns_names,
            subserver_id=request.subserver_id,
        )
        return f"dns:{authority_name(request.authority)}"

    return vouch


class Linking:
    def __init__(self, links: Links, aggregator: Aggregator, subserver_id: str) -> None:
        """`subserver_id`: what this aggregator registers as."""
        self._links = links
        self._aggregator = aggregator
        self._clock = asyncio.get_running_loop().time
        self._parentage = Parentage()
        self._introduction = None if links.upstream is None else _introduction(links.upstream, subserver_id)
        self._uplink: Uplink | None = None
        if links.upstream is not None and self._introduction is not None and links.upstream.urls:
            targets = _targets(links.upstream, plain=links.plain)
            self._uplink = Uplink(aggregator, targets, self._introduction, self._parentage)
        self._downlinks = [
            Downlink(aggregator, _target(child, plain=links.plain), _principal(child), self._clock) for child in links.children if child.url
        ]
        self._end: ChildEnd | None = None
        """Of the link that the upstream has dialled."""

    def routes(self) -> list[WebSocketRoute]:
        """The doors that the configuration opens; none of them without somebody who may come."""
        doors = []
        passes = [Pass(_principal(child), child.token, child.certificate) for child in self._links.children if not child.url]
        if passes:
            doors.append(Endpoint(passes, self._serve_child, peer_names, allow_plain=self._links.plain).route(CHILD_PATH))
        upstream = self._links.upstream
        if upstream is not None and not upstream.urls:
            parent = Pass(Principal("upstream"), upstream.token)
            doors.append(Endpoint([parent], self._serve_parent, peer_names, allow_plain=self._links.plain).route(PARENT_PATH))
        return doors

    async def _serve_child(self, wire: Wire, principal: Principal) -> str:
        return await ParentEnd(self._aggregator, wire, principal, self._clock).run()

    async def _serve_parent(self, wire: Wire, _: Principal) -> str:
        if self._introduction is None or self._end is not None:
            log.warning("link_refused", reason="there is a link to the upstream already")
            return "there is a link to the upstream already"
        self._end = ChildEnd(self._aggregator, wire, self._introduction, self._parentage)
        try:
            return await self._end.run()
        except LinkRefused as refused:
            log.warning("link_refused", problem=str(refused))
            return str(refused)
        finally:
            self._end = None

    def tasks(self) -> list[asyncio.Task[None]]:
        """What runs until it is cancelled."""
        running: Sequence[Uplink | Downlink] = [*([] if self._uplink is None else [self._uplink]), *self._downlinks]
        return [asyncio.create_task(each.run()) for each in running]

    async def leave(self) -> None:
        if self._uplink is not None:
            await self._uplink.leave()
        if self._end is not None:
            await self._end.leave()

    async def tree(self) -> Json:
        return await tree(self._aggregator)

    def describe(self) -> Json:
        return {
            "upstream": None if self._uplink is None else self._uplink.describe(),
            "dialled": [downlink.describe() for downlink in self._downlinks],
        }


def _introduction(upstream: Upstream, subserver_id: str) -> Introduction:
    prove = None
    if upstream.authority is not None and upstream.authority_key is not None:
        prove = partial(_prove, upstream.authority_key.read_bytes(), authority_name(upstream.authority))
    return Introduction(
        subserver_id,
        upstream.segment,
        upstream.heartbeat_s,
        authority=upstream.authority,
        prove=prove,
        parent_id=upstream.parent_id,
        each_on_its_own=upstream.each_on_its_own,
    )


def _prove(key: bytes, name: str, aggregator_id: str, subserver_id: str) -> str:
    return sign_authority(key, name, aggregator_id, subserver_id, time.time())


def _principal(child: Child) -> Principal:
    return Principal(child.name, child.scope, child.segment)


def _targets(upstream: Upstream, *, plain: bool) -> list[Target]:
    return [
        Target(with_path(url, CHILD_PATH), upstream.token, tls_for(url, upstream.ca, upstream.certificate, upstream.key, plain=plain))
        for url in upstream.urls
    ]


def _target(child: Child, *, plain: bool) -> Target:
    assert child.url is not None
    return Target(with_path(child.url, PARENT_PATH), child.token, tls_for(child.url, child.ca, None, None, plain=plain))


def with_path(url: str, path: str) -> str:
    return url if urlsplit(url).path not in ("", "/") else url.rstrip("/") + path


def tls_for(url: str, ca: Path | None, certificate: Path | None, key: Path | None, *, plain: bool) -> SSLContext | None:
    parts = urlsplit(url)
    if parts.scheme == "wss":
        return client_context(ca, certificate=certificate, key=key)
    if not plain and not is_loopback(parts.hostname or ""):
        raise InsecureLink(
            f"{url}: a link to another machine needs TLS, or everybody on the way could read its token and its calls. "
            "Use wss://, or set plain = true in [links] if nothing of value is behind it."
        )
    return None


def peer_names(socket: WebSocket) -> frozenset[str]:
    certificate = socket.scope.get("state", {}).get(PEER_CERTIFICATE)
    return frozenset() if certificate is None else read_peer(certificate).names
