"""For the tests of links, which start and stop hundreds of servers: uvicorn looks every 0.1 s whether to stop, here ten times as often."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import uvicorn.server

from tests.store.conftest import own_etcd, prefix

__all__ = ["own_etcd", "prefix"]

SOONER = 10


class _Quick:
    """The module asyncio, whose sleep is shorter."""

    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(delay_s / SOONER)

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)


@pytest.fixture(autouse=True)
def _servers_stop_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uvicorn.server, "asyncio", _Quick())
