"""The capability annotation: ten fields, their values, and what follows from them."""

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpax.capability import Availability, Capability, InvalidCapability, LatencyClass

THE_DRAFTS: dict[str, list[Any]] = {
    "latency_class": ["realtime", "fast", "standard", "slow", "batch"],
    "consistency": ["strong", "eventual", "best_effort"],
    "mutable": [True, False],
    "reversible": [True, False],
    "idempotent": [True, False],
    "transport": ["native", "uart_cbor", "ble_cbor", "spi_cbor", "can_cbor", "mqtt_json"],
    "auth_scope": ["read", "write", "admin"],
    "cost_class": ["free", "metered", "expensive"],
    "availability": ["always", "scheduled", "best_effort", "degraded"],
    "schema_version": ["1.0.0", "0.0.1", "10.20.30", "1.2.3-rc.1", "1.2.3+build.5", "1.2.3-a+b"],
}
OURS = {"transport": ["uart_bytes"]}
"""The draft's list of transports ends in an ellipsis."""
stated = st.fixed_dictionaries({}, optional={field: st.sampled_from(values) for field, values in THE_DRAFTS.items()})


def refusal(given_: dict[str, Any]) -> list[tuple[str, str]]:
    with pytest.raises(InvalidCapability) as caught:
        Capability.parse(given_)
    return caught.value.faults


@pytest.mark.req("AX-9.1-1")
def test_there_are_the_ten_fields_in_the_drafts_order() -> None:
    assert [field.name for field in fields(Capability)] == list(THE_DRAFTS)
    assert list(Capability().to_json()) == list(THE_DRAFTS)


@pytest.mark.req("AX-9.1-1")
@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values in THE_DRAFTS.items() for value in values])
def test_every_value_of_the_draft_is_taken_and_given_back_unchanged(field: str, value: Any) -> None:
    assert Capability.parse({field: value}).to_json()[field] == value


@pytest.mark.req("AX-9.1-1")
@pytest.mark.parametrize("field", THE_DRAFTS)
@pytest.mark.parametrize(
    "value", ["", "nonsense", "Strong", 1, 0, None, 1.5, [], {}, ["strong"], "true", "1.0", "1.0.0 ", "1.0.0\n", "١.٠.٠"]
)
def test_anything_else_is_refused_by_field(field: str, value: Any) -> None:
    [(named, message)] = refusal({field: value})
    assert named == field
    assert repr(value) in message


@pytest.mark.req("AX-9.1-1")
@pytest.mark.parametrize(
    "field", [field for field, values in THE_DRAFTS.items() if isinstance(values[0], str) and field != "schema_version"]
)
def test_no_value_besides_is_known_and_the_refusal_lists_them(field: str) -> None:
    [(_, message)] = refusal({field: "?"})
    listed = message.removeprefix("must be one of ").removesuffix(", not '?'").split(", ")
    assert set(listed) == {*THE_DRAFTS[field], *OURS.get(field, [])}


def test_every_fault_is_told_at_once_and_a_misspelt_field_meets_its_nearest() -> None:
    faults = dict(refusal({"mutabel": True, "zzz": 1, "reversible": "no", "cost_class": "dear"}))
    assert faults.keys() == {"mutabel", "zzz", "reversible", "cost_class"}
    assert "did you mean 'mutable'" in faults["mutabel"]
    assert "known fields: latency_class, " in faults["zzz"]


def test_unannotated_means_mutable_and_irreversible() -> None:
    capability = Capability.parse({})
    assert capability == Capability()
    assert (capability.mutable, capability.reversible, capability.idempotent) == (True, False, False)
    assert capability.irreversible_mutable
    assert capability.to_json()["auth_scope"] == "write"


@given(stated)
def test_what_is_stated_is_kept_and_read_back_to_the_same(given_: dict[str, Any]) -> None:
    capability = Capability.parse(given_)
    assert capability.to_json().items() >= given_.items()
    assert Capability.parse(capability.to_json()) == capability


@pytest.mark.parametrize(
    ("given_", "scope"),
    [({"mutable": False}, "read"), ({"mutable": True}, "write"), ({}, "write"), ({"mutable": False, "auth_scope": "admin"}, "admin")],
)
def test_the_scope_follows_from_the_effect_unless_stated(given_: dict[str, Any], scope: str) -> None:
    assert Capability.parse(given_).auth_scope == scope


@pytest.mark.parametrize(
    ("mutable", "reversible", "idempotent", "hints"),
    [
        (False, False, False, (True, False, True)),
        (False, True, True, (True, False, True)),
        (True, True, False, (False, False, False)),
        (True, True, True, (False, False, True)),
        (True, False, False, (False, True, False)),
        (True, False, True, (False, True, True)),
    ],
)
def test_plain_mcp_hints_follow(mutable: bool, reversible: bool, idempotent: bool, hints: tuple[bool, bool, bool]) -> None:
    capability = Capability(mutable=mutable, reversible=reversible, idempotent=idempotent)
    read_only, destructive, repeatable = hints
    assert capability.hints() == {
        "readOnlyHint": read_only,
        "destructiveHint": destructive,
        "idempotentHint": repeatable,
        "openWorldHint": False,
    }
    assert capability.irreversible_mutable is destructive


@pytest.mark.parametrize(("name", "seconds"), [("realtime", 0.5), ("fast", 5), ("standard", 30), ("slow", 120), ("batch", None)])
def test_timeouts_by_class(name: str, seconds: float | None) -> None:
    assert Capability.parse({"latency_class": name}).timeout_s == seconds


@given(st.sampled_from(LatencyClass), st.sampled_from(LatencyClass))
def test_a_class_is_raised_and_never_lowered(one: LatencyClass, other: LatencyClass) -> None:
    order = THE_DRAFTS["latency_class"]
    assert order.index(one.at_least(other)) == max(order.index(one), order.index(other))


@given(stated)
def test_degrading_changes_availability_alone(given_: dict[str, Any]) -> None:
    capability = Capability.parse(given_)
    assert capability.degraded().to_json() == {**capability.to_json(), "availability": str(Availability.DEGRADED)}
