"""Fills a PlatformIO core directory with what catalogue.py names, from the programs of this machine and SCons of this Python."""

import fcntl
import hashlib
import importlib.metadata
import json
import shutil
import sys
from pathlib import Path

from catalogue import MSP430, PLATFORMS, Package, Platform

HERE = Path(__file__).resolve().parent
STAMP = "seeded-from"
SCONS = """\
import sys
sys.path.insert(0, {site!r})
from SCons.Script import main
sys.exit(main())
"""
MSP430_GCC = """\
#!/bin/sh
exec '{python}' '{script}' "$@"
"""


class ProgramsMissingError(Exception):
    """Programs are not installed; the text says which, and the Debian packages that have them."""


def seed(core: Path) -> None:
    """Make the directory what it should be. Once it is, this takes no time, also when several start at once."""
    core.mkdir(parents=True, exist_ok=True)
    with (core / ".seeding").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp, wanted = core / STAMP, _digest()
        if stamp.is_file() and stamp.read_text() == wanted:
            return
        _check_programs()
        stamp.unlink(missing_ok=True)
        for folder in ("packages", "platforms"):
            shutil.rmtree(core / folder, ignore_errors=True)
        _scons(core)
        for package in {package for platform in PLATFORMS for package in platform.packages}:
            _package(core, package)
        _msp430_programs(core / "packages" / MSP430.name / "bin")
        for platform in PLATFORMS:
            _platform(core, platform)
        stamp.write_text(wanted)


def _digest() -> str:
    """Of everything that the contents depend on: these files and where they are, this Python, PlatformIO and SCons."""
    digest = hashlib.sha256(f"{HERE} {sys.executable}".encode())
    for distribution in ("platformio", "scons"):
        digest.update(importlib.metadata.version(distribution).encode())
    for source in sorted(HERE.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def _check_programs() -> None:
    missing = [
        (program, package.debian)
        for platform in PLATFORMS
        for package in platform.packages
        for program in package.programs
        if shutil.which(program) is None
    ]
    if missing:
        programs = ", ".join(sorted({program for program, _ in missing}))
        debian = " ".join(sorted({name for _, names in missing for name in names}))
        raise ProgramsMissingError(f"not installed: {programs}. On Debian: sudo apt-get install {debian}")


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def _describe(folder: Path, kind: str, name: str, version: str) -> None:
    """What PlatformIO writes beside a package that it has installed; it ignores packages of other owners than it asked for."""
    origin = {"owner": "platformio", "id": None, "name": name, "requirements": None, "uri": None}
    _write(folder / ".piopm", json.dumps({"type": kind, "name": name, "version": version, "spec": origin}))


def _package(core: Path, package: Package) -> Path:
    """A package without contents: the programs are on the PATH already."""
    folder = core / "packages" / package.name
    _write(folder / "package.json", json.dumps({"name": package.name, "version": package.version, "system": "*"}))
    _describe(folder, "tool", package.name, package.version)
    return folder


def _scons(core: Path) -> None:
    """SCons of this Python, under the version that PlatformIO asks for: ~4.41101.0 is its way to write 4.11.1."""
    from platformio.dependencies import get_core_dependencies  # noqa: PLC0415 # slow, and rarely needed

    version = get_core_dependencies()["tool-scons"].lstrip("~^")
    folder = _package(core, Package("tool-scons", version, (), ()))
    site = importlib.metadata.distribution("scons").locate_file("")
    _write(folder / "scons.py", SCONS.format(site=str(site)))


def _msp430_programs(folder: Path) -> None:
    _write(folder / "msp430-gcc", MSP430_GCC.format(python=sys.executable, script=HERE / "msp430_gcc.py"), mode=0o755)
    for program in ("ar", "objcopy", "ranlib", "size"):
        (folder / f"msp430-{program}").symlink_to(str(shutil.which(f"llvm-{program}-19")))


def _platform(core: Path, platform: Platform) -> None:
    folder = core / "platforms" / platform.name
    _write(folder / "platform.json", json.dumps(platform.manifest()))
    _write(folder / "builder/main.py", (HERE / "builder.py").read_text())
    if platform.board:
        _write(folder / "boards" / f"{platform.board.id}.json", json.dumps(platform.board.manifest()))
    _describe(folder, "platform", platform.name, platform.version)
