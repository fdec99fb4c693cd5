"""A TCP proxy on loopback that can fall silent, with connections open, or cut them: how networks fail.

async with StallingProxy("http://127.0.0.1:2379") as proxy:
    …  proxy.url, proxy.stall(), proxy.lose_answers(), proxy.go_on(), proxy.cut()
"""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

CHUNK = 65536


class StallingProxy:
    def __init__(self, target: str) -> None:
        self._target = urlsplit(target)
        self._up = asyncio.Event()
        self._down = asyncio.Event()
        self.go_on()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.accepted = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def stall(self) -> None:
        """From now on nothing passes, in either direction; connections are accepted and stay open."""
        self._up.clear()
        self._down.clear()

    def lose_answers(self) -> None:
        """Requests arrive, answers do not."""
        self._down.clear()

    def go_on(self) -> None:
        self._up.set()
        self._down.set()

    def cut(self) -> None:
        """Close all connections; new ones are served."""
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with contextlib.suppress(OSError):
            there_reader, there = await asyncio.open_connection(self._target.hostname, self._target.port)
            self._writers |= {writer, there}
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(self._pass_on(reader, there, self._up))
                    both.create_task(self._pass_on(there_reader, writer, self._down))
            finally:
                self._writers -= {writer, there}
                there.close()
        writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, may_pass: asyncio.Event) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK):
                await may_pass.wait()
                writer.write(data)
                await writer.drain()
        writer.close()
