"""`mcpax/register`, its answer, and the rules for the fields (draft §6.1 and §6.2).

A board on a serial port and a remote child register with the same request. Knows nothing of who is registered already.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import Any

from mcpax.capability import AuthScope
from mcpax.dns_names import authority_name
from mcpax.errors import ErrorKind, Fault
from mcpax.names import InvalidName, check_segment

MISSED_HEARTBEATS = 3
MIN_HEARTBEAT_MS = 100
MAX_HEARTBEAT_MS = 3_600_000
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TRANSPORT = re.compile(r"[a-z0-9_]{1,32}")
_FLAGS = ("tools", "resources", "notifications")
_FIELDS = ("subserver_id", "segment", "authority", "capabilities", "heartbeat_interval_ms", "transport_class", "version")

PROTOCOL_VERSION = "2026-05-01"
SUBTREE_IDS = "x-mcpax-subtree-ids"
AUTHORITY_PROOF = "x-mcpax-authority-proof"
AUTH_SCOPE = "x-mcpax-auth-scope"
FENCE = "x-mcpax-fence"
MAX_SUBTREE_IDS = 4096
MAX_PROOF_CHARS = 8192


@dataclass(frozen=True, slots=True)
class Budget:
    """What a session may do; None is no limit."""

    max_calls_per_minute: int | None = None
    max_mutable_calls_per_session: int | None = None
    max_cost_units_per_session: int | None = None

    def to_json(self) -> dict[str, int]:
        return {key: value for key, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class RegistrationRequest:
    subserver_id: str
    segment: str
    transport_class: str
    heartbeat_interval_ms: int = 0
    """0: no heartbeat is expected."""
    authority: str | None = None
    capabilities: frozenset[str] = frozenset({"tools"})
    version: str = PROTOCOL_VERSION
    is_aggregator: bool = False
    """Only an aggregator may present tools more than one level below its segment."""
    subtree_ids: frozenset[str] = frozenset()
    """An aggregator's own id and those of all aggregators below it (draft §5.3)."""
    authority_proof: str | None = None
    """A signed JWT that speaks for `authority`."""
    auth_scope: AuthScope = AuthScope.ADMIN
    """The most that it wants to be asked for (draft §10.2)."""
    fence: int = 0
    """From another replica: that of its hold."""

    @classmethod
    def parse(cls, params: Mapping[str, Any]) -> RegistrationRequest:
        """Read a request from outside; a fault names its field."""
        for key in params:
            if key not in _FIELDS and not key.startswith("x-mcpax-") and key != "_meta":
                near = get_close_matches(key, _FIELDS, n=1)
                raise _invalid(key[:80], "unknown field", f"Did you mean {near[0]!r}?" if near else f"Known fields: {', '.join(_FIELDS)}.")
        for key in ("subserver_id", "segment", "transport_class", "version"):
            if not isinstance(params.get(key), str):
                raise _invalid(key, "missing, or not a string", "It is required.")
        interval = params.get("heartbeat_interval_ms", 0)
        if type(interval) is not int or not (interval == 0 or MIN_HEARTBEAT_MS <= interval <= MAX_HEARTBEAT_MS):
            raise _invalid("heartbeat_interval_ms", f"{interval!r:.40}", f"Use 0, or {MIN_HEARTBEAT_MS} to {MAX_HEARTBEAT_MS} ms.")
        authority = params.get("authority")
        if authority is not None and not is_authority(authority):
            raise _invalid("authority", f"{authority!r:.80}", "Use 'dns:' and a host name, like dns:edge01.example.com.")
        flags = params.get("capabilities", {"tools": True})
        if not isinstance(flags, Mapping) or any(key not in _FLAGS or not isinstance(flag, bool) for key, flag in flags.items()):
            raise _invalid("capabilities", f"{flags!r:.80}", f"Give {', '.join(_FLAGS)} as true or false.")
        subtree = parse_subtree_ids(params.get(SUBTREE_IDS, []))
        return cls(
            subserver_id=_uuid("subserver_id", params["subserver_id"]),
            segment=_segment(params["segment"]),
            transport_class=_matching("transport_class", params["transport_class"], _TRANSPORT, "Use a name like 'uart_cbor' or 'native'."),
            heartbeat_interval_ms=interval,
            authority=authority,
            capabilities=frozenset(key for key, flag in flags.items() if flag),
            version=_matching("version", params["version"], _DATE, f"Use a date like {PROTOCOL_VERSION}."),
            is_aggregator=bool(subtree),
            subtree_ids=subtree,
            authority_proof=_proof(params.get(AUTHORITY_PROOF)),
            auth_scope=_scope(params.get(AUTH_SCOPE, AuthScope.ADMIN)),
            fence=_fence(params.get(FENCE, 0)),
        )

    def to_json(self) -> dict[str, Any]:
        """The request as it is sent."""
        sent: dict[str, Any] = {
            "subserver_id": self.subserver_id,
            "segment": self.segment,
            "capabilities": {flag: flag in self.capabilities for flag in _FLAGS},
            "heartbeat_interval_ms": self.heartbeat_interval_ms,
            "transport_class": self.transport_class,
            "version": self.version,
        }
        if self.authority is not None:
            sent["authority"] = self.authority
        if self.authority_proof is not None:
            sent[AUTHORITY_PROOF] = self.authority_proof
        if self.is_aggregator:
            sent[SUBTREE_IDS] = sorted(self.subtree_ids)
        if self.auth_scope is not AuthScope.ADMIN:
            sent[AUTH_SCOPE] = str(self.auth_scope)
        if self.fence:
            sent[FENCE] = self.fence
        return sent

    @property
    def heartbeat_deadline_ms(self) -> int:
        return MISSED_HEARTBEATS * self.heartbeat_interval_ms


