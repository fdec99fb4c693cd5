"""Missing Debian packages: installed where that is possible, named where it is not, and nothing done where none is missing."""

import pytest

from tests.scripts.machine import Machine

APT = "apt-get -q -o DPkg::Lock::Timeout=300"
INSTALL = f"{APT} install --yes --no-install-recommends"


def test_nothing_missing_nothing_said(machine: Machine) -> None:
    machine.packages("libc6-dev", "python3-venv")
    outcome = machine.shell("need_debian libc6-dev python3-venv")
    assert (outcome.status, outcome.stdout, outcome.stderr, outcome.calls) == (0, "", "", [])


def test_a_tool_from_elsewhere_serves_as_well(machine: Machine) -> None:
    machine.program("clang")
    assert machine.shell("need_debian clang").calls == []


@pytest.mark.parametrize(("known", "update"), [(True, ""), (False, "sudo apt-get update && ")])
def test_without_root_or_sudo_the_packages_are_named(machine: Machine, known: bool, update: str) -> None:
    machine.packages("libc6-dev", known=known)
    outcome = machine.shell("need_debian libc6-dev gcc make; echo not reached")
    assert outcome.status == 1
    assert outcome.stdout == ""
    assert outcome.calls == []
    assert outcome.stderr.splitlines() == [
        "mcpax: missing Debian packages:",
        "    gcc                  compiles the virtual boards",
        "    make                 builds the virtual boards",
        "mcpax: error: installing needs root or sudo. Have this run, then start again:",
        f"    {update}sudo apt-get install gcc make",
    ]


def test_sudo_that_would_ask_for_a_password_is_as_good_as_none(machine: Machine) -> None:
    machine.program("sudo", "exit 1")
    outcome = machine.shell("need_debian make")
    assert outcome.status == 1
    assert outcome.calls == ["sudo -n true"]
    assert "sudo apt-get install make" in outcome.stderr


def test_sudo_installs(machine: Machine) -> None:
    machine.program("sudo", '[[ $1 == -n ]] || "$@"')
    outcome = machine.shell("need_debian make")
    assert outcome.status == 0
    assert outcome.calls == ["sudo -n true", f"sudo env DEBIAN_FRONTEND=noninteractive {INSTALL} make", f"{INSTALL} make"]


def test_root_installs_only_what_is_missing_and_keeps_stdout_clean(machine: Machine) -> None:
    machine.user("root", 0)
    machine.packages("libc6-dev")
    outcome = machine.shell("need_debian libc6-dev gcc make")
    assert outcome.status == 0
    assert outcome.calls == [f"{INSTALL} gcc make"]
    assert outcome.stdout == ""
    assert "chatter" in outcome.stderr


def test_package_lists_are_fetched_where_absent(machine: Machine) -> None:
    machine.user("root", 0)
    machine.packages(known=False)
    assert machine.shell("need_debian make").calls == [f"{APT} update", f"{INSTALL} make"]


def test_package_lists_are_fetched_where_stale(machine: Machine) -> None:
    machine.user("root", 0)
    machine.packages(install=f'[[ $(grep -c "update$" "{machine.log}") == 1 ]]')
    outcome = machine.shell("need_debian make")
    assert outcome.status == 0
    assert outcome.calls == [f"{INSTALL} make", f"{APT} update", f"{INSTALL} make"]


def test_apt_that_fails_ends_the_script(machine: Machine) -> None:
    machine.user("root", 0)
    machine.packages(install="exit 100")
    outcome = machine.shell("need_debian make; echo not reached")
    assert (outcome.status, outcome.stdout) == (1, "")
    assert "apt-get could not install make: its own message is above" in outcome.stderr


def test_another_system_is_told_what_it_lacks(machine: Machine) -> None:
    (machine.bin / "apt-get").unlink()
    outcome = machine.shell("need_debian make")
    assert outcome.status == 1
    assert "there is no apt-get here: install make (Debian's names)" in outcome.stderr


@pytest.mark.parametrize(
    ("clang", "apt_cache", "expected"),
    [
        pytest.param("echo 19.1.7", "", "libclang-rt-19-dev\n", id="from clang itself"),
        pytest.param(None, 'echo "clang"; echo "  Depends: clang-14"', "libclang-rt-14-dev\n", id="from the package lists"),
        pytest.param(None, "exit 100", "", id="not known yet"),
    ],
)
def test_name_of_the_fuzzer_runtime(machine: Machine, clang: str | None, apt_cache: str, expected: str) -> None:
    machine.program("apt-cache", apt_cache)
    if clang:
        machine.program("clang", clang)
    outcome = machine.shell("fuzzer_runtime_package")
    assert (outcome.status, outcome.stdout) == (0, expected)


def test_python_and_other_packages_are_asked_for_in_one_go(machine: Machine) -> None:
    outcome = machine.shell("need_packages make")
    assert outcome.status == 1
    assert "sudo apt-get install python3 python3-venv make" in outcome.stderr


def test_python_without_venv_needs_the_package_of_its_version(machine: Machine) -> None:
    machine.python(venv=False)
    machine.program(
        "python3", f'case "$*" in *base_executable*) echo "{machine.bin}/python3" ;; *ensurepip*) exit 1 ;; *) echo python3.12-venv ;; esac'
    )
    outcome = machine.shell("need_packages")
    assert "sudo apt-get install python3.12-venv" in outcome.stderr


def test_old_python_is_refused_with_a_way_out(machine: Machine) -> None:
    machine.program("python3", '[[ $1 == --version ]] && echo "Python 3.9.2" || exit 1')
    outcome = machine.shell("need_packages make; echo not reached")
    assert (outcome.status, outcome.stdout, outcome.calls) == (1, "", ["python3 --version"])
    assert f"Python 3.11 or newer is needed, and {machine.bin}/python3 is Python 3.9.2." in outcome.stderr
    assert "MCPAX_PYTHON=" in outcome.stderr


def test_wrong_choice_of_python_is_refused(machine: Machine) -> None:
    machine.python()
    outcome = machine.shell("need_packages", MCPAX_PYTHON="/no/such python")
    assert outcome.status == 1
    assert "MCPAX_PYTHON=/no/such python is not a Python 3.11 or newer" in outcome.stderr
