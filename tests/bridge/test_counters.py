"""What is counted for each device, in bounded space."""

import json
from collections import deque

from mcpax.bridge.counters import ROUND_TRIPS_KEPT, DeviceCounters, percentiles_ms


def test_everything_counted_is_told_and_the_samples_as_percentiles_only() -> None:
    counters = DeviceCounters(calls=3, retries=1)
    told = counters.to_json()
    assert (told["calls"], told["retries"], told["answered"], told["round_trip_ms"]) == (3, 1, 0, {})
    assert told.keys() == {*DeviceCounters.__slots__, "round_trip_ms"} - {"round_trips_s"}
    json.dumps(told)


def test_percentiles_are_of_what_was_kept_in_milliseconds() -> None:
    assert percentiles_ms(deque(n / 1000 for n in range(101))) == {"p50": 50.0, "p95": 95.0, "p99": 99.0}
    assert percentiles_ms(deque([0.0012345])) == {"p50": 1.234, "p95": 1.234, "p99": 1.234}
    assert percentiles_ms(deque([0.003, 0.001, 0.002])) == {"p50": 2.0, "p95": 3.0, "p99": 3.0}


def test_only_the_latest_samples_are_kept_and_each_device_has_its_own() -> None:
    one, other = DeviceCounters(), DeviceCounters()
    one.round_trips_s.extend(float(n) for n in range(2 * ROUND_TRIPS_KEPT))
    assert len(one.round_trips_s) == ROUND_TRIPS_KEPT
    assert min(one.round_trips_s) == ROUND_TRIPS_KEPT
    assert not other.round_trips_s
