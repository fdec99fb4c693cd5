"""For all tests: the count of proven requirement lines at the end of a run, no property judged by how busy the machine is, and no test that
hears or misses what is logged because of another before it."""

from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
import structlog

from tests import requirement_marks

hypothesis.settings.register_profile("mcpax", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("mcpax")


@pytest.fixture(autouse=True)
def _logs_as_by_default(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A command that runs in this process sets up logging for good, and loggers would keep it."""
    configure = structlog.configure

    def forgettable(**settings: Any) -> None:
        configure(**{**settings, "cache_logger_on_first_use": False})

    monkeypatch.setattr(structlog, "configure", forgettable)
    yield
    structlog.reset_defaults()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(requirement_marks.summary(requirement_marks.load()))
