"""An MCP proxy as one writes it with the official SDK alone, to compare with: its low-level server over HTTP, its client to the next.

Written with care: one client connection for all calls, no proxy settings from the environment, and no walk over the list on every call.
Knows nothing of mcpax.
"""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

import httpx2
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams

Context = ServerRequestContext[Any, Any]


async def serve(next_url: str, port: int) -> None:
    async with (
        httpx2.AsyncClient(timeout=httpx2.Timeout(30.0, read=None), trust_env=False) as http,
        Client(streamable_http_client(next_url, http_client=http)) as client,
    ):
        schemas = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}

        async def list_tools(_: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
            return await client.list_tools(cursor=None if params is None else params.cursor)

        async def call_tool(_: Context, params: CallToolRequestParams) -> CallToolResult:
            return await client.call_tool(params.name, params.arguments)

        server = Server("proxy", on_list_tools=list_tools, on_call_tool=call_tool, get_tool_input_schema=schemas.get)
        config = uvicorn.Config(server.streamable_http_app(), host="127.0.0.1", port=port, log_level="warning", access_log=False)
        await uvicorn.Server(config).serve()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("next_url")
    parser.add_argument("port", type=int)
    options = parser.parse_args()
    asyncio.run(serve(options.next_url, options.port))
