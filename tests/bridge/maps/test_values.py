"""Arguments and results are judged by their fields, and the JSON Schema says the same."""

import base64
import math
import struct
from decimal import Decimal
from typing import Any

import jsonschema
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mcpax.bridge.maps.limits import MAX_F32, value_range
from mcpax.bridge.maps.model import Field, FieldType
from mcpax.bridge.maps.schema import input_schema, output_schema
from mcpax.bridge.maps.values import FieldsCodec, ValueFault, from_raw, to_raw

INTEGERS = [kind for kind in FieldType if kind.integer_range]
RELAY = Field("relay", FieldType.U8, min=1, max=4)
STATE = Field("state", FieldType.U8, enum={"off": 0, "on": 1}, default="off")
TEMPERATURE = Field("temperature", FieldType.I16, scale=0.01, unit="°C", min=-40, max=85)
LABEL = Field("label", FieldType.TEXT, max_len=4)
DATA = Field("data", FieldType.BYTES, max_len=4)
FLAG = Field("flag", FieldType.BOOL)
RATIO = Field("ratio", FieldType.F32, min=0, max=0.1)


def refusal(fields: list[Field], given_: dict[str, Any]) -> str:
    with pytest.raises(ValueFault) as caught:
        to_raw(fields, given_)
    return str(caught.value)


def lie(field: Field, raw: Any) -> str:
    with pytest.raises(ValueFault) as caught:
        from_raw([field], [raw])
    [problem] = caught.value.problems
    assert problem.field == field.name
    return problem.message


def test_defaults_are_filled_in_and_the_order_is_the_maps() -> None:
    assert to_raw([RELAY, STATE], {"relay": 3}) == [3, 0]
    assert to_raw([RELAY, STATE], {"state": "on", "relay": 3.0}) == [3, 1]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        (RELAY, 5, "5 is out of range; allowed: integer from 1 to 4"),
        (RELAY, 0, "out of range"),
        (RELAY, True, "true is not an integer"),
        (RELAY, 1.5, "1.5 is not an integer"),
        (RELAY, "1", '"1" is not an integer'),
        (RELAY, None, "null is not an integer"),
        (RELAY, math.nan, "nan is not an integer"),
        (RELAY, math.inf, "inf is not an integer"),
        pytest.param(RELAY, 10**5000, "out of range", id="huge"),
        (STATE, "On", '"On" is not allowed; allowed: one of off, on'),
        (STATE, 1, "one of off, on"),
        (TEMPERATURE, 85.01, "allowed: number from -40 to 85 °C"),
        (TEMPERATURE, math.nan, "nan is out of range"),
        (TEMPERATURE, -math.inf, "out of range"),
        (TEMPERATURE, False, "false is not a number"),
        (RATIO, 0.10001, "out of range"),
        (RATIO, math.nan, "out of range"),
        (FLAG, 1, "true or false"),
        (LABEL, "äöü", "6 bytes given; allowed: text of at most 4 bytes"),
        (LABEL, "a\0", "zero character"),
        (LABEL, "\ud800", "surrogate"),
        (LABEL, 5, "5 is not text"),
        (DATA, "AAAAAAA=", "5 bytes given"),
        (DATA, "not base64", "is not base64"),
        (DATA, "ä", "is not base64"),
        (DATA, [1], "is not base64 text"),
    ],
)
def test_arguments_are_refused_with_what_is_allowed(field: Field, value: Any, words: str) -> None:
    message = refusal([field], {field.name: value})
    assert message.startswith(f"{field.name}: ")
    assert words in message


def test_every_fault_is_told() -> None:
    with pytest.raises(ValueFault) as caught:
        to_raw([RELAY, STATE, TEMPERATURE], {"relay": 9, "state": 2, "temprature": 5})
    told = {problem.field: problem.message for problem in caught.value.problems}
    assert list(told) == ["relay", "state", "temperature", "temprature"]
    assert told["temperature"].startswith("missing; allowed: number from -40")
    assert told["temprature"] == 'unknown argument; did you mean "temperature"?'


def test_exact_bytes_are_neither_more_nor_less() -> None:
    exact = Field("data", FieldType.BYTES, max_len=4, exact_len=True)
    assert to_raw([exact], {"data": "AAAAAA=="}) == [bytes(4)]
    assert "exactly 4 bytes" in refusal([exact], {"data": "AAAA"})
    assert "exactly 4 bytes" in lie(exact, b"abc")


