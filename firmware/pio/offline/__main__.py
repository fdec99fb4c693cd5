"""`scripts/pio-offline`: PlatformIO on the project's firmware, with a core directory of our own making and without the network."""

import argparse
import os
import sys
from pathlib import Path

from seed import ProgramsMissingError, seed

FIRMWARE = Path(__file__).resolve().parents[2]

QUIET = {
    "PLATFORMIO_DISABLE_UPGRADE_CHECK": "true",
    "PLATFORMIO_SETTING_ENABLE_TELEMETRY": "no",
}
"""PlatformIO's own switches for what it would say to, or ask of, the outside."""

STRICT = "-Werror"
"""Only here, where the compilers are known: another version's new warning must not keep a user from building."""


def main() -> None:
    """Seed the core directory, then become `pio` with the remaining arguments."""
    parser = argparse.ArgumentParser(
        prog="pio-offline",
        description="Runs PlatformIO without its registry: `pio-offline run -e uno`. All other arguments go to `pio`.",
        add_help=False,
        allow_abbrev=False,
    )
    parser.add_argument("--core-dir", type=Path, default=FIRMWARE.parent / "build/pio-core", metavar="DIR")
    options, arguments = parser.parse_known_args()
    core = options.core_dir.resolve()
    try:
        seed(core)
    except ProgramsMissingError as error:
        sys.exit(f"mcpax: error: {error}")

    flags = f"{STRICT} {os.environ.get('PLATFORMIO_BUILD_FLAGS', '')}".strip()
    environment = os.environ | QUIET | {"PLATFORMIO_CORE_DIR": str(core), "PLATFORMIO_BUILD_FLAGS": flags}
    os.chdir(FIRMWARE)
    os.execve(sys.executable, [sys.executable, "-m", "platformio", *arguments], environment)


if __name__ == "__main__":
    main()
