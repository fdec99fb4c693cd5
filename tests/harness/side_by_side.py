"""Work that only computes, for the tests of a module: done side by side, as much at once as there are processors.

Each test waits for its own part, so a failure is still that test's. Not for what lives in real time: that suffers from company.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Generic, Self, TypeVar

import pytest

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class SideBySide(Generic[K, T]):
    """Begins with all parts at once, in their order; leaving its `with` block drops those that have not begun."""

    def __init__(self, work: Callable[[K], T], parts: Iterable[K]) -> None:
        self._pool = ThreadPoolExecutor(os.cpu_count())
        self._done = {part: self._pool.submit(work, part) for part in parts}

    def result(self, part: K) -> T:
        """What the work has returned, once it has; raises what it has raised."""
        return self._done[part].result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._pool.shutdown(cancel_futures=True)


def parameters(request: pytest.FixtureRequest, *names: str) -> list[tuple[object, ...]]:
    """Of the tests of this module that were selected and have parameters of all these names, each combination once and in order."""
    items = (item for item in request.session.items if item.path == request.path)
    given = (item.callspec.params for item in items if isinstance(item, pytest.Function) and hasattr(item, "callspec"))
    return list(dict.fromkeys(tuple(each[name] for name in names) for each in given if set(names) <= set(each)))
