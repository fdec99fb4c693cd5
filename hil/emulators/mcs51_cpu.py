"""The registers and memory of an MCS-51 and the ways to address them, for the instructions in `mcs51_instructions` to work with.

What special function registers do besides keeping a value is for whoever hooks into them. There is no external RAM. Knows no interrupts.
"""

from __future__ import annotations

from collections.abc import Callable

from hil.emulators.stack import StackWatch

ACC, B, PSW, SP, DPL, DPH = 0xE0, 0xF0, 0xD0, 0x81, 0x82, 0x83
CARRY, AUXILIARY, BANK, OVERFLOW, PARITY = 0x80, 0x40, 0x18, 0x04, 0x01
CODE_BYTES = 0x10000
IRAM_BYTES = 256
FIRST_SFR = 0x80
SP_AFTER_RESET = 7
MOVE_IMMEDIATE = 0x75
"""MOV direct, #value: three bytes."""


class Cpu:
    """Registers, RAM, code, and the machine cycles spent."""

    def __init__(self) -> None:
        self.code = bytes(CODE_BYTES)
        self.iram = bytearray(IRAM_BYTES)
        self.sfr = bytearray(256)
        """By address; those below 0x80 do not exist."""
        self.pc = 0
        self.cycles = 0
        self.fault: str | None = None
        self.stack = StackWatch()
        self._stack_base = SP_AFTER_RESET
        self.on_read: dict[int, Callable[[], int]] = {}
        self.on_write: dict[int, Callable[[int], None]] = {}
        self.on_return_from_interrupt: Callable[[], None] = lambda: None

    def reset(self) -> None:
        self.sfr = bytearray(256)
        self.sfr[SP] = self._stack_base = SP_AFTER_RESET
        for port in (0x80, 0x90, 0xA0, 0xB0):
            self.sfr[port] = 0xFF
        self.note_stack()
        self.pc = 0
        self.fault = None

    # --- Operands

    def fetch(self) -> int:
        byte = self.code[self.pc]
        self.pc = self.pc + 1 & 0xFFFF
        return byte

    def read(self, address: int) -> int:
        """Direct addressing."""
        if address < FIRST_SFR:
            return self.iram[address]
        if address == PSW:
            return self.sfr[PSW] & ~PARITY | self.sfr[ACC].bit_count() & 1
        hook = self.on_read.get(address)
        return self.sfr[address] if hook is None else hook()

    def write(self, address: int, value: int) -> None:
        if address < FIRST_SFR:
            self.iram[address] = value
            return
        self.sfr[address] = value
        if address == SP:
            if self.code[self.pc - 3] == MOVE_IMMEDIATE:  # as startup code does; anything else is a frame on the stack
                self._stack_base = value
            self.note_stack()
        elif address in self.on_write:
            self.on_write[address](value)

    def read_bit(self, bit: int) -> int:
        return self.read(_byte_of(bit)) >> (bit & 7) & 1

    def write_bit(self, bit: int, value: int) -> None:
        address, mask = _byte_of(bit), 1 << (bit & 7)
        before = self.read(address)
        self.write(address, before | mask if value else before & ~mask)

    def register(self, number: int) -> int:
        """Where R0 to R7 are in RAM."""
        return self.sfr[PSW] & BANK | number

    @property
    def dptr(self) -> int:
        return self.sfr[DPH] << 8 | self.sfr[DPL]

    @property
    def carry(self) -> int:
        return self.sfr[PSW] >> 7

    def set_flags(self, mask: int, flags: int) -> None:
        self.sfr[PSW] = self.sfr[PSW] & ~mask | flags

    # --- The stack, which grows upward

    def push(self, value: int) -> None:
        top = self.sfr[SP] + 1 & 0xFF
        self.sfr[SP] = top
        self.iram[top] = value
        self.note_stack()

    def pop(self) -> int:
        value = self.iram[self.sfr[SP]]
        self.sfr[SP] = self.sfr[SP] - 1 & 0xFF
        return value

    @property
    def stack_depth(self) -> int:
        """Bytes by which SP is above where the program had put it."""
        return self.sfr[SP] - self._stack_base

    def note_stack(self) -> None:
        self.stack.note(self.stack_depth)

    def call(self, target: int) -> None:
        self.push(self.pc & 0xFF)
        self.push(self.pc >> 8)
        self.pc = target

    def return_(self) -> None:
        high = self.pop()
        self.pc = high << 8 | self.pop()

    def jump(self, condition: bool | int) -> None:
        """By a relative offset, if so."""
        offset = self.fetch()
        if condition:
            self.pc = self.pc + (offset ^ 0x80) - 0x80 & 0xFFFF


def _byte_of(bit: int) -> int:
    return 0x20 | bit >> 3 if bit < 0x80 else bit & 0xF8
