"""A board is held by one process at a time, who holds it is told, and a holder that dies holds nothing."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hil import bench
from hil.lease import LeaseError, LeaseTimeout, lease
from hil.places import DEFAULT_RIG, ROOT
from hil.rig import load_rig

HOLD = """
import sys
from pathlib import Path
from hil.lease import lease
with lease(Path(sys.argv[1]), "uno", "another test"):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextlib.contextmanager
def another_holder(directory: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the board until it is told to let go, by the end of its input."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(directory)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_who_waits_too_long_is_told_who_holds_it(tmp_path: Path) -> None:
    with (
        another_holder(tmp_path) as other,
        pytest.raises(LeaseTimeout, match=rf"uno was not free .* held by another test \(process {other.pid}, since"),
        lease(tmp_path, "uno", "this test", patience_s=0.2),
    ):
        pytest.fail("held twice")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_holder_that_dies_holds_nothing(number: signal.Signals, tmp_path: Path) -> None:
    waited: list[str] = []
    with another_holder(tmp_path) as other:

        def end_the_other(text: str) -> None:
            waited.append(text)
            os.kill(other.pid, number)

        with lease(tmp_path, "uno", "this test", patience_s=30, waiting=end_the_other) as taken:
            assert len(waited) == 1
            assert waited[0].startswith(f"this test waits for uno, held by another test (process {other.pid}")
            assert not taken.undisturbed


def test_a_board_is_handed_on_when_it_is_let_go(tmp_path: Path) -> None:
    with another_holder(tmp_path) as other:
        assert other.stdin is not None
        stdin = other.stdin
        with lease(tmp_path, "uno", "this test", patience_s=30, waiting=lambda _: stdin.close()):
            assert other.wait(30) == 0


def test_other_boards_are_free_meanwhile(tmp_path: Path) -> None:
    with another_holder(tmp_path), lease(tmp_path, "nucleo", "this test", patience_s=0) as taken:
        assert taken.name == "nucleo"


def test_a_holder_knows_whether_somebody_else_was_there(tmp_path: Path) -> None:
    with lease(tmp_path, "uno", "first") as first:
        assert not first.undisturbed
    with lease(tmp_path, "uno", "second") as second:
        assert second.undisturbed
    with another_holder(tmp_path):
        pass
    with lease(tmp_path, "uno", "third", patience_s=30) as third:
        assert not third.undisturbed


def test_a_damaged_lease_file_harms_nobody(tmp_path: Path) -> None:
    (tmp_path / "uno.lock").write_text("[]\0 not JSON")
    with lease(tmp_path, "uno", "this test") as taken:
        assert not taken.undisturbed


def test_the_folder_may_be_shared_by_users(tmp_path: Path) -> None:
    """Whoever makes the file lets all others write to it, whatever their umask; and a file that is there is never made again."""
    before = os.umask(0o077)
    try:
        with lease(tmp_path, "uno", "this test"):
            assert stat.S_IMODE((tmp_path / "uno.lock").stat().st_mode) == 0o666
    finally:
        os.umask(before)
    (tmp_path / "uno.lock").chmod(0o664)
    with lease(tmp_path, "uno", "this test") as taken:
        assert taken.undisturbed
    assert stat.S_IMODE((tmp_path / "uno.lock").stat().st_mode) == 0o664, "that of another is left as it is"


def test_a_folder_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name, where in (("uno", tmp_path / "file"), ("u" * 300, tmp_path)):
        with pytest.raises(LeaseError, match=rf"cannot be held: .*{name}\.lock: .*chmod 1777 {where}"), lease(where, name, "this test"):
            pytest.fail("held")


def test_a_child_that_inherits_the_lease_holds_the_board(tmp_path: Path) -> None:
    with lease(tmp_path, "uno", "this test") as taken:
        child = subprocess.Popen(["sleep", "60"], pass_fds=[taken.descriptor])
    try:
        with pytest.raises(LeaseTimeout), lease(tmp_path, "uno", "another test", patience_s=0):
            pytest.fail("held twice")
    finally:
        child.kill()
        child.wait()
    with lease(tmp_path, "uno", "another test", patience_s=0):
        pass


def test_all_names_of_a_port_are_one_board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_id = tmp_path / "by-id"
    by_id.mkdir()
    monkeypatch.setattr(bench, "BY_ID_DIR", by_id)
    (tmp_path / "ttyACM0").write_text("")
    (tmp_path / "mine").symlink_to(tmp_path / "ttyACM0")

    def named(name: str) -> str:
        return bench.lease_name(replace(load_rig(DEFAULT_RIG).boards[0], emulator=None, port=str(tmp_path / name)))

    assert named("mine") == named("ttyACM0"), "without a name of udev's, that of the device"
    (by_id / "usb-b").symlink_to("../ttyACM0")
    (by_id / "usb-a").symlink_to("../ttyACM0")
    names = {named(name) for name in ("mine", "ttyACM0", "by-id/usb-a", "by-id/usb-b")}
    assert names == {str(by_id / "usb-a").strip("/").replace("/", "+")}
    for link in by_id.iterdir():
        link.unlink()
    assert named("by-id/usb-a") in names, "it keeps its name while it is off"
