"""An event loop whose clock stands still while there is work and jumps to the next timer when there is none.

Hours pass in milliseconds, and the same program always sees the same times. For code that only waits on timers and futures.
"""

from __future__ import annotations

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("everything waits and no timer is set: this program would wait for ever")
        if timeout > 0:
            self.now += timeout
        return super().select(0)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now

    def advance(self, seconds: float) -> None:
        """Let this much time pass, with everything that happens in it."""
        self.run_until_complete(asyncio.sleep(seconds))

    def finish(self, work: Coroutine[Any, Any, T]) -> T:
        return self.run_until_complete(work)


def in_virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Decorates a test that is a coroutine: it runs on such a loop, its sleeps cost nothing, and what fails in a callback fails it."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        failed: list[dict[str, Any]] = []
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.get_loop().set_exception_handler(lambda _, context: failed.append(context))
            runner.run(test(*args, **kwargs))
        assert not failed

    return run
