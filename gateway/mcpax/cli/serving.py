"""A gateway in the background of something else: served over HTTP, and waited for until its boards are there.

For the demo and for tests; of it `mcpax serve` needs only the words when it cannot start. Knows nothing of where boards come from.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcpax.cli.client import local_url
from mcpax.cli.output import Failure
from mcpax.config import Config, ConfigError
from mcpax.doctor.processes import listeners
from mcpax.front.guard import InsecureListen
from mcpax.gateway import Gateway
from mcpax.link.anchors import AnchorError
from mcpax.link.tls_files import TlsError
from mcpax.linking import InsecureLink
from mcpax.store.sqlite import StoreError

LOOK_EVERY_S = 0.02
CANNOT_START = (ConfigError, StoreError, InsecureListen, InsecureLink, TlsError, AnchorError)
"""What keeps a gateway from starting as it is configured; each says what to do about it."""


class BoardsMissing(Exception):
    """Not every board came online in time; says which did not, and the problem of each."""


@dataclass(frozen=True, slots=True)
class Served:
    url: str
    ended: asyncio.Task[None]
    """Done only if serving failed by itself."""


@contextlib.asynccontextmanager
async def serving(gateway: Gateway) -> AsyncIterator[Served]:
    """Serve on the address of the configuration while the block runs. Raises `OSError` if that address cannot be had."""
    bound: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(gateway.serve_http(gateway.listen(), bound.set_result))
    try:
        started: set[asyncio.Future[Any]] = {task, bound}
        await asyncio.wait(started, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        yield Served(local_url(gateway.config.host, bound.result(), tls=gateway.config.links.tls is not None), task)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def cannot_listen(config: Config, error: OSError, remedy: str) -> Failure:
    where = f"{config.host}:{config.port}"
    if error.errno != errno.EADDRINUSE:
        # asyncio and socket add "(while attempting to bind on …)", which says the same again.
        return Failure(f"cannot listen on {where}: {(error.strerror or str(error)).partition(' (while')[0]}", remedy)
    holder = "; ".join(str(process) for process in listeners(Path("/"), config.port))
    return Failure(f"{where} is taken{f' by {holder}' if holder else ''}", f"stop that program, or choose another port: {remedy}")


async def boards_online(gateway: Gateway, patience_s: float, came: Callable[[str], None] = lambda _: None) -> None:
    """Wait until every board is online, telling of each as it comes."""
    missing = {device["segment"] for device in gateway.bridge.devices()}
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(patience_s):
            while True:
                for device in gateway.bridge.devices():
                    if device["segment"] in missing and device["state"] == "online":
                        missing.remove(device["segment"])
                        came(device["segment"])
                if not missing:
                    return
                await asyncio.sleep(LOOK_EVERY_S)
    problems = [f"{device['segment']}: {device['problem']}" for device in gateway.bridge.devices() if device["segment"] in missing]
    raise BoardsMissing(f"not online within {patience_s:g} s: {'; '.join(problems)}")
