"""What the tests of the core share: a clock to turn by hand, a subserver to command, and a registration request."""

import asyncio
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from mcpax.capability import Capability
from mcpax.core.budget import BudgetMeter
from mcpax.core.registration import Budget, RegistrationRequest
from mcpax.core.registry import Session
from mcpax.core.subserver import Call, Json, Tool
from mcpax.errors import ErrorKind, Fault

READ_ONLY = Capability.parse({"mutable": False, "latency_class": "fast"})
UUIDS = [str(uuid.UUID(int=number)) for number in range(1, 20)]


class Clock:
    def __init__(self, at: float = 1000.0) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at


def tool(*path: str, capability: Capability = READ_ONLY, **more: Any) -> Tool:
    return Tool(path, f"Does {path[-1]}.", {"type": "object"}, capability, **more)


class Board:
    """A subserver. `gate` holds its answers back, `failure` is raised instead of them."""

    def __init__(self, *tools: Tool) -> None:
        self.tools = list(tools)
        self.calls: list[Call] = []
        self.listed = 0
        self.closed = False
        self.result: Json = {"content": []}
        self.gate = asyncio.Event()
        self.gate.set()
        self.entered = asyncio.Event()
        self.failure: BaseException | None = None

    async def list_tools(self) -> Sequence[Tool]:
        self.listed += 1
        tools = list(self.tools)
        await self._answer()
        return tools

    async def call(self, call: Call) -> Json:
        self.calls.append(call)
        await self._answer()
        return self.result

    async def _answer(self) -> None:
        self.entered.set()
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure

    async def close(self) -> None:
        self.closed = True


def request(segment: str = "env", number: int = 0, **more: Any) -> RegistrationRequest:
    return RegistrationRequest(UUIDS[number], segment, "uart_cbor", **more)


@contextmanager
def refused(kind: ErrorKind) -> Iterator[pytest.ExceptionInfo[Fault]]:
    """Expects a fault of that kind."""
    with pytest.raises(Fault) as caught:
        yield caught
    assert caught.value.kind is kind


def session(segment: str, *tools: Tool, number: int = 0, budget: Budget | None = None) -> Session:
    return Session(
        id=f"session-of-{segment}",
        request=request(segment, number),
        subserver=Board(*tools),
        tools=tools,
        meter=BudgetMeter(budget or Budget()),
        registered_at=datetime(2026, 5, 1, 12, 0, tzinfo=UTC),
        last_heard=0.0,
    )
