"""For all tests: the count of proven requirement lines at the end of a run."""

import pytest

from tests import requirement_marks


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(requirement_marks.summary(requirement_marks.load()))
