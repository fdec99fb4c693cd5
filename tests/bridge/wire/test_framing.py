"""Framing: whatever comes over the line, intact messages come out, damage costs the damaged frame, and memory is bounded."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpax.bridge.maps.model import Crc
from mcpax.bridge.wire.crc import crc16
from mcpax.bridge.wire.framing import BREAK_OFF, MAX_LEN, CobsFraming, Decoder, Framing, SofFraming
from tests.vectors.read import Vector, unhex, vectors

FRAMINGS: dict[str, Framing] = {"sof-crc8": SofFraming(Crc.CRC8), "sof-crc16": SofFraming(Crc.CRC16), "cobs": CobsFraming()}

LARGEST = 300
SOF16 = FRAMINGS["sof-crc16"]
messages = st.binary(min_size=3, max_size=LARGEST)
streams = st.lists(messages, max_size=6)
framings = st.sampled_from(list(FRAMINGS.values()))
noise = st.one_of(st.binary(max_size=20), st.text("\xa5\x03\x05\x80\x81\x00\x01", max_size=12).map(lambda text: text.encode("latin-1")))


def in_chunks(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


def heard(framing: Framing, *chunks: bytes, largest: int = LARGEST) -> list[bytes]:
    """All messages of a line that ends in silence."""
    decoder = framing.decoder(largest)
    return [message for chunk in chunks for message in decoder.feed(chunk)] + decoder.silence()


def held(decoder: Decoder) -> int:
    return len(decoder._buffer)  # type: ignore[attr-defined]


# --- the shared vectors


@pytest.mark.req("AX-B.1-1")
@pytest.mark.parametrize("vector", vectors("frame"), ids=str)
def test_frames_of_the_vectors_in_both_directions(vector: Vector) -> None:
    name, _, message, frame = vector.fields
    framing = FRAMINGS[name]
    assert framing.encode(unhex(message)).hex() == frame
    decoder = framing.decoder(len(unhex(message)))
    assert decoder.feed(unhex(frame)) == [unhex(message)]
    assert (decoder.counters.frames, decoder.counters.crc_errors, decoder.counters.oversize, decoder.counters.resyncs) == (1, 0, 0, 0)
    assert held(decoder) == 0


@pytest.mark.req("AX-B.1-1")
@pytest.mark.parametrize("step", [1, 2, 1000])
@pytest.mark.parametrize("vector", vectors("stream"), ids=str)
def test_streams_of_the_vectors_however_they_are_cut(vector: Vector, step: int) -> None:
    name, largest, _, line, expected = vector.fields
    decoder = FRAMINGS[name].decoder(int(largest))
    found: list[bytes] = []
    for number, part in enumerate(line.split("~")):
        if number:
            found += decoder.silence()
        data = unhex(part.strip() or "-")
        for start in range(0, len(data), step):
            found += decoder.feed(data[start : start + step])
    assert [message.hex() for message in found] == ([] if expected == "-" else expected.split())


# --- encoding


@pytest.mark.parametrize(
    ("size", "head"), [(3, "a503"), (0x7F, "a57f"), (0x80, "a58080"), (0x81, "a58081"), (0x100, "a58100"), (MAX_LEN, "a5ffff")]
)
@pytest.mark.parametrize("crc", Crc)
def test_length_boundaries(size: int, head: str, crc: Crc) -> None:
    framing, message = SofFraming(crc), b"\xa5" * size
    frame = framing.encode(message)
    assert frame.hex().startswith(head)
    assert len(frame) == len(head) // 2 + size + framing.crc_size
    assert framing.decoder(size).feed(frame) == [message]


@pytest.mark.parametrize("size", [0, 2, MAX_LEN + 1])
def test_what_has_no_frame_is_not_sent(size: int) -> None:
    with pytest.raises(ValueError, match=f"not {size}"):
        SofFraming().encode(bytes(size))


@given(st.binary(min_size=1, max_size=600))
def test_a_cobs_frame_has_one_zero_and_it_is_its_end(message: bytes) -> None:
    frame = CobsFraming().encode(message)
    assert frame.index(0) == len(frame) - 1
    assert len(frame) <= len(message) + 2 + (len(message) + 2) // 254 + 2


# --- decoding


@given(framings, streams, st.lists(st.integers(0, 5000), max_size=8))
def test_any_chunking_gives_the_same_messages(framing: Framing, sent: list[bytes], cuts: list[int]) -> None:
    line = b"".join(map(framing.encode, sent))
    assert heard(framing, *in_chunks(line, cuts)) == sent


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=6), framings)
def test_any_chunking_of_any_bytes_gives_the_same_messages(line: bytes, cuts: list[int], framing: Framing) -> None:
    assert heard(framing, *in_chunks(line, cuts)) == heard(framing, line)


@pytest.mark.req("AX-B.1-1")
@settings(derandomize=True)  # one piece of noise in 65536 has the right CRC
@given(st.lists(st.tuples(noise, messages), min_size=1, max_size=5), noise)
def test_noise_before_between_and_behind_costs_no_good_frame(parts: list[tuple[bytes, bytes]], behind: bytes) -> None:
    line = b"".join(before + SOF16.encode(message) for before, message in parts) + behind
    found = iter(heard(SOF16, line))
    assert all(message in found for _, message in parts)  # each of them, in order; whatever else noise made of itself by chance


@given(st.lists(st.tuples(noise, messages), min_size=1, max_size=5), noise)
def test_noise_ended_by_a_zero_costs_no_good_cobs_frame(parts: list[tuple[bytes, bytes]], behind: bytes) -> None:
    framing = CobsFraming()
    line = b"".join(before + b"\0" + framing.encode(message) for before, message in parts) + behind
    found = iter(heard(framing, line))
    assert all(message in found for _, message in parts)


FIRST, DAMAGED, LAST = b"\x01\x02\x03first", bytes(range(0x90, 0xB0)), b"\x02\x00\xa5last"


@pytest.mark.req("AX-B.1-1")
@pytest.mark.parametrize("name", ["sof-crc16", "sof-crc8"])
def test_every_single_flipped_bit_costs_its_own_frame_and_forges_nothing(name: str) -> None:
    framing = FRAMINGS[name]
    before, middle, behind = map(framing.encode, (FIRST, DAMAGED, LAST))
    for bit in range(8 * len(middle)):
        damaged = bytearray(middle)
        damaged[bit // 8] ^= 1 << bit % 8
        assert heard(framing, before + damaged + behind) == [FIRST, LAST], bit


def test_every_single_flipped_bit_of_a_cobs_frame_forges_nothing() -> None:
    framing = CobsFraming()
    before, middle, behind = map(framing.encode, (FIRST, DAMAGED, LAST))
    for bit in range(8 * len(middle)):
        damaged = bytearray(middle)
        damaged[bit // 8] ^= 1 << bit % 8
        lost_its_end = bit // 8 == len(middle) - 1  # the zero is what parts it from the next
        assert heard(framing, before + damaged + behind + behind) == ([FIRST, LAST] if lost_its_end else [FIRST, LAST, LAST]), bit


@settings(derandomize=True)  # one damaged LEN in 65536 finds the right CRC
@given(framings, messages, st.data())
def test_a_flipped_bit_never_yields_a_wrong_message(framing: Framing, message: bytes, draw: st.DataObject) -> None:
    frame = bytearray(framing.encode(message))
    bit = draw.draw(st.integers(8, 8 * len(frame) - 1))
    frame[bit // 8] ^= 1 << bit % 8
    if framing is not FRAMINGS["sof-crc8"]:  # eight bits of check let one damaged LEN in 256 through
        assert heard(framing, bytes(frame)) == []


@pytest.mark.req("AX-B.1-1")
@given(framings, messages, messages, st.data())
def test_a_truncated_frame_is_given_up_at_the_silence(framing: Framing, cut: bytes, good: bytes, draw: st.DataObject) -> None:
    frame = framing.encode(cut)
    kept = draw.draw(st.integers(0, len(frame) - 2))
    decoder = framing.decoder(LARGEST)
    assert decoder.feed(frame[:kept]) == []
    lost = decoder.silence()
    assert cut not in lost
    ended = b"\0" if isinstance(framing, CobsFraming) else b""
    assert decoder.feed(ended + framing.encode(good)) == [good]


@given(framings, st.lists(st.binary(max_size=400), max_size=20), st.integers(8, 64))
def test_the_buffer_never_holds_more_than_one_frame(framing: Framing, chunks: list[bytes], largest: int) -> None:
    decoder = framing.decoder(largest)
    for chunk in chunks:
        assert all(len(message) <= largest for message in decoder.feed(chunk))
        assert held(decoder) <= largest + 5


@given(st.integers(3, 600), st.integers(0, 3), st.booleans())
def test_no_message_above_the_largest_is_taken_and_the_largest_is(largest: int, above: int, zeros: bool) -> None:
    message = bytes(largest + above) if zeros else b"\x11" * (largest + above)
    for framing in FRAMINGS.values():
        decoder = framing.decoder(largest)
        found = list(decoder.feed(framing.encode(message) + framing.encode(b"\x01\x02\x03")))
        found += decoder.feed(bytes(largest + 8))  # a check sum may look like the start of a frame, which then must come to its end first
        assert found == ([message] if not above else []) + [b"\x01\x02\x03"]
        assert bool(decoder.counters.oversize) is bool(above)


def test_counters_tell_what_happened() -> None:
    good = SOF16.encode(b"abc")
    decoder = SOF16.decoder(10)
    decoder.feed(b"xx" + good)
    assert (decoder.counters.frames, decoder.counters.resyncs, decoder.counters.crc_errors) == (1, 1, 0)
    decoder.feed(good[:-1] + bytes((good[-1] ^ 1,)))
    assert (decoder.counters.frames, decoder.counters.crc_errors) == (1, 1)
    decoder.feed(b"\xa5\x0b")
    assert decoder.counters.oversize == 1
    line = CobsFraming().decoder(10)
    line.feed(b"\0\0\x05a\0" + CobsFraming().encode(b"abc")[:-2] + b"\x01\0" + b"x" * 20 + b"\0")
    assert (line.counters.frames, line.counters.resyncs, line.counters.crc_errors, line.counters.oversize) == (0, 2, 1, 1)


def test_a_cobs_frame_of_nothing_but_a_checksum_is_no_message() -> None:
    decoder = CobsFraming().decoder(10)
    assert decoder.feed(CobsFraming().encode(b"")) == []
    assert crc16(b"") == b"\xff\xff"
    assert decoder.counters.crc_errors == 1


# --- a frame within a frame


small = st.binary(min_size=3, max_size=12)
sofs = st.sampled_from([SofFraming(crc) for crc in Crc])


def damaged(frame: bytes) -> list[bytes]:
    """With each bit flipped in turn."""
    return [frame[:at] + bytes((frame[at] ^ 1 << bit,)) + frame[at + 1 :] for at in range(len(frame)) for bit in range(8)]


@pytest.mark.parametrize("crc", Crc)
@pytest.mark.parametrize("long", [False, True])
def test_a_frame_in_a_payload_would_be_found_and_is_seen_beforehand(crc: Crc, long: bool) -> None:
    framing = SofFraming(crc)
    inner = bytes((1, 1, 7)) + bytes(150 if long else 2)
    message = bytes((1, 5, 6)) + b"xy" + framing.encode(inner) + b"z"
    assert any(inner in heard(framing, line) for line in damaged(framing.encode(message))), "what all this is about"
    assert framing.hides_frame(message)
    wrong = bytearray(message)
    wrong[-2] ^= 1
    assert not framing.hides_frame(bytes(wrong))


def test_the_sequence_may_be_the_a5_of_a_hidden_frame() -> None:
    framing = SofFraming()
    hidden = framing.encode(bytes((1, 1, 7, 4, 1)))
    assert framing.hides_frame(bytes((1, 5, hidden[0])) + hidden[1:])
    assert not framing.hides_frame(bytes((1, 5, 0xA4)) + hidden[1:])


def test_a_frame_may_end_in_the_copy() -> None:
    framing = SofFraming()
    for guess in range(1 << 16):
        # The hidden frame's payload is the outer CRC, FF 00 and the head of the copy; its CRC is what the outer payload begins with.
        message = bytes((1, 5, 6)) + guess.to_bytes(2, "big") + bytes((0xA5, 12, 1, 1, 7))
        frame = framing.encode(message)
        line = frame + BREAK_OFF + frame
        start = frame.rindex(bytes((0xA5, 12, 1, 1, 7)))
        if framing.checksum(line[start + 1 : start + 14]) == line[start + 14 : start + 16]:
            break
    else:
        pytest.fail("none found")
    assert framing.hides_frame(message)


@given(framing=sofs, outer=st.tuples(small, st.one_of(small, st.just(b"")), small), inner=small, again=st.booleans())
@settings(deadline=None, max_examples=200)
def test_what_hides_no_frame_lets_none_loose(framing: SofFraming, outer: tuple[bytes, bytes, bytes], inner: bytes, again: bool) -> None:
    """Whatever a receiver finds behind the first byte of the frame, alone or followed by its copy, was foreseen."""
    head, between, tail = outer
    for message in (head + between + tail, head + framing.encode(inner) + tail, head + framing.encode(inner)[:-1] + between):
        frame = framing.encode(message)
        line = frame + (BREAK_OFF + frame if again else b"")
        end = len(frame) - framing.crc_size
        loose = any(
            found != message for start in range(1, end) if line[start] == 0xA5 for found in framing.decoder(LARGEST).feed(line[start:])[:1]
        )
        if loose:
            assert framing.hides_frame(message)
    assert framing.hides_frame(head + framing.encode(inner) + tail)


@given(framing=sofs, message=messages)
def test_a_message_without_a5_hides_nothing(framing: SofFraming, message: bytes) -> None:
    assert not framing.hides_frame(message.replace(b"\xa5", b"\xa4")[:160])
