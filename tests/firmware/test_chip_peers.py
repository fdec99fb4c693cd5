"""Chips against their peers: an image in an emulator and the same program on this machine are given the same bytes, and must send the same.

The images are those that ship, and those of the small test maps, whose code is not the code that the vectors' large maps need: lengths of 8
bits, numbers of 16, tools found by their place. Both could be wrong alike; that they are right is for the vectors and the rig's tests.
"""

import random
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from hil.values import EDGES, valid
from mcpax.bridge.maps.load import load_map
from mcpax.bridge.maps.model import DeviceMap, Profile
from mcpax.bridge.transports.uart import BITS_PER_BYTE
from mcpax.bridge.wire.dialect import dialect_for
from mcpax.bridge.wire.messages import Heartbeat, Message, Response
from tests.firmware.chip import L053, MCS51, MSP430, TICK_S, TICKS_TO_SEE_A_BUTTON, UNO, Chip, ChipBoard, build, build_mcs51
from tests.firmware.peer import Application, Peer, Reaction
from tests.firmware.peer import build as build_peer
from tests.firmware.random_frames import RandomFrames
from tests.hil.process import build_emulators
from tests.vectors.read import Vector, unhex, vectors

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests/firmware"
SHIPPED = ROOT / "build/pio"
SEED = 20
FRAMES = {UNO: 1000, MSP430: 1000, L053: 400, MCS51: 400}
"""For each application; as many as take some seconds on the emulator."""
PRESS_EVERY = 200
"""Frames."""
REST_TICKS = 400
"""After this nothing moves any more: a valve has opened, its dead man's switch has closed it; the longest pulse is over."""
SLOW_TOOLS = ("move_valve", "set_relay", "pulse_relay")
"""After which there is such a rest."""
WORK_S = 0.003
"""A chip has looked at any frame in less."""
STARTUP_S = 0.2

TOOLS = ("cc", "avr-gcc", "arm-none-eabi-gcc", "clang-19", "sdcc")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not all(map(shutil.which, TOOLS)), reason=f"needs {', '.join(TOOLS)}")]


def example(map_name: str, source: str, *options: str) -> Application:
    return Application(ROOT / f"device-maps/{map_name}.toml", (ROOT / f"firmware/examples/{source}.c",), options)


def small(map_name: str) -> Application:
    return Application(TESTS / f"maps/vector-{map_name}.toml", (TESTS / "app.c", TESTS / "board_app.c"))


CHIPS = (UNO, L053, MSP430)
EXAMPLES = {
    "env-sensor": example("env-sensor", "env_sensor"),
    "relay-board-b": example("relay-board-b", "relay_board"),
    "valve-actuator": example("valve-actuator", "valve_actuator"),
    "relay-board": example("relay-board", "relay_board"),
}
SMALL = {"small-a": ("a/1/1", small("small-a")), "small-b": ("b/1/1", small("small-b"))}


@dataclass
class Pair:
    """A chip and its peer, to which the same happens."""

    board: ChipBoard
    peer: Peer
    device: DeviceMap
    done: int = 0

    def receive(self, data: bytes) -> bytes:
        """Bytes from the gateway, and whatever follows from them until nothing moves and nothing waits; returns what was sent."""
        self.done += 1
        reaction = self.peer.receive(data)
        self.board.send(data)
        said = self._compare(reaction, len(data) * BITS_PER_BYTE / self.device.port.baud + WORK_S, data)
        if reaction.waiting and self.device.profile is Profile.A:
            self._compare(self.peer.silence(), TICKS_TO_SEE_A_BUTTON * TICK_S, data)
        if reaction.moved:
            self._compare(self.peer.tick(REST_TICKS), REST_TICKS * TICK_S, data)
        return said

    def press(self) -> None:
        reaction = self.peer.press()
        self.board.press()
        self._compare(reaction, TICKS_TO_SEE_A_BUTTON * TICK_S, b"")
        self.board.release()
        self._compare(self.peer.tick(1), TICKS_TO_SEE_A_BUTTON * TICK_S, b"")

    def _compare(self, reaction: Reaction, patience_s: float, after: bytes) -> bytes:
        """An answer is waited for; that there is none is certain after so much of the chip's time."""
        if not reaction.sent:
            self.board.idle(patience_s)
        said = self.board.read(len(reaction.sent)) if reaction.sent else self.board.unread()
        assert said.hex() == reaction.sent.hex(), f"seed {SEED}, step {self.done}, after {after.hex() or 'a press'}"
        return said


