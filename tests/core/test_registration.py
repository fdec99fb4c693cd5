"""`mcpax/register`: the fields, their faults by name, and the answer."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpax.core.registration import Budget, RegistrationRequest, RegistrationResponse
from mcpax.errors import Fault

THE_DRAFTS: dict[str, Any] = {
    "subserver_id": "550e8400-e29b-41d4-a716-446655440000",
    "segment": "stm32h7",
    "authority": "dns:edge01.factory.example.com",
    "capabilities": {"tools": True, "resources": False, "notifications": True},
    "heartbeat_interval_ms": 5000,
    "transport_class": "uart_cbor",
    "version": "2026-05-01",
}
REQUIRED = {key: THE_DRAFTS[key] for key in ("subserver_id", "segment", "transport_class", "version")}
MISSING = object()


def test_the_drafts_example_is_taken_as_it_stands() -> None:
    assert RegistrationRequest.parse(THE_DRAFTS) == RegistrationRequest(
        subserver_id="550e8400-e29b-41d4-a716-446655440000",
        segment="stm32h7",
        transport_class="uart_cbor",
        heartbeat_interval_ms=5000,
        authority="dns:edge01.factory.example.com",
        capabilities=frozenset({"tools", "notifications"}),
        version="2026-05-01",
        is_aggregator=False,
    )


def test_what_may_be_left_out() -> None:
    request = RegistrationRequest.parse(REQUIRED)
    assert (request.heartbeat_interval_ms, request.authority, request.capabilities) == (0, None, frozenset({"tools"}))
    assert RegistrationRequest.parse({**REQUIRED, "authority": None, "_meta": {}, "x-mcpax-subtree-ids": []}) == request


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("subserver_id", [MISSING, None, 7, "", "board-1", "550e8400-e29b-41d4-a716-44665544000", "x" * 500]),
        ("segment", [MISSING, None, 7, "", "A", "a.b", "a b", "x" * 64, "é", "env\n"]),
        ("transport_class", [MISSING, None, 7, "", "UART", "uart-cbor", "x" * 33, "uart\n"]),
        ("version", [MISSING, None, 20260501, "", "1", "2026-5-1", "2026-05-01\n", "٢٠٢٦-٠٥-٠١"]),
        ("heartbeat_interval_ms", [None, "5000", 5000.0, True, False, -1, 1, 99, 3_600_001]),
        (
            "authority",
            [7, "", "edge01.example.com", "dns:", "dns:-a.com", "dns:a-.com", "dns:a..b", "dns:a_b", "dns:" + "a" * 64, "dns:a.com\n"],
        ),
        ("authority", ["dns:" + ".".join(["a" * 63] * 4), "http://a.com", "dns:a b"]),
        ("capabilities", [None, [], "tools", {"tools": 1}, {"tools": None}, {"prompts": True}]),
        ("segmnet", ["env"]),
        ("color", ["red"]),
        ("x-mcpax", [1]),
    ],
)
def test_a_malformed_field_gets_invalid_params_that_name_it(field: str, values: list[Any]) -> None:
    for value in values:
        params = {**THE_DRAFTS, field: value}
        if value is MISSING:
            del params[field]
        with pytest.raises(Fault, match=f"mcpax/register: {field}: ") as caught:
            RegistrationRequest.parse(params)
        assert caught.value.code == -32602
        assert caught.value.data()["field"] == field
        assert len(caught.value.text()) < 300


def test_a_misspelt_field_meets_its_nearest_and_a_strange_one_the_list() -> None:
    for field, words in (("segmnet", "Did you mean 'segment'?"), ("color", "Known fields: subserver_id, ")):
        with pytest.raises(Fault) as caught:
            RegistrationRequest.parse({**THE_DRAFTS, field: 1})
        assert words in caught.value.hint


@pytest.mark.parametrize(
    "authority", ["dns:a", "dns:EDGE01.Example.com", "dns:1.2.3", "dns:a-b.c", "dns:" + "a" * 63, "dns:" + ".".join(["a" * 62] * 4)]
)
def test_authorities_that_are_host_names(authority: str) -> None:
    assert RegistrationRequest.parse({**REQUIRED, "authority": authority}).authority == authority


@pytest.mark.parametrize("written", ["550E8400-E29B-41D4-A716-446655440000", "550e8400e29b41d4a716446655440000"])
def test_one_board_has_one_id_however_it_is_written(written: str) -> None:
    assert RegistrationRequest.parse({**REQUIRED, "subserver_id": written}).subserver_id == THE_DRAFTS["subserver_id"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@given(st.dictionaries(st.sampled_from(list(THE_DRAFTS)) | st.text(max_size=12), json_values, max_size=4))
def test_any_json_object_is_a_request_or_a_fault(params: dict[str, Any]) -> None:
    with contextlib.suppress(Fault):
        RegistrationRequest.parse({**THE_DRAFTS, **params})


@pytest.mark.parametrize("interval", [0, 100, 5000, 3_600_000])
def test_the_deadline_is_three_intervals(interval: int) -> None:
    assert RegistrationRequest.parse({**REQUIRED, "heartbeat_interval_ms": interval}).heartbeat_deadline_ms == 3 * interval


def test_the_answer_has_the_drafts_fields() -> None:
    budget = Budget(max_calls_per_minute=60, max_mutable_calls_per_session=10)
    assert RegistrationResponse("stm32h7", "a3f7c", 15000, budget).to_json() == {
        "status": "registered",
        "assigned_segment": "stm32h7",
        "session_id": "a3f7c",
        "heartbeat_deadline_ms": 15000,
        "budget": {"max_calls_per_minute": 60, "max_mutable_calls_per_session": 10},
    }
    assert Budget().to_json() == {}
    assert Budget(0, 0, 0).to_json() == {"max_calls_per_minute": 0, "max_mutable_calls_per_session": 0, "max_cost_units_per_session": 0}
