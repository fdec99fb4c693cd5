"""Random MSP430 programs that stay within their memory, to compare two simulators on.

Every instruction and addressing mode of the 16-bit CPU occurs, and control always comes back: jumps, calls and returns go to code made for
them. What the manual leaves undefined does not occur. Knows how instructions are encoded, not what they do.
"""

from __future__ import annotations

import random
from collections.abc import Callable

PC, SP, SR, CG = range(4)
DATA = (4, 5, 6, 7, 8, 9, 12, 13, 14, 15)
"""Registers with any value."""
POINTERS = {10: 0x0260, 11: 0x02C0}
"""Registers that point into the middle of RAM, and where to."""
RAM = range(0x0220, 0x0320)
"""For operands."""
RAM_START, RAM_END = 0x0200, 0x0400
STACK_TOP = 0x0400
STACK_WORDS = 24
CODE_START = 0xC000
CODE_END = 0xFE00
RESET_VECTOR = 0xFFFE
SR_BITS = (0x0001, 0x0002, 0x0004, 0x0008, 0x0040, 0x0080, 0x0100)
"""Without CPUOFF, in which nothing would be executed, and OSCOFF."""

MOV, ADD, ADDC, SUBC, SUB, CMP, DADD, BIT, BIC, BIS, XOR, AND = range(4, 16)
RRC, SWPB, RRA, SXT, PUSH, CALL, RETI = range(7)
JMP = 7
CONSTANTS = ((CG, 0), (CG, 1), (CG, 2), (CG, 3), (SR, 2), (SR, 3))
"""Register and As of the six generated constants."""

Source = tuple[int, int, list[int]]
"""Register, As, words that follow."""


def two(operation: int, source: int, as_: int, destination: int, *, ad: int = 0, byte: int = 0) -> int:
    return operation << 12 | source << 8 | ad << 7 | byte << 6 | as_ << 4 | destination


def one(operation: int, register: int, as_: int, byte: int = 0) -> int:
    return 0x1000 | operation << 7 | byte << 6 | as_ << 4 | register


def jump(condition: int, words: int) -> int:
    return 0x2000 | condition << 10 | words & 0x3FF


