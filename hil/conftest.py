"""Tests in this folder get boards: see `hil.plugin`. Imported by name, because pytest takes `pytest_plugins` from the top folder only."""

from hil.plugin import (
    board,
    boards,
    gateway_with,
    line,
    pytest_addoption,
    pytest_configure,
    pytest_generate_tests,
    pytest_report_header,
    pytest_runtest_makereport,
    pytest_sessionfinish,
    rig,
    witness,
)

__all__ = [
    "board",
    "boards",
    "gateway_with",
    "line",
    "pytest_addoption",
    "pytest_configure",
    "pytest_generate_tests",
    "pytest_report_header",
    "pytest_runtest_makereport",
    "pytest_sessionfinish",
    "rig",
    "witness",
]
