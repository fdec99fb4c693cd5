"""The commands themselves: run keeps stdout for the result, test tells every failure and ends with pytest's own line."""

from pathlib import Path

import pytest

from tests.scripts.machine import Machine

PASSED = "===== 12 passed in 0.10s ====="


@pytest.fixture
def ready(machine: Machine) -> Machine:
    """Return a machine on which everything can be installed and built."""
    machine.user("root", 0)
    machine.python()
    machine.program("make", "echo chatter; [[ $* != *--question* ]]")
    tools = machine.project / ".venv" / "bin"
    for tool in ("ruff", "mypy"):
        machine.program(tool, folder=tools)
    machine.program("shellcheck")
    machine.program("clang", "echo 14.0.6")
    machine.program("python", f'[[ $2 == pytest ]] || exit 0; echo "requirements: 1 proven, 2 planned of 3"; echo "{PASSED}"', folder=tools)
    (tools / "pip").write_text(f"#!{tools}/python")
    return machine


def test_run_prints_only_what_the_gateway_prints(ready: Machine, tmp_path: Path) -> None:
    ready.program(
        "mcpax", 'printf "{\\"where\\": \\"%s\\", \\"arguments\\": \\"%s|%s|%s\\"}\\n" "$PWD" "$@"', folder=ready.project / ".venv" / "bin"
    )
    outcome = ready.run("scripts/run", "--check", "two words", cwd=tmp_path)
    assert outcome.status == 0
    assert outcome.stdout == f'{{"where": "{tmp_path}", "arguments": "demo|--check|two words"}}\n'
    assert "chatter" in outcome.stderr


def test_run_ends_as_the_gateway_ends(ready: Machine) -> None:
    ready.program("mcpax", "exit 7", folder=ready.project / ".venv" / "bin")
    assert ready.run("scripts/run").status == 7


def test_run_stops_where_the_boards_do_not_build(ready: Machine) -> None:
    ready.program("make", "exit 2")
    ready.program("mcpax", folder=ready.project / ".venv" / "bin")
    outcome = ready.run("scripts/run", "--check")
    assert (outcome.status, outcome.stdout) == (1, "")
    assert "the virtual boards did not build" in outcome.stderr
    assert not any(call.startswith("mcpax") for call in outcome.calls)


def test_test_ends_with_the_count_and_the_closing_line_of_pytest(ready: Machine) -> None:
    outcome = ready.run("scripts/test")
    assert outcome.status == 0
    assert outcome.stdout.splitlines()[-2:] == ["requirements: 1 proven, 2 planned of 3", PASSED]
    for stage in ("ruff check", "ruff format", "mypy", "shellcheck", "C build", "emulators", "images", "pytest"):
        assert any(line.startswith(stage) and " ok " in line and line.endswith(" s") for line in outcome.stdout.splitlines())


@pytest.mark.parametrize(
    ("tool", "where", "stage"),
    [
        ("ruff", "venv", "ruff check,ruff format"),
        ("mypy", "venv", "mypy"),
        ("shellcheck", "", "shellcheck"),
        ("make", "", "C build,emulators,images"),
    ],
)
def test_test_fails_with_any_stage_and_still_runs_the_others(ready: Machine, tool: str, where: str, stage: str) -> None:
    ready.program(tool, "exit 3", folder=ready.project / ".venv" / "bin" if where else None)
    outcome = ready.run("scripts/test")
    assert outcome.status == 1
    assert outcome.stdout.splitlines()[-2:] == [f"failed: {stage}", PASSED]


def test_test_fails_with_pytest(ready: Machine) -> None:
    closing = "===== 1 failed in 0.10s ====="
    ready.program("python", f'[[ $2 == pytest ]] || exit 0; echo "{closing}"; exit 1', folder=ready.project / ".venv" / "bin")
    outcome = ready.run("scripts/test")
    assert outcome.status == 1
    assert outcome.stdout.splitlines()[-2:] == ["failed: pytest", closing]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "--color=no"),
        (["--fast"], "--color=no -m not slow"),
        (["--fast", "-k", "a or b"], "--color=no -m not slow -k a or b"),
        (["tests/scripts", "-x"], "--color=no tests/scripts -x"),
    ],
)
def test_test_hands_its_arguments_to_pytest(ready: Machine, arguments: list[str], expected: str) -> None:
    assert f"python -m pytest {expected}" in ready.run("scripts/test", *arguments).calls


def test_continuous_integration_runs_the_tests(ready: Machine) -> None:
    ready.program("python", '[[ $2 == pytest ]] || exit 0; echo "CI=$CI"', folder=ready.project / ".venv" / "bin")
    outcome = ready.run(".ci/run")
    assert outcome.status == 0
    assert outcome.stdout.splitlines()[-1] == "CI=true"


@pytest.mark.parametrize("asked", ["-h", "--help"])
@pytest.mark.parametrize("script", ["hil", "flash"])
def test_help_needs_no_set_up(machine: Machine, script: str, asked: str) -> None:
    outcome = machine.run(f"scripts/{script}", "uno", asked)
    assert (outcome.status, outcome.stderr, outcome.calls) == (0, "", [])
    assert f"  scripts/{script} " in outcome.stdout
    assert "source" not in outcome.stdout, "the comment at its top, and no more"


def test_hil_sets_up_what_is_missing_and_hands_on_its_arguments(ready: Machine) -> None:
    outcome = ready.run("scripts/hil", "up", "two words")
    assert outcome.status == 0
    assert outcome.calls[-1] == "python -m hil up two words"
    assert any(call.startswith("make ") and call.endswith("hil/emulators") for call in outcome.calls)
    assert any(call.startswith("apt-get ") and "libsimavr-dev" in call for call in outcome.calls)
    assert outcome.stdout == ""
    helped = ready.run("scripts/hil", "-h")
    assert helped.calls == ["python -m hil -h"], "with its own words, once it is there"


def test_footprint_builds_the_8051s_image_too(ready: Machine) -> None:
    made = [call for call in ready.run("scripts/footprint").calls if call.startswith("make ") and call.endswith("mcs51")]
    assert len(made) == 1
    assert not any(call.endswith("mcs51") for call in ready.run("scripts/footprint", "--no-build").calls)
