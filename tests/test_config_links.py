"""The configuration of links: what it means, and every fault with its line and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpax.capability import AuthScope
from mcpax.config_links import Child, Cluster, Tls, Upstream
from tests.test_config import TOKEN, faults, here, load

__all__ = ["here"]

CLUSTER = '[cluster]\nname = "cloud"\netcd = ["http://127.0.0.1:2379"]\nurl = "ws://127.0.0.1:8720"\ntoken_file = "token"\n'


def test_nothing_stated_is_no_link(here: Path) -> None:
    links = load(here, "").links
    assert (links.tls, links.upstream, links.children, links.cluster, links.plain, links.accept_unproven) == (
        None,
        None,
        (),
        None,
        False,
        False,
    )


def test_everything_that_is_stated_is_taken(here: Path) -> None:
    for name in ("cert.pem", "key.pem", "ca.pem", "authority.key"):
        (here / name).write_text("")
    (here / "anchors").mkdir()
    links = load(
        here,
        """
        [gateway]
        segment = "plant"
        [tls]
        certificate = "cert.pem"
        key = "key.pem"
        client_ca = "ca.pem"
        [upstream]
        url = "wss://one.example.com:8720"
        backups = ["wss://two.example.com"]
        token_file = "token"
        ca = "ca.pem"
        certificate = "cert.pem"
        key = "key.pem"
        authority = "dns:plant.example.com"
        authority_key = "authority.key"
        register = "each"
        heartbeat_ms = 1500
        [links]
        anchors = "anchors"
        accept_unproven = true
        plain = true
        [[child]]
        name = "cell"
        token_file = "token"
        certificate = "Cell.Example.COM"
        segment = "cell-1"
        scope = "read"
        """,
    ).links
    assert links.tls == Tls(here / "cert.pem", here / "key.pem", here / "ca.pem")
    assert links.upstream == Upstream(
        urls=("wss://one.example.com:8720", "wss://two.example.com"),
        segment="plant",
        token=TOKEN,
        ca=here / "ca.pem",
        certificate=here / "cert.pem",
        key=here / "key.pem",
        authority="dns:plant.example.com",
        authority_key=here / "authority.key",
        each_on_its_own=True,
        heartbeat_s=1.5,
    )
    assert links.children == (Child("cell", TOKEN, "cell.example.com", "cell-1", AuthScope.READ),)
    assert (links.anchors, links.accept_unproven, links.plain) == (here / "anchors", True, True)


def test_a_cluster_is_taken(here: Path) -> None:
    assert load(here, CLUSTER).links.cluster == Cluster("cloud", ("http://127.0.0.1:2379",), "ws://127.0.0.1:8720", TOKEN)


def test_secrets_are_not_printed(here: Path) -> None:
    text = repr(load(here, f'{CLUSTER}[[child]]\nname = "a"\ntoken_file = "token"\n').links)
    assert TOKEN not in text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[upstream]\nurl = "https://cloud.example.com"', '2: "https://cloud.example.com" is not the address of an aggregator'),
        ('[upstream]\nurl = "wss://"', '2: "wss://" is not the address of an aggregator'),
        ('[upstream]\nurl = "wss://a:99999999"', '2: "wss://a:99999999" is not the address of an aggregator'),
        ('[upstream]\nurl = "ws://a"\nbackups = ["b"]', '3: "b" is not the address of an aggregator'),
        ("[upstream]\nheartbeat_ms = 1000", "neither url nor token_file is stated"),
        ('[upstream]\nurl = "ws://a"\nheartbeat_ms = 5', "3: heartbeat_ms 5 is out of bounds"),
        ('[upstream]\nurl = "ws://a"\nregister = "all"', '3: register "all" is not known'),
        ('[upstream]\nurl = "ws://a"\nauthority = "plant.example.com"', '3: "plant.example.com" is no authority'),
        ('[upstream]\nurl = "ws://a"\nca = "gone.pem"', "3: gone.pem is not there"),
        ('[upstream]\nurl = "ws://a"\nkey = "token"', "certificate and key go together, and certificate is missing"),
        ('[upstream]\nurl = "ws://a"\ntoken_file = "weak"', "3: weak does not hold a usable token"),
        ('[upstream]\nurl = "ws://a"\nsegment = "A"', "3: segment 'A' contains 'A'"),
        ('[upstream]\nurl = "ws://a"\ntoken = "x"', '3: unknown key "token"'),
        ('[[child]]\nname = "a"', "nothing says who this child is"),
        ('[[child]]\ntoken_file = "token"', "name is missing"),
        ('[[child]]\nname = "a"\ntoken_file = "token"\n[[child]]\nname = "a"\ntoken_file = "token"', "2 children are named 'a'"),
        ('[[child]]\nname = "a"\ntoken_file = "token"\nscope = "all"', '4: scope "all" is not known'),
        ('[tls]\ncertificate = "token"', "key is missing"),
        ('[tls]\ncertificate = "gone.pem"\nkey = "token"', "2: gone.pem is not there"),
        (CLUSTER + '[upstream]\nurl = "ws://a"', "a cluster is the root of its tree, and has no upstream"),
        (CLUSTER + '[gateway]\nmaps = ["maps"]', "replicas of a cluster have no boards"),
        (CLUSTER.replace('"http://127.0.0.1:2379"', '"127.0.0.1:2379"'), '3: "127.0.0.1:2379" is not an address of etcd'),
        (CLUSTER + 'prefix = "mcpax"', "does not begin and end with '/'"),
        (CLUSTER.replace("cloud", ""), "name is empty"),
    ],
)
def test_faults_are_told_with_line_and_remedy(here: Path, text: str, told: str) -> None:
    line, colon, message = told.rpartition(": ") if told[0].isdigit() else ("", "", told)
    (found,) = faults(here, text)  # one mistake is told once
    assert found.startswith(line + colon)
    assert message in found
