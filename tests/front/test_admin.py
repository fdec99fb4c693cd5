"""What an operator can read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence

import httpx
import pytest

import mcpax
from mcpax.core.subserver import Json
from mcpax.front.admin import NoDevices
from mcpax.front.http import build_app
from tests.front.bench import AGGREGATOR_ID, READ_ONLY, Gateway
from tests.front.conftest import PATIENCE_S, serving


class Boards(NoDevices):
    """Two devices whose frames a test sends by hand."""

    def __init__(self) -> None:
        self.asked: list[str | None] = []
        self.queue: asyncio.Queue[Json | None] = asyncio.Queue()
        self.closed = asyncio.Event()

    def devices(self) -> Sequence[Json]:
        return [{"segment": "uno", "state": "active"}, {"segment": "esp", "state": "degraded"}]

    async def frames(self, device: str | None) -> AsyncIterator[Json]:
        self.asked.append(device)
        try:
            while (frame := await self.queue.get()) is not None:
                yield frame
        finally:
            self.closed.set()


@pytest.fixture
def boards() -> Boards:
    return Boards()


@pytest.fixture
async def admin(gateway: Gateway, boards: Boards) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        serving(build_app(gateway.aggregator, operations=boards)) as url,
        httpx.AsyncClient(base_url=f"{url}/admin", timeout=PATIENCE_S) as http,
    ):
        yield http


@pytest.mark.req("AX-7.1-1")
async def test_the_routing_table_reads_as_the_draft_writes_it(admin: httpx.AsyncClient, gateway: Gateway) -> None:
    table = (await admin.get("/routes")).json()
    assert set(table) == {f"edge.bench.{tool.path[0]}" for tool in gateway.bench.tools}
    row = table["edge.bench.echo"]
    assert set(row) == {"downstream_session", "downstream_name", "capability", "registered_at"}
    assert row["downstream_session"] == gateway.session_id
    assert row["downstream_name"] == "echo"
    assert row["capability"] == READ_ONLY.to_json()
    assert row["registered_at"].endswith("Z")


async def test_status_tells_who_is_there_and_how_they_are(admin: httpx.AsyncClient, gateway: Gateway) -> None:
    status = (await admin.get("/status")).json()
    assert (status["segment"], status["aggregator_id"], status["version"]) == ("edge", AGGREGATOR_ID, mcpax.__version__)
    assert status["uptime_s"] >= 0
    [session] = status["sessions"]
    assert (session["segment"], session["session_id"], session["state"]) == ("bench", gateway.session_id, "active")

    gateway.aggregator.registry.degrade(gateway.session_id, "unplugged")
    [session] = (await admin.get("/status")).json()["sessions"]
    assert (session["state"], session["reason"]) == ("degraded", "unplugged")


async def test_devices_are_as_the_bridge_tells_them(admin: httpx.AsyncClient, boards: Boards) -> None:
    assert (await admin.get("/devices")).json() == boards.devices()


async def test_frames_stream_line_by_line_until_they_end(admin: httpx.AsyncClient, boards: Boards) -> None:
    async with admin.stream("GET", "/frames", params={"device": "uno"}) as response:
        assert response.headers["content-type"] == "application/x-ndjson"
        lines = response.aiter_lines()
        for number in range(3):
            boards.queue.put_nowait({"n": number})
            assert json.loads(await anext(lines)) == {"n": number}
        boards.queue.put_nowait(None)
        with pytest.raises(StopAsyncIteration):
            await anext(lines)
    assert boards.asked == ["uno"]


async def test_frames_end_when_the_reader_leaves(admin: httpx.AsyncClient, boards: Boards) -> None:
    async with admin.stream("GET", "/frames") as response:
        boards.queue.put_nowait({"n": 0})
        await anext(response.aiter_lines())
    await asyncio.wait_for(boards.closed.wait(), PATIENCE_S)
    assert boards.asked == [None]


async def test_an_unknown_device_is_named_together_with_the_known(admin: httpx.AsyncClient, boards: Boards) -> None:
    response = await admin.get("/frames", params={"device": "une"})
    assert response.status_code == 404
    assert response.json()["hint"] == "Known devices: esp, uno."
    assert boards.asked == []


async def test_an_aggregator_without_bridges_has_no_devices(http: httpx.AsyncClient) -> None:
    assert (await http.get("/admin/devices")).json() == []
    assert (await http.get("/admin/frames")).text == ""
    assert (await http.get("/admin/frames", params={"device": "x"})).json()["hint"] == "No device is connected."


async def test_it_only_reads(admin: httpx.AsyncClient) -> None:
    for path in ("/routes", "/devices", "/status", "/frames"):
        assert (await admin.post(path)).status_code == 405
