"""The rules between the keys of one field: does its type hold its limits, scale, labels, length and default?

Works on tidied tables (`structure`), so that every key that is there is well formed. Knows nothing of tools or of layouts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from mcpax.bridge.maps.limits import MAX_F32, Unfit
from mcpax.bridge.maps.model import Field, FieldType
from mcpax.bridge.maps.names import check_names, names_in
from mcpax.bridge.maps.wrap import wrapper
from mcpax.documents.faults import KeyPath, Report, shown
from mcpax.documents.structure import Tidy

MIN_SCALE, MAX_SCALE = 1e-9, 1e9
"""Beyond these a raw step is no measure of anything, and binary fractions run out of digits."""


def check_fields(tables: list[Tidy], path: KeyPath, report: Report) -> None:
    check_names(names_in(tables, path), report)
    for index, table in enumerate(tables):
        if "type" in table:
            here, kind = (*path, index), FieldType(table["type"])
            _check_belonging(table, kind, here, report)
            _check_scale(table, here, report)
            _check_enum(table, kind, here, report)
            _check_limits(table, kind, here, report)
            _check_length(table, kind, here, report)


def check_defaults(fields: Sequence[Field], path: KeyPath, report: Report) -> None:
    """For fields without other faults: is the default an argument that a caller might give?"""
    for index, field in enumerate(fields):
        try:
            if field.default is not None:
                wrapper(field)(field.default)
        except Unfit as unfit:
            hint = "a default is an argument like any other, in the unit that people see"
            report.add((*path, index, "default"), f"default {unfit}", hint)


def build_field(table: Mapping[str, Any], *, exact_bytes: bool = False) -> Field:
    """A field from a table without faults."""
    kind = FieldType(table["type"])
    return Field(**{**table, "type": kind, "exact_len": exact_bytes and kind is FieldType.BYTES})


def _check_belonging(table: Tidy, kind: FieldType, path: KeyPath, report: Report) -> None:
    """Takes out what the type has no use for, so that no later rule trips over it."""
    integer = kind.integer_range is not None
    uses = {
        "scale": (integer, "scale is for integer types: it says what one raw step is worth"),
        "enum": (integer, "labels stand for integers: use u8"),
        "min": (integer or kind is FieldType.F32, "limits are for numbers; for text and bytes use max_len"),
        "max": (integer or kind is FieldType.F32, "limits are for numbers; for text and bytes use max_len"),
        "max_len": (kind in (FieldType.TEXT, FieldType.BYTES), "max_len is for text and bytes; for numbers use max"),
    }
    for key, (used, hint) in uses.items():
        if key in table and not used:
            report.add((*path, key), f"{key} does not go with type {kind}", hint)
            del table[key]
    for key in ("scale", "min", "max"):
        if key in table and "enum" in table:
            report.add((*path, key), f"{key} does not go with an enum", "the labels already say what is allowed: remove it")
            del table[key]


def _check_scale(table: Tidy, path: KeyPath, report: Report) -> None:
    if "scale" in table and not MIN_SCALE <= table["scale"] <= MAX_SCALE:
        report.add(
            (*path, "scale"), f"scale {shown(table['scale'])} cannot be used", f"a number from {MIN_SCALE:g} to {MAX_SCALE:g}, like 0.01"
        )
        del table["scale"]


def _check_enum(table: Tidy, kind: FieldType, path: KeyPath, report: Report) -> None:
    enum, here = table.get("enum"), (*path, "enum")
    if enum is None or kind.integer_range is None:
        return
    low, high = kind.integer_range
    if not enum:
        report.add(here, "enum is empty", "give at least one label, like { off = 0, on = 1 }")
    labels: dict[int, str] = {}
    for label, number in enum.items():
        if type(number) is not int or not low <= number <= high:
            report.add((*here, label), f"label {shown(label)} stands for {shown(number)}", f"{kind} holds integers from {low} to {high}")
        elif number in labels:
            report.add(
                (*here, label), f"label {shown(label)} stands for {number}, as {shown(labels[number])} does", "one number, one label"
            )
        else:
            labels[number] = label
    check_names((((*here, label), label) for label in enum), report, what="label")


def _check_limits(table: Tidy, kind: FieldType, path: KeyPath, report: Report) -> None:
    scale = Decimal(str(table.get("scale", 1)))
    lowest, highest = (Decimal(bound) * scale for bound in kind.integer_range or (-MAX_F32, MAX_F32))
    for key in ("min", "max"):
        if key not in table:
            continue
        limit = Decimal(str(table[key]))
        if not lowest <= limit <= highest:
            by = "" if scale == 1 else f" with scale {scale}"
            report.add((*path, key), f"{key} {limit} does not fit {kind}{by}", f"it holds {lowest:.10g} to {highest:.10g}")
        elif kind is not FieldType.F32 and limit % scale != 0:
            step = limit // scale * scale
            hint = f"a multiple of {scale}, like {step}" if scale != 1 else f"a whole number like {step}, or a scale"
            report.add((*path, key), f"{key} {limit} falls between two steps of {scale}", hint)
    if "min" in table and "max" in table and table["min"] > table["max"]:
        report.add((*path, "max"), f"max {shown(table['max'])} is less than min {shown(table['min'])}", "swap them")


def _check_length(table: Tidy, kind: FieldType, path: KeyPath, report: Report) -> None:
    if kind in (FieldType.TEXT, FieldType.BYTES) and "max_len" not in table and report.clean((*path, "max_len")):
        report.add((*path, "max_len"), f"max_len is missing: {kind} needs one", "bytes at most, like max_len = 16")
