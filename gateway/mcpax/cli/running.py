"""Running an asyncio program under a terminal or systemd: Ctrl-C, SIGTERM and a closed terminal end it cleanly, once. Knows no command."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any


def run_until_signal(main: Coroutine[Any, Any, None]) -> None:
    """Run to the end, or to the first SIGINT, SIGTERM or SIGHUP, which cancels it and lets it clean up."""
    asyncio.run(_guarded(main))


async def _guarded(main: Coroutine[Any, Any, None]) -> None:
    task = asyncio.ensure_future(main)
    loop = asyncio.get_running_loop()
    stopped = False

    def stop() -> None:
        nonlocal stopped
        stopped = True
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup means it
            loop.add_signal_handler(number, stop)
    try:
        await task
    except asyncio.CancelledError:
        if not stopped:
            raise
