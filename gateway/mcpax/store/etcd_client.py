"""A client of etcd: leases, reads, transactions and watches over its v3 JSON gateway, at whichever endpoint answers.

Every request has one time limit and is tried at each endpoint within it, so all of them may reach etcd twice; `Transaction` says why that
does no harm. Knows nothing of what the keys mean, and never waits in order to try again: that is for those who know how urgent it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any, Self

import httpx
import msgspec

from mcpax.store import etcd_wire
from mcpax.store.etcd_access import Compacted, EtcdAccess, EtcdRefused, EtcdUnavailable, LeaseGone
from mcpax.store.etcd_wire import Event, Json, KeyValue, Transaction, TransactionResult

QUIET_S = 30.0
"""A watch that is silent for so long ends, to be resumed where it was: a line that died without a word must not go unnoticed."""

_UNAUTHENTICATED = 16
_NOT_FOUND = 5
_TRANSIENT = (1, 2, 4, 13, 14)
"""gRPC's cancelled, unknown, deadline exceeded, internal, unavailable: another member may do better."""


@dataclass(frozen=True, slots=True)
class Granted:
    lease: int
    ttl_s: int
    """As etcd decided: no less than it was asked for, except beyond its maximum."""


@dataclass(frozen=True, slots=True)
class Read:
    revision: int
    """A watch after it misses nothing."""
    found: dict[str, KeyValue]


class _Unfit(Exception):
    """This endpoint cannot serve; another may."""


_NO_USE = (_Unfit, httpx.TransportError, OSError)
"""Of `OSError`, time-outs and TLS: a server that refuses our certificate tells so after the handshake, where httpx does not expect it."""


class _TokenRefused(Exception):
    """Log in again: tokens expire."""


