"""The load of a chaos run: callers that record ids, each id once, through either replica, and write down what they were told.

A call that could not be sent because nobody listened is told from one whose connection broke: the first certainly did not happen. Judges
nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

from tests.bench.soak import META, STATELESS, Client
from tests.chaos.journal import Journal

CALLERS = 8
PAUSE_S = 0.08
"""On average, between two calls of one caller."""
UNREACHABLE_PAUSE_S = 0.2
PATIENCE_S = 40.0
"""Longer than any call may take: the longest class that a delayed line leads to has 30 s."""
ERROR_META = "x-mcpax-error"


async def ask(client: Client, method: str, params: Mapping[str, Any], **headers: str) -> dict[str, Any]:
    """One request of revision 2026-07-28; its answer, whether it came plain or as the one event of a stream."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
    path = "/mcp/dotted"
    _, body = await client.request("POST", path, message, MCP_Protocol_Version=STATELESS, Mcp_Method=method, **headers)
    texts = [line[6:] for line in body.splitlines() if line.startswith(b"data: {")] or [body]
    for text in texts:
        answer: dict[str, Any] = json.loads(text)
        if "result" in answer or "error" in answer:
            return answer
    raise ValueError(f"no answer: {body[:300]!r}")


def told(answer: Mapping[str, Any]) -> dict[str, Any]:
    """What an answer says of its call: kind, code, outcome."""
    if "error" in answer:
        error = answer["error"]
        return {"kind": "error", "code": error["code"], "outcome": (error.get("data") or {}).get("outcome"), "text": error["message"][:200]}
    result = answer["result"]
    if not result.get("isError"):
        return {"kind": "result"}
    error = result.get("_meta", {}).get(ERROR_META, {})
    return {"kind": "error", "code": error.get("code"), "outcome": error.get("outcome"), "text": result["content"][0]["text"][:200]}


class Load:
    def __init__(self, ports: Mapping[str, int], tools: Sequence[str], journal: Journal, seed: int) -> None:
        """`ports`: where the replicas listen."""
        self._ports = ports
        self._tools = tools
        self._journal = journal
        self._seed = seed
        self._stopping = False
        self.calls = 0

    async def run(self) -> None:
        """Until stopped; calls that are under way then are answered first."""
        await asyncio.gather(*(self._caller(number) for number in range(CALLERS)))

    def stop(self) -> None:
        self._stopping = True

    async def _caller(self, number: int) -> None:
        dice = random.Random(f"{self._seed}-{number}")
        clients: dict[str, Client] = {}
        count = 0
        while not self._stopping:
            count += 1
            self.calls += 1
            entry, tool = dice.choice(list(self._ports)), dice.choice(self._tools)
            identifier = f"{number}-{count}"
            self._journal.write(event="begin", id=identifier, entry=entry, tool=tool)
            end = await self._call(clients, entry, tool, identifier)
            self._journal.write(event="end", id=identifier, **end)
            if end["kind"] in ("unsent", "broken"):
                clients.pop(entry, None)
                await asyncio.sleep(UNREACHABLE_PAUSE_S)
            await asyncio.sleep(dice.expovariate(1 / PAUSE_S))
        for client in clients.values():
            client.close()

    async def _call(self, clients: dict[str, Client], entry: str, tool: str, identifier: str) -> dict[str, Any]:
        try:
            async with asyncio.timeout(PATIENCE_S):
                if entry in clients and clients[entry].ended:
                    clients.pop(entry).close()
                if entry not in clients:
                    try:
                        clients[entry] = await Client.open(self._ports[entry])
                    except OSError as error:
                        return {"kind": "unsent", "text": str(error)}
                params = {"name": tool, "arguments": {"id": identifier}}
                return told(await ask(clients[entry], "tools/call", params, Mcp_Name=tool))
        except TimeoutError:
            with contextlib.suppress(KeyError):
                clients.pop(entry).close()
            return {"kind": "unanswered"}
        except (OSError, asyncio.IncompleteReadError) as error:
            return {"kind": "broken", "text": f"{type(error).__name__} {error}"[:200]}
