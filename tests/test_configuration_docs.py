"""`docs/configuration.md` is true: its key tables are the loader's own, and every example loads."""

import re
import subprocess
from pathlib import Path

import pytest

from mcpax.config import DOCUMENT, TABLES, Config, load_config
from mcpax.documents.reference import key_tables
from mcpax.front.guard import check_listen

ROOT = Path(__file__).parents[1]
DOCS = (ROOT / "docs" / "configuration.md").read_text()
EXAMPLES = re.findall(r"^```toml\n(.*?)^```", DOCS, re.DOTALL | re.MULTILINE)
COMMANDS = re.findall(r"^```sh\n(.*?)^```", DOCS, re.DOTALL | re.MULTILINE)


def load(directory: Path, example: str) -> Config:
    """As somebody would who follows the page from its beginning."""
    (directory / "device-maps").symlink_to(ROOT / "device-maps")
    for command in COMMANDS:
        subprocess.run(["sh", "-c", command], cwd=directory, check=True)
    (directory / "mcpax.toml").write_text(example)
    return load_config(directory / "mcpax.toml")


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_documented_examples_load_and_may_listen(example: str, tmp_path: Path) -> None:
    config = load(tmp_path, example)
    assert config.bindings
    check_listen(config.host, config.token)


def test_the_examples_show_two_boards_of_a_kind_another_port_and_the_network(tmp_path: Path) -> None:
    configs = []
    for number, example in enumerate(EXAMPLES):
        directory = tmp_path / str(number)
        directory.mkdir()
        configs.append(load(directory, example))
    assert any(len({binding.map.name for binding in config.bindings}) < len(config.bindings) for config in configs)
    assert any(binding.match != binding.map.port.match for config in configs for binding in config.bindings)
    assert any(config.host == "0.0.0.0" and config.token for config in configs)


def test_documented_keys_are_up_to_date() -> None:
    told = "replace them by: from mcpax.config import TABLES; from mcpax.documents.reference import key_tables; print(key_tables(TABLES))"
    assert DOCS.split("<!-- keys -->\n\n")[1] == key_tables(TABLES), told


def test_no_table_of_the_document_is_left_out() -> None:
    assert {key.name for key in DOCUMENT.keys} == {table.name.strip("[]") for table in TABLES if "." not in table.name}
