"""The one table of errors: code, name, category, whether to try again, and how each reaches a client.

The draft's codes are kept as given; everything else comes from MGP's ranges, outside what JSON-RPC and MCP reserve. Knows
nothing of where an error was raised or over which transport it leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any


class Outcome(StrEnum):
    """What is known of a call that failed: did it run on the device?"""

    EXECUTED = "executed"
    NOT_EXECUTED = "not_executed"
    UNKNOWN = "unknown"


class Category(StrEnum):
    SECURITY = "security"
    LIFECYCLE = "lifecycle"
    RESOURCE = "resource"
    VALIDATION = "validation"
    EXTERNAL = "external"


@dataclass(frozen=True, slots=True)
class ErrorSpec:
    code: int
    category: Category
    retryable: bool
    in_result: bool = False
    """True: the model can read it and act, so it is a tool result with isError. False: a JSON-RPC error."""


class ErrorKind(Enum):
    # The draft's own.
    TOOL_NOT_FOUND = ErrorSpec(-32601, Category.VALIDATION, retryable=False)
    INVALID_PARAMS = ErrorSpec(-32602, Category.VALIDATION, retryable=False)
    TOOL_DEGRADED = ErrorSpec(-32002, Category.LIFECYCLE, retryable=True)
    BUDGET_EXCEEDED = ErrorSpec(-32003, Category.RESOURCE, retryable=True)
    # Registration (draft §4 to §6); the draft names these errors and gives no number.
    NAMESPACE_CONFLICT = ErrorSpec(4010, Category.VALIDATION, retryable=False)
    REGISTRATION_CYCLE = ErrorSpec(4011, Category.VALIDATION, retryable=False)
    REGISTERED_ELSEWHERE = ErrorSpec(4012, Category.VALIDATION, retryable=True)
    AUTHORITY_UNPROVEN = ErrorSpec(1020, Category.SECURITY, retryable=False)
    STORE_UNAVAILABLE = ErrorSpec(2011, Category.LIFECYCLE, retryable=True)
    UNKNOWN_SESSION = ErrorSpec(2010, Category.LIFECYCLE, retryable=False)
    # MGP §14.3 and its ranges.
    PERMISSION_DENIED = ErrorSpec(1000, Category.SECURITY, retryable=False)
    AUTH_REQUIRED = ErrorSpec(1002, Category.SECURITY, retryable=False)
    SERVER_DRAINING = ErrorSpec(2001, Category.LIFECYCLE, retryable=True, in_result=True)
    DEVICE_BUSY = ErrorSpec(3001, Category.RESOURCE, retryable=True, in_result=True)
    DEVICE_TIMEOUT = ErrorSpec(3003, Category.RESOURCE, retryable=False, in_result=True)
    INVALID_TOOL_ARGS = ErrorSpec(4000, Category.VALIDATION, retryable=False, in_result=True)
    TOOL_DISABLED = ErrorSpec(4002, Category.VALIDATION, retryable=False, in_result=True)
    DEVICE_ERROR = ErrorSpec(5000, Category.EXTERNAL, retryable=False, in_result=True)
    DEVICE_LOST = ErrorSpec(5002, Category.EXTERNAL, retryable=False, in_result=True)
    CHILD_ERROR = ErrorSpec(5012, Category.EXTERNAL, retryable=False)
    LINK_LOST = ErrorSpec(5003, Category.EXTERNAL, retryable=False, in_result=True)
    CHILD_LIED = ErrorSpec(5011, Category.EXTERNAL, retryable=False, in_result=True)
    DEVICE_LIED = ErrorSpec(5010, Category.EXTERNAL, retryable=False, in_result=True)

    @property
    def wire_name(self) -> str:
        """The name that stands in messages: lower case, as the draft writes them."""
        return self.name.lower()


class Fault(Exception):
    """An error on its way to the caller. `message` says what and where, `hint` what to do."""

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        hint: str = "",
        outcome: Outcome | None = None,
        retryable: bool | None = None,
        retry_after_ms: int | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.hint = hint
        self.outcome = outcome
        self.retryable = kind.value.retryable if retryable is None else retryable
        self.retry_after_ms = retry_after_ms
        self.details = dict(details or {})

    @property
    def code(self) -> int:
        return self.kind.value.code

    def data(self) -> dict[str, Any]:
        """The structured part, the same in a JSON-RPC error and in a tool result."""
        recovery: dict[str, Any] = {"category": str(self.kind.value.category), "retryable": self.retryable}
        if self.retry_after_ms is not None:
            recovery["retry_after_ms"] = self.retry_after_ms
        data: dict[str, Any] = {"error": self.kind.wire_name, **self.details}
        if self.retry_after_ms is not None:
            data["retry_after_ms"] = self.retry_after_ms
        if self.outcome is not None:
            data["outcome"] = str(self.outcome)
        if self.hint:
            data["hint"] = self.hint
        return {**data, "_mgp": recovery}

    def text(self) -> str:
        """For people and models: what, outcome, what to do."""
        parts = [self.message]
        if self.outcome is not None:
            parts.append(f"Outcome: {self.outcome}.")
        if self.hint:
            parts.append(self.hint)
        return " ".join(parts)


class RelayedFault(Fault):
    """A child's error on its way through: code, message and data as the child gave them."""

    def __init__(self, code: int, message: str, data: Mapping[str, Any] | None) -> None:
        kind = next((kind for kind in ErrorKind if kind.value.code == code and not kind.value.in_result), ErrorKind.CHILD_ERROR)
        super().__init__(kind, message)
        self._code = code
        self._data = None if data is None else dict(data)

    @property
    def code(self) -> int:
        return self._code

    def data(self) -> dict[str, Any]:
        return self._data or {}
