"""The aggregator as an MCP server: every revision from 2024-11-05 to 2026-07-28, the same tools, results and errors.

Knows how MCP says things and leaves the saying to the SDK; knows nothing of HTTP or stdio, nor of what a tool does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import structlog
from mcp.server import Server
from mcp.server.caching import CacheHint
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import ListenHandler, ServerEvent, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, CallToolRequestParams, NotificationParams, PaginatedRequestParams, SetLevelRequestParams
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

import mcpax
from mcpax.core.aggregator import Aggregator
from mcpax.core.catalog import Page
from mcpax.core.notify import LIST_CHANGED, Notifier
from mcpax.core.results import fault_as_result, plain
from mcpax.core.subserver import Json, Notification, Progress
from mcpax.errors import ErrorKind, Fault, Outcome
from mcpax.front.sessions import Context, Sessions
from mcpax.name_codec import NameStyle

log = structlog.get_logger("mcpax.front")

SERVER_NAME = "mcpax"
COMPLETE: Json = {"resultType": "complete"}
"""2026-07-28 wants it in every result; for earlier revisions the SDK takes out what they do not know."""

LIST_CACHE = CacheHint(ttl_ms=0, scope="private")
"""Boards come and go, and the list is rendered already and cheap."""

CLIENTS_THAT_TAKE_DOTS = frozenset(
    {
        "Visual Studio Code",  # remaps names for the model by itself and shows the dotted ones to people
        "Visual Studio Code - Insiders",
        "inspector-cli",  # MCP Inspector, which shows names as they come, to people who want to see the canonical ones
        "mcp-inspector",
    }
)
"""By clientInfo.name. Everybody else gets flat names: one dotted name makes some clients lose the whole list."""

INSTRUCTIONS = """\
These tools act on real devices: microcontroller boards and servers behind this gateway.
A name leads to its device: gateway, board, tool, printed with dots, or with "__" where a client takes no dots. Either form may be called.
Look at the annotations before calling: readOnlyHint only reads; destructiveHint means that the effect cannot be undone, so be sure. \
More is in _meta["x-mcpax-capability"]: how long a call may take, whether repeating it is safe, what it costs.
A failed call states its outcome: "not_executed" had no effect and may be tried again; "executed" had its effect, do not repeat it; \
"unknown" may have had it: read the device's state before you decide.
Availability "degraded" means that the device cannot be reached just now: the call fails at once, wait for retry_after_ms and try again."""


def build_server(aggregator: Aggregator, style: NameStyle | None) -> Server[None]:
    """An SDK server over the aggregator. `style` None: chosen by client, see `CLIENTS_THAT_TAKE_DOTS`."""
    handlers = _Handlers(aggregator, style)
    sessions = Sessions(aggregator.notifier)
    listen = ListenHandler(_Changes(aggregator.notifier))

    @asynccontextmanager
    async def lifespan(_: Server[None]) -> AsyncIterator[None]:
        try:
            yield
        finally:
            listen.close()  # so that streams end with a word rather than with the connection

    server = _Server(
        SERVER_NAME,
        version=mcpax.__version__,
        instructions=INSTRUCTIONS,
        lifespan=lifespan,
        cache_hints={"tools/list": LIST_CACHE},
        get_tool_input_schema=handlers.input_schema,  # else the SDK walks the whole list on every call
        on_subscriptions_listen=listen,
    )
    server.add_request_handler("tools/list", PaginatedRequestParams, handlers.list_tools)
    server.add_request_handler("tools/call", CallToolRequestParams, handlers.call_tool)
    server.add_request_handler("logging/setLevel", SetLevelRequestParams, sessions.set_level)
    server.add_notification_handler("notifications/initialized", NotificationParams, sessions.joined)
    return server


class _Server(Server[None]):
    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """The SDK's HTTP side asks without options, and would not announce listChanged."""
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)


class _Changes:
    """The core's notifier as the SDK's bus behind `subscriptions/listen` (2026-07-28)."""

    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier

    async def publish(self, event: ServerEvent) -> None:
        raise NotImplementedError("changes come from the core")

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        def on_notification(notification: Notification) -> None:
            if notification == LIST_CHANGED:
                listener(ToolsListChanged())

        return self._notifier.subscribe(on_notification)


class _Handlers:
    """Results are the core's JSON as it is: building the SDK's models from it would only cost time and change nothing."""

    def __init__(self, aggregator: Aggregator, style: NameStyle | None) -> None:
        self._aggregator = aggregator
        self._style = style

    def input_schema(self, name: str) -> Json | None:
        route = self._aggregator.catalog.resolve(name)
        return None if route is None else route.tool.input_schema

    async def list_tools(self, ctx: Context, params: PaginatedRequestParams) -> Json:
        page = await list_tools(self._aggregator, self._style or _style_for(ctx), params.cursor)
        return {**COMPLETE, "tools": page.tools, **next_cursor(page)}

    async def call_tool(self, ctx: Context, params: CallToolRequestParams) -> Json:
        meta = (ctx.params or {}).get("_meta") or {}
        progress = ctx.session.report_progress if "progressToken" in meta else None
        result = await call_tool(self._aggregator, params.name, params.arguments or {}, meta, progress)
        try:
            return {**COMPLETE, **plain(result)}
        except (msgspec.MsgspecError, RecursionError) as error:
            unreadable = f"The result of {params.name} cannot be read: {error!s:.300}."
            return {**COMPLETE, **fault_as_result(Fault(ErrorKind.CHILD_LIED, unreadable, outcome=Outcome.EXECUTED))}


async def list_tools(aggregator: Aggregator, style: NameStyle, cursor: str | None) -> Page:
    """A page, or an `MCPError`."""
    try:
        return await aggregator.list_tools(style, cursor)
    except Fault as fault:
        raise as_error(fault) from None


def next_cursor(page: Page) -> Json:
    return {} if page.next_cursor is None else {"nextCursor": page.next_cursor}


async def call_tool(
    aggregator: Aggregator, name: str, arguments: Mapping[str, Any], meta: Mapping[str, Any], progress: Progress | None = None
) -> Json:
    """Call, and put whatever goes wrong as MCP puts it: a result that the model reads, or an `MCPError`."""
    try:
        return await aggregator.call_tool(name, arguments, meta, progress)
    except Fault as fault:
        if fault.kind.value.in_result:
            return fault_as_result(fault)
        raise as_error(fault) from None
    except Exception as error:
        log.exception("call_failed", tool=name)
        raise MCPError(
            INTERNAL_ERROR,
            f"{name} failed inside the gateway, whether before or after it ran is not known. The gateway's log has the details.",
            {"outcome": str(Outcome.UNKNOWN)},
        ) from error


SESSIONLESS_STYLE = NameStyle.FLAT
"""Where there are no sessions a list must not vary by client, so only those that shook hands are told apart."""


def _style_for(ctx: Context) -> NameStyle:
    client = ctx.session.client_params
    if ctx.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS and client is not None and client.client_info.name in CLIENTS_THAT_TAKE_DOTS:
        return NameStyle.DOTTED
    return SESSIONLESS_STYLE


def as_error(fault: Fault) -> MCPError:
    return MCPError(fault.code, fault.message, fault.data())