class EtcdClient:
    def __init__(self, access: EtcdAccess, *, quiet_s: float = QUIET_S) -> None:
        self._access = access
        self._urls = tuple(endpoint.rstrip("/") + "/v3/" for endpoint in access.endpoints)
        self._preferred = 0
        self._quiet_s = quiet_s
        self._token: str | None = None
        # The cluster's own network: a proxy from the environment is meant for others.
        self._http = httpx.AsyncClient(verify=access.tls(), timeout=None, trust_env=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    # --- leases

    async def grant(self, ttl_s: int) -> Granted:
        answer = await self._call("lease/grant", {"TTL": str(ttl_s)})
        return Granted(int(answer["ID"]), int(answer["TTL"]))

    async def keep_alive(self, lease: int) -> int:
        """Return for how many seconds more, from when etcd got this. Raises `LeaseGone`."""
        answer = await self._call("lease/keepalive", {"ID": str(lease)})
        ttl_s = int(answer["result"].get("TTL", 0))  # a lease that is gone is no error here, it just has no time left
        if ttl_s <= 0:
            raise LeaseGone(f"etcd: lease {lease:x} expired or was revoked. Take another.")
        return ttl_s

    async def revoke(self, lease: int) -> None:
        """Delete the lease and all keys under it. One that is gone already raises `LeaseGone`."""
        await self._call("lease/revoke", {"ID": str(lease)})

    # --- keys

    async def read(self, prefix: str) -> Read:
        """Everything below, as of one revision, agreed by the cluster."""
        answer = await self._call("kv/range", etcd_wire.prefix_range(prefix))
        return Read(etcd_wire.revision_of(answer), {kv.key: kv for kv in etcd_wire.key_values(answer)})

    async def commit(self, asked: Transaction) -> TransactionResult:
        """Carry it out or not. Raises `LeaseGone` for a put under a lease that is gone."""
        return etcd_wire.transaction_result(await self._call("kv/txn", etcd_wire.transaction(asked)))

    # --- watch

    async def watch(self, prefix: str, after: int) -> AsyncGenerator[tuple[Event, ...]]:
        """All events after a revision, in order, those of one revision together; first an empty tuple, when etcd has agreed.

        Ends when it was quiet for long, raises `EtcdUnavailable` when the line is lost: resume after the last revision seen. Raises
        `Compacted` if that is no longer possible. Close it (`contextlib.aclosing`) if you stop early.
        """
        at = self._preferred
        url = self._urls[at] + "watch"
        try:
            # From the last one seen, not from the next: of a watch that begins at the very revision of a compaction, etcd 3.4.23 and 3.5
            # before 3.5.16 lose the deletions (etcd-io/etcd#18089) and say nothing. One that begins before it is told.
            response = await self._open(url, etcd_wire.prefix_range(prefix) | {"start_revision": str(max(1, after))})
            try:
                async for line in response.aiter_lines():
                    if line:
                        result = self._decode(response.status_code, line.encode())["result"]
                        if result.get("canceled"):
                            raise self._cancelled(result, after)
                        events = tuple(event for event in etcd_wire.events(result) if event.revision > after)
                        if events or result.get("created"):
                            yield events
            finally:
                await response.aclose()
        except httpx.ReadTimeout:
            return
        except (*_NO_USE, _TokenRefused) as error:
            self._token = None
            self._turn_from(at)
            raise EtcdUnavailable(f"etcd: {url}: {_reason(error)}. Resume from the last revision seen.") from error
        raise EtcdUnavailable(f"etcd: {url}: ended by etcd. Resume from the last revision seen.")

    async def _open(self, url: str, wanted: Json) -> httpx.Response:
        """Returns when etcd has agreed: it sends nothing before."""
        deadline = self._deadline()
        headers = await self._headers(deadline)
        content = msgspec.json.encode({"create_request": wanted})
        request = self._http.build_request("POST", url, content=content, headers=headers, timeout=httpx.Timeout(None, read=self._quiet_s))
        async with asyncio.timeout_at(deadline):
            return await self._http.send(request, stream=True)

    def _cancelled(self, result: Json, after: int) -> Exception:
        if "compact_revision" in result:
            return Compacted(f"etcd: events after revision {after} are gone up to {result['compact_revision']}. Read anew.")
        self._token = None  # etcd says of an expired token, too, that it has no permission
        return EtcdRefused(f"etcd: watch refused: {result.get('cancel_reason', 'no reason given')}. Check the role of the user.")

    # --- requests

    async def _call(self, path: str, body: Json) -> Json:
        deadline = self._deadline()
        try:
            return await self._anywhere(path, body, await self._headers(deadline), deadline)
        except _TokenRefused:
            self._token = None
        try:
            return await self._anywhere(path, body, await self._headers(deadline), deadline)
        except _TokenRefused as error:
            raise EtcdRefused(f"etcd: {path}: refused the token it gave to {self._access.user!r} just now: {error}.") from error

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self._access.timeout_s

    async def _headers(self, deadline: float) -> dict[str, str]:
        if not self._access.user:
            return {}
        if self._token is None:
            credentials = {"name": self._access.user, "password": self._access.password}
            self._token = str((await self._anywhere("auth/authenticate", credentials, {}, deadline))["token"])
        return {"Authorization": self._token}

    async def _anywhere(self, path: str, body: Json, headers: dict[str, str], deadline: float) -> Json:
        content = msgspec.json.encode(body)
        first, count = self._preferred, len(self._urls)
        failed: list[str] = []
        # At least twice: a connection kept open since the last request may turn out to be closed.
        for attempt in range(max(2, count)):
            at = (first + attempt) % count
            left_s = deadline - asyncio.get_running_loop().time()
            try:
                async with asyncio.timeout(left_s / max(1, count - attempt)):  # one that hangs leaves time for the rest
                    response = await self._http.post(self._urls[at] + path, content=content, headers=headers)
                return self._decode(response.status_code, response.content)
            except _NO_USE as error:
                failed.append(f"{self._urls[at]}{path}: {_reason(error)}")
                self._turn_from(at)
        raise EtcdUnavailable(f"etcd: {'; '.join(dict.fromkeys(failed))}. Check that etcd runs, has a leader and can be reached from here.")

    def _turn_from(self, at: int) -> None:
        if self._preferred == at:  # else another request has done so
            self._preferred = (at + 1) % len(self._urls)

    def _decode(self, status: int, body: bytes) -> Json:
        try:
            answer: Any = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            answer = None
        if not isinstance(answer, dict):
            raise _Unfit(f"HTTP {status} and no JSON object: is this etcd's client port?")
        error = answer.get("error")
        if status == httpx.codes.OK and error is None:
            return answer
        # Plain requests and streams spell their errors differently.
        details = error if isinstance(error, dict) else answer
        code = details.get("grpc_code", details.get("code"))
        message = details.get("message", error)
        if code in _TRANSIENT:
            raise _Unfit(f"HTTP {status}: {message}")
        if code == _UNAUTHENTICATED:
            raise _TokenRefused(message)
        if code == _NOT_FOUND and "lease not found" in str(message):
            raise LeaseGone(f"etcd: {message}. Take another.")
        raise EtcdRefused(f"etcd: HTTP {status}: {message}. Check user, password and role, and etcd's own log.")


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return str(error) or f"the connection broke ({type(error).__name__})"
