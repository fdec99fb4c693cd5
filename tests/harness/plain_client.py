"""A bare MCP client of revision 2026-07-28: one kept-alive HTTP connection on a plain socket, and requests that are made beforehand.

For benchmarks: what they measure is the gateway, so the client's own time must not count. Knows nothing of what is asked.
"""

from __future__ import annotations

import json
import socket
from typing import Any
from urllib.parse import urlsplit

REVISION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class PlainClient:
    def __init__(self, url: str) -> None:
        """`url`: of the gateway; MCP is at /mcp below it."""
        parts = urlsplit(url)
        self._host = parts.netloc
        self._socket = socket.create_connection((parts.hostname or "", parts.port or 80))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def call(self, name: str, arguments: dict[str, Any]) -> bytes:
        """The request that calls a tool."""
        return self._request("tools/call", {"name": name, "arguments": arguments}, f"Mcp-Name: {name}\r\n")

    def list(self, cursor: str | None = None) -> bytes:
        """The request for a page of the list."""
        return self._request("tools/list", {} if cursor is None else {"cursor": cursor})

    def _request(self, method: str, params: dict[str, Any], more: str = "") -> bytes:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}).encode()
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\n"
            f"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {REVISION}\r\n"
            f"Mcp-Method: {method}\r\n{more}Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    def exchange(self, request: bytes) -> bytes:
        """Send it; returns the body of the answer."""
        self._socket.sendall(request)
        head, found, body = b"", b"", b""
        while not found:
            head, found, body = (head + self._received()).partition(b"\r\n\r\n")
        left = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]) - len(body)
        parts = [body]
        while left > 0:
            parts.append(self._received())
            left -= len(parts[-1])
        return b"".join(parts)

    def _received(self) -> bytes:
        received = self._socket.recv(1 << 18)
        if not received:
            raise SystemExit("the gateway closed the connection")
        return received

    def close(self) -> None:
        self._socket.close()


def checked(answer: bytes) -> dict[str, Any]:
    """The result of an answer, or the end of the benchmark."""
    decoded = json.loads(answer)
    if "result" not in decoded or decoded["result"].get("isError"):
        raise SystemExit(f"refused: {decoded}")
    result: dict[str, Any] = decoded["result"]
    return result
