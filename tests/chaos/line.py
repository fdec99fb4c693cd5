"""A TCP line on loopback that can be cut, fall silent, be slow, and be mended: how the ways between nodes fail.

Cut: connections are reset, and new ones too. Silent: they stay open and nothing passes. Slow: every byte comes later, in order. Knows
nothing of what passes.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

CHUNK = 65536
CHUNKS_UNDER_WAY = 256


class Line:
    def __init__(self, name: str, port: int) -> None:
        """`port`: where the far end listens."""
        self.name = name
        self.port = 0
        self._far_port = port
        self._delay_s = 0.0
        self._cut = False
        self._passing = asyncio.Event()
        self._passing.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[Line]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            self.cut()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        self._cut = True
        for writer in self._writers:
            writer.transport.abort()

    def silence(self) -> None:
        self._passing.clear()

    def delay(self, seconds: float) -> None:
        self._delay_s = seconds

    def heal(self) -> None:
        self._cut = False
        self._delay_s = 0.0
        self._passing.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with contextlib.suppress(asyncio.CancelledError):  # the end of the run; asyncio's streams would print it
            await self._join(reader, writer)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._cut:
            writer.transport.abort()
            return
        try:
            far_reader, far = await asyncio.open_connection("127.0.0.1", self._far_port)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, far}
        try:
            await asyncio.gather(self._pass_on(reader, far), self._pass_on(far_reader, writer), return_exceptions=True)
        finally:
            self._writers -= {writer, far}
            for each in (writer, far):
                each.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(CHUNKS_UNDER_WAY)
        delivering = asyncio.ensure_future(self._deliver(under_way, writer))
        try:
            with contextlib.suppress(OSError):
                while data := await reader.read(CHUNK):
                    await under_way.put((asyncio.get_running_loop().time() + self._delay_s, data))
            await under_way.put((0.0, b""))
            await delivering
        finally:
            delivering.cancel()

    async def _deliver(self, under_way: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while True:
                due, data = await under_way.get()
                wait_s = due - asyncio.get_running_loop().time()
                if wait_s > 0:
                    await asyncio.sleep(wait_s)
                await self._passing.wait()
                if not data:
                    break
                writer.write(data)
                await writer.drain()
        writer.close()
