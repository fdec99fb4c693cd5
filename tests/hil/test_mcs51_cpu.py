"""Our MCS-51 against ucsim: random programs of all instructions leave the same registers, RAM and cycles behind in both."""

from __future__ import annotations

import os
import pty
import random
import re
import select
import subprocess
import tty
from pathlib import Path

import pytest

from hil.emulators.mcs51_cpu import ACC, CODE_BYTES, DPH, DPL, FIRST_SFR, IRAM_BYTES, PSW, SP, B, Cpu
from hil.emulators.mcs51_instructions import step

SEED = int(os.environ.get("MCPAX_SEED", "20261118"))
PROGRAMS = 8
STEPS = 20_000
SLOT_BYTES = 4
"""Every instruction begins at a multiple of this, so that jumps, which lead to such places, find whole ones."""
SUBROUTINES = 0xF800
PAGE_BYTES = 0x800
"""Which AJMP and ACALL cannot leave."""
STACK_PERIOD_BYTES = 16 * SLOT_BYTES
NOP, RETURNS, STAY_HERE = b"\0", (0x22, 0x32), bytes((0x80, 0xFE, 0, 0))
CLOCKS_PER_CYCLE = 12
COMPARED = (ACC, B, PSW, DPL, DPH, SP)
ANSWER_S = 20.0

# Not in random programs: external RAM, what is no instruction, returns to and jumps to addresses that nobody chose.
LEFT_OUT = {0xE0, 0xE2, 0xE3, 0xF0, 0xF2, 0xF3, 0xA5, 0x22, 0x32, 0x73}

# What stands behind each opcode: Direct, Immediate, Bit, Relative, Long address, Page address, Subroutine. Nothing behind all others.
OPERANDS = {
    **dict.fromkeys(range(0x01, 0x100, 0x10), "P"),
    **dict.fromkeys((0x10, 0x20, 0x30), "BR"),
    **dict.fromkeys((0x40, 0x50, 0x60, 0x70, 0x80, *range(0xD8, 0xE0)), "R"),
    **dict.fromkeys((0x72, 0x82, 0x92, 0xA0, 0xA2, 0xB0, 0xB2, 0xC2, 0xD2), "B"),
    **dict.fromkeys((0x43, 0x53, 0x63, 0x75), "DI"),
    **dict.fromkeys((0xB4, *range(0xB6, 0xC0)), "IR"),
    **dict.fromkeys((0xB5, 0xD5), "DR"),
    **dict.fromkeys((0x24, 0x34, 0x44, 0x54, 0x64, 0x74, 0x94, *range(0x76, 0x80)), "I"),
    **dict.fromkeys((0x05, 0x15, 0x25, 0x35, 0x45, 0x55, 0x65, 0x95, 0xC5, 0xE5, 0xF5, 0x42, 0x52, 0x62, 0xC0, 0xD0), "D"),
    **dict.fromkeys((*range(0x86, 0x90), *range(0xA6, 0xB0)), "D"),
    **{0x02: "L", 0x12: "S", 0x85: "DD", 0x90: "II"},
}
DIRECT_BYTES = (*range(FIRST_SFR), ACC, B, PSW, DPL, DPH)
BITS = (*range(0x80), *range(ACC, ACC + 8), *range(B, B + 8), *range(PSW, PSW + 3), *range(PSW + 5, PSW + 8))
"""Without those that select the bank of registers: when a single one is written, ucsim 0.6.4 goes on with the bank before."""


def instruction(dice: random.Random, address: int, opcode: int) -> bytes:
    """With operands that only touch what is compared. Jumps lead forward, so that a program runs through many instructions, not few."""
    code = bytes((opcode,))
    for kind in OPERANDS.get(opcode, ""):
        ahead = address + dice.randrange(1, 8) * SLOT_BYTES
        match kind:
            case "D":
                code += bytes((dice.choice(DIRECT_BYTES),))
            case "I":
                code += dice.randbytes(1)
            case "B":
                code += bytes((dice.choice(BITS),))
            case "R":
                code += bytes((ahead - address - len(code) - 1,))
            case "L":
                code += ahead.to_bytes(2, "big")
            case "S":
                code += dice.randrange(SUBROUTINES, CODE_BYTES, SLOT_BYTES).to_bytes(2, "big")
            case "P":
                ahead = min(ahead, (address | PAGE_BYTES - 1) + 1 - SLOT_BYTES)
                code = bytes((ahead % PAGE_BYTES >> 8 << 5 | 0x01, ahead & 0xFF)) if ahead > address else NOP
    return code


