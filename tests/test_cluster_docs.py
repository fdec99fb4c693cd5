"""`docs/cluster.md` is true: its configuration loads, and the figures and names in it are the code's."""

import re
from pathlib import Path

from mcpax.config import load_config
from mcpax.errors import ErrorKind
from mcpax.pki import issue_server, make_ca, make_token
from mcpax.store.etcd import TTL_S
from mcpax.store.etcd_claims import Keys
from tests.test_pki import NOW

PAGE = (Path(__file__).parents[1] / "docs" / "cluster.md").read_text()


def test_the_configuration_loads(tmp_path: Path) -> None:
    (config,) = re.findall(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    ca = make_ca(NOW)
    replica = issue_server(ca, "replica1.example.com", NOW)
    (tmp_path / "ca.pem").write_bytes(ca.public)
    (tmp_path / "replica1.example.com.server.pem").write_bytes(replica.public)
    (tmp_path / "replica1.example.com.server.key").write_bytes(replica.key)
    for token in ("token", "replicas.token", "edge01.example.com.token"):
        (tmp_path / token).write_text(make_token())
    (tmp_path / "mcpax.toml").write_text(config)
    cluster = load_config(tmp_path / "mcpax.toml").links.cluster
    assert cluster is not None
    assert (cluster.name, cluster.ttl_s, len(cluster.etcd)) == ("cloud", TTL_S, 2)


def test_names_and_codes_are_the_codes() -> None:
    error = ErrorKind.STORE_UNAVAILABLE
    assert f"{error.value.code}\n  `{error.wire_name}`" in PAGE
    assert f"etcdctl del {Keys(place='cloud').titles}edge01" in PAGE
