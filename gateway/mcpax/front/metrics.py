"""`/metrics` for Prometheus: what the gateway and everything below it are doing, read off when it is asked for.

Counts nothing itself, so that a gateway nobody watches pays nothing. Knows nothing of how the numbers come about.
"""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import mcpax
from mcpax import logs
from mcpax.core.aggregator import Aggregator
from mcpax.front.admin import Operations

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    def __init__(self, aggregator: Aggregator, operations: Operations) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Readings(aggregator, operations))
        ProcessCollector(registry=self._registry)

    def route(self) -> Route:
        return Route("/metrics", self.scrape)

    async def scrape(self, _: Request) -> Response:
        return Response(generate_latest(self._registry), media_type=CONTENT_TYPE)


class _Readings(Collector):
    def __init__(self, aggregator: Aggregator, operations: Operations) -> None:
        self._aggregator = aggregator
        self._operations = operations

    def describe(self) -> Iterable[Metric]:
        return ()  # else everything is collected once at the start

    def collect(self) -> Iterable[Metric]:
        aggregator = self._aggregator
        yield InfoMetricFamily("mcpax", "This aggregator.", {"version": mcpax.__version__, "segment": aggregator.segment})
        yield GaugeMetricFamily("mcpax_tools", "Tools in the merged list.", len(aggregator.catalog))
        yield CounterMetricFamily("mcpax_notifications_dropped", "Notifications dropped because too many came.", aggregator.flows.dropped)
        yield _warnings()
        yield from self._subservers()
        yield from self._devices()
        yield from self._upstream()

    def _subservers(self) -> Iterable[Metric]:
        labels = ("segment", "transport")
        up = GaugeMetricFamily("mcpax_subserver_up", "1: reachable; 0: degraded.", labels=labels)
        tools = GaugeMetricFamily("mcpax_subserver_tools", "Tools that a subserver presents.", labels=labels)
        calls = CounterMetricFamily("mcpax_subserver_calls", "Calls handed to a subserver in its present session.", labels=labels)
        for session in self._aggregator.registry:
            values = (session.segment, session.request.transport_class)
            up.add_metric(values, 0 if session.degraded else 1)
            tools.add_metric(values, len(session.tools))
            calls.add_metric(values, session.calls)
        yield from (up, tools, calls)

    def _devices(self) -> Iterable[Metric]:
        online = GaugeMetricFamily("mcpax_device_online", "1: the board answers.", labels=("device",))
        counted: dict[str, CounterMetricFamily] = {}
        for device in self._operations.devices():
            labels = (str(device["segment"]),)
            online.add_metric(labels, 1 if device.get("state") == "online" else 0)
            for name, value in device.get("counters", {}).items():
                if isinstance(value, int):
                    family = counted.setdefault(name, CounterMetricFamily(f"mcpax_device_{name}", "Of a board's line.", labels=("device",)))
                    family.add_metric(labels, value)
        yield online
        yield from counted.values()

    def _upstream(self) -> Iterable[Metric]:
        upstream = self._operations.links().get("upstream")
        if upstream is not None:
            yield GaugeMetricFamily("mcpax_upstream_connected", "1: registered with the aggregator above.", int(upstream["connected"]))
            yield CounterMetricFamily("mcpax_upstream_links", "How often a link to it has come about.", upstream["links"])


def _warnings() -> Metric:
    """Refusals, limits met, links lost: whatever is logged as trouble."""
    family = CounterMetricFamily("mcpax_warnings", "Trouble that was logged, by event.", labels=("event",))
    for event, count in sorted(logs.WARNINGS.items()):
        family.add_metric((event,), count)
    return family
