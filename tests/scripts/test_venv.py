"""The virtual environment: made once, taken as it is while nothing changed, never believed after an interruption."""

import shutil

from tests.scripts.machine import Machine

PIP = "python -m pip --quiet --disable-pip-version-check --no-input install"


def locked(machine: Machine, name: str) -> str:
    return f"{PIP} --require-hashes --requirement {machine.project}/{name}"


def project(machine: Machine) -> str:
    return f"{PIP} --no-deps --no-build-isolation --editable {machine.project}"


def test_made_from_the_lock_then_left_alone(machine: Machine) -> None:
    machine.python()
    first = machine.shell("need_venv runtime")
    assert (first.status, first.stdout) == (0, "")
    assert first.calls == [f"python3 -m venv --clear -- {machine.project}/.venv", locked(machine, "requirements.lock"), project(machine)]
    second = machine.shell("need_venv runtime")
    assert (second.status, second.stdout, second.stderr, second.calls) == (0, "", "", [])


def test_dev_includes_runtime_but_not_the_other_way_round(machine: Machine) -> None:
    machine.python()
    machine.shell("need_venv runtime")
    assert machine.shell("need_venv dev").calls == [locked(machine, "requirements-dev.lock"), project(machine)]
    assert machine.shell("need_venv runtime").calls == []


def test_a_changed_lock_is_taken_up(machine: Machine) -> None:
    machine.python()
    machine.shell("need_venv runtime")
    (machine.project / "requirements.lock").write_text("other==2\n")
    assert machine.shell("need_venv runtime").calls == [locked(machine, "requirements.lock"), project(machine)]


def test_failure_leaves_no_belief_behind(machine: Machine) -> None:
    machine.python(pip="exit 1")
    outcome = machine.shell("need_venv runtime; echo not reached")
    assert (outcome.status, outcome.stdout) == (1, "")
    assert "pip could not install what requirements.lock names" in outcome.stderr
    machine.python()
    shutil.copy(machine.bin.parent / "blank" / "python", machine.project / ".venv" / "bin")
    assert machine.shell("need_venv runtime").calls == [locked(machine, "requirements.lock"), project(machine)]


def test_failed_renewal_withdraws_the_belief(machine: Machine) -> None:
    machine.python()
    machine.shell("need_venv runtime")
    lock = machine.project / "requirements.lock"
    before = lock.read_text()
    lock.write_text("other==2\n")
    machine.program("python", 'case "$*" in "-m pip --version") ;; "-m pip "*) exit 1 ;; esac', folder=machine.project / ".venv" / "bin")
    assert machine.shell("need_venv runtime").status == 1
    lock.write_text(before)
    assert machine.shell("need_venv runtime").calls, "half of the other lock may be installed by now"


def test_a_broken_environment_is_made_anew(machine: Machine) -> None:
    machine.python()
    machine.shell("need_venv runtime")
    (machine.project / ".venv" / "bin" / "python").unlink()
    assert machine.shell("need_venv runtime").calls[0].startswith("python3 -m venv --clear")


def test_a_moved_environment_is_made_anew(machine: Machine) -> None:
    machine.python()
    machine.shell("need_venv runtime")
    machine.project = machine.project.rename(machine.project.with_name("moved"))
    assert machine.shell("need_venv runtime").calls[0].startswith("python3 -m venv --clear")


def test_foreign_python_paths_are_kept_out(machine: Machine) -> None:
    outcome = machine.shell('echo "${PYTHONPATH-unset} ${PYTHONHOME-unset}"', PYTHONPATH="/opt/ros", PYTHONHOME="/opt/python")
    assert outcome.stdout == "unset unset\n"