@pytest.mark.parametrize(
    ("field", "raw", "words"),
    [
        (RELAY, 5, "out of range"),
        (RELAY, True, "not an integer"),
        (RELAY, 1.0, "not an integer"),
        (RELAY, None, "not an integer"),
        (RELAY, {1: 2}, "not an integer"),
        (STATE, 2, "2 stands for none of off, on"),
        (STATE, False, "not an integer"),
        (STATE, [], "not an integer"),
        (TEMPERATURE, 8501, "raw 8501 is out of range -4000 to 8500"),
        (TEMPERATURE, 21.37, "not an integer"),
        (RATIO, math.nan, "out of range"),
        (RATIO, math.inf, "out of range"),
        (RATIO, 1e300, "out of range"),
        (RATIO, 0.2, "out of range"),
        (RATIO, 0, "not a float"),
        (FLAG, 1, "true or false"),
        (LABEL, "hello", "5 bytes"),
        (LABEL, b"\xff", "not UTF-8"),
        (LABEL, "a\0b", "zero"),
        (LABEL, 7, "not text"),
        (DATA, b"12345", "5 bytes"),
        (DATA, "AAAA", "not a byte string"),
    ],
)
def test_a_lying_board_is_told_by_field(field: Field, raw: Any, words: str) -> None:
    assert words in lie(field, raw)


def test_too_few_and_too_many_values_are_refused() -> None:
    with pytest.raises(ValueFault, match="relay: not sent"):
        from_raw([FLAG, RELAY], [True])
    with pytest.raises(ValueFault, match="2 values sent, the map has 1"):
        from_raw([FLAG], [True, 1])


def test_scaled_values_have_the_decimals_of_their_scale() -> None:
    assert from_raw([TEMPERATURE], [2137]) == {"temperature": 21.37}
    assert [from_raw([Field("x", FieldType.U32, scale=0.1)], [raw])["x"] for raw in (3, 7, 4294967295)] == [0.3, 0.7, 429496729.5]


def test_a_value_between_two_steps_is_refused_with_both_and_never_rounded() -> None:
    half = Field("amount", FieldType.U8, scale=0.5, unit="ml", max=20)
    assert refusal([half], {"amount": 0.1}) == "amount: 0.1 is between two steps of 0.5; nearest: 0 and 0.5 ml"
    assert "nearest: 21.37 and 21.38 °C" in refusal([TEMPERATURE], {"temperature": 21.374})
    assert "nearest: -0.01 and 0 °C" in refusal([TEMPERATURE], {"temperature": -0.004})
    assert to_raw([half], {"amount": 19.5}) == [39]


def test_binary_fractions_are_no_fault_of_the_caller() -> None:
    tenth = Field("x", FieldType.U32, scale=0.1)
    for value in (0.3, 0.1 + 0.2, 0.7, 429496729.5, 123456789.1):
        assert to_raw([tenth], {"x": value}) == [round(value * 10)]


def test_f32_is_shown_as_short_as_it_can_be() -> None:
    tenth = struct.unpack("f", struct.pack("f", 0.1))[0]
    assert tenth != 0.1
    assert to_raw([RATIO], {"ratio": 0.1}) == [tenth]
    assert from_raw([RATIO], [tenth]) == {"ratio": 0.1}  # and is not above the limit of 0.1


# --- properties


@st.composite
def fields(draw: st.DrawFn, name: str = "x") -> Field:
    kind = draw(st.sampled_from(FieldType))
    if kind is FieldType.BOOL:
        return Field(name, kind)
    if kind in (FieldType.TEXT, FieldType.BYTES):
        return Field(name, kind, max_len=draw(st.integers(1, 9)), exact_len=kind is FieldType.BYTES and draw(st.booleans()))
    if kind is FieldType.F32:
        low, high = sorted(draw(st.lists(st.floats(-MAX_F32, MAX_F32), min_size=2, max_size=2)))
        return Field(name, kind, min=draw(st.sampled_from([None, low])), max=draw(st.sampled_from([None, high])))
    assert kind.integer_range is not None
    raw = st.integers(*kind.integer_range)
    if draw(st.booleans()):
        numbers = draw(st.lists(raw, min_size=1, max_size=4, unique=True))
        return Field(name, kind, enum={f"l{place}": number for place, number in enumerate(numbers)})
    scale = draw(st.sampled_from(["1", "0.01", "0.1", "0.5", "0.001", "2.5", "10", "0.000001", "0.125", "3"]))
    low, high = (float(Decimal(step) * Decimal(scale)) for step in sorted(draw(st.lists(raw, min_size=2, max_size=2))))
    return Field(name, kind, scale=float(scale), min=draw(st.sampled_from([None, low])), max=draw(st.sampled_from([None, high])))


