"""The capability annotation: what a caller may know of a tool's latency, effects and cost before calling it.

The ten fields of the draft's §9.1 with their value sets, the time-outs of §7.3, and what follows from them: the safety
class and the hints of plain MCP. What is not stated is read as dangerous: mutable and irreversible. Knows nothing of
tools or transports.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from enum import StrEnum
from typing import Any

SEMVER = re.compile(r"\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?", re.ASCII)
IRREVERSIBLE_MUTABLE = "irreversible_mutable"


class LatencyClass(StrEnum):
    """Ordered from quick to slow."""

    REALTIME = "realtime"
    FAST = "fast"
    STANDARD = "standard"
    SLOW = "slow"
    BATCH = "batch"

    @property
    def timeout_s(self) -> float | None:
        """How long a call of this class may take; None: the caller decides."""
        return _TIMEOUT_S[self]

    def at_least(self, other: LatencyClass) -> LatencyClass:
        """The slower of the two: a class is only ever raised."""
        return max(self, other, key=_RANK.__getitem__)


_TIMEOUT_S: dict[LatencyClass, float | None] = {
    LatencyClass.REALTIME: 0.5,
    LatencyClass.FAST: 5.0,
    LatencyClass.STANDARD: 30.0,
    LatencyClass.SLOW: 120.0,
    LatencyClass.BATCH: None,
}


class Consistency(StrEnum):
    STRONG = "strong"
    EVENTUAL = "eventual"
    BEST_EFFORT = "best_effort"


class TransportClass(StrEnum):
    NATIVE = "native"
    UART_CBOR = "uart_cbor"
    UART_BYTES = "uart_bytes"  # ours: Profile A byte frames; the draft's list is open
    BLE_CBOR = "ble_cbor"
    SPI_CBOR = "spi_cbor"
    CAN_CBOR = "can_cbor"
    MQTT_JSON = "mqtt_json"


class AuthScope(StrEnum):
    """Ordered from little to much."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    def allows(self, other: AuthScope) -> bool:
        return _RANK[other] <= _RANK[self]

    def at_most(self, other: AuthScope) -> AuthScope:
        """The smaller of the two: a scope only ever narrows."""
        return self if other.allows(self) else other


_RANK: dict[StrEnum, int] = {member: rank for ordered in (LatencyClass, AuthScope) for rank, member in enumerate(ordered)}
"""Made once: every call asks, and an enumeration takes its time to list its members."""


class CostClass(StrEnum):
    FREE = "free"
    METERED = "metered"
    EXPENSIVE = "expensive"


class Availability(StrEnum):
    ALWAYS = "always"
    SCHEDULED = "scheduled"
    BEST_EFFORT = "best_effort"
    DEGRADED = "degraded"


class InvalidCapability(ValueError):
    """Carries every fault of an annotation as (field, message) pairs, not only the first."""

    def __init__(self, faults: list[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{field}: {message}" for field, message in faults))
        self.faults = faults


@dataclass(frozen=True, slots=True)
class Capability:
    latency_class: LatencyClass = LatencyClass.STANDARD
    consistency: Consistency = Consistency.STRONG
    mutable: bool = True
    reversible: bool = False
    idempotent: bool = False
    transport: TransportClass = TransportClass.NATIVE
    auth_scope: AuthScope = AuthScope.WRITE
    cost_class: CostClass = CostClass.FREE
    availability: Availability = Availability.ALWAYS
    schema_version: str = "0.0.0"

    @classmethod
    def parse(cls, stated: Mapping[str, Any]) -> Capability:
        """Read an annotation; what is missing takes the cautious default, what is wrong is refused."""
        faults: list[tuple[str, str]] = []
        values: dict[str, Any] = {}
        for key, value in stated.items():
            kind = _KINDS.get(key)
            if kind is None:
                near = get_close_matches(key, _KINDS, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"known fields: {', '.join(_KINDS)}"
                faults.append((key, f"unknown field; {hint}"))
            elif kind is bool:
                if not isinstance(value, bool):
                    faults.append((key, f"must be true or false, not {value!r}"))
                values[key] = value
            elif kind is str:
                if not isinstance(value, str) or not SEMVER.fullmatch(value):
                    faults.append((key, f"must be a version like '1.0.0', not {value!r}"))
                values[key] = value
            elif value in list(kind):
                values[key] = kind(value)
            else:
                faults.append((key, f"must be one of {', '.join(kind)}, not {value!r}"))
        if faults:
            raise InvalidCapability(faults)
        if "auth_scope" not in values:
            values["auth_scope"] = AuthScope.WRITE if values.get("mutable", True) else AuthScope.READ
        return cls(**values)

    @property
    def irreversible_mutable(self) -> bool:
        return self.mutable and not self.reversible

    @property
    def timeout_s(self) -> float | None:
        return self.latency_class.timeout_s

    @property
    def needed_scope(self) -> AuthScope:
        """What a caller needs. What changes something is never a mere read, whatever the annotation says."""
        return AuthScope.WRITE if self.mutable and self.auth_scope is AuthScope.READ else self.auth_scope

    def no_faster_than(self, floor: LatencyClass) -> Capability:
        """Raised to the class that the way to the tool allows; never lowered (draft §9.2)."""
        raised = self.latency_class.at_least(floor)
        return self if raised is self.latency_class else replace(self, latency_class=raised)

    def degraded(self) -> Capability:
        return replace(self, availability=Availability.DEGRADED)

    def to_json(self) -> dict[str, Any]:
        told = {key: getattr(self, key) for key in _KINDS}
        return {key: str(value) if isinstance(value, StrEnum) else value for key, value in told.items()}

    def hints(self) -> dict[str, bool]:
        """Plain MCP tool annotations, so that clients that know nothing of MCP-AX benefit too."""
        return {
            "readOnlyHint": not self.mutable,
            "destructiveHint": self.irreversible_mutable,
            "idempotentHint": self.idempotent or not self.mutable,
            "openWorldHint": False,
        }


_ENUMS: dict[str, type[StrEnum]] = {
    "latency_class": LatencyClass,
    "consistency": Consistency,
    "transport": TransportClass,
    "auth_scope": AuthScope,
    "cost_class": CostClass,
    "availability": Availability,
}
_KINDS: dict[str, Any] = {
    field.name: _ENUMS.get(field.name) or (str if field.name == "schema_version" else bool) for field in fields(Capability)
}
