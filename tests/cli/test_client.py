"""Reaching a gateway, and being told why not."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path

import pytest
from click.testing import CliRunner

from mcpax.cli.client import DEFAULT_URL, Target
from mcpax.cli.main import main
from tests.cli.conftest import Mcpax, serve, write_config

TOKEN = "0123456789abcdef0123456789abcdef"
ASKING = [["devices"], ["tools"], ["routes"], ["call", "x"], ["sniff"]]


@pytest.fixture(scope="module")
def guarded_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A gateway that wants a token, without boards."""
    directory = tmp_path_factory.mktemp("guarded")
    (directory / "token").write_text(f"{TOKEN}\n")
    with serve(write_config(directory, maps=(), more='token_file = "token"')) as url:
        yield url


class Page(BaseHTTPRequestHandler):
    """Answers everything with a web page."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<html>hello</html>")

    do_POST = do_GET


@pytest.fixture(params=[SimpleHTTPRequestHandler, Page], ids=["files", "page"])
def other_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Something that speaks HTTP and is no gateway."""
    server = HTTPServer(("127.0.0.1", 0), request.param)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def unused_url() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize("command", ASKING, ids=lambda command: command[0])
def test_no_gateway_there(run: CliRunner, command: list[str]) -> None:
    url = unused_url()
    result = run.invoke(main, [*command, "--url", url])
    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: no gateway answers at {url} (")
    assert "is it running (mcpax serve --config" in result.stderr
    assert "MCPAX_URL" in result.stderr


@pytest.mark.parametrize("command", ASKING, ids=lambda command: command[0])
def test_something_else_there(run: CliRunner, command: list[str], other_url: str) -> None:
    result = run.invoke(main, [*command, "--url", other_url])
    assert result.exit_code == 1
    assert f"no gateway answers at {other_url} (something else does, " in result.stderr


def test_an_address_that_is_none(run: CliRunner) -> None:
    for url in ("http://[::1", "ftp://127.0.0.1"):
        result = run.invoke(main, ["devices", "--url", url])
        assert result.exit_code == 1
        assert f"error: no gateway answers at {url}" in result.stderr


@pytest.mark.parametrize("command", ASKING[:3], ids=lambda command: command[0])
def test_a_token_from_the_environment_or_a_file(run: CliRunner, command: list[str], guarded_url: str, tmp_path: Path) -> None:
    arguments = [*command, "--url", guarded_url]
    refused = run.invoke(main, arguments, env={"MCPAX_TOKEN": "wrong"})
    assert refused.exit_code == 1
    assert "needs a token" in refused.stderr
    assert "MCPAX_TOKEN" in refused.stderr
    assert run.invoke(main, arguments, env={"MCPAX_TOKEN": TOKEN}).exit_code == 0
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert run.invoke(main, [*arguments, "--token-file", str(file)], env={"MCPAX_TOKEN": ""}).exit_code == 0


def test_a_token_file_that_cannot_be_read(run: CliRunner, tmp_path: Path) -> None:
    result = run.invoke(main, ["devices", "--token-file", str(tmp_path / "none")])
    assert result.exit_code == 1
    assert f"{tmp_path / 'none'}: the token cannot be read" in result.stderr


def test_the_address_of_mcp_is_understood_as_that_of_its_gateway(mcpax: Mcpax, gateway_url: str) -> None:
    assert Target(f"{gateway_url}/mcp").url == Target(f"{gateway_url}/").url == gateway_url
    assert Target().url == DEFAULT_URL
    assert Target(gateway_url.removeprefix("http://")).url == gateway_url, "as people write an address"
    assert mcpax("tools", "--url", f"{gateway_url}/mcp").exit_code == 0


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(run: CliRunner, gateway_url: str) -> None:
    environment = {"http_proxy": "http://127.0.0.1:1", "HTTP_PROXY": "http://127.0.0.1:1", "no_proxy": "", "NO_PROXY": ""}
    for command in (["devices"], ["call", "edge.env-sensor.read_climate"]):
        assert run.invoke(main, [*command, "--url", gateway_url], env=environment).exit_code == 0
