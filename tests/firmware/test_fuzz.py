"""The stub under libFuzzer: bounded runs with a fixed seed, from the dialogues of the byte vectors."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from tests.harness.side_by_side import SideBySide, parameters
from tests.vectors.read import unhex, vectors

ROOT = Path(__file__).resolve().parents[2]
RUNS = 100_000
RAW_BYTES = 0
"""Kind of a step in framed input: bytes as they are."""
WITH_CORPUS = [f"{profile}-{way}" for profile in ("a", "b") for way in ("raw", "framed")]
Runs = SideBySide[str, subprocess.CompletedProcess[str]]

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not shutil.which("clang"), reason="needs clang with libFuzzer")]


def dialogues(stub: str) -> Iterator[list[bytes]]:
    """What goes in between one boot and the next."""
    lines = [vector for vector in vectors("boot", "in") if vector.fields[0].split("/")[0] == stub]
    for is_boot, group in groupby(lines, key=lambda vector: vector.kind == "boot"):
        if not is_boot:
            yield [unhex(vector.fields[2]) for vector in group]


def run(fuzzer: str, scratch: Path) -> subprocess.CompletedProcess[str]:
    corpora = [corpus_of(fuzzer, scratch)] if fuzzer in WITH_CORPUS else []
    command = [str(ROOT / "build/fuzz" / fuzzer), f"-runs={RUNS}", "-seed=1", "-max_len=1500", "-artifact_prefix=./", *map(str, corpora)]
    return subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False, timeout=300)


def corpus_of(fuzzer: str, scratch: Path) -> Path:
    profile, way = fuzzer.split("-")
    corpus = scratch / "corpus"
    corpus.mkdir()
    for number, steps in enumerate(dialogues(profile)):
        framed = [bytes((RAW_BYTES, len(step))) + step for step in steps if len(step) < 256]
        (corpus / str(number)).write_bytes(b"".join(steps if way == "raw" else framed))
    return corpus


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    make = ["make", f"--jobs={os.cpu_count()}", "-C", str(ROOT / "firmware"), "fuzz"]
    built = subprocess.run(make, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    wanted = [str(fuzzer) for (fuzzer,) in parameters(request, "fuzzer")]
    scratch = {fuzzer: tmp_path_factory.mktemp(fuzzer) for fuzzer in wanted}
    with SideBySide(lambda fuzzer: run(fuzzer, scratch[fuzzer]), wanted) as running:
        yield running


def assert_found_nothing(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.req("AX-B.1-1", "AX-B.2-2")
@pytest.mark.parametrize("fuzzer", WITH_CORPUS)
def test_nothing_breaks_the_stub(fuzzer: str, runs: Runs) -> None:
    assert_found_nothing(runs.result(fuzzer))


@pytest.mark.req("AX-B.1-1")
@pytest.mark.parametrize("fuzzer", ["a51"])
def test_nothing_breaks_a_stub_that_keeps_no_response(fuzzer: str, runs: Runs) -> None:
    assert_found_nothing(runs.result(fuzzer))


@pytest.mark.req("AX-B.2-2")
@pytest.mark.parametrize("fuzzer", ["tight", "relay-board-b", "valve-actuator"])
def test_nothing_is_read_or_written_behind_the_smallest_buffers(fuzzer: str, runs: Runs) -> None:
    assert_found_nothing(runs.result(fuzzer))
