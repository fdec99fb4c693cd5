"""An allowance is spent, grows back, and never beyond its burst; and it says truly when to come again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpax.allowance import Allowance


def test_the_burst_is_there_from_the_start_and_no_more() -> None:
    allowance = Allowance(10, 3, 0.0)
    assert [allowance.spend(0.0) for _ in range(4)] == [True, True, True, False]
    assert [allowance.spend(1000.0) for _ in range(4)] == [True, True, True, False]


def test_it_grows_back_with_time_and_trying_costs_nothing() -> None:
    allowance = Allowance(10, 1, 0.0)
    assert allowance.spend(0.0)
    assert allowance.wait_s() == pytest.approx(0.1)
    for hundredth in range(1, 10):
        assert not allowance.spend(hundredth / 100)
    assert allowance.wait_s() == pytest.approx(0.01)
    assert allowance.spend(0.101)


def test_a_clock_that_goes_back_takes_nothing_away() -> None:
    allowance = Allowance(10, 1, 0.0)
    assert allowance.spend(-5.0)


@given(st.integers(1, 20), st.floats(0.1, 1000), st.lists(st.floats(0, 10), max_size=50))
def test_after_the_wait_there_is_one_and_before_it_there_is_none(burst: int, per_s: float, pauses: list[float]) -> None:
    allowance, now = Allowance(per_s, burst, 0.0), 0.0
    for pause in pauses:
        now += pause
        while allowance.spend(now):
            pass
        wait_s = allowance.wait_s()
        assert not allowance.spend(now + wait_s * 0.99 - 1e-9)
        now += wait_s + 1e-6
        assert allowance.spend(now)
