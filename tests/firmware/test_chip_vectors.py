"""The shared byte vectors on linked images, inside the emulators: the dialogues of tests/vectors/wire.txt, byte for byte."""

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.firmware.chip import L053, MCS51, MICROBIT, UNO, Chip, ChipBoard, build, build_mcs51
from tests.harness.side_by_side import SideBySide, parameters
from tests.hil.process import build_emulators
from tests.vectors.read import Vector, unhex, vectors

LARGE = (UNO, L053, MICROBIT)
"""Those with RAM for the vectors' messages of 300 bytes."""
STUBS = ("a/1/1", "a/2/2", "a/2/1", "a8/1/1", "b/1/1", "b/2/2", "b/2/1")
"""Map, window, responses kept."""
SMALL_STUB = "a51/1/0"
TOOLS = ("avr-gcc", "arm-none-eabi-gcc", "qemu-system-arm", "sdcc")
FEWEST = 11
"""Vectors of the shortest dialogue; the longest have above a hundred."""
COPIES = 5
COPY_EVERY_S = 3.0
UNSIGNED_LONG = 4
"""Bytes, on all of these chips."""
Sizes = tuple[int, int]
Images = SideBySide[Sizes, Path]

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not all(map(shutil.which, TOOLS)), reason=f"needs {', '.join(TOOLS)}")]


@pytest.fixture(scope="module")
def images(request: pytest.FixtureRequest) -> Iterator[Images]:
    """Folders by window and responses kept: of each, all maps and chips in one go, which is quicker, and one beside the other."""
    wanted = {sizes(str(stub)) for chip, stub in parameters(request, "chip", "stub") if chip in LARGE}
    with SideBySide(build_images, sorted(wanted)) as building:
        yield building


def sizes(stub: str) -> Sizes:
    _, window, kept = stub.split("/")
    return int(window), int(kept)


def build_images(size: Sizes) -> Path:
    window, kept = size
    maps = ("a", "b") if window > 1 else ("a", "a8", "b")
    return build(tuple(f"{each.board}-{name}" for each in LARGE for name in maps), window, kept)


def image_of(chip: Chip, stub: str, images: Images) -> Path:
    if chip is MCS51:
        return build_mcs51() / "vectors.ihx"
    device, _, _ = stub.partition("/")
    return images.result(sizes(stub)) / f"{chip.board}-{device}" / "firmware.elf"


def sent(chip: Chip, board: ChipBoard, stub: str, vector: Vector, expected: bytes) -> bytes:
    """What the chip does when that happens to it. If it sends more than is expected, that is found behind the next vector, or the last."""
    match vector.kind:
        case "boot":
            board.boot(int(vector.fields[2]))
        case "event":
            board.settle()
            board.press()
        case "in":
            *before, last = board.pieces(stub, unhex(vector.fields[2]))
            for frame in before:
                board.take(frame)
            (board.send if expected else board.take)(last)
            if chip.clock_hz is None and expected:
                return read_in_real_time(board, last, len(expected))
    said = board.read(len(expected)) if expected else board.unread()
    if vector.kind == "event":
        board.release()
    return said


def read_in_real_time(board: ChipBoard, frame: bytes, count: int) -> bytes:
    """On a busy machine a gap in a frame may grow to the silence that ends it. A gateway would send it again, and so it is here."""
    for _ in range(COPIES):
        said = board.read(count, COPY_EVERY_S)
        if said:
            break
        board.take(frame)
    return said


@pytest.mark.req("AX-B.1-1", "AX-B.2-2", "AX-8.3-1", "AX-8.3-2")
@pytest.mark.parametrize(
    ("chip", "stub"),
    [*((chip, stub) for chip in LARGE for stub in STUBS), (MCS51, SMALL_STUB)],
    ids=lambda which: which if isinstance(which, str) else which.board,
)
def test_a_chip_answers_as_the_vectors_say(chip: Chip, stub: str, images: Images, tmp_path: Path) -> None:
    build_emulators()
    done: Counter[str] = Counter()
    with ChipBoard(chip, image_of(chip, stub, images), tmp_path) as board:
        for vector in vectors("boot", "in", "event"):
            if vector.fields[0] != stub:
                continue
            expected = unhex(vector.fields[3])
            runs = board.variable("handler_runs", UNSIGNED_LONG)
            assert sent(chip, board, stub, vector, expected).hex() == expected.hex(), str(vector)
            if vector.kind == "in":
                assert board.variable("handler_runs", UNSIGNED_LONG) - runs == int(vector.fields[4]), str(vector)
            done[vector.kind] += 1
        board.settle()
        assert board.unread() == b""
        board.check()
    assert done.total() >= FEWEST
