"""msp430-gcc for a machine without one: takes mspgcc's options and runs clang and lld instead.

mspgcc brings a C library, startup code and linker scripts, clang for MSP430 brings none of them. So the link adds ours, and the library's
place stays empty.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

FIRMWARE = Path(__file__).resolve().parents[2]
STARTUP = FIRMWARE / "ports/msp430_crt.c"
LINKER_SCRIPTS = FIRMWARE / "ports/ld"
HEADERS = Path("/usr/msp430/include")
"""Where Debian's msp430mcu has the chips' registers."""

CLANG = ("clang-19", "--target=msp430")
LLD = ("ld.lld-19", "--nmagic", "-mllvm", "-inline-threshold=0")
"""What whole-program optimisation inlines beyond what is called once makes the program larger, whatever -Oz asked for."""
SMALLEST = ("-Oz", "-ffreestanding", "-fno-builtin", "-ffunction-sections", "-fdata-sections")
WHOLE_PROGRAM = "-flto"
MACHINE = "-mmcu="
FOR_LINKER = "-Wl,"
WITH_VALUE = ("-o", "-L", "-T", "-u")
"""Options of the link that take the next word with them, and mean the same to lld."""


def run(*command: str) -> None:
    """Run a program; when it fails, end with its status, as its message is out already."""
    status = subprocess.run(command, check=False).returncode
    if status != 0:
        sys.exit(status)


def compile_for(chip: str, arguments: list[str], *optimisations: str) -> None:
    """Compile, with the registers of the chip within reach."""
    own = [word for word in arguments if word != "-Os"]
    run(*CLANG, f"{MACHINE}{chip}", *SMALLEST, *optimisations, "-isystem", str(HEADERS), *own)


def link_for(chip: str, arguments: list[str]) -> None:
    """Link with startup code, which is kept from whole-program optimisation: the compiler calls some of it only afterwards."""
    with tempfile.TemporaryDirectory() as scratch:
        startup = str(Path(scratch) / "startup.o")
        compile_for(chip, ["-std=gnu99", "-c", str(STARTUP), "-o", startup])
        run(*LLD, "-T", str(LINKER_SCRIPTS / f"{chip}.ld"), startup, *for_lld(arguments))


def for_lld(arguments: list[str]) -> Iterator[str]:
    """What of a compiler's command line the linker needs: files, paths and what is marked for it. Libraries there are none."""
    words = iter(arguments)
    for word in words:
        if word.startswith(FOR_LINKER):
            yield from ("--gc-sections" if part == "-gc-sections" else part for part in word.split(",")[1:])
        elif word in WITH_VALUE:
            yield from (word, next(words))
        elif word.startswith("-L") or not word.startswith("-"):
            yield word


def main() -> None:
    """Compile if asked to (-c, -E, -S), else link."""
    arguments = sys.argv[1:]
    chip = next((word.removeprefix(MACHINE) for word in arguments if word.startswith(MACHINE)), "")
    if not chip:
        sys.exit(f"msp430-gcc: say which chip: {MACHINE}msp430g2553")
    if {"-c", "-E", "-S"} & set(arguments):
        compile_for(chip, arguments, WHOLE_PROGRAM)
    else:
        link_for(chip, arguments)


if __name__ == "__main__":
    main()
