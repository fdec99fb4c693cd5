"""The aggregator as an MCP server on stdin and stdout. Stdout carries the protocol and nothing else; logs belong on stderr."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import threading
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import cast

import anyio
from mcp.server.stdio import stdio_server
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage

from mcpax.core.aggregator import Aggregator
from mcpax.front.mcp_server import build_server
from mcpax.name_codec import NameStyle

STDIN = 0
LINES_AHEAD = 16
END = b""

Incoming = ReadStream[SessionMessage | Exception]
Outgoing = WriteStream[SessionMessage]


async def serve_stdio(aggregator: Aggregator, style: NameStyle | None = None) -> None:
    """Serve the one client at the other end until it closes our stdin."""
    server = build_server(aggregator, style)
    async with open_stdio() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def open_stdio() -> AbstractAsyncContextManager[tuple[Incoming, Outgoing]]:
    """The SDK's transport, which also points fd 1 at stderr so that a stray print cannot break the protocol; but with our reader.

    The SDK's own waits for a line in a thread that cannot be cancelled: a program that has reason to end would hang until its client
    says something.
    """
    return stdio_server(stdin=cast("anyio.AsyncFile[str]", _stdin_lines()))  # it only iterates


async def _stdin_lines() -> AsyncIterator[str]:
    """Read in a daemon thread, which nobody waits for. Unlike the loop's own pipes it also reads files, and works on Windows."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue(LINES_AHEAD)

    def read() -> None:
        with contextlib.suppress(RuntimeError), open(os.dup(STDIN), "rb") as stdin:  # RuntimeError: the loop has ended before us
            for line in itertools.chain(stdin, [END]):
                asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()

    threading.Thread(target=read, name="stdin", daemon=True).start()
    while (line := await lines.get()) is not END:
        yield line.decode(errors="replace")
