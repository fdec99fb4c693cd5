"""The C header that firmware is built with: tables for flash, raw limits, buffer sizes, the registration frame, handler prototypes.

Made from the device map alone and the same for the same map, so that it may be checked in and compared. Knows the shapes that
`firmware/lib/mcpax/include/mcpax_types.h` gives the rows; knows nothing of any chip, and nothing of how the library reads them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence

from mcpax.bridge.maps.limits import MAX_F32, allowed
from mcpax.bridge.maps.model import ByteOrder, Crc, DeviceMap, EventMap, Field, FieldType, Profile, ToolMap
from mcpax.bridge.maps.stub_sizes import (
    STRINGS,
    arguments,
    fields_out,
    largest_passing,
    largest_request,
    largest_response,
    outputs,
    owners_of_outputs,
    receive_room,
    types,
    value_bits,
)
from mcpax.bridge.wire.framing import CobsFraming
from mcpax.bridge.wire.profile_b import encode_registration

_LARGEST_FOR_8_BIT_SIZES = 240
"""A message of this size still has room for its framing before an 8-bit count overflows."""
_COMMENT_WIDTH = 110

_UNSIGNED = {FieldType.U8, FieldType.U16, FieldType.U32}
_SIGNED = {FieldType.I8, FieldType.I16, FieldType.I32}


def render_header(device: DeviceMap) -> str:
    """The text of `mcpax_map.h` for this map. Raises `ValueError` where two names of the map become one in C."""
    lines = [
        f"/* Made from the device map {device.name} {_comment(device.version)} by `mcpax map header`. Edit the map, not this file. */",
        "#ifndef MCPAX_MAP_H",
        "#define MCPAX_MAP_H",
        "",
        *_sizes(device),
        "",
        '#include "mcpax_types.h"',
        "",
        *_names(device),
        *_prototypes(device),
        "#ifdef MCPAX_DEFINE_TABLES",
        "",
        *_tables(device),
        "#endif",
        "",
        "#endif",
    ]
    return "\n".join(lines) + "\n"


# --- Sizes


def _sizes(device: DeviceMap) -> list[str]:
    request, response, passing = largest_request(device), largest_response(device), largest_passing(device)
    narrow = max(request, response, passing) <= _LARGEST_FOR_8_BIT_SIZES
    used, bits = types(device), value_bits(device)
    lines = [
        _define("MCPAX_MAP_HASH", f"UINT32_C(0x{device.hash:08X})"),
        _define("MCPAX_MAP_HASH_BYTES", ", ".join(f"0x{byte:02X}" for byte in device.hash.to_bytes(4, "big"))),
        _define("MCPAX_PROFILE_A", int(device.profile is Profile.A)),
        _define("MCPAX_PROFILE_B", int(device.profile is Profile.B)),
    ]
    lines += [
        "",
        _define("MCPAX_BAUD", device.port.baud),
        _define("MCPAX_DEADMAN_MS", device.port.deadman_ms, "silence of the gateway that the board must not trust; 0: any"),
    ]
    if device.profile is Profile.A:
        lines += [
            _define("MCPAX_CRC_BITS", 8 if device.frame.crc is Crc.CRC8 else 16),
            _define("MCPAX_BIG_ENDIAN", int(device.frame.byte_order is ByteOrder.BIG)),
        ]
    lines += [
        "",
        "/* Messages in bytes, without their framing. */",
        _define("MCPAX_SIZE_BITS", 8 if narrow else 16),
        _define("MCPAX_SIZE_TYPE", "uint8_t" if narrow else "uint16_t"),
        _define("MCPAX_REQUEST_MAX", request, "largest from the gateway"),
        _define("MCPAX_RECEIVE_ROOM", receive_room(device, request), "for receiving it, framed"),
        _define("MCPAX_RESPONSE_MAX", response, "largest answer to a call"),
        _define("MCPAX_PASSING_MAX", passing, "largest of the others that the stub sends"),
        "",
        _define("MCPAX_TOOL_COUNT", len(device.tools)),
        _define(
            "MCPAX_TOOL_IDS_ARE_PLACES",
            int([tool.id for tool in device.tools] == list(range(1, len(device.tools) + 1))),
            "1, 2, 3 and so on",
        ),
        _define("MCPAX_EVENT_COUNT", len(device.events)),
        _define("MCPAX_ARGUMENTS_MAX", max((1, *(len(tool.args) for tool in device.tools))), "of one tool, at least 1"),
        _define("MCPAX_RESULTS_MAX", max((1, *(len(tool.results) for tool in device.tools))), "of one tool, at least 1"),
        "",
        "/* Types that no field has cost no code: a bit for the code of each type in use. */",
        _define("MCPAX_ARGUMENT_TYPES", _type_bits(arguments(device))),
        _define("MCPAX_OUTPUT_TYPES", _type_bits(outputs(device))),
        _define("MCPAX_USES_F32", int(FieldType.F32 in used)),
        _define("MCPAX_USES_STRINGS", int(not used.isdisjoint(STRINGS))),
        _define("MCPAX_VALUE_BITS", bits, "of the widest number"),
        _define("MCPAX_UNSIGNED_TYPE", f"uint{bits}_t"),
        _define("MCPAX_SIGNED_TYPE", f"int{bits}_t"),
    ]
    if device.profile is Profile.B:
        lines += ["", _define("MCPAX_REGISTRATION_LENGTH", len(_registration_frame(device)), "bytes of the whole frame")]
    return lines


def _type_bits(fields: Iterable[Field]) -> str:
    return f"0x{sum(1 << kind.code for kind in {field.type for field in fields}):03X}u"


# --- Names and prototypes


def _names(device: DeviceMap) -> list[str]:
    """Where each value stands in its array, and what the labels of enums stand for."""
    constants: list[tuple[str, int, str]] = []
    for tool in device.tools:
        constants += _field_constants("ARG", tool.name, tool.args)
        constants += _field_constants("RESULT", tool.name, tool.results)
    for event in device.events:
        constants += _field_constants("FIELD", event.name, event.fields)
    owners: dict[str, str] = {}
    for name, _, owner in constants:
        if owners.setdefault(name, owner) != owner:
            raise ValueError(f"in C both {owners[name]} and {owner} would be called {name}: rename one of them")
    numbers = {name: number for name, number, _ in constants}
    if not numbers:
        return []
    width = max(map(len, numbers))
    return ["enum {", *(f"    {name:<{width}} = {number}," for name, number in numbers.items()), "};", ""]


def _field_constants(kind: str, owner: str, fields: Sequence[Field]) -> Iterator[tuple[str, int, str]]:
    for number, field in enumerate(fields):
        place = f"{kind.lower()} {field.name} of {owner}"
        yield _constant(kind, owner, field.name), number, place
        for label, raw in (field.enum or {}).items():
            yield _constant("VALUE", owner, field.name, label), raw, f"label {label} of {field.name} of {owner} for {raw}"


def _constant(*parts: str) -> str:
    return _c_name("_".join(parts)).upper()


def _c_name(name: str) -> str:
    return name.replace("-", "_")


def _prototypes(device: DeviceMap) -> list[str]:
    lines: list[str] = []
    for tool in device.tools:
        lines += ["/*", *_prose(f"{tool.name}: {tool.description}")]
        lines += _field_comments("arg", tool.args) + _field_comments("result", tool.results)
        lines += [" */", f"{_handler(tool)};", ""]
    for event, kinds in zip(device.events, _kinds(device)[len(device.tools) :], strict=True):
        name = _constant("EVENT", event.name)
        cells = [str(event.id), str(len(event.fields)), kinds, *([_encoding(event)] if device.profile is Profile.A else [])]
        lines += ["/*", *_prose(f"mcpax_notify({name}, fields): {event.description}"), *_field_comments("field", event.fields), " */"]
        lines += [_define(name, ", ".join(cells)), ""]
    handlers = " ".join(f"each({tool.id}, mcpax_tool_{_c_name(tool.name)})" for tool in device.tools)
    lines += ["/* By id, for compilers that cannot call them through a pointer. */", _define("MCPAX_HANDLERS(each)", handlers), ""]
    return lines


def _handler(tool: ToolMap) -> str:
    return f"uint8_t mcpax_tool_{_c_name(tool.name)}(const mcpax_value *args, mcpax_value *results)"


def _field_comments(kind: str, fields: Sequence[Field]) -> list[str]:
    lines: list[str] = []
    for field in fields:
        text = f"{kind} {field.name} ({_member(field)}): {_words(field)}"
        lines += _prose(f"{text}. {field.description}" if field.description else text, indent=" *   ")
    return lines


def _member(field: Field) -> str:
    """Which member of `mcpax_value` holds it."""
    if field.type in STRINGS:
        return f"{field.type} .string"
    if field.type is FieldType.F32:
        return "f32 .f"
    return f"{field.type} .{'i' if field.type.value.startswith('i') else 'u'}"


def _words(field: Field) -> str:
    """What it may be: for people, and raw where that differs."""
    if field.enum is not None:
        return ", ".join(f"{label} ({raw})" for label, raw in field.enum.items())
    if field.type in STRINGS:
        return f"{'exactly' if field.exact_len else 'at most'} {field.max_len} bytes"
    if field.scaled and field.raw_range is not None:
        low, high = field.raw_range
        return f"{allowed(field)}; raw {low} to {high} in steps of {field.scale:g} {field.unit}".rstrip()
    return allowed(field)


def _prose(text: str, indent: str = " * ") -> list[str]:
    """Words folded into comment lines."""
    lines = [""]
    for word in _comment(text).split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > _COMMENT_WIDTH:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".lstrip()
    return [f"{indent}{'' if number == 0 else '  '}{line}" for number, line in enumerate(lines)]


def _comment(text: str) -> str:
    """Text from the map must not end the comment it stands in, nor begin another."""
    return text.replace("*/", "* /").replace("/*", "/ *")


# --- Tables


def _tables(device: DeviceMap) -> list[str]:
    profile_a = device.profile is Profile.A
    arguments = [_argument_row(tool, field, value_bits(device)) for tool in device.tools for field in tool.args]
    tools: list[str] = []
    first_argument = 0
    for tool, kinds in zip(device.tools, _kinds(device), strict=False):
        encoding = [_encoding(tool)] if profile_a else []
        places = [f"mcpax_tool_{_c_name(tool.name)}", f"mcpax_arguments + {first_argument}", kinds]
        tools.append(_row(*places, tool.id, len(tool.args), len(tool.results), *encoding))
        first_argument += len(tool.args)
    lines = _table("mcpax_argument mcpax_arguments", "low, span, type", arguments)
    if _has_output_rows(device):
        strings = profile_a or not types(device).isdisjoint(STRINGS)  # as MCPAX_HAS_STRINGS
        outputs = [_output_row(owner, field, strings) for owner in owners_of_outputs(device) for field in fields_out(owner)]
        lines += _table("mcpax_output mcpax_outputs", "max_length, type" if strings else "type", outputs)
    lines += _table("mcpax_tool mcpax_tools", "handler, arguments, kinds of results, id, how many arguments, how many results", tools)
    if not profile_a:
        frame = _registration_frame(device)
        rows = [" ".join(f"0x{byte:02X}," for byte in frame[start : start + 16]) for start in range(0, len(frame), 16)]
        lines += _table("uint8_t mcpax_registration", "a whole frame, from the first COBS code to the final zero", rows)
    return lines


def _has_output_rows(device: DeviceMap) -> bool:
    """As MCPAX_HAS_OUTPUT_ROWS."""
    return device.profile is Profile.A or not {field.type for field in outputs(device)} <= _UNSIGNED | _SIGNED


def _kinds(device: DeviceMap) -> list[str]:
    """What `mcpax_kinds` is for the results of each tool, then for the fields of each event."""
    kinds: list[str] = []
    first = 0
    for owner in owners_of_outputs(device):
        fields = fields_out(owner)
        kinds.append(f"mcpax_outputs + {first}" if _has_output_rows(device) else _signed_bits(fields))
        first += len(fields)
    return kinds


def _encoding(owner: ToolMap | EventMap) -> str:
    return f"MCPAX_{owner.encoding.upper()}"


def _signed_bits(fields: Sequence[Field]) -> str:
    return f"0x{sum(1 << place for place, field in enumerate(fields) if field.type in _SIGNED):02X}"


def _table(declaration: str, columns: str, rows: Iterable[str]) -> list[str]:
    body = [f"    {row}" for row in rows] or ["    {0}, /* C has no empty arrays */"]
    return [f"/* {columns} */", f"const {declaration}[] MCPAX_ROM = {{", *body, "};", ""]


def _row(*cells: object) -> str:
    return f"{{{', '.join(map(str, cells))}}},"


def _argument_row(tool: ToolMap, field: Field, bits: int) -> str:
    low, high = _limits(field)
    low_bits, span = (f"UINT{bits}_C(0x{number & ((1 << bits) - 1):0{bits // 4}X})" for number in (low, high - low))
    return f"{_row(low_bits, span, _type(field))} /* {tool.name} {field.name} */"


def _output_row(owner: ToolMap | EventMap, field: Field, strings: bool) -> str:
    cells = (field.max_len or 0, _type(field)) if strings else (_type(field),)
    return f"{_row(*cells)} /* {owner.name} {field.name} */"


def _type(field: Field) -> str:
    return f"MCPAX_{field.type.upper()}"


def _limits(field: Field) -> tuple[int, int]:
    """Smallest and largest of what the stub compares: raw number, order number of a float, or length."""
    if field.raw_range is not None:
        return field.raw_range
    if field.type is FieldType.F32:
        low = -MAX_F32 if field.min is None else field.min
        high = MAX_F32 if field.max is None else field.max
        # Zero has two signs, and both are within a limit of zero.
        return _order_number(low or -0.0), _order_number(high or 0.0)
    return 0, 1 if field.type is FieldType.BOOL else field.max_len or 0


def _order_number(value: float) -> int:
    """A 32-bit number that grows with the binary32 nearest to the value, as `mcpax_within` makes it from the bits of a float."""
    bits = int.from_bytes(struct.pack(">f", value), "big")
    return bits ^ 0xFFFF_FFFF if bits & 0x8000_0000 else bits | 0x8000_0000


def _registration_frame(device: DeviceMap) -> bytes:
    return CobsFraming().encode(encode_registration(device))


def _define(name: str, value: object, comment: str = "") -> str:
    return f"#define {name} {value}" + (f" /* {comment} */" if comment else "")
