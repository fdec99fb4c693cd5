"""The editor's schema, the documentation and the loader know the same keys, and every example is true."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mcpax.bridge.maps.editor_schema import editor_schema
from mcpax.bridge.maps.keys import CAPABILITY, DOCUMENT, TABLES
from mcpax.bridge.maps.load import check_text
from mcpax.bridge.maps.model import DeviceMap, EventMap, Field, FrameMap, PortMap, PortMatch, ToolMap
from mcpax.bridge.maps.scaffold import _CAPABILITY
from mcpax.capability import Capability
from mcpax.documents.keys import Key, Table
from mcpax.documents.reference import key_tables

ROOT = Path(__file__).parents[3]
MAPS = sorted((ROOT / "device-maps").glob("*.toml"))
DOCS = (ROOT / "docs" / "device-maps.md").read_text()
EXAMPLES = re.findall(r"^```toml\n(.*?)^```", DOCS, re.DOTALL | re.MULTILINE)


def keys_of(table: Table, path: str = "") -> Iterator[tuple[str, Key]]:
    for key in table.keys:
        yield f"{path}/{key.name}", key
        if key.table is not None:
            yield from keys_of(key.table, f"{path}/{key.name}")


def properties_of(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    for name, inner in schema.get("properties", {}).items():
        yield f"{path}/{name}"
        yield from properties_of(inner.get("items", inner), f"{path}/{name}")


def test_schema_and_loader_know_the_same_keys() -> None:
    assert sorted(properties_of(editor_schema())) == sorted(path for path, _ in keys_of(DOCUMENT))


def test_every_key_reaches_the_model() -> None:
    """A key that the loader takes and nobody can read would be a promise not kept."""
    renamed = {"tool": "tools", "event": "events", "device": None, "arg": "args", "result": "results", "field": "fields"}
    model = (DeviceMap, PortMap, PortMatch, FrameMap, ToolMap, EventMap, Field, Capability)
    attributes = {name for kind in model for name in kind.__dataclass_fields__}
    for path, key in keys_of(DOCUMENT):
        name = renamed.get(key.name, key.name)
        assert name is None or name in attributes, path


def test_capability_keys_are_the_drafts_but_for_the_transport() -> None:
    assert {*CAPABILITY.names, "transport"} == set(Capability.__dataclass_fields__)


def test_shipped_schema_is_up_to_date() -> None:
    shipped = json.loads((ROOT / "device-maps" / "device-map.schema.json").read_text())
    assert shipped == editor_schema(), "run: mcpax map schema -o device-maps/device-map.schema.json"


@pytest.mark.parametrize("path", MAPS, ids=lambda path: path.stem)
def test_shipped_maps_fit_the_schema(path: Path) -> None:
    jsonschema.Draft7Validator.check_schema(editor_schema())
    jsonschema.Draft7Validator(editor_schema()).validate(tomllib.loads(path.read_text()))


@pytest.mark.parametrize(
    "damage", [{"tool": [{}]}, {"port": {"baud": 300}}, {"device": {"name": "No Name"}}, {"tol": []}, {"frame": {"crc": "md5"}}]
)
def test_schema_refuses_what_the_loader_refuses(damage: dict[str, Any]) -> None:
    document = tomllib.loads(MAPS[0].read_text()) | damage
    assert not jsonschema.Draft7Validator(editor_schema()).is_valid(document)


def test_every_key_has_help_in_the_editor() -> None:
    assert all(key.help.endswith(".") for _, key in keys_of(DOCUMENT))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: tomllib.loads(example)["device"]["name"])
def test_documented_examples_have_no_fault(example: str) -> None:
    assert check_text(example, "docs/device-maps.md") == []


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 2


def test_documented_keys_are_up_to_date() -> None:
    assert DOCS.split("<!-- keys -->\n\n")[1] == key_tables(TABLES), "replace the tables by the output of: mcpax map keys"


def test_nothing_promises_that_calls_are_held_for_an_operator() -> None:
    """There is no such thing yet."""
    assert "can be held" not in DOCS + json.dumps(editor_schema()) + _CAPABILITY
