"""The part of the configuration that concerns other aggregators: who is above, who may come from below, and what each must show.

Turns it into plain data that is already checked. Knows nothing of connections.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mcpax.capability import AuthScope
from mcpax.config_reading import Reading
from mcpax.core.registration import MAX_HEARTBEAT_MS, MIN_HEARTBEAT_MS, is_authority
from mcpax.documents.faults import KeyPath, shown
from mcpax.documents.keys import Key, Kind, Table

SUBTREE, EACH = "subtree", "each"
_URL_HINT = "like wss://cloud.example.com:8720, or ws:// for this machine"

TLS = Table(
    "[tls]",
    "Serve everything over TLS 1.3.",
    (
        Key("certificate", Kind.TEXT, "File with the certificate (chain), PEM.", required=True),
        Key("key", Kind.TEXT, "File with its private key, PEM, not encrypted.", required=True),
        Key("client_ca", Kind.TEXT, "File with the CA of the certificates that children show, PEM."),
    ),
)
UPSTREAM = Table(
    "[upstream]",
    "The aggregator that this one registers with.",
    (
        Key("url", Kind.TEXT, f"Where it is, {_URL_HINT}. Not stated: it dials us."),
        Key("backups", Kind.TEXTS, "Where to go while that one cannot be reached, in this order.", default=[]),
        Key("segment", Kind.TEXT, "What to be called there. Not stated: the segment of [gateway]."),
        Key("token_file", Kind.TEXT, "File with the token that it knows us by; where it dials us, the token that it must show."),
        Key("ca", Kind.TEXT, "File with the CA of its certificate, PEM. Not stated: the system's."),
        Key("certificate", Kind.TEXT, "File with the certificate that we show, PEM; needs key."),
        Key("key", Kind.TEXT, "File with its private key, PEM, not encrypted."),
        Key("parent_id", Kind.TEXT, "Its aggregator id ('mcpax tree --json' there); any other is refused, and gets no proof of authority."),
        Key("authority", Kind.TEXT, "Whom the segment belongs to, like dns:plant.example.com."),
        Key("authority_key", Kind.TEXT, "File with the private key that proves the authority, PEM. A certificate may prove it instead."),
        Key(
            "register",
            Kind.TEXT,
            "As one subtree, or each board by itself as if it were the upstream's own.",
            choices=(SUBTREE, EACH),
            default=SUBTREE,
        ),
        Key(
            "heartbeat_ms",
            Kind.INTEGER,
            "How often to show that we live; three missed and we are taken for lost.",
            low=MIN_HEARTBEAT_MS,
            high=MAX_HEARTBEAT_MS,
            default=5000,
        ),
    ),
)
CHILD = Table(
    "[[child]]",
    "An aggregator that may register here.",
    (
        Key("name", Kind.TEXT, "What it is called in logs.", required=True),
        Key("token_file", Kind.TEXT, "File with the token that it must show; with url, the token that we show it."),
        Key("certificate", Kind.TEXT, "DNS name that the certificate it shows must carry; needs client_ca in [tls]."),
        Key("segment", Kind.TEXT, "The only segment it may take. Not stated: any that is free."),
        Key("scope", Kind.TEXT, "The most that may be asked of its tools.", choices=tuple(AuthScope), default=str(AuthScope.ADMIN)),
        Key("url", Kind.TEXT, f"Where to dial it, if it does not dial us: {_URL_HINT}."),
        Key("ca", Kind.TEXT, "With url: file with the CA of its certificate, PEM. Not stated: the system's."),
    ),
)
LINKS = Table(
    "[links]",
    "What holds for all aggregators that register here.",
    (
        Key("anchors", Kind.TEXT, "Directory of public keys, NAME.pem each, that prove the authority dns:NAME."),
        Key("accept_unproven", Kind.FLAG, "Accept authorities without proof, for tools that change things too.", default=False),
        Key("plain", Kind.FLAG, "Also from other machines without TLS. Tokens and calls can be read on the way.", default=False),
    ),
)
CLUSTER = Table(
    "[cluster]",
    "Several replicas of one aggregator, which agree through etcd on who serves which child. For aggregators without boards of their own.",
    (
        Key("name", Kind.TEXT, "The same for all replicas; makes them one aggregator.", required=True),
        Key("etcd", Kind.TEXTS, "Addresses of etcd, like http://127.0.0.1:2379.", required=True),
        Key("etcd_ca", Kind.TEXT, "File with the CA of etcd's certificate, PEM. Not stated: the system's."),
        Key("prefix", Kind.TEXT, "Where in etcd to keep things.", default="/mcpax/"),
        Key("url", Kind.TEXT, f"Where the other replicas reach this one, {_URL_HINT}.", required=True),
        Key("token_file", Kind.TEXT, "File with the token that replicas show each other.", required=True),
        Key("ca", Kind.TEXT, "File with the CA of the replicas' certificates, PEM. Not stated: the system's."),
        Key("ttl_s", Kind.INTEGER, "How long a replica that has died keeps its children from the others.", low=2, high=3600, default=9),
    ),
)
LINK_KEYS = (
    Key("cluster", Kind.TABLE, CLUSTER.help, table=CLUSTER),
    Key("tls", Kind.TABLE, TLS.help, table=TLS),
    Key("upstream", Kind.TABLE, UPSTREAM.help, table=UPSTREAM),
    Key("links", Kind.TABLE, LINKS.help, table=LINKS),
    Key("child", Kind.TABLES, CHILD.help, high=1024, table=CHILD),
)
LINK_TABLES = (TLS, UPSTREAM, LINKS, CHILD, CLUSTER)


@dataclass(frozen=True, slots=True)
class Tls:
    certificate: Path
    key: Path
    client_ca: Path | None = None


@dataclass(frozen=True, slots=True)
class Upstream:
    urls: tuple[str, ...]
    segment: str
    token: str | None = field(default=None, repr=False)
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    parent_id: str | None = None
    authority: str | None = None
    authority_key: Path | None = None
    each_on_its_own: bool = False
    heartbeat_s: float = 5.0


@dataclass(frozen=True, slots=True)
class Child:
    name: str
    token: str | None = field(default=None, repr=False)
    certificate: str | None = None
    segment: str | None = None
    scope: AuthScope = AuthScope.ADMIN
    url: str | None = None
    ca: Path | None = None


@dataclass(frozen=True, slots=True)
class Cluster:
    name: str
    etcd: tuple[str, ...]
    url: str
    token: str = field(repr=False)
    prefix: str = "/mcpax/"
    etcd_ca: Path | None = None
    ca: Path | None = None
    ttl_s: int = 9


@dataclass(frozen=True, slots=True)
class Links:
    tls: Tls | None = None
    upstream: Upstream | None = None
    children: tuple[Child, ...] = ()
    cluster: Cluster | None = None
    anchors: Path | None = None
    accept_unproven: bool = False
    plain: bool = False


def read_links(reading: Reading, tidy: Mapping[str, Any], segment: str) -> Links:
    """`tidy`: the document; `segment`: the gateway's own."""
    links = tidy.get("links", {})
    if "cluster" in tidy and "upstream" in tidy:
        reading.report.add(("cluster",), "a cluster is the root of its tree, and has no upstream", "remove [upstream] or [cluster]")
    children = tuple(_child(reading, entry, index) for index, entry in enumerate(tidy.get("child", [])))
    for name, count in Counter(child.name for child in children).items():
        if count > 1:
            reading.report.add(("child",), f"{count} children are named {name!r}", "give each [[child]] its own name")
    return Links(
        tls=_tls(reading, tidy["tls"]) if "tls" in tidy else None,
        upstream=_upstream(reading, tidy["upstream"], segment) if "upstream" in tidy else None,
        children=children,
        cluster=_cluster(reading, tidy["cluster"]) if "cluster" in tidy else None,
        anchors=_file(reading, links, "anchors", ("links",)),
        accept_unproven=links.get("accept_unproven", False),
        plain=links.get("plain", False),
    )


