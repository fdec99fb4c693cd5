"""What a straight run of ARMv6-M instructions costs: cycles on a Cortex-M0+ and stack, read off the code once, before it runs.

Cycles are those of ARM's table for the Cortex-M0+ (DDI 0484C, 3.3) with no wait states and the single-cycle multiplier: what an STM32L0
does up to 16 MHz in range 1. Not in it: the single-cycle I/O port (GPIO accesses cost 2 here, 1 there) and bus contention.
Anything that is not ARMv6-M is refused. Executes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

LOAD_STORE_CYCLES = 2
TAKEN_BRANCH_EXTRA_CYCLES = 1
"""A conditional branch is one cycle, and one more when taken."""
POP_PC_CYCLES = 3
"""And one for each register, the PC included."""
WORD_BYTES = 4

NOP, YIELD, WFE, WFI, SEV = (0xBF00 | hint << 4 for hint in range(5))


class IllegalInstruction(Exception):
    """Not an instruction of ARMv6-M."""


class Last(Enum):
    """What matters about the last instruction of a run."""

    ORDINARY = 0
    CONDITIONAL = 1
    """A branch that may be taken or not."""
    WAIT = 2
    """WFI."""
    EVENT = 3
    """WFE, which may wake at any time and here does so at once."""
    MASKING = 4
    """May have allowed interrupts that were held back: CPS, MSR."""


@dataclass(frozen=True, slots=True)
class Instruction:
    size: int
    cycles: int
    """A conditional branch as if not taken."""
    stack: int = 0
    """Bytes by which it lowers the stack pointer; negative if it raises it."""
    stores: bool = False
    last: Last = Last.ORDINARY


@dataclass(frozen=True, slots=True)
class Block:
    """Instructions that are run one after the other, if at all; only the last may branch."""

    start: int
    end: int
    cycles: int
    """If a conditional branch at the end is not taken."""
    stack: int
    """Bytes by which the stack pointer is lowered at the deepest place within."""
    stores: bool
    last: Last
    spent: tuple[int, ...]
    """Cycles before each instruction, and after the last."""
    offsets: tuple[int, ...]
    """Bytes from the start to each instruction, and to the end."""

    def instructions_within(self, cycles: int) -> int:
        """How many instructions it takes until at least so many cycles are spent."""
        return next((count for count, spent in enumerate(self.spent) if spent >= cycles), len(self.spent) - 1)

    def spent_before(self, address: int) -> int:
        """Cycles from the start to the instruction at this address."""
        return self.spent[self.offsets.index(address - self.start)]


def read_block(start: int, code: bytes) -> Block:
    """Take code apart that is known to run from its start to its end; raises `IllegalInstruction`."""
    spent, offsets = [0], [0]
    depth = deepest = 0
    stores = False
    last = Last.ORDINARY
    while offsets[-1] < len(code):
        at = offsets[-1]
        first, second = (int.from_bytes(code[at + i : at + i + 2], "little") for i in (0, 2))
        instruction = decode(first, second)
        depth += instruction.stack
        deepest = max(deepest, depth)
        stores = stores or instruction.stores
        last = instruction.last
        spent.append(spent[-1] + instruction.cycles)
        offsets.append(at + instruction.size)
    return Block(start, start + offsets[-1], spent[-1], deepest, stores, last, tuple(spent), tuple(offsets))


def decode(first: int, second: int) -> Instruction:
    """One instruction from its first halfword, and the one behind it in case it has two."""
    if first >> 11 in (0b11101, 0b11110, 0b11111):
        return _decode_32(first, second)
    match first >> 12:
        case 0b0000 | 0b0001 | 0b0010 | 0b0011:  # shift, add, subtract, move, compare
            return _ALU
        case 0b0100 if first >> 10 == 0b010000:  # register to register, and multiply
            return _ALU
        case 0b0100 if first >> 10 == 0b010001:  # high registers, BX, BLX
            return _decode_high(first)
        case 0b0100:  # load from the literal pool
            return _LOAD
        case 0b0101:  # register offset: STR, STRH, STRB, then loads
            return _STORE if first >> 9 & 0b111 < 3 else _LOAD
        case 0b0110 | 0b0111 | 0b1000 | 0b1001:
            return _LOAD if first >> 11 & 1 else _STORE
        case 0b1010:  # addresses from PC or SP
            return _ALU
        case 0b1011:
            return _decode_miscellaneous(first)
        case 0b1100:  # STM, LDM
            return Instruction(2, 1 + (first & 0xFF).bit_count(), stores=not first >> 11 & 1)
        case 0b1101:
            return _decode_conditional(first)
    return Instruction(2, 1 + TAKEN_BRANCH_EXTRA_CYCLES)  # B


_ALU = Instruction(2, 1)
_LOAD = Instruction(2, LOAD_STORE_CYCLES)
_STORE = Instruction(2, LOAD_STORE_CYCLES, stores=True)


def _decode_high(first: int) -> Instruction:
    if first >> 8 == 0x47:  # BX, BLX
        return Instruction(2, 2)
    destination = first & 0b111 | first >> 4 & 0b1000
    compares = first >> 8 == 0x45
    return Instruction(2, 2 if destination == 15 and not compares else 1)


def _decode_miscellaneous(first: int) -> Instruction:
    registers = (first & 0x1FF).bit_count()
    match first >> 8 & 0xF:
        case 0x0:  # ADD SP, SUB SP
            bytes_ = (first & 0x7F) * WORD_BYTES
            return Instruction(2, 1, stack=bytes_ if first & 0x80 else -bytes_)
        case 0x2:  # extend
            return _ALU
        case 0x4 | 0x5:  # PUSH
            return Instruction(2, 1 + registers, stack=registers * WORD_BYTES, stores=True)
        case 0x6 if first & 0xFFEF == 0xB662:  # CPS
            return Instruction(2, 1, stores=True, last=Last.MASKING)
        case 0xA if first >> 6 & 0b11 != 0b10:  # REV
            return _ALU
        case 0xC:  # POP
            return Instruction(2, 1 + registers, stack=-registers * WORD_BYTES)
        case 0xD:  # POP with PC
            return Instruction(2, POP_PC_CYCLES + registers, stack=-registers * WORD_BYTES)
        case 0xE:  # BKPT
            return _ALU
        case 0xF if first == WFI:
            return Instruction(2, 2, stores=True, last=Last.WAIT)
        case 0xF if first == WFE:
            return Instruction(2, 2, stores=True, last=Last.EVENT)
        case 0xF if first in (NOP, YIELD, SEV):
            return _ALU
    raise IllegalInstruction(f"{first:#06x} is no instruction of ARMv6-M")


def _decode_conditional(first: int) -> Instruction:
    match first >> 8 & 0xF:
        case 0xE:
            raise IllegalInstruction(f"{first:#06x} is permanently undefined")
        case 0xF:  # SVC
            return Instruction(2, 1, stores=True)
    return Instruction(2, 1, last=Last.CONDITIONAL)


def _decode_32(first: int, second: int) -> Instruction:
    if first & 0xF800 == 0xF000:
        if second & 0xD000 == 0xD000:  # BL
            return Instruction(4, 3)
        if first & 0xFFF0 == 0xF380 and second & 0xFF00 == 0x8800:  # MSR
            return Instruction(4, 3, stores=True, last=Last.MASKING)
        if first == 0xF3EF and second & 0xF000 == 0x8000:  # MRS
            return Instruction(4, 3)
        if first == 0xF3BF and second & 0xFFC0 == 0x8F40:  # DSB, DMB, ISB
            return Instruction(4, 3)
    raise IllegalInstruction(f"{first:#06x} {second:#06x} is no instruction of ARMv6-M")
