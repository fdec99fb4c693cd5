"""Names: the draft's rules for segments and lengths."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpax.names import MAX_NAME_CHARS, InvalidName, check_segment, dotted, parse_dotted, qualified

THE_DRAFTS_RULE = re.compile(r"[a-z0-9_-]{1,63}")
SEGMENTS = st.from_regex(THE_DRAFTS_RULE, fullmatch=True)


@pytest.mark.req("AX-4.1-1")
@given(st.one_of(SEGMENTS, st.text(max_size=70), st.text("abz019_-.A é\n", max_size=66)))
def test_a_segment_is_taken_exactly_if_it_matches_the_drafts_expression(text: str) -> None:
    if THE_DRAFTS_RULE.fullmatch(text):
        assert check_segment(text) == text
    else:
        with pytest.raises(InvalidName):
            check_segment(text)


@pytest.mark.req("AX-4.1-1")
@pytest.mark.parametrize(
    ("segment", "words"),
    [
        ("", "empty segment"),
        ("a" * 64, "segment of 64 characters, at most 63"),
        ("a.b", "contains a dot"),
        ("Env Sensor", "contains a space, 'E', 'S': use only"),
        ("é", "contains 'é'"),
        ("env\n", r"contains '\\n'"),
        ("١", "contains '١'"),
    ],
)
def test_a_refused_segment_is_told_why(segment: str, words: str) -> None:
    with pytest.raises(InvalidName, match=words):
        check_segment(segment)


def of_length(chars: int) -> list[str]:
    """Segments whose dotted form has this many characters."""
    text = "x" * chars
    parts = [text[start : start + 64] for start in range(0, chars, 64)]
    return [part[:-1] if len(part) == 64 else part for part in parts]


@pytest.mark.req("AX-4.1-2")
@pytest.mark.parametrize("chars", [1, 63, 129, 254, 255])
def test_up_to_255_characters_a_name_is_kept_whole(chars: int) -> None:
    segments = of_length(chars)
    assert dotted(qualified(segments)) == ".".join(segments)
    assert len(".".join(segments)) == chars


@pytest.mark.req("AX-4.1-2")
@pytest.mark.parametrize("chars", [257, 300, 1000])
def test_a_longer_name_is_refused_and_never_truncated(chars: int) -> None:
    with pytest.raises(InvalidName, match=f"name of {chars} characters, at most 255"):
        qualified(of_length(chars))


@pytest.mark.req("AX-4.1-2")
def test_256_characters_are_one_too_many() -> None:
    with pytest.raises(InvalidName, match="name of 256 characters"):
        qualified(["x" * 63, "x" * 63, "x" * 63, "x" * 62, "x"])


@given(st.lists(SEGMENTS, max_size=8))
def test_what_is_printed_is_read_back(segments: list[str]) -> None:
    if segments and len(".".join(segments)) <= MAX_NAME_CHARS:
        assert parse_dotted(dotted(qualified(segments))) == tuple(segments)
    else:
        with pytest.raises(InvalidName):
            qualified(segments)


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", "a.B"])
def test_text_that_is_not_a_name_is_refused(text: str) -> None:
    with pytest.raises(InvalidName):
        parse_dotted(text)