def _tls(reading: Reading, entry: Mapping[str, Any]) -> Tls | None:
    certificate, key = (_file(reading, entry, name, ("tls",)) for name in ("certificate", "key"))
    if certificate is None or key is None:
        return None  # reported
    return Tls(certificate, key, _file(reading, entry, "client_ca", ("tls",)))


def _upstream(reading: Reading, entry: Mapping[str, Any], segment: str) -> Upstream:
    where: KeyPath = ("upstream",)
    urls = [entry["url"]] if "url" in entry else []
    for index, url in enumerate(entry.get("backups", [])):
        _check_url(reading, url, (*where, "backups", index))
        urls.append(url)
    if "url" in entry:
        _check_url(reading, entry["url"], (*where, "url"))
    if not urls and "token_file" not in entry:
        reading.report.add(where, "neither url nor token_file is stated", "add url, or the token that an upstream that dials us must show")
    authority = entry.get("authority")
    if authority is not None and not is_authority(authority):
        reading.report.add((*where, "authority"), f"{shown(authority)} is no authority", "'dns:' and a host name: dns:plant.example.com")
    if ("certificate" in entry) != ("key" in entry):
        missing = "key" if "certificate" in entry else "certificate"
        reading.report.add(where, f"certificate and key go together, and {missing} is missing", f"add {missing}")
    return Upstream(
        urls=tuple(urls),
        segment=reading.segment(entry["segment"], (*where, "segment")) if "segment" in entry else segment,
        token=reading.token(entry.get("token_file"), (*where, "token_file")),
        ca=_file(reading, entry, "ca", where),
        certificate=_file(reading, entry, "certificate", where),
        key=_file(reading, entry, "key", where),
        parent_id=entry.get("parent_id"),
        authority=authority,
        authority_key=_file(reading, entry, "authority_key", where),
        each_on_its_own=entry.get("register", SUBTREE) == EACH,
        heartbeat_s=entry.get("heartbeat_ms", 5000) / 1000,
    )


