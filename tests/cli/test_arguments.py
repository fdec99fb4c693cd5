"""From `key=value` to typed arguments."""

from __future__ import annotations

from typing import Any

import pytest

from mcpax.cli.arguments import read_arguments, typed_arguments, usage
from mcpax.cli.output import Failure

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "count": {"type": "integer", "minimum": 1, "maximum": 16},
        "level": {"type": "number"},
        "on": {"type": "boolean"},
        "colour": {"type": "string", "enum": ["red", "green"]},
        "list": {"type": "array"},
        "any": {},
    },
    "required": ["count"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("count=12", 12),
        ("count=0x10", 16),
        ("count=-3", -3),
        ("level=1", 1.0),
        ("level=1e-3", 0.001),
        ("on=true", True),
        ("on=Off", False),
        ("colour=red", "red"),
        ("colour=", ""),
        ("colour=a=b", "a=b"),
        ("list=[1, 2]", [1, 2]),
        ("any=5", 5),
        ("any=five", "five"),
    ],
)
def test_values_take_the_type_of_the_schema(pair: str, value: Any) -> None:
    (typed,) = typed_arguments([pair], SCHEMA).values()
    assert typed == value
    assert type(typed) is type(value)


@pytest.mark.parametrize(
    ("pairs", "message", "hint"),
    [
        (["count"], "'count' is not key=value", "count=1…16 [level=NUMBER] [on=true|false] [colour=red|green] [list=ARRAY] [any=VALUE]"),
        (["cuont=1"], "no argument 'cuont'", 'did you mean "count"?'),
        (["count=many"], "argument count: 'many' is not a whole number", "count=1…16"),
        (["on=maybe"], "argument on: 'maybe' is not true or false", "on=true|false"),
        (["list={"], "is not a JSON array", "list=ARRAY"),
        (["count=1", "count=2"], "given twice", "once"),
    ],
)
def test_faults_say_what_and_what_to_do(pairs: list[str], message: str, hint: str) -> None:
    with pytest.raises(Failure) as failure:
        typed_arguments(pairs, SCHEMA)
    assert message in failure.value.message
    assert hint in failure.value.hint


def test_a_schema_that_allows_more_takes_more() -> None:
    assert typed_arguments(["new=1"], {"type": "object"}) == {"new": 1}


def test_no_arguments_are_told_as_none() -> None:
    assert usage({"type": "object"}) == "none"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("{", "--args: not JSON"),
        ("[1]", "--args: a JSON object is needed, not list"),
        ("@/nowhere/at/all", "/nowhere/at/all: cannot be read"),
    ],
)
def test_faults_of_args_say_where(given: str, message: str) -> None:
    with pytest.raises(Failure) as failure:
        read_arguments(given)
    assert message in failure.value.message
