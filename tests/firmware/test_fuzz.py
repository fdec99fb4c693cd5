"""The stub under libFuzzer: bounded runs with a fixed seed, from the dialogues of the byte vectors."""

import shutil
import subprocess
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from tests.vectors.read import unhex, vectors

ROOT = Path(__file__).resolve().parents[2]
RUNS = 100_000
RAW_BYTES = 0
"""Kind of a step in framed input: bytes as they are."""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not shutil.which("clang"), reason="needs clang with libFuzzer")]


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    make = subprocess.run(["make", "-C", str(ROOT / "firmware"), "fuzz"], capture_output=True, text=True, check=False)
    assert make.returncode == 0, make.stdout + make.stderr


def dialogues(stub: str) -> Iterator[list[bytes]]:
    """What goes in between one boot and the next."""
    lines = [vector for vector in vectors("boot", "in") if vector.fields[0].split("/")[0] == stub]
    for is_boot, group in groupby(lines, key=lambda vector: vector.kind == "boot"):
        if not is_boot:
            yield [unhex(vector.fields[2]) for vector in group]


def run(fuzzer: str, scratch: Path, *corpora: Path) -> None:
    command = [str(ROOT / "build/fuzz" / fuzzer), f"-runs={RUNS}", "-seed=1", "-max_len=1500", "-artifact_prefix=./", *map(str, corpora)]
    done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.req("AX-B.1-1", "AX-B.2-2")
@pytest.mark.parametrize("way", ["raw", "framed"])
@pytest.mark.parametrize("profile", ["a", "b"])
def test_nothing_breaks_the_stub(profile: str, way: str, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for number, steps in enumerate(dialogues(profile)):
        framed = [bytes((RAW_BYTES, len(step))) + step for step in steps if len(step) < 256]
        (corpus / str(number)).write_bytes(b"".join(steps if way == "raw" else framed))
    run(f"{profile}-{way}", tmp_path, corpus)


@pytest.mark.req("AX-B.1-1")
def test_nothing_breaks_a_stub_that_keeps_no_response(tmp_path: Path) -> None:
    run("a51", tmp_path)


@pytest.mark.req("AX-B.2-2")
@pytest.mark.parametrize("fuzzer", ["tight", "relay-board-b", "valve-actuator"])
def test_nothing_is_read_or_written_behind_the_smallest_buffers(fuzzer: str, tmp_path: Path) -> None:
    run(fuzzer, tmp_path)