def exchange(pair: Pair, boot_id: int, count: int) -> None:
    frames = RandomFrames(pair.device, boot_id, random.Random(SEED), SLOW_TOOLS)
    answered = 0
    for number in range(1, count + 1):
        said = pair.receive(frames.next())
        frames.heard(said)
        answered += bool(said)
        if number % PRESS_EVERY == 0:
            pair.press()
    pair.board.idle(TICKS_TO_SEE_A_BUTTON * TICK_S)
    assert pair.board.unread() == b""
    pair.board.check()
    assert count / 4 < answered < count, "neither nonsense alone nor sense alone"


def meet(board: ChipBoard, device: DeviceMap) -> tuple[int, list[bytes]]:
    """Find the boot id of a chip that has just started, in the middle of whatever it says; returns what was sent to it, too."""
    dialect = dialect_for(device)
    decoder = dialect.framing.decoder(dialect.max_message)

    def answer(question: bytes, wanted: type[Heartbeat | Response]) -> Message:
        board.idle(STARTUP_S)  # it listens, and has said all that it says unasked
        board.send(question)
        while byte := board.read(1):
            for message in decoder.feed(byte):
                if isinstance(decoded := dialect.decode(message), wanted):
                    return decoded
        raise AssertionError(f"no {wanted.__name__}")

    heartbeat = dialect.framing.encode(dialect.heartbeat(0, 0))
    call = dialect.framing.encode(dialect.call(device.tools[0], 1, valid(device.tools[0], EDGES[0])))
    known = answer(heartbeat, Heartbeat)
    assert isinstance(known, Heartbeat)
    answer(call, Response)  # there is none but this: up to here all is read
    board.forget_unread()
    return known.boot_id, [heartbeat, call]


@pytest.mark.parametrize("app", EXAMPLES)
@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.board)
def test_a_shipped_image_sends_what_its_peer_sends(chip: Chip, app: str, tmp_path: Path) -> None:
    """As `scripts/test` has built it, with the others that ship."""
    image = SHIPPED / f"{chip.board}-{app}" / "firmware.elf"
    assert image.is_file(), f"build it with: scripts/pio-offline run -e {chip.board}-{app}"
    run_shipped(chip, image, EXAMPLES[app], tmp_path)


def test_the_8052_sends_what_its_peer_sends(tmp_path: Path) -> None:
    run_shipped(MCS51, build_mcs51() / "relay-board.ihx", example("relay-board-51", "relay_board", "-DMCPAX_KEPT=0"), tmp_path)


def run_shipped(chip: Chip, image: Path, application: Application, folder: Path) -> None:
    build_emulators()
    device = load_map(application.map)
    with ChipBoard(chip, image, folder, seed=SEED) as board:
        boot_id, questions = meet(board, device)
        with Peer(build_peer(application), boot_id) as peer:
            for question in questions:
                assert peer.receive(question).sent
            exchange(Pair(board, peer, device), boot_id, FRAMES[chip])


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.board)
def test_small_maps_send_what_their_peer_sends(chip: Chip, name: str, tmp_path: Path) -> None:
    """First the dialogues of the vectors: only the map's hash, and what is too long for it, differ. Then random frames."""
    build_emulators()
    stub, application = SMALL[name]
    image = build(tuple(f"{each.board}-{each_map}" for each in CHIPS for each_map in SMALL)) / f"{chip.board}-{name}" / "firmware.elf"
    device = load_map(application.map)
    program = build_peer(application)
    with ChipBoard(chip, image, tmp_path, seed=SEED) as board:
        dialogues = split_at_boots([vector for vector in vectors("boot", "in", "event") if vector.fields[0] == stub])
        for number, (boot, *happenings) in enumerate(dialogues, start=1):
            boot_id = int(boot.fields[2])
            board.boot(boot_id)
            with Peer(program, boot_id) as peer:
                assert board.read(len(peer.at_boot.sent)) == peer.at_boot.sent
                pair = Pair(board, peer, device)
                for vector in happenings:
                    if vector.kind == "event":
                        pair.press()
                        continue
                    for piece in board.pieces(stub, unhex(vector.fields[2])):
                        pair.receive(piece)
                if number == len(dialogues):
                    exchange(pair, boot_id, FRAMES[chip])


def split_at_boots(stub_vectors: list[Vector]) -> list[list[Vector]]:
    dialogues: list[list[Vector]] = []
    for vector in stub_vectors:
        if vector.kind == "boot":
            dialogues.append([])
        dialogues[-1].append(vector)
    assert len(dialogues) > 1
    return dialogues
