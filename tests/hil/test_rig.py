"""What a rig file may say, and what is told of one that cannot be used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hil.places import DEFAULT_RIG, LEASES, ROOT
from hil.rig import Capability, load_rig
from mcpax.documents.faults import DocumentError

REAL = """
[[board]]
name = "uno"
chip = "ATmega328P"
app = "valve-actuator"
env = "uno-valve-actuator"
port = "/dev/serial/by-id/usb-Arduino-if00"
flash = "pio run -d firmware -e {env} -t upload --upload-port {port}"
"""
EMULATED = """
[[board]]
name = "uno"
chip = "ATmega328P"
app = "valve-actuator"
env = "uno-valve-actuator"
emulator = "avr"
"""


def written(directory: Path, text: str) -> Path:
    file = directory / "rig.toml"
    file.write_text(text)
    return file


def test_the_shipped_rig_is_emulated_throughout_and_can_do_everything() -> None:
    rig = load_rig(DEFAULT_RIG)
    assert {spec.emulator for spec in rig.boards} >= {"avr", "stm32l0", "microbit", "msp430", "mcs51", "virtual"}
    assert all(spec.capabilities == set(Capability) for spec in rig.boards)
    assert rig.lease_dir == LEASES


def test_the_example_in_the_shipped_rig_is_one_that_loads(tmp_path: Path) -> None:
    """What engineers will copy."""
    comment = [line.removeprefix("#").strip() for line in DEFAULT_RIG.read_text().splitlines() if line.startswith("#     ")]
    example = "\n".join(comment[comment.index("[[board]]") :])
    (board,) = load_rig(written(tmp_path, example)).boards
    assert board.port is not None
    assert board.capabilities == {Capability.FLASH, Capability.RESET, Capability.POWER}


def test_a_real_board_can_do_what_it_has_commands_for(tmp_path: Path) -> None:
    (board,) = load_rig(written(tmp_path, REAL)).boards
    assert board.capabilities == {Capability.FLASH}
    assert board.map.name == "valve-actuator"
    assert board.image == ROOT / "build/pio/uno-valve-actuator/firmware.elf"


def test_an_emulated_board_can_do_everything(tmp_path: Path) -> None:
    (board,) = load_rig(written(tmp_path, EMULATED + "baud = 9600\n")).boards
    assert board.capabilities == set(Capability)
    assert board.map.port.baud == 9600


@pytest.mark.parametrize(
    ("text", "line", "what", "hint"),
    [
        ("", 1, "board is missing", "[[board]]"),
        ("board = []\n", 1, "no board is described", "[[board]]"),
        (EMULATED.replace('"avr"', '"arv"'), 7, 'emulator "arv" is not known', 'did you mean "avr"?'),
        (EMULATED + 'port = "/dev/ttyUSB0"\n', 7, "both emulator and port", "port for a real one"),
        (EMULATED.replace('emulator = "avr"\n', ""), 2, "neither emulator nor port", "emulator = one of"),
        (EMULATED.replace('env = "uno-valve-actuator"\n', ""), 2, "which firmware", "image = a file"),
        (EMULATED + 'power_off = "x"\n', 8, "power_off is for real boards", "remove it"),
        (EMULATED.replace("valve-actuator", "valve"), 5, "no device map", "map = its file"),
        (EMULATED.replace('"uno"', '"Uno Board"'), 3, "Uno Board", "like uno"),
        (EMULATED + EMULATED, 2, 'boards are named "uno"', "its own name"),
        (EMULATED + "speed = 9600\n", 8, 'unknown key "speed"', "known here"),
        (REAL + 'power_off = "hub off"\n', 9, "power_off without power_on", "must come back"),
        (REAL.replace("{port}", "{prot}"), 8, "{prot}, which stands for nothing", "{port}"),
        (REAL.replace("{port}", "{port"), 8, "flash: ", "braces"),
        (REAL.replace('env = "uno-valve-actuator"', 'image = "a.hex"'), 8, "uses {env}, and there is none", "add env"),
        (REAL.replace("{port}", "{port!r}"), 8, "flash gives {port} a format or conversion", "without ':' or '!'"),
        (REAL.replace("{port}", "{port:>9999999999}"), 8, "flash gives {port} a format or conversion", "without ':' or '!'"),
        (REAL.replace("{port}", "{port.a}"), 8, "{port.a}, which stands for nothing", "{port}"),
        (REAL.replace("{port}", "{}"), 8, "{}, which stands for nothing", "{port}"),
        (REAL.replace('"/dev/serial/by-id/usb-Arduino-if00"', '""'), 7, "port is empty", "remove it"),
        (REAL + 'reset = "  "\n', 9, "reset is empty", "remove it"),
        (REAL.replace("Arduino", "\\u0000"), 7, "port contains the character U+0000", "control characters"),
        (REAL.replace("pio run", "pio\\nrun"), 8, "flash contains the character U+000A", "on one line"),
        (EMULATED.replace('"uno"', f'"{"u" * 41}"'), 3, "name has 41 characters, at most 40", "shorten"),
        (REAL.replace("Arduino", "x" * 1000), 7, "port has 10", "shorten"),
        ('[rig]\nlease_dir = ""\n' + EMULATED, 2, "lease_dir is empty", "remove it"),
        ("[[board]\n", 1, "not TOML", ""),
    ],
)
def test_faults_are_told_with_line_and_remedy(text: str, line: int, what: str, hint: str, tmp_path: Path) -> None:
    file = written(tmp_path, text)
    with pytest.raises(DocumentError, match=re.escape(what)) as caught:
        load_rig(file)
    fault = next(fault for fault in caught.value.faults if what in fault.message)
    assert (fault.file, fault.line) == (str(file), line)
    assert hint in fault.hint


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(DocumentError) as caught:
        load_rig(
            written(tmp_path, EMULATED.replace('"avr"', '"arv"') + REAL.replace('"valve-actuator"', '"nothing"').replace("uno", "due"))
        )
    assert len(caught.value.faults) == 2
