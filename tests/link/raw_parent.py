"""A parent that speaks JSON-RPC on a bare WebSocket, so that it can ask what no parent of ours would."""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from mcpax.link.wire import SUBPROTOCOL
from tests.link.nodes import PATIENCE_S

Json = dict[str, Any]
SUBPROTOCOLS: list[Any] = [SUBPROTOCOL]


class RawParent:
    def __init__(self) -> None:
        self.url = ""
        self.id = str(uuid.uuid4())
        self.links = 0
        self.asked: list[Json] = []
        """Every request that came up."""
        self.told: list[Json] = []
        """Every notification that came up, and answers that nobody waits for."""
        self.registered = asyncio.Event()
        self.session_ids: list[str] = []
        self.on: dict[str, Callable[[Json], Any]] = {
            "mcpax/register": self._register,
            "mcpax/heartbeat": lambda _: {},
            "mcpax/deregister": lambda _: {},
            "mcpax/identity": lambda _: {"x-mcpax-aggregator-id": self.id},
        }
        self._child: ServerConnection | None = None
        self._answers: dict[int, asyncio.Future[Json]] = {}
        self._last_id = 0

    def _register(self, params: Json) -> Json:
        session_id = uuid.uuid4().hex
        self.session_ids.append(session_id)
        self.registered.set()
        told = {"status": "registered", "assigned_segment": params["segment"], "session_id": session_id}
        return {**told, "heartbeat_deadline_ms": 600, "budget": {}, "x-mcpax-aggregator-id": self.id}

    def requests(self, method: str) -> list[Json]:
        return [request["params"] for request in self.asked if request["method"] == method]

    async def ask(self, method: str, params: Any) -> Json:
        """The whole answer, error or result."""
        assert self._child is not None
        self._last_id += 1
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._answers[self._last_id] = answer
        await self._child.send("D" + json.dumps({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}))
        return await asyncio.wait_for(answer, PATIENCE_S)

    async def call(self, name: str, **meta: Any) -> Json:
        subserver_id = self.requests("mcpax/register")[-1]["subserver_id"]
        return await self.ask("tools/call", {"name": name, "arguments": {}, "_meta": {"x-mcpax-registration": subserver_id, **meta}})

    async def answer(self, request: Json, result: Json | None) -> None:
        """Result or error; None: not now."""
        assert self._child is not None
        if result is not None:
            await self._child.send("U" + json.dumps({"jsonrpc": "2.0", "id": request["id"], **_member(result)}))

    def register(self, params: Json) -> Json:
        """As a parent does."""
        return self._register(params)

    async def serve(self, child: ServerConnection) -> None:
        self._child = child
        self.links += 1
        with contextlib.suppress(ConnectionClosed):
            async for text in child:
                assert isinstance(text, str)
                message = json.loads(text[1:])
                if text[0] == "D" and message.get("id") in self._answers:
                    self._answers.pop(message["id"]).set_result(message)
                elif text[0] == "U" and "id" in message:
                    self.asked.append(message)
                    await self.answer(message, self.on[message["method"]](message["params"]))
                else:
                    self.told.append(message)


def _member(result: Json) -> Json:
    return result if "error" in result else {"result": result}


@contextlib.asynccontextmanager
async def raw_parent() -> AsyncIterator[RawParent]:
    parent = RawParent()
    async with serve(parent.serve, "127.0.0.1", 0, subprotocols=SUBPROTOCOLS, compression=None, close_timeout=0.5) as server:
        parent.url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcpax/link"
        yield parent
