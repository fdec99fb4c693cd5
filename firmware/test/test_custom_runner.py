"""`pio test -e native`: the library's host tests, built with sanitizers by the Makefile, each test program as a PlatformIO test case."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
from platformio.public import TestCase, TestRunnerBase, TestStatus

FIRMWARE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(FIRMWARE / "pio"))

from mcpax_command import mcpax_command  # noqa: E402

RESULT = re.compile(r"(?P<program>.+): (?P<checks>\d+) checks, (?P<failed>\d+) failed\n")
"""The last line of every test program."""


class CustomTestRunner(TestRunnerBase):
    """Builds and runs with make; PlatformIO counts and reports. An exception in here becomes an errored test case."""

    def stage_building(self) -> None:
        """Build the test programs."""
        if not self.options.without_building and self.make("tests").wait() != 0:
            raise RuntimeError("the host tests did not build: the compiler's message is above")

    def stage_uploading(self) -> None:
        """Nothing: the programs run here."""

    def stage_testing(self) -> None:
        """Run them all, and make a test case of each program's last line."""
        if self.options.without_testing:
            return
        tests = self.make("test")
        assert tests.stdout is not None
        said = ""
        for line in tests.stdout:
            click.echo(line, nl=False)
            said += line
            if result := RESULT.fullmatch(line):
                failed = int(result["failed"])
                status = TestStatus.FAILED if failed else TestStatus.PASSED
                message = f"{failed} of {result['checks']} checks failed" if failed else f"{result['checks']} checks"
                self.test_suite.add_case(TestCase(Path(result["program"]).name, status, message, stdout=said))
                said = ""
        if tests.wait() != 0 and not self.test_suite.get_status_nums(TestStatus.FAILED):
            raise RuntimeError("a test program ended before its result: its message is above")

    def make(self, target: str) -> "subprocess.Popen[str]":
        """Start make, whose output comes through a pipe when the tests run."""
        command = ["make", "--silent", "-C", str(FIRMWARE), target]
        environment = os.environ | {"MCPAX": shlex.join(mcpax_command(FIRMWARE.parent))}
        output = subprocess.PIPE if target == "test" else None
        return subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT, text=True)
