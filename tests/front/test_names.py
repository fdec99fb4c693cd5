"""How names are printed, by path and by client; and that any printed form may be called."""

from __future__ import annotations

import mcp_types as types
import pytest
from mcp import Client

from mcpax.front.mcp_server import CLIENTS_THAT_TAKE_DOTS

FORMS = {"dotted": "edge.bench.echo", "flat": "edge__bench__echo", "colon": "edge.bench:echo"}


async def names_at(url: str, mode: str, client_name: str = "some-agent") -> list[str]:
    info = types.Implementation(name=client_name, version="1")
    async with Client(url, mode="legacy" if mode == "legacy" else "auto", client_info=info) as client:
        return [tool.name for tool in (await client.list_tools()).tools]


@pytest.mark.parametrize("style", FORMS)
async def test_the_path_fixes_the_style(base_url: str, mode: str, style: str) -> None:
    assert FORMS[style] in await names_at(f"{base_url}/mcp/{style}", mode)


async def test_the_open_path_prints_flat_names(base_url: str, mode: str) -> None:
    names = await names_at(f"{base_url}/mcp", mode)
    assert FORMS["flat"] in names
    assert not any("." in name or ":" in name for name in names)


@pytest.mark.parametrize("client_name", sorted(CLIENTS_THAT_TAKE_DOTS))
async def test_a_client_known_to_take_dots_gets_them(base_url: str, client_name: str) -> None:
    assert FORMS["dotted"] in await names_at(f"{base_url}/mcp", "legacy", client_name)


async def test_without_sessions_the_list_is_the_same_for_everybody(base_url: str) -> None:
    lists = [await names_at(f"{base_url}/mcp", "2026-07-28", name) for name in ("some-agent", *sorted(CLIENTS_THAT_TAKE_DOTS))]
    assert all(names == lists[0] for names in lists)


@pytest.mark.req("AX-5.2-1")
@pytest.mark.parametrize("path", ["/mcp", "/mcp/dotted", "/mcp/flat", "/mcp/colon"])
async def test_any_form_may_be_called_anywhere(base_url: str, mode: str, path: str) -> None:
    async with Client(base_url + path, mode="legacy" if mode == "legacy" else "auto") as client:
        for form in FORMS.values():
            result = await client.call_tool(form, {"text": form})
            assert [block.text for block in result.content if isinstance(block, types.TextContent)] == [form]