class Stream:
    """A program of about so many instructions. `image` is all 64 KiB of memory; at `end` is the last instruction, a jump to itself."""

    def __init__(self, seed: int, instructions: int) -> None:
        self._random = random.Random(seed)
        self.image = bytearray(b"\xff" * 0x10000)
        self.image[RAM_START:RAM_END] = self._random.randbytes(RAM_END - RAM_START)
        self.image[RESET_VECTOR : RESET_VECTOR + 2] = CODE_START.to_bytes(2, "little")
        self._at = CODE_START
        self._emitted = 0
        self._pushed = 0
        self._prologue()
        pieces = self._pieces()
        while self._emitted < instructions and self._at < CODE_END:
            self._random.choices([piece for piece, _ in pieces], [weight for _, weight in pieces])[0]()
        self.end = self._at
        self._emit(jump(JMP, -1))

    # --- Encoding

    def _emit(self, *words: int) -> None:
        """One instruction."""
        for word in words:
            self.image[self._at : self._at + 2] = (word & 0xFFFF).to_bytes(2, "little")
            self._at += 2
        self._emitted += 1

    def _set(self, register: int, value: int) -> None:
        self._emit(two(MOV, PC, 3, register), value)

    def _prologue(self) -> None:
        self._set(SP, STACK_TOP)
        self._set(SR, 0)
        for register in DATA:
            self._set(register, self._random.randrange(0x10000))
        for register, address in POINTERS.items():
            self._set(register, address)

    def _pieces(self) -> list[tuple[Callable[[], None], int]]:
        return [
            (self._two_operands, 60),
            (self._in_place, 18),
            (self._push, 10),
            (self._pop, 8),
            (self._stack_pointer, 4),
            (self._status, 5),
            (self._decimal, 8),
            (self._jumps, 10),
            (self._call, 8),
            (self._branch, 6),
            (self._return_from_interrupt, 4),
        ]

    # --- Operands

    def _data(self) -> int:
        return self._random.choice(DATA)

    def _pointer(self) -> int:
        return self._random.choice(list(POINTERS))

    def _offset(self, byte: int) -> int:
        return self._random.randrange(-32, 32) if byte else 2 * self._random.randrange(-16, 16)

    def _address(self, byte: int) -> int:
        return self._random.choice(RAM) & (~0 if byte else ~1)

    def _memory(self, byte: int, words_before: int) -> Source:
        """Indexed by a pointer, by the stack pointer, by PC (symbolic) or by nothing (absolute)."""
        kind = self._random.randrange(4)
        if kind == 0:
            return self._pointer(), 1, [self._offset(byte)]
        if kind == 1:
            return SP, 1, [-2 - 2 * self._random.randrange(STACK_WORDS)]
        if kind == 2:
            return PC, 1, [self._address(byte) - (self._at + 2 * words_before)]
        return SR, 1, [self._address(byte)]

    def _source(self, byte: int) -> Source:
        kind = self._random.randrange(7)
        if kind == 0:
            return self._random.choice((*DATA, PC, SP, SR)), 0, []
        if kind == 1:
            return PC, 3, [self._random.randrange(0x10000)]
        if kind == 2:
            return *self._random.choice(CONSTANTS), []
        if kind == 3:
            return self._pointer(), 2, []
        if kind == 4:
            return self._pointer(), 3, []
        return self._memory(byte, words_before=1)

    def _restore(self, *registers: int) -> None:
        """A pointer that was changed is put back, before it becomes odd or leaves RAM."""
        for register in registers:
            if register in POINTERS:
                self._set(register, POINTERS[register])

    # --- Instructions

    def _two_operands(self) -> None:
        operation = self._random.choice((MOV, ADD, ADDC, SUBC, SUB, CMP, BIT, BIC, BIS, XOR, AND))
        byte = self._random.randrange(2)
        source, as_, words = self._source(byte)
        to_register: Source = (self._random.choice((*DATA, *POINTERS, CG)), 0, [])
        target, ad, more = to_register if self._random.randrange(2) else self._memory(byte, words_before=1 + len(words))
        self._emit(two(operation, source, as_, target, ad=ad, byte=byte), *words, *more)
        self._restore(*({source} if as_ == 3 else set()) | ({target} if not ad else set()))

    def _in_place(self) -> None:
        operation = self._random.choice((RRC, SWPB, RRA, SXT))
        byte = self._random.randrange(2) if operation in (RRC, RRA) else 0
        register, as_, words = self._random.choice(
            [(self._data(), 0, []), (self._pointer(), 2, []), (self._pointer(), 3, []), self._memory(byte, words_before=1)]
        )
        self._emit(one(operation, register, as_, byte), *words)
        self._restore(register)

    def _push(self) -> None:
        if self._pushed == STACK_WORDS // 2:
            self._emit(two(ADD, PC, 3, SP), 2 * self._pushed)
            self._pushed = 0
        byte = self._random.randrange(2)
        if byte:  # the manual does not say what becomes of the upper half of the word: it was zero before
            self._emit(two(MOV, CG, 0, SP, ad=1), -2)
        register, as_, words = self._source(byte)
        self._emit(one(PUSH, register, as_, byte), *words)
        self._restore(register)
        self._pushed += 1

    def _pop(self) -> None:
        if self._pushed:
            byte = self._random.randrange(2)
            self._emit(two(MOV, SP, 3, self._data(), byte=byte))
            self._pushed -= 1
            if byte:  # mspdebug makes SP odd
                self._set(SP, STACK_TOP - 2 * self._pushed)

    def _stack_pointer(self) -> None:
        size = 2 * self._random.randrange(1, 5)
        self._emit(two(SUB, PC, 3, SP), size)
        self._emit(two(MOV, SP, 0, self._data()))
        if self._random.randrange(2):  # POP SP: what was popped stands, not the increment
            self._emit(two(MOV, SP, 0, 4))
            self._emit(two(ADD, PC, 3, 4), size)
            self._emit(one(PUSH, 4, 0))
            self._emit(two(MOV, SP, 3, SP))
        else:
            self._emit(two(ADD, PC, 3, SP), size)

    def _status_bits(self) -> int:
        return sum(bit for bit in SR_BITS if self._random.randrange(2))

    def _status(self) -> None:
        operation = self._random.choice((MOV, BIC, BIS, XOR))
        if operation == XOR:  # would set flags too: what is written stands
            self._emit(two(MOV, PC, 3, SR), self._status_bits())
        self._emit(two(operation, PC, 3, SR), self._status_bits())

    def _decimal(self) -> None:
        """Operands are decimal, as the result is undefined for others; V is undefined after it, and cleared."""
        byte = self._random.randrange(2)
        augend, addend = (int(f"{self._random.randrange(10_000):04}", 16) for _ in range(2))
        target = self._data()
        self._emit(two(BIC if self._random.randrange(2) else BIS, CG, 1, SR))  # carry in
        if self._random.randrange(2):
            address = self._address(0)
            self._emit(two(MOV, PC, 3, SR, ad=1), augend, address)
            self._emit(two(DADD, PC, 3, SR, ad=1, byte=byte), addend, address)
        else:
            self._set(target, augend)
            source = self._random.choice([register for register in DATA if register != target])
            self._set(source, addend)
            self._emit(two(BIC if self._random.randrange(2) else BIS, CG, 1, SR))
            self._emit(two(DADD, source, 0, target, byte=byte))
        self._emit(two(BIC, PC, 3, SR), 0x0100)

    def _fillers(self) -> list[int]:
        """A few one-word instructions."""
        operations = (ADD, ADDC, SUBC, SUB, CMP, XOR)
        return [two(self._random.choice(operations), self._data(), 0, self._data()) for _ in range(self._random.randrange(4))]

    def _jumps(self) -> None:
        """Forward over a block; at its other side, perhaps back to it; from its end, forward out of it."""
        self._emit(two(self._random.choice((ADD, SUB, CMP, XOR)), self._data(), 0, self._data()))
        block = [*self._fillers(), jump(JMP, 1)]
        self._emit(jump(self._random.randrange(8), len(block)))
        for word in block:
            self._emit(word)
        self._emit(jump(self._random.randrange(8), -(len(block) + 1)))

    def _call(self) -> None:
        """Over a subroutine, then a call of it in any addressing mode."""
        routine = [*self._fillers(), two(MOV, SP, 3, PC)]
        self._emit(jump(JMP, len(routine)))
        address = self._at
        for word in routine:
            self._emit(word)
        for instruction in self._way(lambda register, as_: one(CALL, register, as_))(address):
            self._emit(*instruction)
        self._restore(*POINTERS)

    def _branch(self) -> None:
        """Over words that are no instructions, in any addressing mode, or by adding to PC."""
        garbage = self._random.randrange(1, 4)
        if self._random.randrange(4) == 0:
            self._emit(two(ADD, PC, 3, PC), 2 * garbage)
        else:
            way = self._way(lambda register, as_: two(MOV, register, as_, PC))
            words = sum(len(instruction) for instruction in way(0))
            for instruction in way(self._at + 2 * (words + garbage)):
                self._emit(*instruction)
        self._at += 2 * garbage
        self._restore(*POINTERS)

    def _way(self, leave: Callable[[int, int], int]) -> Callable[[int], list[list[int]]]:
        """Instructions that, from here, leave for an address: it is immediate, in a register, or in memory, found in any mode."""
        kind, register, pointer, cell = self._random.randrange(7), self._data(), self._pointer(), self._address(0)
        begin = self._at

        def instructions(address: int) -> list[list[int]]:
            in_cell = [two(MOV, PC, 3, SR, ad=1), address, cell]
            at_pointer = [two(MOV, PC, 3, pointer, ad=1), address, 0]
            index_at = begin + 2 * (len(in_cell) + 1)
            return [
                [[leave(PC, 3), address]],
                [[two(MOV, PC, 3, register), address], [leave(register, 0)]],
                [at_pointer, [leave(pointer, 2)]],
                [at_pointer, [leave(pointer, 3)]],
                [in_cell, [leave(SR, 1), cell]],
                [in_cell, [leave(PC, 1), cell - index_at]],
                [in_cell, [leave(pointer, 1), cell - POINTERS[pointer]]],
            ][kind]

        return instructions

    def _return_from_interrupt(self) -> None:
        after = self._at + 4 + 4 + 2
        self._emit(one(PUSH, PC, 3), after)
        self._emit(one(PUSH, PC, 3), self._status_bits())
        self._emit(one(RETI, 0, 0))
