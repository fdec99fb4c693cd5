"""The decoders under a coverage-guided fuzzer and under Hypothesis: no crash, no hang, bounded memory, with and without a valid CRC."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import TARGETS, seeds
from tests.harness.side_by_side import SideBySide, parameters

ROOT = Path(__file__).resolve().parents[2]
RUNS = int(os.environ.get("MCPAX_FUZZ_RUNS", "20000"))
MAX_TOTAL_S = max(6, RUNS // 4000)
RSS_LIMIT_MB = 512
ONE_INPUT_S = 2
MIN_RUNS = 1000
"""Fewer would mean that it did not really run."""

fuzzed = pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris has no wheel for this machine")


@dataclass(frozen=True)
class Ended:
    status: int
    said: str
    found: list[str]
    """Inputs that broke it."""


def fuzz(target: str, folder: Path) -> Ended:
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(seeds()):
        (corpus / f"{number:03}").write_bytes(seed)
    options = [
        f"-runs={RUNS}",
        f"-max_total_time={MAX_TOTAL_S}",
        f"-rss_limit_mb={RSS_LIMIT_MB}",
        f"-timeout={ONE_INPUT_S}",
        "-max_len=400",
        "-seed=1",
        "-print_final_stats=1",
        f"-artifact_prefix={folder}/",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.targets", target, *options, str(corpus)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=MAX_TOTAL_S + 60,
        check=False,
    )
    found = [f"{path.name}: {path.read_bytes().hex()}" for path in folder.glob("*-*") if path.is_file()]
    return Ended(done.returncode, f"{done.stdout[-2000:]}\n{done.stderr}", found)


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SideBySide[str, Ended]]:
    folders = {str(target): tmp_path_factory.mktemp(str(target)) for (target,) in parameters(request, "target")}
    with SideBySide(lambda target: fuzz(target, folders[target]), folders) as running:
        yield running


@fuzzed
@pytest.mark.parametrize("target", TARGETS)
def test_fuzzing_finds_nothing(target: str, runs: SideBySide[str, Ended], capsys: pytest.CaptureFixture[str]) -> None:
    ended = runs.result(target)
    assert ended.status == 0, f"{ended.found}\n{ended.said[-5000:]}"
    executed = int(re.findall(r"number_of_executed_units:\s*(\d+)", ended.said)[0])
    coverage = [int(each) for each in re.findall(r"cov: (\d+)", ended.said)]
    with capsys.disabled():
        print(f"\nfuzz {target}: {executed} runs, coverage {coverage[0] if coverage else 0} to {coverage[-1] if coverage else 0}")
    assert executed >= MIN_RUNS
    assert coverage, "nothing was instrumented: this was no coverage-guided fuzzing"
    assert coverage[-1] > 10


@pytest.mark.parametrize("target", TARGETS)
def test_any_bytes_are_taken(target: str) -> None:
    """The same targets under Hypothesis, which runs everywhere and shrinks what it finds."""
    frames = st.sampled_from(seeds())
    damaged = st.builds(
        lambda frame, at, byte: frame[: at % (len(frame) + 1)] + bytes((byte,)) + frame[at % (len(frame) + 1) + 1 :],
        frames,
        st.integers(0, 500),
        st.integers(0, 255),
    )
    cut = st.builds(lambda frame, at: frame[: at % (len(frame) + 1)], frames, st.integers(0, 500))
    streams = st.lists(st.one_of(st.binary(max_size=40), frames, damaged, cut), max_size=5).map(b"".join)

    @settings(max_examples=150, deadline=None)
    @given(st.one_of(st.binary(max_size=300), streams))
    @example(b"")
    @example(b"\xa5")
    def run(data: bytes) -> None:
        TARGETS[target](data)

    run()
