"""Where a notification came from: one level more at each aggregator, and nobody speaks for a place beside his own."""

import pytest

from mcpax.core.source import source_of
from mcpax.names import MAX_NAME_CHARS
from tests.core.rig import request

LONGEST = "edge" + ("." + "x" * 60) * 4 + ".y"
"""With "root." before it, as long as a name may be."""
assert len(f"root.{LONGEST}") == MAX_NAME_CHARS


@pytest.mark.parametrize("stated", ["edge", "edge.relay", "edge.site.line-2.relay_1", LONGEST])
def test_an_aggregator_speaks_for_those_below_it(stated: str) -> None:
    assert source_of("root", request("edge", is_aggregator=True), stated) == f"root.{stated}"


@pytest.mark.parametrize(
    "stated",
    [
        pytest.param(None, id="none"),
        pytest.param("", id="empty"),
        pytest.param("other.relay", id="another's"),
        pytest.param("edgeways.relay", id="only begins alike"),
        pytest.param("edge-2", id="only begins alike, alone"),
        pytest.param("root.edge.relay", id="begins at the root"),
        pytest.param(".edge", id="begins with a dot"),
        pytest.param("edge.", id="ends with a dot"),
        pytest.param("edge..relay", id="an empty segment"),
        pytest.param("edge.Relay", id="no segment"),
        pytest.param("edge.re lay", id="a space"),
        pytest.param("edge.relay\n", id="a line end"),
        pytest.param("edge." + "x" * 64, id="a segment too long"),
        pytest.param(f"{LONGEST}y", id="too long altogether"),
        pytest.param("edge" + ".x" * 100_000, id="much too long"),
        pytest.param(["edge", "relay"], id="a list"),
        pytest.param(7, id="a number"),
        pytest.param({"edge": 1}, id="an object"),
    ],
)
def test_what_is_not_its_own_to_state_is_replaced(stated: object) -> None:
    assert source_of("root", request("edge", is_aggregator=True), stated) == "root.edge"


@pytest.mark.parametrize("stated", ["edge", "edge.relay", "other.relay", None])
def test_a_leaf_states_nothing(stated: object) -> None:
    assert source_of("root", request("edge"), stated) == "root.edge"