def _child(reading: Reading, entry: Mapping[str, Any], index: int) -> Child:
    where: KeyPath = ("child", index)
    if "url" in entry:
        _check_url(reading, entry["url"], (*where, "url"))
    elif "token_file" not in entry and "certificate" not in entry:
        reading.report.add(where, "nothing says who this child is", "add token_file or certificate: 'mcpax pki' makes them")
    return Child(
        name=entry.get("name", "?"),
        token=reading.token(entry.get("token_file"), (*where, "token_file")),
        certificate=entry.get("certificate", "").lower() or None,
        segment=reading.segment(entry["segment"], (*where, "segment")) if "segment" in entry else None,
        scope=AuthScope(entry.get("scope", AuthScope.ADMIN)),
        url=entry.get("url"),
        ca=_file(reading, entry, "ca", where),
    )


def _cluster(reading: Reading, entry: Mapping[str, Any]) -> Cluster | None:
    where: KeyPath = ("cluster",)
    token = reading.token(entry.get("token_file"), (*where, "token_file"))
    if "url" in entry:
        _check_url(reading, entry["url"], (*where, "url"))
    prefix = entry.get("prefix", "/mcpax/")
    if not prefix.startswith("/") or not prefix.endswith("/"):
        reading.report.add((*where, "prefix"), f"{shown(prefix)} does not begin and end with '/'", "like /mcpax/")
    for index, address in enumerate(entry.get("etcd", [])):
        if urlsplit(address).scheme not in ("http", "https"):
            reading.report.add((*where, "etcd", index), f"{shown(address)} is not an address of etcd", "like http://127.0.0.1:2379")
    if token is None or "url" not in entry or "name" not in entry or not entry.get("etcd"):
        return None  # reported
    return Cluster(
        name=entry["name"],
        etcd=tuple(entry["etcd"]),
        url=entry["url"],
        token=token,
        prefix=prefix,
        etcd_ca=_file(reading, entry, "etcd_ca", where),
        ca=_file(reading, entry, "ca", where),
        ttl_s=entry.get("ttl_s", 9),
    )


def _file(reading: Reading, entry: Mapping[str, Any], key: str, where: KeyPath) -> Path | None:
    if key not in entry:
        return None
    path = reading.path(entry[key], (*where, key))
    if path is not None and not path.exists():
        reading.report.add((*where, key), f"{entry[key]} is not there", f"paths are relative to this file: {path}")
    return path


def _check_url(reading: Reading, url: str, where: KeyPath) -> None:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("ws", "wss") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        reading.report.add(where, f"{shown(url)} is not the address of an aggregator", _URL_HINT)
