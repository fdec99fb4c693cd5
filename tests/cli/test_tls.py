"""The command line in front of an aggregator that serves TLS with a certificate of one's own CA."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mcpax.cli.main import main
from mcpax.pki import issue_server, make_ca
from tests.cli.program import Program
from tests.link.credentials import NOW, written

CONFIG = """
[gateway]
segment = "cloud"
listen = "127.0.0.1:{port}"
token_file = "token"
state_dir = "state"

[tls]
certificate = "server.pem"
key = "server.key"

[[child]]
name = "edge01"
token_file = "token"
"""


@dataclass(frozen=True)
class Served:
    directory: Path
    port: int
    log: list[str]

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    @property
    def ca(self) -> Path:
        return self.directory / "ca.pem"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    directory = tmp_path_factory.mktemp("tls")
    ca = make_ca(NOW)
    written(directory, "ca", ca)
    written(directory, "other", make_ca(NOW))
    written(directory, "server", issue_server(ca, "localhost", NOW))
    (directory / "token").write_text("a-token-that-nobody-guesses")
    (directory / "mcpax.toml").write_text(CONFIG.format(port=0))
    with Program(["serve", "--config", directory / "mcpax.toml", "--log-json"]) as program:
        port = json.loads(program.wait_for_text('"event": "listening"', "stderr"))["port"]
        (directory / "mcpax.toml").write_text(CONFIG.format(port=port))
        yield Served(directory, port, program.stderr)
        assert program.end() == 0


@pytest.fixture
def ask(served: Served, run: CliRunner) -> Callable[..., Result]:
    def invoke(*arguments: str) -> Result:
        return run.invoke(main, arguments, env={"MCPAX_URL": served.url, "MCPAX_TOKEN": (served.directory / "token").read_text()})

    return invoke


def test_with_the_ca_everything_works(ask: Callable[..., Result], served: Served) -> None:
    for command in (["tree"], ["tools"], ["call", "cloud.mcpax.notifications_dropped"]):
        done = ask(*command, "--ca", str(served.ca))
        assert done.exit_code == 0, done.output
    asked = ["tree", "--url", served.url, "--token-file", str(served.directory / "token")]
    assert CliRunner().invoke(main, asked, env={"MCPAX_CA": str(served.ca)}).exit_code == 0


def test_without_it_the_remedy_is_told(ask: Callable[..., Result], served: Served) -> None:
    for options in ([], ["--ca", str(served.directory / "other.pem")]):
        done = ask("tree", *options)
        assert done.exit_code == 1
        assert f"{served.url} shows a certificate that cannot be trusted" in done.stderr
        assert "--ca FILE" in done.stderr
    assert any('"tls_refused"' in line for line in served.log), "the other side is told too"


def test_a_ca_that_is_none_is_told(ask: Callable[..., Result], served: Served) -> None:
    done = ask("tree", "--ca", str(served.directory / "token"))
    assert done.exit_code == 1
    assert "holds no certificate in PEM form" in done.stderr


def test_plain_http_is_told_to_be_the_wrong_scheme(ask: Callable[..., Result], served: Served) -> None:
    done = ask("tree", "--url", served.url.replace("https", "http"))
    assert done.exit_code == 1
    assert "try https://" in done.stderr


def test_clients_are_told_of_the_ca(ask: Callable[..., Result], served: Served) -> None:
    told = ask("clients", "--ca", str(served.ca)).stdout
    assert f"export NODE_EXTRA_CA_CERTS={served.ca}" in told
    assert f'"--ca",\n          "{served.ca}"' in told


def test_the_doctor_knows_its_own_certificate_and_needs_no_name(ask: Callable[..., Result], served: Served) -> None:
    done = ask("doctor", "--config", str(served.directory / "mcpax.toml"), "--json")
    findings = {each["check"]: each for each in json.loads(done.stdout)["findings"]}
    assert findings["configuration"]["level"] == "ok", "an aggregator has no devices, and that is as it should be"
    assert findings["gateway"]["level"] == "ok"
    assert "https://127.0.0.1:" in findings["gateway"]["message"]
