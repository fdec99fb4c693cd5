"""The one way from a command to a running gateway: its admin API, its tools, and the words when it cannot be reached.

Knows nothing of commands. What takes long to load is loaded when it is used.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from mcpax.cli.output import Failure
from mcpax.words import HOW_TO_START

if TYPE_CHECKING:
    from ssl import SSLContext

    import httpx
    from mcp import Client

DEFAULT_URL = "http://127.0.0.1:8720"
URL_VARIABLE = "MCPAX_URL"
TOKEN_VARIABLE = "MCPAX_TOKEN"
CA_VARIABLE = "MCPAX_CA"
PATIENCE_S = 10.0
"""For an answer to a question that costs the gateway nothing."""
MCP_PATH = "/mcp"
LOOPBACK = tuple(f"{scheme}://{host}" for scheme in ("http", "https") for host in ("127.0.0.1", "[::1]", "localhost"))
ANY_HOST = {"0.0.0.0": "127.0.0.1", "::": "::1"}
REVISION = "2026-07-28"
LIST_HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": REVISION, "Mcp-Method": "tools/list"}
LIST_META = {"io.modelcontextprotocol/protocolVersion": REVISION, "io.modelcontextprotocol/clientCapabilities": {}}

Json = dict[str, Any]


def local_url(host: str, port: int, *, tls: bool = False) -> str:
    """Where this machine reaches a gateway that listens there."""
    reached = ANY_HOST.get(host, host)
    return f"{'https' if tls else 'http'}://{f'[{reached}]' if ':' in reached else reached}:{port}"


@dataclass(frozen=True, slots=True)
class Target:
    """A gateway somewhere."""

    url: str = DEFAULT_URL
    token: str | None = None
    ca: Path | None = None
    """File with the CA of its certificate; None: those that are known anyway."""
    pin: Path | None = None
    """File with the very certificate that it must show, whatever name is in it."""

    def __post_init__(self) -> None:
        # People paste what a client's configuration has, and mean the gateway.
        url = self.url if "://" in self.url else f"http://{self.url}"
        object.__setattr__(self, "url", url.rstrip("/").removesuffix(MCP_PATH))

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def get(self, path: str, patience_s: float = PATIENCE_S) -> Any:
        """An answer of the admin API."""
        with self._explained(), self._http(patience_s) as http:
            return self._json(http.get(path))

    def tools(self, style: str = "dotted", patience_s: float = PATIENCE_S) -> list[Json]:
        """The merged list, all pages. By hand, because loading the SDK takes longer than asking, and a shell that completes cannot wait."""
        listed: list[Json] = []
        params: Json = {"_meta": LIST_META}
        with self._explained(), self._http(patience_s) as http:
            while True:
                request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}
                page = self._json(http.post(f"{MCP_PATH}/{style}", json=request, headers=LIST_HEADERS))["result"]
                listed += page["tools"]
                if "nextCursor" not in page:
                    return listed
                params = {**params, "cursor": page["nextCursor"]}

    @contextlib.contextmanager
    def lines(self, path: str, params: dict[str, str]) -> Iterator[Iterator[str]]:
        """An answer of the admin API that goes on and on, one JSON object a line."""
        import httpx  # noqa: PLC0415

        forever = httpx.Timeout(PATIENCE_S, read=None)
        with self._explained(), self._http() as http, http.stream("GET", path, params=params, timeout=forever) as answer:
            if answer.is_error:
                answer.read()
            if self._judged(answer).headers.get("content-type") != "application/x-ndjson":
                self._fail("something else does, and not with frames")
            yield _until_it_ends(answer)

    @contextlib.asynccontextmanager
    async def mcp(
        self, style: str | None = None, mode: Literal["auto", "legacy"] = "auto", patience_s: float | None = None
    ) -> AsyncIterator[Client]:
        """The SDK's client, connected. `style`: how tools are named, None leaves that to the gateway; `mode`: as the SDK has it."""
        import httpx2  # noqa: PLC0415
        from mcp import Client  # noqa: PLC0415
        from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415

        endpoint = f"{self.url}{MCP_PATH}{f'/{style}' if style else ''}"
        timeout = httpx2.Timeout(PATIENCE_S, read=None)
        async with (
            httpx2.AsyncClient(headers=self.headers, timeout=timeout, trust_env=self._by_proxy, verify=self.tls() or True) as http,
            Client(streamable_http_client(endpoint, http_client=http), mode=mode, read_timeout_seconds=patience_s) as client,
        ):
            yield client

    def tls(self) -> SSLContext | None:
        """What to judge its certificate by; None: as the HTTP client does by itself."""
        if self.ca is None and self.pin is None:
            return None
        from mcpax.link.tls import client_context, pinned_context  # noqa: PLC0415
        from mcpax.link.tls_files import TlsError  # noqa: PLC0415

        try:
            return pinned_context(self.pin) if self.pin is not None else client_context(self.ca)
        except TlsError as error:
            raise Failure(str(error)) from None

    @property
    def _by_proxy(self) -> bool:
        """A proxy that the environment names is not meant for this very machine, though few say so in no_proxy."""
        return not self.url.startswith(LOOPBACK)

    def _http(self, patience_s: float = PATIENCE_S) -> httpx.Client:
        import httpx  # noqa: PLC0415

        return httpx.Client(
            base_url=self.url, headers=self.headers, timeout=patience_s, trust_env=self._by_proxy, verify=self.tls() or True
        )

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        import httpx  # noqa: PLC0415

        try:
            yield
        except (httpx.TransportError, httpx.InvalidURL) as error:
            self._fail(str(error) or type(error).__name__)

    def _fail(self, why: str) -> NoReturn:
        if "CERTIFICATE_VERIFY_FAILED" in why:
            raise Failure(
                f"{self.url} shows a certificate that cannot be trusted ({why})",
                f"name the CA that signed it (--ca FILE, {CA_VARIABLE}; ca.pem of 'mcpax pki'), and use the host name that it was made for",
            )
        if self.url.startswith("http://") and "disconnected without" in why:
            raise Failure(f"what answers at {self.url} hangs up at once", f"it may serve TLS: try https:// (--url, {URL_VARIABLE})")
        raise Failure(
            f"no gateway answers at {self.url} ({why})",
            f"is it running ({HOW_TO_START}; or mcpax demo), and is the address right (--url, {URL_VARIABLE})?",
        )

    def _json(self, answer: httpx.Response) -> Any:
        try:
            return self._judged(answer).json()
        except ValueError:
            self._fail("something else does, and not in JSON")

    def _judged(self, answer: httpx.Response) -> httpx.Response:
        if answer.is_success:
            return answer
        try:
            told = answer.json()
            message, hint = str(told["message"]), str(told.get("hint", ""))
        except (ValueError, TypeError, KeyError):
            self._fail(f"something else does, with HTTP {answer.status_code}")
        if answer.status_code == 401:
            hint = f"put the gateway's token into {TOKEN_VARIABLE}, or name its file with --token-file"
        raise Failure(message, hint)


def _until_it_ends(answer: httpx.Response) -> Iterator[str]:
    """A gateway that stops ends its answers in the middle; there is nothing more to it than that."""
    import httpx  # noqa: PLC0415

    with contextlib.suppress(httpx.RemoteProtocolError, httpx.ReadError):
        yield from answer.iter_lines()
