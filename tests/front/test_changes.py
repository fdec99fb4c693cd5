"""What clients are told without asking: changes of the list in every revision, events of devices where there are sessions."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from types import MethodType

import httpx
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.session import IncomingMessage
from mcp.client.subscriptions import ToolsListChanged

from mcpax.core.notify import LIST_CHANGED, Listener
from mcpax.core.subserver import Notification
from mcpax.front.sessions import OUTBOX_NOTIFICATIONS, _Outbox
from tests.front.bench import Gateway
from tests.front.conftest import PATIENCE_S, Traffic, held
from tests.front.test_raw_http import shake_hands

EVENT = Notification("notifications/mcpax/event", {"name": "overheated", "x-mcpax-event-id": "e-7"})


TRY_AGAIN_S = 0.1


class Inbox:
    def __init__(self) -> None:
        self._messages: asyncio.Queue[IncomingMessage] = asyncio.Queue()

    async def __call__(self, message: IncomingMessage) -> None:
        self._messages.put_nowait(message)

    async def next(self) -> IncomingMessage:
        return await asyncio.wait_for(self._messages.get(), PATIENCE_S)

    async def settled(self, gateway: Gateway) -> None:
        """Wait until the client hears us: what is sent before the SDK has its GET stream ready is lost, so say it until it arrives."""
        while self.empty():
            gateway.aggregator.emit(gateway.session_id, EVENT)
            with contextlib.suppress(TimeoutError):
                self._messages.put_nowait(await asyncio.wait_for(self._messages.get(), TRY_AGAIN_S))
        last = Notification(EVENT.method, {"last": True})
        gateway.aggregator.emit(gateway.session_id, last)
        while "last" not in str(await self.next()):
            pass

    def empty(self) -> bool:
        return self._messages.empty()


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


@pytest.fixture
async def listener(base_url: str, inbox: Inbox, gateway: Gateway) -> AsyncIterator[Client]:
    async with held(Client(f"{base_url}/mcp", mode="legacy", message_handler=inbox)) as client:
        await inbox.settled(gateway)
        yield client


@pytest.mark.req("AX-1.1-a")
async def test_a_session_is_told_that_the_list_changed(listener: Client, inbox: Inbox, gateway: Gateway) -> None:
    await gateway.add_tools("fresh")
    assert isinstance(await inbox.next(), types.ToolListChangedNotification)
    assert "edge__bench__fresh" in [tool.name for tool in (await listener.list_tools()).tools]


async def test_a_flapping_board_causes_one_notification(listener: Client, inbox: Inbox, gateway: Gateway) -> None:
    for number in range(20):
        await gateway.add_tools(f"t{number}")
    assert isinstance(await inbox.next(), types.ToolListChangedNotification)
    gateway.aggregator.emit(gateway.session_id, EVENT)  # comes after, so whatever came before has arrived with it
    assert isinstance(await inbox.next(), types.LoggingMessageNotification)
    assert inbox.empty()
    assert listener.protocol_version == "2025-11-25"


@pytest.mark.req("AX-1.1-a")
async def test_a_listening_client_without_session_is_told_that_the_list_changed(base_url: str, gateway: Gateway) -> None:
    async with Client(f"{base_url}/mcp", mode="auto") as client, client.listen(tools_list_changed=True) as changes:
        assert client.protocol_version == "2026-07-28"
        await gateway.add_tools("fresh")
        assert await asyncio.wait_for(anext(changes), PATIENCE_S) == ToolsListChanged()


@pytest.mark.usefixtures("listener")
async def test_an_event_of_a_device_arrives_as_a_log_message_with_its_source(inbox: Inbox, gateway: Gateway) -> None:
    gateway.aggregator.emit(gateway.session_id, EVENT)
    message = await inbox.next()
    assert isinstance(message, types.LoggingMessageNotification)
    assert message.params.logger == "edge.bench"
    assert message.params.data == {"method": EVENT.method, "params": {**EVENT.params, "x-mcpax-source": "edge.bench"}}


async def test_a_client_may_turn_events_off(listener: Client, inbox: Inbox, gateway: Gateway) -> None:
    await listener.session.send_request(types.SetLevelRequest(params=types.SetLevelRequestParams(level="warning")), types.EmptyResult)
    gateway.aggregator.emit(gateway.session_id, EVENT)
    await gateway.add_tools("fresh")
    assert isinstance(await inbox.next(), types.ToolListChangedNotification)


async def test_nothing_is_kept_for_a_client_that_has_left(base_url: str, gateway: Gateway, traffic: Traffic) -> None:
    notifier = gateway.aggregator.notifier
    subscribe, left = notifier.subscribe, asyncio.Semaphore(0)

    def watched(listener: Listener) -> Callable[[], None]:
        unsubscribe = subscribe(listener)

        def leave() -> None:
            unsubscribe()
            left.release()

        return leave

    notifier.subscribe = watched  # type: ignore[method-assign]
    async with Client(f"{base_url}/mcp", mode="legacy"):
        await asyncio.wait_for(traffic.stream_opened.wait(), PATIENCE_S)
    await asyncio.wait_for(left.acquire(), PATIENCE_S)
    async with Client(f"{base_url}/mcp", mode="auto") as client, client.listen(tools_list_changed=True):
        pass
    await asyncio.wait_for(left.acquire(), PATIENCE_S)
    assert notifier._listeners == []


async def test_a_client_that_does_not_read_is_kept_a_bounded_amount_and_holds_up_nobody(
    base_url: str, gateway: Gateway, http: httpx.AsyncClient
) -> None:
    headers, _ = await shake_hands(http, "2025-11-25")
    async with http.stream("GET", "/mcp", headers=headers) as unread:
        assert unread.status_code == 200
        big = Notification(EVENT.method, {"text": "x" * 65536})
        for _ in range(40):  # more than the sockets' buffers take
            for _ in range(OUTBOX_NOTIFICATIONS):
                gateway.aggregator.notifier.publish(big)  # not by way of a subserver, which would be held to its limits
            gateway.aggregator.notifier.publish(LIST_CHANGED)
        async with Client(f"{base_url}/mcp", mode="legacy", read_timeout_seconds=PATIENCE_S) as other:
            assert (await other.call_tool("edge__bench__echo", {"text": "x"})).content
        [outbox] = [listener.__self__ for listener in gateway.aggregator.notifier._listeners if isinstance(listener, MethodType)]
        assert isinstance(outbox, _Outbox)
        assert len(outbox._pending) <= OUTBOX_NOTIFICATIONS
