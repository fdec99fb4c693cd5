"""PlatformIO, before the build: makes mcpax_map.h from the device map that the environment's `custom_map` names.

The header is written only when it changes, so that nothing is compiled twice. With `custom_debug = yes` it has the debug tools too.
"""

import subprocess
import sys
from pathlib import Path

from SCons.Script import DefaultEnvironment

env = DefaultEnvironment()
firmware = Path(env.subst("$PROJECT_DIR"))
sys.path.insert(0, str(firmware / "pio"))  # build scripts are executed, not imported: they have no siblings

from mcpax_command import McpaxMissingError, mcpax_command  # noqa: E402


def fail(message: str) -> None:
    """End the build with a message."""
    sys.stderr.write(f"Error: {message}\n")
    env.Exit(1)


def header_text(name: str, *, debug: bool) -> str:
    """What mcpax makes of the map of that name."""
    device_map = firmware.parent / "device-maps" / f"{name}.toml"
    if not device_map.is_file():
        fail(f"{device_map} does not exist: custom_map of environment {env['PIOENV']} in platformio.ini names it")
    try:
        command = [*mcpax_command(firmware.parent), "map", "header", str(device_map)]
        made = subprocess.run(command + ["--debug"] * debug, stdout=subprocess.PIPE, text=True, encoding="utf-8", check=False)
    except (McpaxMissingError, OSError) as error:
        fail(str(error))
    if made.returncode != 0:
        fail(f"no header from {device_map}: mcpax says why above")
    return made.stdout


debug = env.GetProjectOption("custom_debug", "no") == "yes"
text = header_text(env.GetProjectOption("custom_map"), debug=debug)
header = Path(env.subst("$BUILD_DIR")) / "map" / "mcpax_map.h"
header.parent.mkdir(parents=True, exist_ok=True)
if not header.is_file() or header.read_text(encoding="utf-8") != text:
    header.write_text(text, encoding="utf-8")

env.Append(CPPPATH=[str(header.parent)], CPPDEFINES=[("MCPAX_DEBUG", 1)] if debug else [])
