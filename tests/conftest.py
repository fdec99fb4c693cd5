"""For all tests: the count of proven requirement lines at the end of a run, and no property judged by how busy the machine is."""

import hypothesis
import pytest
import structlog

from tests import requirement_marks

hypothesis.settings.register_profile("mcpax", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("mcpax")


@pytest.fixture(autouse=True)
def _logs_as_before() -> None:
    """A command that a test ran in this process has configured logging for the tests after it, too."""
    structlog.reset_defaults()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(requirement_marks.summary(requirement_marks.load()))
