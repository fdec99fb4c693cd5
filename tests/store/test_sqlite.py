"""Identity that outlives restarts, in few writes and bounded space."""

import sqlite3
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpax.store.sqlite import REFRESH_S, SCHEMA_VERSION, Store, StoreError


class Clock:
    def __init__(self, at: float = 1_800_000_000.0) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "mcpax.db"


def writes_of(path: Path, action: Callable[[], object]) -> bool:
    """Whether the file's content was changed by what another connection did."""
    witness = sqlite3.connect(path)
    try:
        before = witness.execute("PRAGMA data_version").fetchone()
        action()
        return bool(witness.execute("PRAGMA data_version").fetchone() != before)
    finally:
        witness.close()


def test_ids_are_uuids_and_the_same_after_a_restart(path: Path) -> None:
    first = Store(path)
    ids = [first.aggregator_id(), first.subserver_id("usb-a"), first.subserver_id("usb-b")]
    first.close()
    again = Store(path)
    assert [again.subserver_id("usb-b"), again.subserver_id("usb-a"), again.aggregator_id()] == ids[::-1]
    assert len(set(ids)) == 3
    assert all(str(uuid.UUID(each)) == each for each in ids)


def test_two_aggregators_are_two(tmp_path: Path) -> None:
    assert Store(tmp_path / "a" / "x.db").aggregator_id() != Store(tmp_path / "b" / "x.db").aggregator_id()


def test_a_restart_and_boards_seen_again_write_nothing(path: Path) -> None:
    clock = Clock()
    store = Store(path, now=clock)
    store.aggregator_id()
    store.subserver_id("usb-a")

    def a_day_of_plugging() -> None:
        for _ in range(24):
            restarted = Store(path, now=clock)
            restarted.aggregator_id()
            restarted.subserver_id("usb-a")
            restarted.close()
            clock.at += REFRESH_S / 24

    assert not writes_of(path, a_day_of_plugging)
    clock.at += 1
    assert writes_of(path, lambda: store.subserver_id("usb-a"))
    assert not writes_of(path, lambda: store.subserver_id("usb-a"))


def test_a_clock_set_back_does_not_make_a_board_young_for_ever(path: Path) -> None:
    clock = Clock()
    store = Store(path, now=clock)
    store.subserver_id("usb-a")
    clock.at -= 10 * REFRESH_S
    assert writes_of(path, lambda: store.subserver_id("usb-a"))


def test_the_boards_not_seen_for_longest_go_first(path: Path) -> None:
    clock = Clock()
    store = Store(path, now=clock, max_subservers=2)
    old, kept = store.subserver_id("old"), store.subserver_id("kept")
    clock.at += 2 * REFRESH_S
    assert store.subserver_id("kept") == kept
    new = store.subserver_id("new")
    assert [store.subserver_id("kept"), store.subserver_id("new")] == [kept, new]
    assert store.subserver_id("old") != old


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.floats(-1e6, 1e6)), max_size=30))
def test_never_more_than_allowed_and_the_board_at_hand_is_always_kept(visits: list[tuple[str, float]]) -> None:
    clock = Clock()
    with tempfile.TemporaryDirectory() as directory:
        store = Store(Path(directory) / "mcpax.db", now=clock, max_subservers=3)
        for hardware, ahead in visits:
            clock.at += ahead
            given_ = store.subserver_id(hardware)
            assert store.subserver_id(hardware) == given_
            assert store._db.execute("SELECT count(*) FROM subserver").fetchone()[0] <= 3
        store.close()


def test_the_file_is_for_its_owner_alone(path: Path) -> None:
    Store(path).aggregator_id()
    assert [file.name for file in path.parent.iterdir() if file.stat().st_mode & 0o077] == []


def use(path: Path) -> None:
    store = Store(path)
    store.aggregator_id()
    store.subserver_id("usb-a")


def refusal(path: Path) -> str:
    with pytest.raises(StoreError) as caught:
        use(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_a_newer_schema_is_refused_and_left_as_it_is(path: Path) -> None:
    path.parent.mkdir()
    newer = sqlite3.connect(path)
    newer.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    newer.close()
    before = path.read_bytes()
    assert f"schema {SCHEMA_VERSION + 1}, this one knows {SCHEMA_VERSION}). Upgrade mcpax." in refusal(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_with_what_to_do(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"not a database" * 100)
    assert "not a database. Check owner and free space, or set another state_dir." in refusal(path)


def test_a_database_that_went_bad_is_refused_when_it_shows(path: Path) -> None:
    store = Store(path)
    store.aggregator_id()
    store.close()
    data = bytearray(path.read_bytes())
    page = int.from_bytes(data[16:18], "big")
    data[page:] = b"\xff" * (len(data) - page)  # the header is whole, the tables are not
    path.write_bytes(data)
    assert "set another state_dir" in refusal(path)


def test_a_directory_in_its_place_and_a_file_in_place_of_its_directory(tmp_path: Path) -> None:
    assert "unable to open" in refusal(tmp_path)
    (tmp_path / "file").write_text("")
    assert "Check owner" in refusal(tmp_path / "file" / "mcpax.db")


def test_a_file_locked_by_another_is_told_as_such(path: Path) -> None:
    store = Store(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    store._db.execute("PRAGMA busy_timeout = 0")
    with pytest.raises(StoreError, match="database is locked"):
        store.subserver_id("usb-a")
    other.close()
    assert store.subserver_id("usb-a")
