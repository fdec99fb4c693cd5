"""`mcpax call`: call a tool of a running gateway, as any MCP client would, through the SDK's own client."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem

from mcpax.cli.arguments import read_arguments, typed_arguments
from mcpax.cli.call_text import error_of, show_error, show_result
from mcpax.cli.client import Json, Target
from mcpax.cli.output import FAULT_EXIT, Failure, json_option, print_json
from mcpax.cli.target import COMPLETION_PATIENCE_S, target_of, target_options
from mcpax.documents.faults import nearest
from mcpax.name_codec import NameStyle, render

LOST: Json = {"outcome": "unknown", "hint": "it may have run: look at the device's state before you call it again"}
"""What there is to say of a call whose answer never came."""


def _complete_tool(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [
        CompletionItem(tool["name"], help=tool.get("description", ""))
        for tool in _tools_for_completion(ctx)
        if tool["name"].startswith(incomplete)
    ]


def _complete_argument(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    tool = _find(_tools_for_completion(ctx), ctx.params.get("tool") or "")
    properties: Json = (tool or {}).get("inputSchema", {}).get("properties") or {}
    given = {pair.partition("=")[0] for pair in ctx.params.get("pairs") or ()}
    words = [
        (word, described.get("description", ""))
        for name, described in properties.items()
        if name not in given
        for word in ([f"{name}={value}" for value in described["enum"]] if "enum" in described else [f"{name}="])
    ]
    return [CompletionItem(word, help=text) for word, text in words if word.startswith(incomplete)]


@click.command("call")
@click.argument("tool", shell_complete=_complete_tool)
@click.argument("pairs", nargs=-1, metavar="[KEY=VALUE]...", shell_complete=_complete_argument)
@click.option("--args", "given", metavar="JSON|@FILE|-", help="Arguments as a JSON object, from a file, or from stdin.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Wait no longer than this. [by the tool's latency class]",
)
@target_options
@json_option
def command(*, target: Target, tool: str, pairs: tuple[str, ...], given: str | None, timeout: float | None, as_json: bool) -> None:
    """Call a tool. The exit code is 1 if it fails.

    \b
    mcpax call edge.env-sensor.read_climate
    mcpax call edge.relay-board.set_relay relay=1 state=on
    mcpax call edge.relay-board.set_relay --args '{"relay": 1, "state": "on"}'
    """
    tools = target.tools()
    found = _find(tools, tool)
    if found is None:
        raise Failure(f"there is no tool {tool!r} at {target.url}", _suggestion(tool, tools))
    arguments = {**(read_arguments(given) if given is not None else {}), **typed_arguments(pairs, found["inputSchema"])}
    result, error = asyncio.run(_call(target, found["name"], arguments, timeout))
    if as_json:
        print_json(result if error is None else {"error": error})
    elif error is not None:
        show_error(error["message"], {**(error.get("data") or {}), "code": error["code"]})
    elif result.get("isError"):
        show_error(*error_of(result))
    else:
        show_result(result, found.get("outputSchema"))
    if error is not None or result.get("isError"):
        raise SystemExit(FAULT_EXIT)


async def _call(target: Target, name: str, arguments: Json, timeout: float | None) -> tuple[Json, Json | None]:
    """The result, or the protocol's error."""
    from mcp.shared.exceptions import MCPError  # noqa: PLC0415  takes long to load
    from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT  # noqa: PLC0415

    async with target.mcp(NameStyle.DOTTED) as client:
        try:
            result = await client.call_tool(name, arguments, read_timeout_seconds=timeout, progress_callback=_show_progress)
        except MCPError as error:
            told: Json = error.error.model_dump(mode="json", by_alias=True, exclude_none=True)
            # These two are our client's own words. The call was on its way, and nothing is known of it.
            return {}, {**told, "data": LOST} if error.error.code in (REQUEST_TIMEOUT, CONNECTION_CLOSED) else told
    return result.model_dump(mode="json", by_alias=True, exclude_none=True), None


async def _show_progress(progress: float, total: float | None, message: str | None) -> None:
    click.echo(f"… {message or (f'{progress:g} of {total:g}' if total else f'{progress:g}')}", err=True)


def _find(tools: Sequence[Json], name: str) -> Json | None:
    """By any of its printed names."""
    return next((tool for tool in tools if name in {render(tuple(_route(tool)), style) for style in NameStyle}), None)


def _route(tool: Json) -> list[str]:
    route: list[str] = tool["_meta"]["x-mcpax-route"]
    return route


def _suggestion(name: str, tools: Sequence[Json]) -> str:
    names = [tool["name"] for tool in tools]
    ending = [known for known in names if known.endswith(f".{name}")]
    if ending:
        return f"did you mean {' or '.join(ending)}?"
    return nearest(name, names) if names else "it has no tools at all: is a board connected? 'mcpax devices' tells"


def _tools_for_completion(ctx: click.Context) -> list[Json]:
    """Whoever completes wants no error message: without a gateway there is nothing to offer."""
    try:
        return target_of(ctx).tools(patience_s=COMPLETION_PATIENCE_S)
    except Failure:
        return []
