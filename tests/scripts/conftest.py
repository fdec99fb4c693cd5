"""For the tests of the scripts: a machine of stand-ins."""

from pathlib import Path

import pytest

from tests.scripts.machine import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)
