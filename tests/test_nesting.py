"""Depth is counted as people count it: brackets around the innermost value."""

from typing import Any

import pytest

from mcpax.nesting import MAX_DEPTH, raw_too_deep, too_deep


def nested(depth: int, wrap: Any) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = wrap(value)
    return value


@pytest.mark.parametrize("wrap", [lambda v: [v], lambda v: {"a": v}, lambda v: [1, v, "x"]])
@pytest.mark.parametrize(("depth", "refused"), [(0, False), (1, False), (MAX_DEPTH, False), (MAX_DEPTH + 1, True), (5000, True)])
def test_the_limit_is_where_it_is_said_to_be(wrap: Any, depth: int, refused: bool) -> None:
    assert too_deep(nested(depth, wrap)) == refused


def test_breadth_is_no_depth() -> None:
    assert not too_deep([{"a": [1, 2, 3]}] * 10_000)


def test_text_full_of_brackets_is_not_deep_and_what_is_deep_is_found_unread() -> None:
    assert not raw_too_deep(b'{"text": "' + b"[{" * 1000 + b'"}')
    assert not raw_too_deep(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    assert raw_too_deep(b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1))