def near(field: Field) -> st.SearchStrategy[Any]:
    """Values that are right, or nearly."""
    if field.enum is not None:
        return st.sampled_from([*field.enum, "L0", "l9"])
    if field.max_len is not None:
        size = field.max_len
        return st.text(max_size=size + 2) | st.binary(max_size=size + 2).map(lambda data: base64.b64encode(data).decode())
    if field.type is FieldType.BOOL:
        return st.booleans()
    low, high = value_range(field)
    edges = [low, high, low - field.scale, high + field.scale, math.nextafter(low, -math.inf), math.nextafter(high, math.inf)]
    steps = st.integers(*(field.raw_range or (0, 0))).map(lambda raw: raw * field.scale)
    return (
        st.sampled_from(edges)
        | steps
        | st.floats(low, high)
        | st.integers(math.ceil(low) - 2, max(math.ceil(low) - 2, math.floor(high) + 2))
    )


anything: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12)
    | st.just([])
    | st.just({})
)


def accepts(field: Field, value: Any) -> bool:
    try:
        to_raw([field], {"x": value})
    except ValueFault:
        return False
    return True


def beyond_schema(field: Field, value: Any) -> bool:
    """What JSON Schema cannot say; see `mcpax.bridge.maps.schema`."""
    if field.type is FieldType.TEXT and isinstance(value, str):
        return "\0" in value or len(value.encode("utf-8", "surrogatepass")) > (field.max_len or 0)
    if field.type is FieldType.BYTES and isinstance(value, str):
        return value.endswith("\n") or len(base64.b64decode(value)) != len(base64.b64decode(value)[: field.max_len]) or field.exact_len
    if field.scaled and field.enum is None and isinstance(value, int | float):
        # In exact fractions: is it plainly between two steps?
        off = abs(Decimal(value) / Decimal(repr(field.scale)) % 1)
        return min(off, 1 - off) > Decimal("1e-6")
    return False


@given(st.data())
def test_schema_and_codec_agree(data: st.DataObject) -> None:
    field = data.draw(fields())
    value = data.draw(near(field) | anything)
    schema = input_schema([field])
    jsonschema.Draft202012Validator.check_schema(schema)
    valid = jsonschema.Draft202012Validator(schema).is_valid({"x": value})
    if accepts(field, value):
        assert valid
    elif valid:
        assert beyond_schema(field, value)


@given(st.data())
def test_schema_and_codec_agree_on_which_arguments_there_are(data: st.DataObject) -> None:
    several = [RELAY, STATE, FLAG]
    given_ = data.draw(st.dictionaries(st.sampled_from(["relay", "state", "flag", "flog"]), st.sampled_from([1, "on", True])))
    valid = jsonschema.Draft202012Validator(input_schema(several)).is_valid(given_)
    try:
        to_raw(several, given_)
        accepted = True
    except ValueFault:
        accepted = False
    assert valid == accepted


@given(st.data())
def test_what_a_caller_gives_comes_back_and_fits_the_output_schema(data: st.DataObject) -> None:
    field = data.draw(fields())
    value = data.draw(near(field))
    assume(accepts(field, value))
    codec = FieldsCodec([field])
    raw = codec.to_raw({"x": value})
    shown = codec.from_raw(raw)
    jsonschema.Draft202012Validator(output_schema([field])).validate(shown)
    assert codec.to_raw(shown) == raw
    if field.scaled:
        assert abs(shown["x"] - value) <= field.scale * 2e-5, "what the board gets is what was asked for"


@given(st.data())
def test_stated_limits_are_the_limits(data: st.DataObject) -> None:
    """No slack of binary fractions lets a step more in, or keeps the limit itself out."""
    field = data.draw(fields())
    assume(field.type in INTEGERS and field.enum is None)
    low, high = value_range(field)
    assert low == (field.min if field.min is not None else low)
    assert high == (field.max if field.max is not None else high)
    assert accepts(field, low)
    assert accepts(field, high)
    assert not accepts(field, high + field.scale)


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.binary(max_size=9),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.integers(0, 3), inner, max_size=2),
    max_leaves=4,
)


@given(fields(), junk | st.integers(-300, 70000))
def test_whatever_a_board_sends_is_refused_or_fits_the_output_schema(field: Field, raw: Any) -> None:
    try:
        values = from_raw([field], [raw])
    except ValueFault:
        pass  # that it names the field is shown above
    else:
        jsonschema.Draft202012Validator(output_schema([field])).validate(values)


def test_schema_tells_unit_step_and_default() -> None:
    schema = input_schema([TEMPERATURE, STATE, DATA])
    assert schema["required"] == ["temperature", "data"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["temperature"] == {"type": "number", "minimum": -40, "maximum": 85, "description": "In °C, steps of 0.01."}
    assert schema["properties"]["state"] == {"type": "string", "enum": ["off", "on"], "default": "off"}
    assert schema["properties"]["data"]["contentEncoding"] == "base64"
