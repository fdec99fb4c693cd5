"""Finds the `mcpax` command, which makes C headers from device maps. Knows nothing of PlatformIO."""

import importlib.util
import os
import shlex
import shutil
import sys
from pathlib import Path

ADVICE = """\
mcpax, which makes the header from the device map, was not found: neither {venv} nor `mcpax` on the PATH nor `{python} -m mcpax`.
    Do one of these, then build again:
    - `scripts/run --check` in the project's folder makes .venv with mcpax in it
    - `pip install` the project's folder into a Python 3.11 or newer, and have its bin folder on the PATH
    - name the command in the environment: MCPAX=/path/to/mcpax"""


class McpaxMissingError(Exception):
    """There is no mcpax here; the text says where it was looked for and what to do."""


def mcpax_command(project: Path) -> list[str]:
    """The words that start mcpax: as the environment says (MCPAX), else the project's own, the one on the PATH, or this Python's."""
    if named := os.environ.get("MCPAX"):
        return shlex.split(named)
    in_venv = project / ".venv" / ("Scripts/mcpax.exe" if os.name == "nt" else "bin/mcpax")
    if in_venv.exists():
        return [str(in_venv)]
    if on_path := shutil.which("mcpax"):
        return [on_path]
    if importlib.util.find_spec("mcpax"):
        return [sys.executable, "-m", "mcpax"]
    raise McpaxMissingError(ADVICE.format(venv=in_venv, python=sys.executable))