def random_program(dice: random.Random) -> bytes:
    code = bytearray(CODE_BYTES)
    opcodes = [opcode for opcode in range(256) if opcode not in LEFT_OUT]
    for address in range(0, SUBROUTINES, SLOT_BYTES):
        chosen = instruction(dice, address, dice.choice(opcodes))
        if address % STACK_PERIOD_BYTES == 0:  # ucsim stops when SP wraps around
            chosen = bytes((0x75, SP, dice.randrange(0x40, 0xC0)))
        code[address : address + len(chosen)] = chosen
    code[SUBROUTINES - SLOT_BYTES : SUBROUTINES] = STAY_HERE
    single_bytes = [opcode for opcode in opcodes if opcode not in OPERANDS]
    for address in range(SUBROUTINES, CODE_BYTES, SLOT_BYTES):
        code[address : address + 2] = bytes((dice.choice(single_bytes), dice.choice(RETURNS)))
    return bytes(code)


class Ucsim:
    """ucsim on a terminal of its own, because on a pipe it loses commands."""

    def __init__(self, image: Path) -> None:
        self._terminal, slave = pty.openpty()
        tty.setraw(slave)
        command = ["s51", "-t", "C52", "-X", "11059200", "-b", "-P", "-q", "-c", os.ttyname(slave), str(image)]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._answer()

    def tell(self, command: str) -> str:
        os.write(self._terminal, command.encode() + b"\n")
        return self._answer()

    def dump(self, memory: str, first: int, last: int) -> bytes:
        lines = self.tell(f"dump /h {memory} {first} {last} 16").splitlines()
        return bytes.fromhex("".join(" ".join(line.split()[1:17]) for line in lines if line.startswith("0x")))

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._terminal)

    def _answer(self) -> str:
        said = b""
        while not said.endswith(b"\0"):
            assert select.select([self._terminal], [], [], ANSWER_S)[0], f"ucsim only said {said!r}"
            said += os.read(self._terminal, 65536)
        return said.decode(errors="replace")


def intel_hex(code: bytes) -> str:
    records = []
    for address in range(0, len(code), 16):
        record = bytes((16, *address.to_bytes(2, "big"), 0, *code[address : address + 16]))
        records.append(f":{record.hex()}{-sum(record) & 0xFF:02x}")
    return "\n".join([*records, ":00000001ff", ""])


@pytest.mark.parametrize("number", range(PROGRAMS))
def test_the_processor_does_what_ucsim_does(number: int, tmp_path: Path) -> None:
    dice = random.Random(f"{SEED} {number}")
    cpu = Cpu()
    cpu.reset()
    cpu.code = random_program(dice)
    executed: set[int] = set()
    (tmp_path / "random.ihx").write_text(intel_hex(cpu.code))
    for _ in range(STEPS):
        executed.add(cpu.code[cpu.pc])
        step(cpu)
        assert cpu.fault is None, f"seed {SEED}, program {number}: {cpu.fault}"

    reference = Ucsim(tmp_path / "random.ihx")
    try:
        reference.tell(f"fill iram 0 {IRAM_BYTES - 1} 0")
        reference.tell(f"step {STEPS}")
        state = reference.tell("state")
        iram, sfr = reference.dump("iram", 0, IRAM_BYTES - 1), reference.dump("sfr", FIRST_SFR, 255)
    finally:
        reference.close()

    where = f"seed {SEED}, program {number}"
    assert len(executed) > 230, where
    told = re.search(r"PC= (0x[0-9a-f]+).*?sec \((\d+) clks\)", state, re.DOTALL)
    assert told is not None, state
    assert cpu.pc == int(told[1], 16), where
    assert {hex(register): cpu.read(register) for register in COMPARED} == {
        hex(register): sfr[register - FIRST_SFR] for register in COMPARED
    }, where
    assert bytes(cpu.iram) == iram, where
    assert cpu.cycles * CLOCKS_PER_CYCLE == int(told[2]), where
