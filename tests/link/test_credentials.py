"""Each hop authenticates on its own (draft §10.1): what lets somebody in at one door is seen nowhere else and opens no other."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from mcpax.capability import AuthScope
from mcpax.core.principal import Principal
from mcpax.link.endpoint import Pass
from tests.core.rig import Board, tool
from tests.link.clients import ERAS, client_of
from tests.link.nodes import CLIENT_TOKEN, LINK_TOKEN, Node, eventually, node
from tests.link.raw import raw_child
from tests.link.relay import Relay, relayed

LOWER_TOKEN = "the-lower-links-own-secret"


@contextlib.asynccontextmanager
async def overheard() -> AsyncIterator[tuple[Node, Board, list[Relay]]]:
    """root, mid and leaf, each link with a token of its own and somebody who listens."""
    passes = [Pass(Principal("leaf", AuthScope.ADMIN), LOWER_TOKEN)]
    async with (
        node("root") as root,
        relayed(root) as upper,
        node("mid", passes=passes) as mid,
        relayed(mid) as lower,
        node("leaf") as leaf,
    ):
        board = Board(tool("read"))
        await leaf.add("env", board)
        mid.join(upper.url)
        leaf.join(lower.url, token=LOWER_TOKEN)
        await eventually(lambda: root.names() == ["root.mid.leaf.env.read"])
        yield root, board, [upper, lower]


@pytest.mark.req("AX-10.1-1", "AX-1.1-e")
@pytest.mark.parametrize("era", ERAS)
async def test_no_credential_is_in_any_frame_of_any_link(era: str) -> None:
    async with overheard() as (root, board, relays):
        async with client_of(root, era) as client:
            await client.list_tools()
            await client.call_tool("root__mid__leaf__env__read", {"word": "canary"})
        frames = [frame for relay in relays for frame in relay.frames]
        assert sum('"canary"' in frame for frame in frames) == 2  # the call was overheard on both links
        for secret in (CLIENT_TOKEN, LINK_TOKEN, LOWER_TOKEN, "Bearer", "uthorization"):
            assert not [frame for frame in frames if secret in frame]
            assert secret not in repr(board.calls)


@pytest.mark.req("AX-10.1-1", "AX-1.1-e")
async def test_what_a_client_says_of_itself_stays_at_the_root() -> None:
    """Its meta is for the hop it spoke to: only route, cursor, time and registration are passed on."""
    async with overheard() as (root, _, relays):
        meta = {
            "authorization": f"Bearer {CLIENT_TOKEN}",
            "io.modelcontextprotocol/clientInfo": {"name": "spy"},
            "x-mcpax-registration": "x",
        }
        await root.aggregator.call_tool("root.mid.leaf.env.read", {}, meta)
        for relay in relays:
            (call,) = relay.requests("tools/call")
            assert call["params"]["_meta"].keys() <= {
                "x-mcpax-route",
                "x-mcpax-cursor",
                "x-mcpax-registration",
                "x-mcpax-deadline-ms",
                "progressToken",
            }
            assert "spy" not in str(relay.frames)


@pytest.mark.req("AX-1.1-e")
async def test_a_token_opens_its_own_door_only() -> None:
    passes = [Pass(Principal("leaf", AuthScope.ADMIN), LOWER_TOKEN)]
    async with node("one") as one, node("other", passes=passes) as other, httpx.AsyncClient() as http:
        for at, token in ((one, CLIENT_TOKEN), (one, LOWER_TOKEN), (other, LINK_TOKEN), (other, CLIENT_TOKEN), (one, ""), (one, None)):
            with pytest.raises(InvalidStatus) as caught:
                await raw_child(at, token).__aenter__()
            assert caught.value.response.status_code == 403
            assert not caught.value.response.body
        for token in (LINK_TOKEN, LOWER_TOKEN):
            answer = await http.post(f"{one.url}/mcp", headers={"Authorization": f"Bearer {token}"}, json={})
            assert answer.status_code == 401
        async with raw_child(one) as child:
            await child.register()
        async with raw_child(other, LOWER_TOKEN) as child:
            await child.register()
