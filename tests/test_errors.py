"""The one table of errors: codes as the documents give them, and one shape of data."""

import pytest

from mcpax.errors import Category, ErrorKind, Fault, Outcome

THE_DRAFTS = {
    ErrorKind.TOOL_NOT_FOUND: -32601,
    ErrorKind.INVALID_PARAMS: -32602,
    ErrorKind.TOOL_DEGRADED: -32002,
    ErrorKind.BUDGET_EXCEEDED: -32003,
}
MGP_RANGES = {
    Category.SECURITY: range(1000, 1100),
    Category.LIFECYCLE: range(2000, 2100),
    Category.RESOURCE: range(3000, 3100),
    Category.VALIDATION: range(4000, 4100),
    Category.EXTERNAL: range(5000, 5100),
}
RESERVED = range(-32768, -31999)
"""By JSON-RPC, and by MCP within it."""


@pytest.mark.parametrize("kind", ErrorKind)
def test_codes_are_the_drafts_or_from_mgps_range_for_their_category(kind: ErrorKind) -> None:
    spec = kind.value
    if kind in THE_DRAFTS:
        assert spec.code == THE_DRAFTS[kind]
    else:
        assert spec.code in MGP_RANGES[spec.category]
        assert spec.code not in RESERVED


def test_every_code_means_one_thing() -> None:
    codes = [kind.value.code for kind in ErrorKind]
    assert len(set(codes)) == len(codes)
    assert len(ErrorKind.__members__) == len(list(ErrorKind))  # no kind is an alias of another


@pytest.mark.parametrize("kind", [kind for kind in ErrorKind if kind in THE_DRAFTS])
def test_the_drafts_errors_are_json_rpc_errors(kind: ErrorKind) -> None:
    assert not kind.value.in_result


def test_a_bare_fault_says_what_it_is_and_whether_to_try_again() -> None:
    fault = Fault(ErrorKind.NAMESPACE_CONFLICT, "Taken.")
    assert fault.code == 4010
    assert fault.data() == {"error": "namespace_conflict", "_mgp": {"category": "validation", "retryable": False}}
    assert fault.text() == str(fault) == "Taken."


def test_a_full_fault_tells_outcome_hint_details_and_when_to_try_again() -> None:
    fault = Fault(ErrorKind.DEVICE_BUSY, "Busy.", hint="Wait.", outcome=Outcome.NOT_EXECUTED, retry_after_ms=0, details={"status": 4})
    assert fault.data() == {
        "error": "device_busy",
        "status": 4,
        "retry_after_ms": 0,
        "outcome": "not_executed",
        "hint": "Wait.",
        "_mgp": {"category": "resource", "retryable": True, "retry_after_ms": 0},
    }
    assert fault.text() == "Busy. Outcome: not_executed. Wait."


@pytest.mark.parametrize("stated", [True, False])
def test_whether_to_try_again_can_be_known_better_than_the_table_does(stated: bool) -> None:
    for kind in ErrorKind:
        assert Fault(kind, "", retryable=stated).data()["_mgp"]["retryable"] is stated
        assert Fault(kind, "").retryable is kind.value.retryable


def test_details_are_the_faults_own() -> None:
    details = {"field": "segment"}
    fault = Fault(ErrorKind.INVALID_PARAMS, "", details=details)
    details["field"] = "other"
    assert fault.data()["field"] == "segment"
