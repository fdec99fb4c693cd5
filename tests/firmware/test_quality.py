"""The C code under four judges: strict warnings of every compiler, GCC's analyzer, cppcheck, clang-tidy (.clang-tidy). All must be silent.

What is known to be a false alarm is said so at its line. The sanitizers and the fuzzers have tests of their own.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.harness.side_by_side import SideBySide, parameters

ROOT = Path(__file__).resolve().parents[2]
FIRMWARE = ROOT / "firmware"
LIBRARY = FIRMWARE / "lib/mcpax"
EMULATORS = ROOT / "hil/emulators"
HEADERS = ROOT / "build/quality"

STRICT = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wstrict-prototypes", "-Werror")
CPPCHECK = (
    "cppcheck",
    "--quiet",
    "--enable=warning,style,performance,portability",
    "--inline-suppr",
    "--error-exitcode=1",
    "--std=c99",
    "--template=gcc",
)
MAP_FOLDERS = (ROOT / "device-maps", ROOT / "tests/firmware/maps")

TOOLS = ("cc", "avr-gcc", "arm-none-eabi-gcc", "clang-19", "cppcheck", "clang-tidy-19")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not all(map(shutil.which, TOOLS)), reason=f"needs {', '.join(TOOLS)}")]


@dataclass(frozen=True)
class Target:
    """A machine to compile for."""

    compiler: tuple[str, ...]
    clang: tuple[str, ...] | None
    """What makes clang-tidy compile for it; None if it cannot."""
    cppcheck: tuple[str, ...]


HOST = Target(("cc", "-std=gnu99", "-O2"), ("-std=gnu99",), ("--platform=unix64",))
AVR = Target(
    ("avr-gcc", "-std=gnu99", "-Os", "-mmcu=atmega328p", "-DF_CPU=16000000L"),
    None,  # clang does not take the assembly in avr-libc's headers
    ("--platform=avr8", "-D__AVR__", "-DF_CPU=16000000L"),
)
M0 = Target(
    # main.c takes the address of a variable that has no value, to know where the stack is.
    ("arm-none-eabi-gcc", "-std=gnu99", "-Os", "-mthumb", "-mcpu=cortex-m0plus", "-ffreestanding", "-Wno-maybe-uninitialized"),
    ("--target=arm-none-eabi", "-mcpu=cortex-m0plus", "-std=gnu99", "-ffreestanding"),
    ("--platform=arm32-wchar_t4", "-D__arm__"),
)
MSP430 = Target(
    ("clang-19", "--target=msp430", "-mmcu=msp430g2553", "-std=gnu99", "-Oz", "-ffreestanding"),
    ("--target=msp430", "-mmcu=msp430g2553", "-std=gnu99", "-ffreestanding"),
    ("--platform=msp430_eabi_large_datamodel", "-D__MSP430__", "-D__clang__"),
)


@dataclass(frozen=True)
class Unit:
    """Sources that are compiled in the same way."""

    name: str
    target: Target
    sources: tuple[Path, ...]
    include: tuple[Path, ...] = ()
    map: str = ""
    options: tuple[str, ...] = ()

    def flags(self) -> list[str]:
        made = (header_folder(self.map, debug="-DMCPAX_DEBUG=1" in self.options),) if self.map else ()
        return [*(f"-I{folder}" for folder in (*made, *self.include)), *self.options]


Judge = Callable[[Unit, Path], str]
"""Compiles a unit in a folder; what it has to say of it, empty if it is content."""
Verdicts = SideBySide[tuple[Judge, Unit], str]


@cache
def header_folder(map_name: str, *, debug: bool) -> Path:
    folder = HEADERS / (map_name + "-debug" * debug)
    folder.mkdir(parents=True, exist_ok=True)
    (source,) = (path for path in (each / f"{map_name}.toml" for each in MAP_FOLDERS) if path.exists())
    command = [sys.executable, "-m", "mcpax", "map", "header", str(source), "-o", str(folder / "mcpax_map.h"), *["--debug"] * debug]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def library(map_name: str, *options: str) -> Unit:
    include = (LIBRARY / "include", LIBRARY / "src")
    return Unit(" ".join(("library", map_name, *options)), HOST, tuple(sorted(LIBRARY.glob("src/*.c"))), include, map_name, options)


def virtual(map_name: str, example: str) -> Unit:
    sources = (FIRMWARE / f"examples/{example}.c", *sorted((FIRMWARE / "virtual").glob("*.c")))
    return Unit(f"virtual {map_name}", HOST, sources, (LIBRARY / "include", FIRMWARE / "virtual", FIRMWARE / "ports"), map_name)


def chip(board: str, target: Target, *ports: str) -> Unit:
    """All that an image is made of, as a debug build: that has some more."""
    sources = (*LIBRARY.glob("src/*.c"), *(FIRMWARE / f"ports/{name}.c" for name in ("main", "memory", *ports)))
    include = (LIBRARY / "include", LIBRARY / "src", FIRMWARE / "ports", ROOT / "boards" / board)
    return Unit(
        f"chip {board}", target, (*sorted(sources), FIRMWARE / "examples/relay_board.c"), include, "relay-board-b", ("-DMCPAX_DEBUG=1",)
    )


def emulator(name: str) -> Unit:
    return Unit(f"emulator {name}", HOST, tuple(sorted((*EMULATORS.glob("*.c"), *EMULATORS.glob(f"{name}/*.c")))), (EMULATORS,))


UNITS = (
    library("vector-a"),
    library("vector-a8", "-DMCPAX_WINDOW=2", "-DMCPAX_KEPT=1"),
    library("vector-b"),
    library("relay-board-51", "-DMCPAX_KEPT=0"),
    library("valve-actuator"),
    virtual("env-sensor", "env_sensor"),
    virtual("relay-board", "relay_board"),
    virtual("valve-actuator", "valve_actuator"),
    chip("uno", AVR, "atmega328p"),
    chip("l053", M0, "stm32l0"),
    chip("microbit", M0, "nrf51"),
    chip("msp430g2553", MSP430, "msp430g2", "msp430_crt"),
    emulator("avr"),
    emulator("msp430"),
)


def complaints(command: Iterable[str], folder: Path) -> str:
    """What a judge has to say; empty if it is content."""
    done = subprocess.run([*command], cwd=folder, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def warnings(unit: Unit, folder: Path) -> str:
    compiler, *options = unit.target.compiler
    return complaints([compiler, *STRICT, *options, *unit.flags(), "-c", *map(str, unit.sources)], folder)


def analysis(unit: Unit, folder: Path) -> str:
    return complaints([*unit.target.compiler, "-fanalyzer", "-Werror", *unit.flags(), "-c", *map(str, unit.sources)], folder)


def cppcheck(unit: Unit, folder: Path) -> str:
    return complaints([*CPPCHECK, *unit.target.cppcheck, *unit.flags(), *map(str, unit.sources)], folder)


def clang_tidy(unit: Unit, folder: Path) -> str:
    assert unit.target.clang is not None
    config = f"--config-file={ROOT / '.clang-tidy'}"
    return complaints(["clang-tidy-19", "--quiet", config, *map(str, unit.sources), "--", *unit.target.clang, *unit.flags()], folder)


JUDGEMENTS: list[tuple[Judge, Unit]] = [
    *((clang_tidy, unit) for unit in UNITS if unit.target.clang is not None),  # the slowest first
    *((cppcheck, unit) for unit in UNITS),
    *((analysis, unit) for unit in UNITS if unit.target is HOST),
    *((warnings, unit) for unit in UNITS),
]


@pytest.fixture(scope="module")
def verdicts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Verdicts]:
    wanted = [(judge, unit) for judge, unit in JUDGEMENTS if (judge, unit) in parameters(request, "judge", "unit")]
    for _, unit in wanted:
        unit.flags()  # which makes the header, once
    with SideBySide(lambda asked: asked[0](asked[1], tmp_path_factory.mktemp("objects")), wanted) as asked:
        yield asked


@pytest.mark.parametrize(("judge", "unit"), JUDGEMENTS, ids=lambda part: part.name if isinstance(part, Unit) else part.__name__)
def test_no_judge_finds_anything(judge: Judge, unit: Unit, verdicts: Verdicts) -> None:
    assert verdicts.result((judge, unit)) == ""


PLANTED: dict[Judge, str] = {
    warnings: "unsigned char low(int number);\nunsigned char low(int number)\n{\n    return number;\n}\n",
    analysis: "#include <stdlib.h>\nvoid twice(char *p);\nvoid twice(char *p)\n{\n    free(p);\n    free(p);\n}\n",
    cppcheck: "int last(void);\nint last(void)\n{\n    int some[4] = {0};\n    return some[4];\n}\n",
    clang_tidy: "int down(int n);\nint down(int n)\n{\n    return n > 0 ? down(n - 1) : 0;\n}\n",
}


@pytest.mark.parametrize("judge", PLANTED, ids=lambda judge: judge.__name__)
def test_every_judge_finds_what_was_planted(judge: Judge, tmp_path: Path) -> None:
    """A check that cannot fail is none."""
    source = tmp_path / "planted.c"
    source.write_text(PLANTED[judge])
    assert "planted.c" in judge(Unit("planted", HOST, (source,)), tmp_path)
