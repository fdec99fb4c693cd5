"""The locks: whole, hashed, telling nothing of the machine they were made on, and agreeing with pyproject.toml."""

import re
import tomllib

import pytest

from tests.scripts.machine import ROOT

LOCKS = ("requirements.lock", "requirements-dev.lock")


def pins(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9-]+)==([^ ]+)", (ROOT / lock).read_text(), flags=re.MULTILINE))


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_is_pinned_and_hashed(lock: str) -> None:
    entries = re.split(r"\n(?=\S)", (ROOT / lock).read_text().split("\n", 2)[2].rstrip())
    assert entries
    for entry in entries:
        assert re.match(r"[a-z0-9-]+==[0-9][^ ]* (; [^\\]+ )?\\\n    --hash=sha256:[0-9a-f]{64}", entry), entry


@pytest.mark.parametrize("lock", LOCKS)
def test_no_address_and_no_path_of_a_machine(lock: str) -> None:
    assert not re.search(r"://|^-|(^|\s)/|file:", (ROOT / lock).read_text(), flags=re.MULTILINE)


def test_development_uses_what_runs() -> None:
    assert pins("requirements.lock").items() <= pins("requirements-dev.lock").items()


def test_locks_hold_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    runtime = [*project["project"]["dependencies"], *project["dependency-groups"]["build"]]
    development = [*runtime, *project["project"]["optional-dependencies"]["dev"]]
    for lock, wanted in zip(LOCKS, (runtime, development), strict=True):
        missing = {re.split(r"[^A-Za-z0-9-]", requirement)[0] for requirement in wanted} - set(pins(lock))
        assert not missing, f"{lock}: {missing}: run scripts/lock"
