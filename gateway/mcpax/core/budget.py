"""Counting a session's calls against its budget (draft §11.4). Pure: the caller brings the time."""

from __future__ import annotations

from collections import deque

from mcpax.capability import Capability, CostClass
from mcpax.core.registration import Budget
from mcpax.errors import ErrorKind, Fault, Outcome

WINDOW_S = 60.0
COST_UNITS = {CostClass.FREE: 0, CostClass.METERED: 1, CostClass.EXPENSIVE: 10}
_SESSION_HINT = "The limit holds for this session; an operator can raise it in the gateway's configuration."


class BudgetMeter:
    """What one session has used of its budget."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.mutable_calls = 0
        self.cost_units = 0
        self._recent: deque[float] = deque()

    def spend(self, capability: Capability, now: float) -> None:
        """Account for one call, or raise -32003 and account for nothing."""
        budget = self.budget
        if budget.max_calls_per_minute is not None:
            while self._recent and self._recent[0] <= now - WINDOW_S:
                self._recent.popleft()
            if len(self._recent) >= budget.max_calls_per_minute:
                free_ms = int((self._recent[0] + WINDOW_S - now) * 1000) + 1 if self._recent else int(WINDOW_S * 1000)
                raise _exceeded("max_calls_per_minute", budget.max_calls_per_minute, retry_after_ms=free_ms)
        cost = COST_UNITS[capability.cost_class]
        mutable_limit = budget.max_mutable_calls_per_session
        if mutable_limit is not None and self.mutable_calls + capability.mutable > mutable_limit:
            raise _exceeded("max_mutable_calls_per_session", mutable_limit)
        if budget.max_cost_units_per_session is not None and self.cost_units + cost > budget.max_cost_units_per_session:
            raise _exceeded("max_cost_units_per_session", budget.max_cost_units_per_session)
        if budget.max_calls_per_minute is not None:
            self._recent.append(now)
        self.mutable_calls += capability.mutable
        self.cost_units += cost


def _exceeded(limit: str, value: int, retry_after_ms: int | None = None) -> Fault:
    return Fault(
        ErrorKind.BUDGET_EXCEEDED,
        f"budget_exceeded: {limit} is {value}.",
        hint="" if retry_after_ms is not None else _SESSION_HINT,
        outcome=Outcome.NOT_EXECUTED,
        retryable=retry_after_ms is not None,
        retry_after_ms=retry_after_ms,
        details={"limit": limit, "value": value},
    )
