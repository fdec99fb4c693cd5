"""`/metrics`: true numbers in a form that Prometheus's own parser reads."""

from __future__ import annotations

from collections.abc import Sequence

import httpx
import pytest
import structlog
from prometheus_client.parser import text_string_to_metric_families

from mcpax import logs
from mcpax.core.subserver import Json
from mcpax.front.admin import NoDevices
from mcpax.front.guard import Access
from mcpax.front.http import build_app
from tests.front.bench import Gateway
from tests.front.conftest import PATIENCE_S, serving


class Boards(NoDevices):
    def devices(self) -> Sequence[Json]:
        return [{"segment": "uno", "state": "online", "counters": {"calls": 7, "retries": 2}}, {"segment": "esp", "state": "absent"}]

    def links(self) -> Json:
        return {"upstream": {"connected": False, "links": 3}}


async def scraped(gateway: Gateway) -> dict[str, float]:
    async with serving(build_app(gateway.aggregator, operations=Boards())) as url, httpx.AsyncClient(timeout=PATIENCE_S) as http:
        answer = await http.get(f"{url}/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    return {
        f"{sample.name}{''.join(f' {key}={value}' for key, value in sorted(sample.labels.items()))}": sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


async def test_what_happens_is_told(gateway: Gateway) -> None:
    before = await scraped(gateway)
    assert before["mcpax_tools"] == len(gateway.bench.tools)
    assert before["mcpax_subserver_calls_total segment=bench transport=native"] == 0
    assert before["mcpax_subserver_up segment=bench transport=native"] == 1
    await gateway.aggregator.call_tool("edge.bench.echo", {"text": "hello"})
    gateway.aggregator.degrade(gateway.session_id, "unplugged")
    after = await scraped(gateway)
    assert after["mcpax_subserver_calls_total segment=bench transport=native"] == 1
    assert after["mcpax_subserver_up segment=bench transport=native"] == 0


async def test_boards_and_the_way_up_are_told(gateway: Gateway) -> None:
    told = await scraped(gateway)
    assert (told["mcpax_device_online device=uno"], told["mcpax_device_online device=esp"]) == (1, 0)
    assert told["mcpax_device_retries_total device=uno"] == 2
    assert (told["mcpax_upstream_connected"], told["mcpax_upstream_links_total"]) == (0, 3)
    assert "process_resident_memory_bytes" in told


async def test_it_needs_the_token_like_everything_else(gateway: Gateway) -> None:
    app = build_app(gateway.aggregator, access=Access("0123456789abcdef"))
    async with serving(app) as url, httpx.AsyncClient(timeout=PATIENCE_S) as http:
        assert (await http.get(f"{url}/metrics")).status_code == 401


async def test_whatever_is_logged_as_trouble_is_counted(gateway: Gateway, capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", as_json=True)
    log = structlog.get_logger("mcpax.test")
    name = "mcpax_warnings_total event=only_a_test"
    before = (await scraped(gateway)).get(name, 0)
    log.info("only_a_test")
    log.warning("only_a_test", who="somebody")
    log.error("only_a_test")
    assert (await scraped(gateway))[name] == before + 2
    assert capsys.readouterr().err.count("only_a_test") == 3
