"""The HTTP side in one ASGI app: MCP endpoints, health, the admin API, all behind one guard; and serving it in a running loop.

Knows where things are and nothing of what they do. Signals are the caller's: cancel `serve_http` to stop.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

import structlog
import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from mcpax.core.aggregator import Aggregator
from mcpax.front.admin import Admin, NoDevices, Operations
from mcpax.front.connections import BoundedProtocol, BoundedSocket
from mcpax.front.guard import Access, Guard
from mcpax.front.lean import LeanPath
from mcpax.front.mcp_server import build_server
from mcpax.front.metrics import Metrics
from mcpax.name_codec import NameStyle

log = structlog.get_logger("mcpax.http")

MCP_PATHS: dict[str, NameStyle | None] = {"/mcp": None, **{f"/mcp/{style}": style for style in NameStyle}}
"""Where MCP is served, and in which style names are printed there; None: chosen by client."""

MAX_SESSIONS = 256
"""Per endpoint: a session costs memory, and a Pi has little."""
SESSION_IDLE_S = 300.0
"""A session that nothing was heard of for this long is closed, as few clients close theirs. Who comes back begins anew."""
SHUTDOWN_S = 2.0
"""How long responses may still take when we stop. The caller drains calls before, so this is for the last bytes."""

MAX_SOCKET_MESSAGE_BYTES = 8 << 20
SOCKET_PING_S = 5.0
"""WebSockets: how often a sign of life is asked for, and how long it may take."""

Ready = Callable[[], tuple[bool, str]]
"""Whether start-up has finished, and if not, what is missing."""


def build_app(
    aggregator: Aggregator,
    *,
    access: Access | None = None,
    operations: Operations | None = None,
    ready: Ready = lambda: (True, ""),
    more: Sequence[BaseRoute] = (),
    lean: bool = True,
) -> Starlette:
    """`more`: what is served besides, by those who know it. `lean` False: every request takes the SDK's way, for comparison."""
    access = access or Access()
    managers = {path: _manager(aggregator, style, access) for path, style in MCP_PATHS.items()}

    operations = operations or NoDevices()
    admin = Admin(aggregator, operations)

    def endpoint(app: ASGIApp, style: NameStyle | None) -> ASGIApp:
        return LeanPath(app, aggregator, style, access.max_body_bytes) if lean else app

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for manager in managers.values():
                await stack.enter_async_context(manager.run())
            stack.callback(admin.close)
            yield

    async def readyz(_: Request) -> Response:
        is_ready, why = ready()
        return JSONResponse({"ready": is_ready, "reason": why}, 200 if is_ready else 503)

    return Starlette(
        routes=[
            *(Route(path, endpoint(StreamableHTTPASGIApp(manager), MCP_PATHS[path])) for path, manager in managers.items()),
            *admin.routes(),
            Metrics(aggregator, operations).route(),
            Route("/healthz", _healthz),
            Route("/readyz", readyz),
            *more,
        ],
        middleware=[Middleware(Guard, access=access)],
        exception_handlers={404: _not_found},
        lifespan=lifespan,
    )


def _manager(aggregator: Aggregator, style: NameStyle | None, access: Access) -> StreamableHTTPSessionManager:
    # Host and Origin are the guard's, on every path; without settings the SDK leaves them alone.
    return StreamableHTTPSessionManager(
        build_server(aggregator, style),
        max_request_body_size=access.max_body_bytes,
        max_sessions=MAX_SESSIONS,
        session_idle_timeout=SESSION_IDLE_S,
    )


async def _healthz(_: Request) -> Response:
    return JSONResponse({"alive": True})


async def _not_found(request: Request, _: Exception) -> Response:
    hint = f"MCP is at {', '.join(MCP_PATHS)}; health at /healthz and /readyz; operators at /admin/ and /metrics."
    return JSONResponse({"error": "not_found", "message": f"Nothing at {request.url.path[:100]!r}.", "hint": hint}, 404)


def open_listener(host: str, port: int) -> socket.socket:
    """Take the address, or raise `OSError`. Whoever connects waits until it is served."""
    listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    # asyncio sets this only on sockets that name their protocol, which these do not; without it every answer waits 40 ms for an ACK.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


async def serve_http(app: Starlette, listener: socket.socket, on_bound: Callable[[int], None], tls: ssl.SSLContext | None = None) -> None:
    """Serve until cancelled, then close the listener. `on_bound` gets the actual port once connections are accepted."""
    config = uvicorn.Config(
        app,
        http=BoundedProtocol,  # on h11: strict about headers where httptools is not
        ws=BoundedSocket,
        ws_max_size=MAX_SOCKET_MESSAGE_BYTES,
        ws_ping_interval=SOCKET_PING_S,
        ws_ping_timeout=SOCKET_PING_S,
        ws_per_message_deflate=False,
        ssl_context_factory=None if tls is None else lambda *_: tls,
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        timeout_graceful_shutdown=SHUTDOWN_S,  # type: ignore[arg-type]  # an int by annotation, any number in fact
    )
    server = _Uvicorn(config)
    serving: asyncio.Task[None] | None = None
    try:
        # The lifespan is ours, not uvicorn's: leaving it ends the open streams, and uvicorn would wait for those first.
        async with app.router.lifespan_context(app):
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            host, port = listener.getsockname()[:2]
            log.info("listening", host=host, port=port)
            on_bound(port)
            await asyncio.shield(serving)
    finally:
        server.should_exit = True
        if serving is not None:
            await serving
        listener.close()


class _Uvicorn(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the program's own."""
        yield
