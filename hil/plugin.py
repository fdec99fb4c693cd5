"""The pytest side of the rig: which boards a test gets, and what is kept of how it went.

    --rig FILE                      the boards there are; hil/rig.toml if not given
    --rig-results FILE              what is left for `hil report`; build/hil/results.json if not given
    board                           one board, well and with its firmware; the test runs once for each of the rig
    boards                          all boards of the rig at once; a test module may have its own, of some of them (`taken`)
    line                            the board's line, for a test that speaks to it itself
    witness                         how to see on that board whether a call has run
    gateway_with(boards, …)           the real gateway on one or more of them
    @pytest.mark.needs("cut")       skips boards that cannot do that, and says why

A board is taken for the length of one test, and put right before the next.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from hil.bench import held, lease_name
from hil.boards import Board, BoardError
from hil.gateway import RunningGateway, gateway_on
from hil.lease import LeaseError
from hil.line import Line
from hil.places import DEFAULT_RIG, RESULTS
from hil.recording import Recorder, shown
from hil.recovery import BoardWedged
from hil.rig import LACKING, BoardSpec, Capability, Rig, load_rig
from hil.witness import Witness, witness_of
from mcpax.documents.faults import DocumentError

SEED = int(os.environ.get("MCPAX_SEED", "20260701"))
MARKER = "needs(*capabilities): what a board must be able to do for this test: flash, reset, power, cut, stats"
FIXTURES = {"board", "boards"}

GatewayWith = Callable[..., AbstractAsyncContextManager[RunningGateway]]

_RIG = pytest.StashKey[Rig]()
_RECORDER = pytest.StashKey[Recorder]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rig", type=Path, default=DEFAULT_RIG, metavar="FILE", help="boards to test, as in hil/rig.toml")
    parser.addoption("--rig-results", type=Path, default=RESULTS, metavar="FILE", help="where to leave what `hil report` shows")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    # Collected from further up, this comes too late to add its option; the default will do.
    try:
        config.stash[_RIG] = load_rig(Path(config.getoption("--rig", DEFAULT_RIG)))
    except DocumentError as error:
        raise pytest.UsageError(f"the rig cannot be used:\n{error}") from None
    config.stash[_RECORDER] = Recorder(config.stash[_RIG], SEED)


def pytest_report_header(config: pytest.Config) -> str:
    rig = config.stash[_RIG]
    return f"rig: {shown(rig.file)}, {len(rig.boards)} boards, seed {SEED} (MCPAX_SEED)"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "board" not in metafunc.fixturenames:
        return
    needed = {Capability(name) for mark in metafunc.definition.iter_markers("needs") for name in mark.args}
    boards = [pytest.param(spec, id=spec.name, marks=_skip_unless(spec, needed)) for spec in metafunc.config.stash[_RIG].boards]
    metafunc.parametrize("board", boards, indirect=True)


@pytest.fixture(scope="session")
def rig(request: pytest.FixtureRequest) -> Rig:
    return request.config.stash[_RIG]


@pytest.fixture
def board(request: pytest.FixtureRequest, rig: Rig) -> Iterator[Board]:
    for only in taken(request, rig, [request.param]):
        yield only[0]


@pytest.fixture
def boards(request: pytest.FixtureRequest, rig: Rig) -> Iterator[list[Board]]:
    each_thing_once = {lease_name(spec): spec for spec in rig.boards}
    yield from taken(request, rig, list(each_thing_once.values()))


@pytest.fixture
def line(board: Board) -> Iterator[Line]:
    with Line(board.port, board.map, board.log) as opened:
        yield opened


@pytest.fixture
def witness(board: Board) -> Witness:
    """How to see on this board whether a call has run."""
    found = witness_of(board.map)
    if found is None:
        pytest.skip(f"nothing in {board.map.name} shows whether a call has run; hil/witness.py could")
    return found


@pytest.fixture
def gateway_with() -> GatewayWith:
    """See `hil.gateway.gateway_on`."""
    return gateway_on


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if FIXTURES & set(getattr(item, "fixturenames", ())):
        item.config.stash[_RECORDER].note(item, report)
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    session.config.stash[_RECORDER].save(Path(session.config.getoption("--rig-results", RESULTS)))


def _skip_unless(spec: BoardSpec, needed: set[Capability]) -> list[pytest.MarkDecorator]:
    missing = [LACKING[capability] for capability in Capability if capability in needed - spec.capabilities]
    return [pytest.mark.skip(reason=f"{spec.name}: {'; '.join(missing)}")] if missing else []


def taken(request: pytest.FixtureRequest, rig: Rig, specs: Sequence[BoardSpec]) -> Iterator[list[Board]]:
    """For a `boards` fixture: these, well and with their firmware, as long as the test runs."""
    plugins = request.config.pluginmanager
    terminal, capturing = plugins.get_plugin("terminalreporter"), plugins.get_plugin("capturemanager")

    def waiting(text: str) -> None:
        # Now, not with the test's report: until then it would look as if the test hung.
        with capturing.global_and_fixture_disabled() if capturing is not None else contextlib.nullcontext():
            if terminal is not None:
                terminal.ensure_newline()
                terminal.write_line(text)
                terminal.flush()

    try:
        with held(rig, specs, request.node.name, seed=SEED, waiting=waiting) as found:
            request.config.stash[_RECORDER].holds(request.node, found)
            yield found
            faults = [f"{each.name}: {fault}" for each in found if (fault := _fault(each))]
    except (BoardError, BoardWedged, LeaseError) as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None  # it says all; where the rig was meanwhile helps nobody
    if faults:
        pytest.fail(f"the chip stopped during the test: {'; '.join(faults)}", pytrace=False)


def _fault(each: Board) -> str | None:
    stats = each.stats()
    return None if stats is None else stats.fault
