"""The decoders under a coverage-guided fuzzer and under Hypothesis: no crash, no hang, bounded memory, with and without a valid CRC."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import TARGETS, seeds

ROOT = Path(__file__).resolve().parents[2]
RUNS = int(os.environ.get("MCPAX_FUZZ_RUNS", "20000"))
MAX_TOTAL_S = max(6, RUNS // 4000)
RSS_LIMIT_MB = 512
ONE_INPUT_S = 2
MIN_RUNS = 1000
"""Fewer would mean that it did not really run."""

fuzzed = pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris has no wheel for this machine")


@fuzzed
@pytest.mark.parametrize("target", TARGETS)
def test_fuzzing_finds_nothing(target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = tmp_path / "corpus"
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
        f"-artifact_prefix={tmp_path}/",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.targets", target, *options, str(corpus)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=MAX_TOTAL_S + 60,
        check=False,
    )
    found = [f"{path.name}: {path.read_bytes().hex()}" for path in tmp_path.glob("*-*") if path.is_file()]
    assert done.returncode == 0, f"{found}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
    runs = int(re.findall(r"number_of_executed_units:\s*(\d+)", done.stderr)[0])
    coverage = [int(each) for each in re.findall(r"cov: (\d+)", done.stderr)]
    with capsys.disabled():
        print(f"\nfuzz {target}: {runs} runs, coverage {coverage[0] if coverage else 0} to {coverage[-1] if coverage else 0}")
    assert runs >= MIN_RUNS
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
