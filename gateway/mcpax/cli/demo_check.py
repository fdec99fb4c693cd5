"""The demo's check: does a stock client get through? Lists and calls with the MCP SDK's own client, in both eras of the protocol.

Knows nothing of the gateway but its URL.
"""

from __future__ import annotations

from typing import Any, Literal

from mcp_types import Tool

from mcpax.cli.client import Target

CALL_PATIENCE_S = 10.0
ERAS: tuple[Literal["auto", "legacy"], ...] = ("auto", "legacy")
"""The newest revision, which has no sessions, and the newest that has them."""


class CheckFailed(Exception):
    """The client got through, but not to the right answer."""


async def check_with_sdk(url: str) -> dict[str, Any]:
    """List and call in each era; what was found, for the report."""
    found = [await _check_one(url, era) for era in ERAS]
    return {"protocols": [each.pop("protocol") for each in found], **found[0]}


async def _check_one(url: str, era: Literal["auto", "legacy"]) -> dict[str, Any]:
    async with Target(url).mcp(mode=era, patience_s=CALL_PATIENCE_S) as client:
        listed = (await client.list_tools()).tools
        harmless = [tool for tool in listed if _harmless(tool)]
        if not harmless:
            raise CheckFailed(f"none of the {len(listed)} tools only reads and needs no arguments")
        tool = max(harmless, key=_hops)  # the farthest: what is near is shown by it, too
        result = await client.call_tool(tool.name, {})
        if result.is_error or not result.structured_content:
            raise CheckFailed(f"{tool.name} failed: {result.model_dump(mode='json', by_alias=True, exclude_none=True)}")
        return {
            "protocol": client.protocol_version,
            "tools": len(listed),
            "call": {"name": tool.name, "arguments": {}},
            "result": result.structured_content,
        }


def _harmless(tool: Tool) -> bool:
    return bool(tool.annotations and tool.annotations.read_only_hint) and not tool.input_schema.get("required")


def _hops(tool: Tool) -> int:
    hops: int = (tool.meta or {}).get("x-mcpax-hops", 0)
    return hops
