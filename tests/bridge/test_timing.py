"""When to send again: the wire's own time is known, the rest is measured, and it doubles."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpax.bridge.timing import MAX_TIMEOUT_S, MIN_MARGIN_S, RoundTripEstimator

BYTE_S = 10 / 115200
seconds = st.floats(0, 5)
sizes = st.integers(0, 1000)


def test_before_any_sample_the_maps_turnaround_counts() -> None:
    estimator = RoundTripEstimator(BYTE_S, 0.02)
    assert estimator.timeout_s(100, 1) == pytest.approx(100 * BYTE_S + 0.02 + MIN_MARGIN_S)


def test_samples_take_its_place_as_in_rfc_6298() -> None:
    estimator = RoundTripEstimator(0.001, 0.02)
    estimator.measured(0.110, 10)  # 100 ms on top of the wire
    assert estimator.excess_s == pytest.approx(0.1)
    assert estimator.deviation_s == pytest.approx(0.05)
    assert estimator.timeout_s(10, 1) == pytest.approx(0.01 + 0.1 + 4 * 0.05 + MIN_MARGIN_S)
    estimator.measured(0.190, 10)
    assert estimator.deviation_s == pytest.approx(0.05 + (0.08 - 0.05) / 4)
    assert estimator.excess_s == pytest.approx(0.1 + 0.08 / 8)


def test_each_attempt_waits_twice_as_long_up_to_the_limit() -> None:
    estimator = RoundTripEstimator(0, 0.002)
    waits = [estimator.timeout_s(0, attempt) for attempt in range(1, 12)]
    assert waits[:4] == pytest.approx([0.01, 0.02, 0.04, 0.08])
    assert waits[-1] == MAX_TIMEOUT_S
    assert estimator.timeout_s(0, 10_000) == MAX_TIMEOUT_S


@given(st.lists(st.tuples(seconds, sizes), max_size=30), sizes, st.integers(1, 20))
def test_a_timeout_is_never_below_what_the_wire_takes_nor_above_the_limit(
    samples: list[tuple[float, int]], size: int, attempt: int
) -> None:
    estimator = RoundTripEstimator(BYTE_S, 0.02)
    for round_trip_s, sampled in samples:
        estimator.measured(round_trip_s, sampled)
        assert estimator.deviation_s >= 0
    assert min(size * BYTE_S + MIN_MARGIN_S, MAX_TIMEOUT_S) <= estimator.timeout_s(size, attempt) <= MAX_TIMEOUT_S
    assert estimator.timeout_s(size, attempt) <= estimator.timeout_s(size, attempt + 1)


@given(st.floats(0.001, 0.3))
def test_a_steady_board_is_known_within_some_calls(excess_s: float) -> None:
    estimator = RoundTripEstimator(BYTE_S, 0.02)
    for _ in range(60):
        estimator.measured(50 * BYTE_S + excess_s, 50)
    assert estimator.timeout_s(50, 1) == pytest.approx(50 * BYTE_S + excess_s + MIN_MARGIN_S, rel=0.05)
