"""The aggregator as an MCP server on stdin and stdout. Stdout carries the protocol and nothing else; logs belong on stderr."""

from __future__ import annotations

from mcp.server.stdio import stdio_server

from mcpax.core.aggregator import Aggregator
from mcpax.front.mcp_server import build_server
from mcpax.name_codec import NameStyle


async def serve_stdio(aggregator: Aggregator, style: NameStyle | None = None) -> None:
    """Serve the one client at the other end until it closes our stdin."""
    server = build_server(aggregator, style)
    async with stdio_server() as (incoming, outgoing):  # also points fd 1 at stderr, so a stray print cannot break the protocol
        await server.run(incoming, outgoing, server.create_initialization_options())
