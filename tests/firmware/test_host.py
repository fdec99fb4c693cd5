"""The C library on this machine: its test programs, built with sanitizers, over the shared byte vectors."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.vectors.read import WIRE

LEAST_RAM_BYTES = 4096
"""What a device may have at most to count as constrained (draft §1.1): three quarters of it are left to the application."""
ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "build/tests"

pytestmark = pytest.mark.skipif(not (shutil.which("make") and shutil.which("cc")), reason="needs make and a C compiler")


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    make = subprocess.run(
        ["make", f"--jobs={os.cpu_count()}", "-C", str(ROOT / "firmware"), "tests"], capture_output=True, text=True, check=False
    )
    assert make.returncode == 0, make.stdout + make.stderr


def run(program: str) -> None:
    done = subprocess.run([str(PROGRAMS / program), str(WIRE)], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.req("AX-B.1-1")
@pytest.mark.parametrize("framing", ["sof-crc8", "sof-crc16"])
def test_profile_a_frames_and_resynchronisation(framing: str) -> None:
    run(f"frames-{framing}")


@pytest.mark.req("AX-B.2-2")
def test_profile_b_frames() -> None:
    run("frames-cobs")


@pytest.mark.req("AX-B.1-1", "AX-B.1-3", "AX-8.3-1")
@pytest.mark.parametrize("stub", ["a-1-1", "a-2-2", "a-2-1", "a8-1-1", "a51-1-0"])
def test_profile_a_stub(stub: str) -> None:
    run(f"stub-{stub}")


@pytest.mark.req("AX-B.2-2", "AX-8.3-2")
@pytest.mark.parametrize("stub", ["b-1-1", "b-2-2", "b-2-1"])
def test_profile_b_stub(stub: str) -> None:
    run(f"stub-{stub}")


@pytest.mark.parametrize("profile", ["a", "b"])
def test_numbers_of_16_bits_and_results_left_unset(profile: str) -> None:
    run(f"narrow-{profile}")


@pytest.mark.req("AX-1.1-c")
def test_library_allocates_nothing_and_needs_no_library(tmp_path: Path) -> None:
    """Every symbol that the compiled library wants comes from itself, from the port, or is a handler; its tables are read-only."""
    sources = sorted((ROOT / "firmware/lib/mcpax/src").glob("*.c"))
    include = [ROOT / "firmware/lib/mcpax/include", ROOT / "build/maps/vector-a"]
    flags = ["-std=c99", "-Os", "-ffreestanding", "-fno-stack-protector", *(f"-I{path}" for path in include)]
    subprocess.run(["cc", *flags, "-c", *map(str, sources)], cwd=tmp_path, check=True)
    objects = sorted(str(path) for path in tmp_path.glob("*.o"))
    subprocess.run(["ld", "-r", "-o", "all.o", *objects], cwd=tmp_path, check=True)
    # Without JSON, sessions or names there is little to keep; on a chip with shorter pointers it is less still.
    _, data, bss, *_ = map(int, _output(["size", "all.o"], tmp_path).splitlines()[1].split()[:3])
    assert data + bss < LEAST_RAM_BYTES / 4
    symbols = [line.split() for line in _output(["nm", "all.o"], tmp_path).splitlines()]
    wanted = {name for kind, name in (words[-2:] for words in symbols) if kind == "U"}
    compiler_own = {"memcpy", "memset", "memmove", "_GLOBAL_OFFSET_TABLE_"}
    assert not {name for name in wanted - compiler_own if not name.startswith(("mcpax_tool_", "mcpax_port_put"))}
    kinds = {name: kind for kind, name in (words[-2:] for words in symbols)}
    # Handlers' addresses are relocated, which moves the table to .data.rel.ro: read-only all the same.
    assert kinds["mcpax_arguments"] == kinds["mcpax_outputs"] == "R"
    assert ".data.rel.ro" in _output(["objdump", "-t", "all.o"], tmp_path) or kinds["mcpax_tools"] == "R"
    assert not {name for name, kind in kinds.items() if kind in "dD" and name != "mcpax_tools"}, "initialised variables cost flash and RAM"
    assert {name for name, kind in kinds.items() if kind in "bB"} == {"mcpax"}, "all that it remembers is one struct"


def _output(command: list[str], cwd: Path) -> str:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=True).stdout
