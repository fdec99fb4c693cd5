"""The locator knows every path that tomllib knows, and its line."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpax.documents.faults import KeyPath
from mcpax.documents.locate import locate

MAPS = sorted((Path(__file__).parents[2] / "device-maps").glob("*.toml"))


def paths(value: Any, here: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    if here:
        yield here, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, (*here, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from paths(inner, (*here, index))


def assert_every_number_is_its_line(text: str) -> None:
    document, lines = tomllib.loads(text), locate(text)
    assert {path for path, _ in paths(document)} == set(lines)
    for path, value in paths(document):
        if type(value) is int:
            assert lines[path] == value, path


def numbered(template: str) -> str:
    """Each @ becomes the number of its line."""
    return "\n".join(row.replace("@", str(number)) for number, row in enumerate(template.split("\n"), 1))


@pytest.mark.parametrize(
    "template",
    [
        "a = @\n\n# b = @\nb = @ # c",
        "[t]\na = @\n[t.u]\nb = @\n[t.u.v.w]\nc = @",
        "[[t]]\na = @\n[[t.u]]\nb = @\n[[t.u]]\nb = @\n[[t]]\na = @\n[[t.u]]\nb = @\n[t.v]\nc = @",
        "a = { b = @, c = { d = @ }, e.f = @ }\ng = @",
        "a = [ @, @, # 1, 2\n  @,\n\n  [ @, @\n, @ ], ]\nb = @",
        "a = \"\"\"\nb = @\n\"\"\"\nc = @\nd = '''x = [\n'''\ne = @",
        'a = "# ]} \\" , = "\nb = @\nc = \'\\\'\nd = @',
        'a = """one quote: \\""" and two"" end"""""\nb = @\nc = """"""\nd = @',
        '"a b".c = @\n[ x . "y.z" . \'w\' ]\n"\\u00e9" = @\n"" = @',
        "a.b.c = @\na.b.d = @\na.e = @",
        "a = [ { b = @ }, { b = @ },\n{ c = [ @ ] } ]",
        "a = 1979-05-27 07:32:00\r\nb = @\r\nc = [ @,\r\n@ ]",
        "a = [] \nb = {}\nc = @",
    ],
)
def test_lines(template: str) -> None:
    assert_every_number_is_its_line(numbered(template))


@pytest.mark.parametrize("path", MAPS, ids=lambda path: path.stem)
def test_shipped_maps_are_located_whole(path: Path) -> None:
    text = path.read_text()
    assert {p for p, _ in paths(tomllib.loads(text))} == set(locate(text))


blank = st.sampled_from(["", " ", "\t"])
newline = st.sampled_from(["\n", "\n\n", " # comment = [ \" ' {\n", "\n#\n\t\n", "\r\n"])
strings = st.sampled_from(['"a # \\" ]"', "'\\'", '"""x\n= [\n\\"""\n"""', "'''\n'\n'''", '""', '""""q"""'])
values = st.recursive(
    st.just("@") | strings | st.sampled_from(["true", "1.5", "2020-01-01"]),
    lambda inner: (
        st.lists(st.tuples(inner, newline | blank), max_size=3).map(lambda items: "[" + "".join(f"{v}{w}," for v, w in items) + "]")
        | st.lists(inner.filter(lambda value: "\n" not in value), max_size=3).map(
            lambda items: "{" + ", ".join(f"k{number} = {value}" for number, value in enumerate(items)) + "}"
        )
    ),
    max_leaves=6,
)


@st.composite
def documents(draw: st.DrawFn) -> str:
    text = ""
    for table in range(draw(st.integers(0, 4))):
        header = draw(st.sampled_from([f"[t{table}]", "[[array]]", f"[t{table}.'u v'.\"w\"]", f"[t.u{table}]", "[[deep.array]]"]))
        if table:
            text += draw(blank) + header + draw(newline)
        for key in range(draw(st.integers(0, 3))):
            name = draw(st.sampled_from([f"k{key}", f"d{key}.e . f", f"'q{key}'", f'"\\u00e9{key}".x']))
            text += f"{draw(blank)}{name} = {draw(values)}{draw(newline)}"
    rows = text.split("\n")
    return "\n".join(row.replace("@", str(number)) for number, row in enumerate(rows, 1))


@given(documents())
def test_any_document(text: str) -> None:
    assert_every_number_is_its_line(text)
