"""Taking a board for a while: leased, opened, with its own firmware on it and well; given back in the end, whatever happened.

The one place that puts leases, boards and recovery together. Knows nothing of pytest.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from hil.boards import Board, open_board
from hil.lease import lease
from hil.recovery import ensure_well
from hil.rig import BoardSpec, Capability, Rig
from mcpax.bridge.ports import BY_ID_DIR


@contextlib.contextmanager
def held(
    rig: Rig, specs: Sequence[BoardSpec], what: str, *, seed: int = 1, waiting: Callable[[str], None] = lambda _: None
) -> Iterator[list[Board]]:
    """Hold boards while the block runs."""
    with contextlib.ExitStack() as stack:
        # In one order everywhere, or two who want the same two boards could wait for each other for ever.
        found = {spec.name: stack.enter_context(_held_one(rig, spec, what, seed, waiting)) for spec in sorted(specs, key=lease_name)}
        yield [found[spec.name] for spec in specs]


@contextlib.contextmanager
def _held_one(rig: Rig, spec: BoardSpec, what: str, seed: int, waiting: Callable[[str], None]) -> Iterator[Board]:
    with (
        lease(rig.lease_dir, lease_name(spec), what, waiting=waiting) as taken,
        open_board(spec, seed=seed, held_by=[taken.descriptor]) as board,
    ):
        if not board.fresh and not taken.undisturbed and Capability.FLASH in spec.capabilities:
            board.flash()
        board.recovery = [str(step) for step in ensure_well(board)]
        board.log.frames.clear()  # of what follows, not of getting there
        yield board


def lease_name(spec: BoardSpec) -> str:
    """Of the thing itself: two entries for one port, or two names of it, are one board."""
    return _one_name(spec.port).strip("/").replace("/", "+") if spec.port is not None else spec.name


def _one_name(port: str) -> str:
    """Of all names of a port always the same: one that udev made of the device itself, if it has any. Others change with the order of
    plugging, also while somebody holds the board."""
    device = os.path.realpath(port)
    of_the_device = (str(link) for link in sorted(BY_ID_DIR.glob("*")) if os.path.realpath(link) == device)
    return next(of_the_device, port if Path(port).parent == BY_ID_DIR else device)
