"""The client of etcd against a real one: what it asks is done, what fails is named, and no answer is waited for too long."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ssl
import time
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import httpx
import pytest

from mcpax.store.etcd_access import Compacted, EtcdAccess, EtcdRefused, EtcdUnavailable, LeaseGone
from mcpax.store.etcd_client import EtcdClient
from mcpax.store.etcd_wire import Delete, Event, Pin, Put, Transaction, prefix_range
from tests.harness.etcd_certificates import make_certificates
from tests.harness.etcd_server import EtcdServer, free_port, needs_etcd
from tests.harness.stalling_proxy import StallingProxy

pytestmark = needs_etcd

PATIENCE_S = 10.0
QUICK_S = 0.5


async def put(client: EtcdClient, key: str, value: bytes = b"x", lease: int = 0) -> int:
    return (await client.commit(Transaction((), (Put(key, value, lease),)))).revision


async def compact(etcd: EtcdServer, revision: int) -> None:
    async with httpx.AsyncClient() as http:
        (await http.post(f"{etcd.url}/v3/kv/compaction", json={"revision": str(revision), "physical": True})).raise_for_status()


async def events_until(batches: AsyncGenerator[tuple[Event, ...]], key: str) -> list[Event]:
    """Up to the first about this key."""
    seen: list[Event] = []
    async with asyncio.timeout(PATIENCE_S):
        async for events in batches:
            seen += events
            if any(event.key == key for event in events):
                return seen
    raise AssertionError(f"the watch ended after {seen}")


# --- transactions


async def test_only_the_first_creates_and_the_next_sees_it(client: EtcdClient, prefix: str) -> None:
    key = prefix + "key"
    first = await client.commit(Transaction((Pin(key, 0),), (Put(key, b"1"),), (key, prefix + "absent")))
    second = await client.commit(Transaction((Pin(key, 0),), (Put(key, b"2"),), (key, prefix + "absent")))
    assert (first.done, second.done) == (True, False)
    assert {name: kv.value for name, kv in second.found.items()} == {key: b"1"}
    assert second.found[key].mod_revision == first.revision


async def test_a_pinned_key_must_be_as_it_was_seen(client: EtcdClient, prefix: str) -> None:
    key = prefix + "key"
    seen = await put(client, key, b"seen")
    since = await put(client, key, b"since")
    assert not (await client.commit(Transaction((Pin(key, seen),), (Put(key, b"late"),)))).done
    done = await client.commit(Transaction((Pin(key, since),), (Put(key, b"in time"),)))
    assert done.done
    assert done.revision > since > seen
    assert (await client.read(prefix)).found[key].value == b"in time"


async def test_a_key_written_since_is_not_deleted_and_the_rest_is_done(client: EtcdClient, prefix: str) -> None:
    kept, gone = prefix + "kept", prefix + "gone"
    before = await put(client, kept)
    await put(client, kept, b"since")
    at = await put(client, gone)
    asked = Transaction((), (Delete(kept, before), Delete(gone, at), Put(prefix + "new", b"")))
    assert (await client.commit(asked)).done
    assert sorted((await client.read(prefix)).found) == [kept, prefix + "new"]


async def test_a_prefix_ends_where_it_ends(client: EtcdClient, prefix: str) -> None:
    await put(client, prefix + "a/1")
    await put(client, prefix + "a0")
    await put(client, prefix + "b/1")
    assert list((await client.read(prefix + "a/")).found) == [prefix + "a/1"]


def test_the_whole_store_is_never_meant() -> None:
    with pytest.raises(ValueError, match="a prefix is needed"):
        prefix_range("")


# --- leases


async def test_keys_go_with_their_lease(client: EtcdClient, prefix: str) -> None:
    granted = await client.grant(30)
    assert granted.ttl_s == 30
    await put(client, prefix + "leased", b"x", granted.lease)
    await put(client, prefix + "durable")
    assert (await client.read(prefix)).found[prefix + "leased"].lease == granted.lease
    assert await client.keep_alive(granted.lease) == 30
    await client.revoke(granted.lease)
    assert list((await client.read(prefix)).found) == [prefix + "durable"]


async def test_a_lease_that_is_gone_is_told_as_such(client: EtcdClient, prefix: str) -> None:
    granted = await client.grant(30)
    await client.revoke(granted.lease)
    with pytest.raises(LeaseGone, match="Take another"):
        await client.keep_alive(granted.lease)
    with pytest.raises(LeaseGone):
        await put(client, prefix + "leased", b"x", granted.lease)
    with pytest.raises(LeaseGone):
        await client.revoke(granted.lease)
    assert (await client.read(prefix)).found == {}


# --- watch


async def test_a_watch_tells_all_from_a_revision_on_in_order(client: EtcdClient, prefix: str) -> None:
    await put(client, prefix + "before")
    lease = (await client.grant(30)).lease
    first = await put(client, prefix + "a", b"1")
    second = await put(client, prefix + "b", b"2", lease)
    async with contextlib.aclosing(client.watch(prefix, first - 1)) as batches:
        assert await anext(batches) == ()
        past = await events_until(batches, prefix + "b")
        await client.revoke(lease)
        live = await events_until(batches, prefix + "b")
    assert [(event.key, event.now and event.now.value, event.revision) for event in past + live] == [
        (prefix + "a", b"1", first),
        (prefix + "b", b"2", second),
        (prefix + "b", None, second + 1),
    ]


async def test_events_of_one_revision_come_together(client: EtcdClient, prefix: str) -> None:
    async with contextlib.aclosing(client.watch(prefix, (await client.read(prefix)).revision)) as batches:
        await anext(batches)
        await client.commit(Transaction((), tuple(Put(f"{prefix}{number}", b"") for number in range(20))))
        async with asyncio.timeout(PATIENCE_S):
            assert len(await anext(batches)) == 20


async def test_a_watch_from_before_a_compaction_is_told_to_read_anew(etcd: EtcdServer, client: EtcdClient, prefix: str) -> None:
    first = await put(client, prefix + "a")
    last = await put(client, prefix + "a")
    await compact(etcd, last)
    with pytest.raises(Compacted, match="Read anew"):
        await events_until(client.watch(prefix, first), prefix + "a")


async def test_a_deletion_at_the_very_revision_of_a_compaction_is_not_missed(etcd: EtcdServer, client: EtcdClient, prefix: str) -> None:
    """etcd 3.4.23 leaves it out of a watch from there on."""
    seen = await put(client, prefix + "a")
    deleted = (await client.commit(Transaction((), (Delete(prefix + "a", seen),)))).revision
    await compact(etcd, deleted)
    await put(client, prefix + "b")
    with pytest.raises(Compacted):
        await events_until(client.watch(prefix, seen), prefix + "b")


async def test_a_watch_whose_line_is_cut_says_so_and_can_be_resumed(proxy: StallingProxy, client: EtcdClient, prefix: str) -> None:
    async with EtcdClient(EtcdAccess((proxy.url,))) as watcher:
        revision = await put(client, prefix + "a")
        batches = watcher.watch(prefix, revision - 1)
        await events_until(batches, prefix + "a")
        proxy.cut()
        with pytest.raises(EtcdUnavailable, match="Resume from the last revision"):
            await events_until(batches, prefix + "b")
        await put(client, prefix + "b")
        async with contextlib.aclosing(watcher.watch(prefix, revision)) as resumed:
            assert [event.key for event in await events_until(resumed, prefix + "b")] == [prefix + "b"]


async def test_a_watch_that_is_silent_for_long_ends(proxy: StallingProxy, client: EtcdClient, prefix: str) -> None:
    revision = await put(client, prefix + "a")
    async with EtcdClient(EtcdAccess((proxy.url,)), quiet_s=0.2) as watcher, asyncio.timeout(PATIENCE_S):
        batches = watcher.watch(prefix, revision - 1)
        await events_until(batches, prefix + "a")
        proxy.stall()
        assert [events async for events in batches] == []


# --- what can go wrong


async def test_an_endpoint_that_is_dead_or_hangs_costs_time_once(
    etcd: EtcdServer, proxy: StallingProxy, client: EtcdClient, prefix: str
) -> None:
    await put(client, prefix + "a")
    proxy.stall()
    async with EtcdClient(EtcdAccess((f"http://127.0.0.1:{free_port()}", proxy.url, etcd.url), timeout_s=1.0)) as careful:
        assert list((await careful.read(prefix)).found) == [prefix + "a"]
        assert proxy.accepted == 1
        assert list((await careful.read(prefix)).found) == [prefix + "a"]
        async with contextlib.aclosing(careful.watch(prefix, 1)) as batches:
            assert await anext(batches) == ()
        assert proxy.accepted == 1


async def test_a_watch_goes_to_the_next_endpoint_when_resumed(etcd: EtcdServer, prefix: str) -> None:
    async with EtcdClient(EtcdAccess((f"http://127.0.0.1:{free_port()}", etcd.url))) as client:
        with pytest.raises(EtcdUnavailable):
            await anext(client.watch(prefix, 1))
        async with contextlib.aclosing(client.watch(prefix, 1)) as batches:
            assert await anext(batches) == ()


async def test_a_connection_that_was_closed_meanwhile_is_made_anew(proxy: StallingProxy, prefix: str) -> None:
    async with EtcdClient(EtcdAccess((proxy.url,))) as client:
        await put(client, prefix + "a")
        proxy.cut()
        assert list((await client.read(prefix)).found) == [prefix + "a"]
        assert proxy.accepted == 2


@pytest.mark.parametrize("work", [lambda client: client.grant(5), lambda client: anext(client.watch("/x/", 1))], ids=["request", "watch"])
async def test_one_that_hangs_is_given_up_in_time(proxy: StallingProxy, work: Callable[[EtcdClient], asyncio.Future[object]]) -> None:
    proxy.stall()
    async with EtcdClient(EtcdAccess((proxy.url,), timeout_s=QUICK_S)) as client:
        started = time.monotonic()
        with pytest.raises(EtcdUnavailable, match=f"{proxy.url}/v3/.*: no answer in time"):
            await work(client)
        assert QUICK_S <= time.monotonic() - started < 2 * QUICK_S


async def test_when_none_answers_all_are_named() -> None:
    dead = [f"http://127.0.0.1:{free_port()}" for _ in range(2)]
    async with EtcdClient(EtcdAccess(tuple(dead))) as client:
        with pytest.raises(EtcdUnavailable) as caught:
            await client.grant(5)
    assert all(endpoint in str(caught.value) for endpoint in dead)
    assert "Check that etcd runs" in str(caught.value)


async def test_something_that_is_no_etcd_is_told_as_such() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 10\r\n\r\nNot Found\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with EtcdClient(EtcdAccess((url,))) as client:
            with pytest.raises(EtcdUnavailable, match=f"{url}.*HTTP 404 and no JSON object: is this etcd's client port"):
                await client.grant(5)


# --- who may


async def set_up_users(url: str) -> None:
    """Root, and `mcpax` who may use what is below /mcpax/."""
    below = prefix_range("/mcpax/")
    async with httpx.AsyncClient(base_url=f"{url}/v3/auth/") as http:
        for path, body in (
            ("user/add", {"name": "root", "password": "r"}),
            ("role/add", {"name": "root"}),
            ("user/grant", {"user": "root", "role": "root"}),
            ("user/add", {"name": "mcpax", "password": "open sesame"}),
            ("role/add", {"name": "mcpax"}),
            ("role/grant", {"name": "mcpax", "perm": {"permType": "READWRITE", **below}}),
            ("user/grant", {"user": "mcpax", "role": "mcpax"}),
            ("enable", {}),
        ):
            (await http.post(path, json=body)).raise_for_status()


async def end_all_tokens(url: str) -> None:
    """Of `mcpax`, as those do that were not used for long. A restart would not: etcd reads them from its log."""
    async with httpx.AsyncClient(base_url=f"{url}/v3/auth/") as http:
        token = (await http.post("authenticate", json={"name": "root", "password": "r"})).json()["token"]
        changed = {"name": "mcpax", "password": "open sesame"}
        (await http.post("user/changepw", json=changed, headers={"Authorization": token})).raise_for_status()


async def test_users_and_their_rights(own_etcd: EtcdServer) -> None:
    await set_up_users(own_etcd.url)
    access = EtcdAccess((own_etcd.url,), user="mcpax", password="open sesame")
    assert "open sesame" not in repr(access)
    async with EtcdClient(access) as client:
        lease = (await client.grant(30)).lease
        revision = await put(client, "/mcpax/a", b"x", lease)
        with pytest.raises(EtcdRefused, match=r"permission denied.*Check user, password and role"):
            await put(client, "/others/a")
        with pytest.raises(EtcdRefused, match=r"watch refused.*permission denied"):
            await events_until(client.watch("/others/", 1), "")

        assert list((await client.read("/mcpax/")).found) == ["/mcpax/a"]  # with a token
        await end_all_tokens(own_etcd.url)
        assert await client.keep_alive(lease) == 30
        assert list((await client.read("/mcpax/")).found) == ["/mcpax/a"]
        async with contextlib.aclosing(client.watch("/mcpax/", revision - 1)) as batches:
            assert [event.key for event in await events_until(batches, "/mcpax/a")] == ["/mcpax/a"]

    for wrong in (EtcdAccess((own_etcd.url,), user="mcpax", password="guess"), EtcdAccess((own_etcd.url,))):
        async with EtcdClient(wrong) as client:
            with pytest.raises(EtcdRefused, match="Check user, password and role") as caught:
                await client.read("/mcpax/")
            assert "guess" not in str(caught.value)


async def test_certificates_on_both_sides(tmp_path: Path) -> None:
    make_certificates(tmp_path)
    ca, certificate, key = tmp_path / "ca.pem", tmp_path / "leaf.pem", tmp_path / "leaf.key"
    options = (f"--cert-file={certificate}", f"--key-file={key}", "--client-cert-auth", f"--trusted-ca-file={ca}")
    server = EtcdServer(tmp_path / "data", *options, scheme="https")
    server.start()
    try:
        async with EtcdClient(EtcdAccess((server.url,), ca=ca, certificate=certificate, key=key)) as client:
            assert (await client.grant(5)).ttl_s == 5
            async with contextlib.aclosing(client.watch("/x/", 1)) as batches:
                assert await anext(batches) == ()
        async with EtcdClient(EtcdAccess((server.url,), certificate=certificate, key=key)) as client:
            with pytest.raises(EtcdUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
                await client.grant(5)
        async with EtcdClient(EtcdAccess((server.url,), ca=ca)) as client:
            with pytest.raises(EtcdUnavailable):  # told why or not: etcd's alert and the end of its connection race
                await client.grant(5)
    finally:
        server.kill()


def test_certificates_that_cannot_be_read_are_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "bad.pem").write_text("no certificate")
    for access in (EtcdAccess(("https://x:1",), ca=tmp_path / "absent.pem"), EtcdAccess(("https://x:1",), ca=tmp_path / "bad.pem")):
        with pytest.raises((OSError, ssl.SSLError)):
            EtcdClient(access)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"endpoints": ()}, "no endpoints"),
        ({"endpoints": ("etcd-1:2379",)}, "use https://host:port"),
        ({"endpoints": ("https://etcd-1:2379/v3",)}, "use https://host:port"),
        ({"endpoints": ("https://user:secret@etcd-1:2379",)}, "use https://host:port"),
        ({"endpoints": ("http://etcd-1.example.com:2379",), "user": "mcpax"}, "a password would be readable"),
        ({"endpoints": ("https://etcd-1:2379",), "certificate": Path("c.pem")}, "give both or neither"),
    ],
)
def test_settings_that_cannot_be_meant(settings: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint) as caught:
        EtcdAccess(**settings)  # type: ignore[arg-type]
    assert "secret" not in str(caught.value)


def test_what_is_written_by_others_is_no_reason_to_fail(etcd: EtcdServer, prefix: str) -> None:
    async def written() -> list[str]:
        key = base64.b64encode(prefix.encode() + b"\xff").decode()
        async with httpx.AsyncClient() as http, EtcdClient(EtcdAccess((etcd.url,))) as client:
            (await http.post(f"{etcd.url}/v3/kv/put", json={"key": key})).raise_for_status()
            return list((await client.read(prefix)).found)

    assert asyncio.run(written()) == [prefix + "\ufffd"]
