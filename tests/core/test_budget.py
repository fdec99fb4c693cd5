"""Budgets: calls in any minute, mutable calls and cost in a session; what is refused costs nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpax.capability import Capability, CostClass
from mcpax.core.budget import BudgetMeter
from mcpax.core.registration import Budget
from mcpax.errors import ErrorKind, Fault, Outcome
from tests.core.rig import refused

READ = Capability(mutable=False)
WRITE = Capability(mutable=True)


def refusal(meter: BudgetMeter, capability: Capability, now: float) -> dict[str, object]:
    with refused(ErrorKind.BUDGET_EXCEEDED) as caught:
        meter.spend(capability, now)
    assert caught.value.code == -32003
    assert caught.value.outcome is Outcome.NOT_EXECUTED
    assert caught.value.message.startswith("budget_exceeded: ")
    return caught.value.data()


def test_calls_per_minute_count_any_sixty_seconds_and_say_when_to_try_again() -> None:
    meter = BudgetMeter(Budget(max_calls_per_minute=2))
    meter.spend(READ, 100.0)
    meter.spend(WRITE, 130.0)
    data = refusal(meter, READ, 159.5)
    assert (data["limit"], data["value"], data["retry_after_ms"]) == ("max_calls_per_minute", 2, 501)
    assert data["_mgp"] == {"category": "resource", "retryable": True, "retry_after_ms": 501}
    meter.spend(READ, 160.0)
    refusal(meter, READ, 189.9)
    meter.spend(READ, 190.0)


def test_a_budget_of_nothing_lets_nothing_through() -> None:
    assert refusal(BudgetMeter(Budget(max_calls_per_minute=0)), READ, 0.0)["retry_after_ms"] == 60_000


def test_mutable_calls_per_session_leave_reading_free() -> None:
    meter = BudgetMeter(Budget(max_mutable_calls_per_session=2))
    for now in (0.0, 1e6):
        meter.spend(WRITE, now)
    data = refusal(meter, WRITE, 1e9)
    assert (data["limit"], data["_mgp"]) == ("max_mutable_calls_per_session", {"category": "resource", "retryable": False})
    assert "operator" in str(data["hint"])
    meter.spend(READ, 1e9)
    assert meter.mutable_calls == 2


@pytest.mark.parametrize(("cost", "fit"), [(CostClass.FREE, 1000), (CostClass.METERED, 25), (CostClass.EXPENSIVE, 2)])
def test_cost_units_per_session(cost: CostClass, fit: int) -> None:
    meter = BudgetMeter(Budget(max_cost_units_per_session=25))
    for _ in range(fit):
        meter.spend(Capability(cost_class=cost), 0.0)
    if cost is not CostClass.FREE:
        assert refusal(meter, Capability(cost_class=cost), 0.0)["limit"] == "max_cost_units_per_session"
    assert meter.cost_units <= 25


@given(
    st.builds(Budget, *[st.none() | st.integers(0, 5)] * 3),
    st.lists(st.tuples(st.booleans(), st.sampled_from(CostClass), st.floats(0, 40)), max_size=40),
)
def test_no_budget_is_ever_exceeded_and_a_refused_call_costs_nothing(budget: Budget, calls: list[tuple[bool, CostClass, float]]) -> None:
    meter, now, let_through = BudgetMeter(budget), 0.0, list[tuple[float, bool, CostClass]]()
    for mutable, cost, pause in calls:
        now += pause
        before = (meter.mutable_calls, meter.cost_units)
        try:
            meter.spend(Capability(mutable=mutable, cost_class=cost), now)
            let_through.append((now, mutable, cost))
        except Fault:
            assert (meter.mutable_calls, meter.cost_units) == before
            assert budget != Budget()
        recent = [at for at, _, _ in let_through if at > now - 60]
        assert budget.max_calls_per_minute is None or len(recent) <= budget.max_calls_per_minute
        assert meter.mutable_calls == sum(mutable for _, mutable, _ in let_through)
        assert budget.max_mutable_calls_per_session is None or meter.mutable_calls <= budget.max_mutable_calls_per_session
        assert budget.max_cost_units_per_session is None or meter.cost_units <= budget.max_cost_units_per_session
