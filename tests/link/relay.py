"""A man in the middle of a link: hears every frame, can hold frames back, delay them, cut the link, and refuse new ones."""

from __future__ import annotations

import asyncio
import contextlib
import http
from collections.abc import AsyncIterator
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.http11 import Request, Response

from mcpax.link.wire import SUBPROTOCOL
from tests.link.frames import parsed
from tests.link.nodes import Node

SUBPROTOCOLS: list[Any] = [SUBPROTOCOL]


class Relay:
    def __init__(self, parent: Node) -> None:
        self.parent = parent
        self.url = ""
        self.delay_s = 0.0
        """Of each frame, either way."""
        self.open = asyncio.Event()
        """Cleared: frames wait."""
        self.open.set()
        self.refusing = False
        self.up: list[str] = []
        """Frames from the child, also those held back."""
        self.down: list[str] = []
        self.dialled = 0
        self._links: set[ClientConnection | ServerConnection] = set()

    @property
    def frames(self) -> list[str]:
        return [*self.up, *self.down]

    def requests(self, method: str) -> list[dict[str, Any]]:
        """What was asked through here, either way."""
        return [frame for frame in map(parsed, self.frames) if frame.get("method") == method]

    def cut(self) -> None:
        """Without a word, as when a cable is pulled."""
        for link in self._links:
            link.transport.abort()

    async def serve(self, child: ServerConnection) -> None:
        assert child.request is not None
        self.dialled += 1
        headers = {"Authorization": child.request.headers.get("Authorization", "")}
        with contextlib.suppress(OSError, InvalidHandshake):
            async with connect(self.parent.link_url, additional_headers=headers, subprotocols=SUBPROTOCOLS, compression=None) as parent:
                self._links |= {child, parent}
                pumps = [
                    asyncio.create_task(self._pump(child, parent, self.up)),
                    asyncio.create_task(self._pump(parent, child, self.down)),
                ]
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
                for pump in pumps:
                    pump.cancel()
                self._links -= {child, parent}

    async def _pump(self, source: ClientConnection | ServerConnection, sink: ClientConnection | ServerConnection, heard: list[str]) -> None:
        with contextlib.suppress(ConnectionClosed):
            while True:
                text = await source.recv()
                assert isinstance(text, str)
                heard.append(text)
                await self.open.wait()
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                await sink.send(text)

    def admit(self, connection: ServerConnection, _: Request) -> Response | None:
        return connection.respond(http.HTTPStatus.SERVICE_UNAVAILABLE, "cut") if self.refusing else None


@contextlib.asynccontextmanager
async def relayed(parent: Node) -> AsyncIterator[Relay]:
    relay = Relay(parent)
    async with serve(
        relay.serve, "127.0.0.1", 0, subprotocols=SUBPROTOCOLS, compression=None, process_request=relay.admit, close_timeout=0.5
    ) as server:
        relay.url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcpax/link"
        yield relay
        relay.cut()
