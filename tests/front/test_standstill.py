"""A gateway that stood still, as a laptop or a virtual machine does, answers what it was asked meanwhile."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from tests.bench.soak import Client
from tests.harness.etcd_server import free_port
from tests.link.nodes import PATIENCE_S

STANDSTILL_S = 5.5
"""Longer than a connection may be idle."""


async def connected(port: int) -> Client:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                return await Client.open(port)
            except OSError:
                await asyncio.sleep(0.05)


@pytest.mark.slow
async def test_a_request_that_came_while_the_gateway_stood_still_is_answered(tmp_path: Path) -> None:
    port = free_port()
    config = tmp_path / "mcpax.toml"
    config.write_text(f'[gateway]\nlisten = "127.0.0.1:{port}"\nstate_dir = "state"\n')
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "mcpax", "serve", "--config", str(config))
    try:
        client = await connected(port)
        assert (await client.request("GET", "/healthz"))[1]
        process.send_signal(signal.SIGSTOP)
        asked = asyncio.create_task(client.request("GET", "/healthz"))
        await asyncio.sleep(STANDSTILL_S)
        process.send_signal(signal.SIGCONT)
        assert (await asyncio.wait_for(asked, PATIENCE_S))[1]
        client.close()
    finally:
        process.kill()
        await process.wait()
