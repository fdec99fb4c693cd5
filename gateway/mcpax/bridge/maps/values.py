"""Between what people see and what goes over the wire: the one place that judges arguments and results.

A `FieldsCodec` is built once per tool and then converts calls in a few microseconds. Arguments come from callers who may err,
raw values from boards that may lie; both are told every fault by field, never only the first. Knows nothing of bytes on the
wire, JSON Schema or tools.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcpax.bridge.maps.limits import Unfit, allowed
from mcpax.bridge.maps.model import Field
from mcpax.bridge.maps.unwrap import unwrapper
from mcpax.bridge.maps.wrap import RawValue, wrapper
from mcpax.documents.faults import nearest

__all__ = ["FieldsCodec", "Problem", "RawValue", "ValueFault", "from_raw", "to_raw"]


MOST_NAME_CHARS = 64
MOST_TOLD = 16
"""Unknown arguments that are told one by one; nobody reads more, and looking for what was meant takes time."""


@dataclass(frozen=True, slots=True)
class Problem:
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class ValueFault(ValueError):
    """Values that do not fit their fields; says for each what was given and what is allowed."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = tuple(problems)


class FieldsCodec:
    """Converts all fields of a tool's arguments or results, or of an event."""

    __slots__ = ("_known", "_unwrap", "_wrap")

    def __init__(self, fields: Sequence[Field]) -> None:
        self._known = {field.name: field for field in fields}
        self._wrap = tuple((field.name, wrapper(field), _raw_default(field)) for field in fields)
        self._unwrap = tuple((field.name, unwrapper(field)) for field in fields)

    def to_raw(self, given: Mapping[str, Any]) -> list[RawValue]:
        """Arguments in the order of the map, defaults filled in; raises `ValueFault` with all that is wrong."""
        raw: list[RawValue] = []
        problems: list[Problem] = []
        for name, wrap, default in self._wrap:
            if name in given:
                try:
                    raw.append(wrap(given[name]))
                except Unfit as unfit:
                    problems.append(Problem(name, str(unfit)))
            elif default is not None:
                raw.append(default)
            else:
                problems.append(self._missing(name, "missing"))
        problems += self._unknown([name for name in given if name not in self._known])
        if problems:
            raise ValueFault(problems)
        return raw

    def from_raw(self, raw: Sequence[Any]) -> dict[str, Any]:
        """Values that people see, by name, from what a board sent; raises `ValueFault` if it does not keep to the map."""
        values: dict[str, Any] = {}
        problems: list[Problem] = []
        for (name, unwrap), value in zip(self._unwrap, raw, strict=False):
            try:
                values[name] = unwrap(value)
            except Unfit as unfit:
                problems.append(Problem(name, str(unfit)))
        problems += [self._missing(name, "not sent") for name, _ in self._unwrap[len(raw) :]]
        if len(raw) > len(self._unwrap):
            problems.append(Problem("", f"{len(raw)} values sent, the map has {len(self._unwrap)}"))
        if problems:
            raise ValueFault(problems)
        return values

    def _unknown(self, names: Sequence[str]) -> list[Problem]:
        told = [
            Problem(name[:MOST_NAME_CHARS], f"unknown argument; {nearest(name[:MOST_NAME_CHARS], self._known)}")
            for name in names[:MOST_TOLD]
        ]
        rest = len(names) - MOST_TOLD
        return [*told, Problem("", f"and {rest} more unknown arguments")] if rest > 0 else told

    def _missing(self, name: str, how: str) -> Problem:
        return Problem(name, f"{how}; allowed: {allowed(self._known[name])}")


def to_raw(fields: Sequence[Field], given: Mapping[str, Any]) -> list[RawValue]:
    """For a single use; whoever calls often keeps a `FieldsCodec`."""
    return FieldsCodec(fields).to_raw(given)


def from_raw(fields: Sequence[Field], raw: Sequence[Any]) -> dict[str, Any]:
    """For a single use; whoever calls often keeps a `FieldsCodec`."""
    return FieldsCodec(fields).from_raw(raw)


def _raw_default(field: Field) -> RawValue | None:
    if field.default is None:
        return None
    try:
        return wrapper(field)(field.default)
    except Unfit as unfit:
        raise ValueFault([Problem(field.name, f"default {unfit}")]) from None
