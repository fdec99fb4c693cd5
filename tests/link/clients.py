"""The stock MCP client at a node's HTTP door, with the client's token."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.link.nodes import CLIENT_TOKEN, PATIENCE_S, Node

ERAS = ("legacy", "auto")
"""With sessions (2025-11-25), and without (2026-07-28)."""


@contextlib.asynccontextmanager
async def client_of(node: Node, era: str) -> AsyncIterator[Client]:
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {CLIENT_TOKEN}"}, timeout=PATIENCE_S) as http:
        transport = streamable_http_client(f"{node.url}/mcp", http_client=http)
        async with Client(transport, mode="legacy" if era == "legacy" else "auto", read_timeout_seconds=PATIENCE_S) as client:
            yield client


async def listed(client: Client) -> dict[str, types.Tool]:
    """Every page."""
    tools: dict[str, types.Tool] = {}
    cursor = None
    while True:
        page = await client.list_tools(cursor=cursor)
        tools |= {tool.name: tool for tool in page.tools}
        cursor = page.next_cursor
        if cursor is None:
            return tools
