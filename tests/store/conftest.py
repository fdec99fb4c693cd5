"""An etcd of their own for the tests of a module, and a part of it of its own for each test."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from mcpax.store.etcd_access import EtcdAccess
from mcpax.store.etcd_client import EtcdClient
from tests.harness.etcd_server import EtcdServer
from tests.harness.stalling_proxy import StallingProxy


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    server = EtcdServer(tmp_path_factory.mktemp("etcd") / "data")
    server.start()
    yield server
    server.kill()


@pytest.fixture
def own_etcd(tmp_path: Path) -> Iterator[EtcdServer]:
    """For a test that stops it, or sets it up in its own way."""
    server = EtcdServer(tmp_path / "data")
    server.start()
    yield server
    server.kill()


@pytest.fixture
def prefix() -> str:
    return f"/test/{uuid.uuid4()}/"


@pytest.fixture
async def client(etcd: EtcdServer) -> AsyncIterator[EtcdClient]:
    async with EtcdClient(EtcdAccess((etcd.url,))) as client:
        yield client


@pytest.fixture
async def proxy(etcd: EtcdServer) -> AsyncIterator[StallingProxy]:
    async with StallingProxy(etcd.url) as proxy:
        yield proxy
