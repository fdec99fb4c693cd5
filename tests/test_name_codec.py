"""The printed forms of names: fit for every client, told apart, stable, and always leading back to the identity."""

import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from mcpax.name_codec import NameCodec, NameStyle, render
from mcpax.names import MAX_NAME_CHARS, QualifiedName, dotted

FLAT = re.compile(r"[A-Za-z0-9_-]{1,64}")

nasty = st.sampled_from(["a", "_", "__", "a_", "_a", "a__b", "a_b", "-", "0", "x" * 63, "x" * 62 + "_", "0123456789ab_a"])
segments = st.one_of(nasty, st.text("ab_-", min_size=1, max_size=6), st.from_regex(r"[a-z0-9_-]{1,63}", fullmatch=True))
names = st.lists(segments, min_size=2, max_size=5).map(tuple).filter(lambda name: len(dotted(name)) <= MAX_NAME_CHARS)


@given(names)
def test_flat_names_fit_the_strictest_clients(name: QualifiedName) -> None:
    assert FLAT.fullmatch(render(name, NameStyle.FLAT))


@given(st.sets(names, max_size=12), st.sampled_from(NameStyle))
def test_no_two_names_print_alike(generated: set[QualifiedName], style: NameStyle) -> None:
    assert len({render(name, style) for name in generated}) == len(generated)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "b__c"), ("a__b", "c")),
        (("a_", "b"), ("a", "_b")),
        (("a", "_", "b"), ("a", "b")),
        (("a", "b_", "c"), ("a", "b", "_c")),
        (("x" * 63, "y"), ("x" * 62, "y")),
        (("e", "a" * 40, "b" * 40), ("e", "c" * 40, "b" * 40)),
    ],
)
def test_look_alikes_are_told_apart(one: QualifiedName, other: QualifiedName) -> None:
    assert render(one, NameStyle.FLAT) != render(other, NameStyle.FLAT)


def test_a_plain_name_cannot_be_made_to_look_like_a_hashed_one() -> None:
    hashed = render(("x" * 40, "y" * 40), NameStyle.FLAT)
    forged = tuple(hashed.split("__"))
    assert "__".join(forged) == hashed
    assert render(forged, NameStyle.FLAT) != hashed


@pytest.mark.parametrize(
    ("name", "style", "printed"),
    [
        (("edge", "env", "read_climate"), NameStyle.DOTTED, "edge.env.read_climate"),
        (("edge", "env", "read_climate"), NameStyle.COLON, "edge.env:read_climate"),
        (("edge", "env", "read_climate"), NameStyle.FLAT, "edge__env__read_climate"),
        (("solo",), NameStyle.COLON, "solo"),
        (("a" * 32, "b" * 30), NameStyle.FLAT, "a" * 32 + "__" + "b" * 30),
    ],
)
def test_printed_forms(name: QualifiedName, style: NameStyle, printed: str) -> None:
    assert render(name, style) == printed


def test_a_name_of_65_characters_is_shortened_at_its_beginning_and_carries_its_hash() -> None:
    name = ("a" * 33, "b" * 30)
    digest = hashlib.sha256(dotted(name).encode()).hexdigest()[:12]
    assert render(name, NameStyle.FLAT) == f"{digest}_{'a' * 19}__{'b' * 30}"


def test_names_that_print_alike_lead_nowhere_until_one_of_them_is_gone() -> None:
    codec = NameCodec()
    codec.add([("a", "b"), ("a__b",)])  # a name of one part never meets others in a tree; here it stands for a hash collision
    assert codec.resolve("a__b") is None
    assert codec.resolve("a.b") == ("a", "b")
    codec.discard([("a__b",)])
    assert codec.resolve("a__b") == ("a", "b")


class NamesComeAndGo(RuleBasedStateMachine):
    """Whatever else is added and discarded, every present name resolves in every style, to itself, and absent ones do not."""

    known = Bundle("known")

    def __init__(self) -> None:
        super().__init__()
        self.codec = NameCodec()
        self.present: set[QualifiedName] = set()
        self.printed: dict[QualifiedName, list[str]] = {}

    @rule(target=known, name=names)
    def add(self, name: QualifiedName) -> QualifiedName:
        self.codec.add([name])
        self.present.add(name)
        self.printed[name] = [render(name, style) for style in NameStyle]
        return name

    @rule(name=known)
    def add_again(self, name: QualifiedName) -> None:
        self.codec.add([name])
        self.present.add(name)

    @rule(name=known)
    def discard(self, name: QualifiedName) -> None:
        self.codec.discard([name])
        self.present.discard(name)

    @invariant()
    def every_printed_name_leads_to_its_identity_or_nowhere(self) -> None:
        for name, forms in self.printed.items():
            for printed in forms:
                assert self.codec.resolve(printed) == (name if name in self.present else None)


TestNamesComeAndGo = NamesComeAndGo.TestCase
