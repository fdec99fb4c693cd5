"""The aggregator's own tools: a subserver like any other, in a place that is kept for it.

So far one, which the draft asks for (§12): how many notifications were dropped. Knows nothing of how it is reached.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import msgspec

from mcpax.capability import AuthScope, Capability, LatencyClass, TransportClass
from mcpax.core.flows import Flows
from mcpax.core.registration import RegistrationRequest
from mcpax.core.subserver import Call, Json, Tool
from mcpax.errors import ErrorKind, Fault, Outcome

OWN_SEGMENT = "mcpax"

_COUNT: Json = {"type": "integer", "minimum": 0}
NOTIFICATIONS_DROPPED = Tool(
    path=("notifications_dropped",),
    title="Notifications dropped",
    description="Counts the notifications of subservers that were dropped because more came than may pass.",
    input_schema={"type": "object", "properties": {}, "additionalProperties": False},
    output_schema={
        "type": "object",
        "properties": {
            "total": {**_COUNT, "description": "Dropped since the gateway started, by all, those long gone included."},
            "by_subserver": {
                "type": "array",
                "description": "Those that dropped some or have some waiting; who is not named has neither.",
                "items": {
                    "type": "object",
                    "properties": {"source": {"type": "string"}, "dropped": _COUNT, "buffered": _COUNT},
                    "required": ["source", "dropped", "buffered"],
                    "additionalProperties": False,
                },
            },
        },
        "required": ["total", "by_subserver"],
        "additionalProperties": False,
    },
    capability=Capability(
        latency_class=LatencyClass.FAST,
        mutable=False,
        reversible=True,
        idempotent=True,
        transport=TransportClass.NATIVE,
        auth_scope=AuthScope.READ,
        schema_version="1.0.0",
    ),
)


def own_request() -> RegistrationRequest:
    """Under a new id each time: one that could be known could be used to take the place over."""
    return RegistrationRequest(str(uuid.uuid4()), OWN_SEGMENT, str(TransportClass.NATIVE))


def check_not_own(request: RegistrationRequest) -> None:
    """Keep everybody else out of the place."""
    if request.segment == OWN_SEGMENT:
        raise Fault(
            ErrorKind.INVALID_PARAMS,
            f"mcpax/register: segment: {OWN_SEGMENT!r} is reserved for the aggregator's own tools.",
            hint="Choose another segment.",
            details={"field": "segment"},
        )


class OwnTools:
    def __init__(self, flows: Flows) -> None:
        self._flows = flows

    async def list_tools(self) -> Sequence[Tool]:
        return (NOTIFICATIONS_DROPPED,)

    async def call(self, call: Call) -> Json:
        if call.path != NOTIFICATIONS_DROPPED.path:
            raise Fault(ErrorKind.TOOL_NOT_FOUND, f"Unknown tool: {'.'.join(call.path)}", outcome=Outcome.NOT_EXECUTED)
        if call.arguments:
            raise Fault(
                ErrorKind.INVALID_TOOL_ARGS,
                f"notifications_dropped takes no arguments; got {', '.join(sorted(call.arguments))[:200]}.",
                hint="Call it without.",
                outcome=Outcome.NOT_EXECUTED,
            )
        counts = [{"source": count.source, "dropped": count.dropped, "buffered": count.buffered} for count in self._flows.counts()]
        values: Json = {"total": self._flows.dropped, "by_subserver": counts}
        text = msgspec.json.encode(values).decode()
        return {"content": [{"type": "text", "text": text}], "structuredContent": values, "isError": False}

    async def close(self) -> None: ...