@dataclass(frozen=True, slots=True)
class RegistrationResponse:
    assigned_segment: str
    session_id: str
    heartbeat_deadline_ms: int
    budget: Budget
    status: str = "registered"

    def to_json(self) -> dict[str, Any]:
        return {
            "status": self.status,
            "assigned_segment": self.assigned_segment,
            "session_id": self.session_id,
            "heartbeat_deadline_ms": self.heartbeat_deadline_ms,
            "budget": self.budget.to_json(),
        }


def is_authority(text: Any) -> bool:
    try:
        return isinstance(text, str) and bool(authority_name(text))
    except InvalidName:
        return False


def _invalid(field: str, what: str, hint: str) -> Fault:
    return Fault(ErrorKind.INVALID_PARAMS, f"mcpax/register: {field}: {what}.", hint=hint, details={"field": field})


def parse_subtree_ids(stated: Any) -> frozenset[str]:
    """At registration, and whenever they are advertised anew."""
    if not isinstance(stated, list) or len(stated) > MAX_SUBTREE_IDS or not all(isinstance(each, str) for each in stated):
        raise _invalid(SUBTREE_IDS, "not an array of ids", f"Give the aggregator's own id and those below it, at most {MAX_SUBTREE_IDS}.")
    return frozenset(_uuid(SUBTREE_IDS, each) for each in stated)


def _proof(stated: Any) -> str | None:
    if stated is not None and not (isinstance(stated, str) and len(stated) <= MAX_PROOF_CHARS):
        raise _invalid(AUTHORITY_PROOF, f"not a text of at most {MAX_PROOF_CHARS} characters", "Give a signed JWT.")
    return stated


def _scope(stated: Any) -> AuthScope:
    try:
        return AuthScope(stated)
    except ValueError:
        raise _invalid(AUTH_SCOPE, f"{stated!r:.60}", f"Use one of {', '.join(AuthScope)}.") from None


def _fence(stated: Any) -> int:
    if type(stated) is not int or stated < 0:
        raise _invalid(FENCE, f"{stated!r:.60}", "It is a number that the shared store gave.")
    return stated


def _uuid(field: str, text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise _invalid(field, f"{text!r:.60} is not a UUID", "It is made once and kept across restarts.") from None


def _segment(text: str) -> str:
    try:
        return check_segment(text)
    except InvalidName as error:
        raise _invalid("segment", str(error), "") from None


def _matching(field: str, text: str, pattern: re.Pattern[str], hint: str) -> str:
    if not pattern.fullmatch(text):
        raise _invalid(field, f"{text!r:.60}", hint)
    return text
