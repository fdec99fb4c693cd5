"""A child that speaks JSON-RPC on a bare WebSocket, so that it can say what no child of ours would."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from mcpax.link.wire import SUBPROTOCOL
from tests.link.nodes import LINK_TOKEN, PATIENCE_S, Node

Json = dict[str, Any]
SILENCE = object()
"""What a handler returns to leave a request without an answer."""


class RawError(Exception):
    """Answer with an error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, "data": data}


class RawText(str):
    """Answer with this JSON, as it is."""


def raw_tool(name: str = "read", **meta: Any) -> Json:
    capability = {"mutable": False, "latency_class": "fast"}
    return {"name": name, "inputSchema": {"type": "object"}, "_meta": {"x-mcpax-capability": capability, **meta}}


def registration(**fields: Any) -> Json:
    """A good request with some fields set, or left out where they are set to `...`."""
    good = {
        "subserver_id": str(uuid.uuid4()),
        "segment": "raw",
        "capabilities": {"tools": True, "resources": False, "notifications": True},
        "heartbeat_interval_ms": 0,
        "transport_class": "uart_cbor",
        "version": "2026-05-01",
    }
    return {key: value for key, value in {**good, **fields}.items() if value is not ...}


class RawChild:
    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.tools = [raw_tool()]
        self.asked: list[Json] = []
        """Every request that came down."""
        self.told: list[Json] = []
        """Every notification that came down."""
        self.on: dict[str, Callable[[Json], Any]] = {
            "tools/list": lambda _: {"tools": self.tools},
            "tools/call": lambda params: {"content": [{"type": "text", "text": json.dumps(params.get("arguments"))}]},
            "ping": lambda _: {},
            "mcpax/parent": lambda _: {"parent_id": None},
        }
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._answers: dict[int, asyncio.Future[Json]] = {}
        self._last_id = 0

    async def send(self, text: str | bytes) -> None:
        await self.connection.send(text)

    async def ask(self, method: str, params: Any) -> Json:
        """The whole answer, error or result."""
        self._last_id += 1
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._answers[self._last_id] = answer
        await self.send("U" + json.dumps({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}))
        return await asyncio.wait_for(answer, PATIENCE_S)

    async def tell(self, method: str, **params: Any) -> None:
        await self.send("U" + json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))

    async def register(self, **fields: Any) -> Json:
        """The result; fails the test if there is none."""
        answer = await self.ask("mcpax/register", registration(**fields))
        assert "result" in answer, answer
        result: Json = answer["result"]
        return result

    async def refused(self, **fields: Any) -> Json:
        """The error; fails the test if there is none."""
        answer = await self.ask("mcpax/register", registration(**fields))
        assert "error" in answer, answer
        error: Json = answer["error"]
        return error

    async def read(self) -> None:
        working: set[asyncio.Task[None]] = set()
        try:
            async for text in self.connection:
                assert isinstance(text, str)
                message = json.loads(text[1:])
                if text[0] == "U":
                    answer = self._answers.pop(message["id"], None)
                    if answer is not None and not answer.done():
                        answer.set_result(message)
                elif "id" in message:
                    self.asked.append(message)
                    task = asyncio.create_task(self._answer(message))
                    working.add(task)
                    task.add_done_callback(working.discard)
                else:
                    self.told.append(message)
            self._end(f"{self.connection.close_code} {self.connection.close_reason}")
        except ConnectionClosed as closed:
            self._end(str(closed))
        finally:
            for task in working:
                task.cancel()

    def _end(self, reason: str) -> None:
        if not self.ended.done():
            self.ended.set_result(reason)
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(ConnectionResetError(reason))

    async def _answer(self, message: Json) -> None:
        handler = self.on[message["method"]]
        told = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            result = handler(message.get("params", {}))
            if inspect.isawaitable(result):
                result = await result
        except RawError as error:
            await self.send("D" + json.dumps({**told, "error": error.error}))
            return
        if isinstance(result, RawText):
            await self.send(f'D{{"jsonrpc":"2.0","id":{message["id"]},"result":{result}}}')
        elif result is not SILENCE:
            await self.send("D" + json.dumps({**told, "result": result}))


@contextlib.asynccontextmanager
async def raw_child(parent: Node | str, token: str | None = LINK_TOKEN) -> AsyncIterator[RawChild]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    url = parent if isinstance(parent, str) else parent.link_url
    subprotocols: list[Any] = [SUBPROTOCOL]
    async with connect(
        url, additional_headers=headers, subprotocols=subprotocols, compression=None, max_size=None, close_timeout=1
    ) as made:
        child = RawChild(made)
        reading = asyncio.create_task(child.read())
        try:
            yield child
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
