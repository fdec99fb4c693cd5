"""The instructions of the MCS-51: 256 of them, each with the machine cycles it takes.

A program that wants external RAM is at fault. Knows no interrupts and no time but the cycles it spends.
"""

from __future__ import annotations

from collections.abc import Callable

from hil.emulators.mcs51_cpu import ACC, AUXILIARY, CARRY, DPH, DPL, OVERFLOW, PSW, SP, B, Cpu

Instruction = Callable[[Cpu], None]

_TWO_CYCLES = {
    *(0x02, 0x12, 0x22, 0x32, 0x73, 0x83, 0x93, 0x90, 0xA3, 0xC0, 0xD0),  # long jumps and calls, MOVC, DPTR, PUSH, POP
    *(0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0x80, 0x72, 0x82, 0x92, 0xA0, 0xB0),  # short jumps, bits
    *(0x43, 0x53, 0x63, 0x75, 0x85, 0xD5, 0x86, 0x87, 0xA6, 0xA7),  # direct with another operand
    *(*range(0x88, 0x90), *range(0xA8, 0xB0), *range(0xB4, 0xC0), *range(0xD8, 0xE0)),  # the same with a register, CJNE, DJNZ
    *range(0x01, 0x100, 0x10),  # AJMP, ACALL
}
CYCLES = [2 if opcode in _TWO_CYCLES else 1 for opcode in range(256)]
CYCLES[0xA4] = CYCLES[0x84] = 4  # MUL, DIV


def step(cpu: Cpu) -> None:
    """Run one instruction."""
    opcode = cpu.fetch()
    INSTRUCTIONS[opcode](cpu)
    cpu.cycles += CYCLES[opcode]


# --- Arithmetic on the accumulator


def _add(cpu: Cpu, value: int, carry: int = 0) -> None:
    acc = cpu.sfr[ACC]
    total = acc + value + carry
    half = (acc & 0xF) + (value & 0xF) + carry > 0xF
    overflow = ~(acc ^ value) & (acc ^ total) & 0x80
    cpu.sfr[ACC] = total & 0xFF
    cpu.set_flags(CARRY | AUXILIARY | OVERFLOW, (total >> 8) * CARRY | half * AUXILIARY | (OVERFLOW if overflow else 0))


def _add_with_carry(cpu: Cpu, value: int) -> None:
    _add(cpu, value, cpu.carry)


def _subtract(cpu: Cpu, value: int) -> None:
    acc, borrow = cpu.sfr[ACC], cpu.carry
    total = acc - value - borrow
    half = (acc & 0xF) - (value & 0xF) - borrow < 0
    overflow = (acc ^ value) & (acc ^ total) & 0x80
    cpu.sfr[ACC] = total & 0xFF
    cpu.set_flags(CARRY | AUXILIARY | OVERFLOW, (total < 0) * CARRY | half * AUXILIARY | (OVERFLOW if overflow else 0))


def _or(cpu: Cpu, value: int) -> None:
    cpu.sfr[ACC] |= value


def _and(cpu: Cpu, value: int) -> None:
    cpu.sfr[ACC] &= value


def _xor(cpu: Cpu, value: int) -> None:
    cpu.sfr[ACC] ^= value


def _load(cpu: Cpu, value: int) -> None:
    cpu.sfr[ACC] = value


def _multiply(cpu: Cpu) -> None:
    product = cpu.sfr[ACC] * cpu.sfr[B]
    cpu.sfr[ACC], cpu.sfr[B] = product & 0xFF, product >> 8
    cpu.set_flags(CARRY | OVERFLOW, OVERFLOW if product > 0xFF else 0)


def _divide(cpu: Cpu) -> None:
    divisor = cpu.sfr[B]
    if divisor:
        cpu.sfr[ACC], cpu.sfr[B] = divmod(cpu.sfr[ACC], divisor)
    cpu.set_flags(CARRY | OVERFLOW, 0 if divisor else OVERFLOW)


def _decimal_adjust(cpu: Cpu) -> None:
    acc, flags = cpu.sfr[ACC], cpu.sfr[PSW]
    if acc & 0xF > 9 or flags & AUXILIARY:
        acc += 0x06
    carry = flags & CARRY or acc > 0xFF
    if acc >> 4 & 0x1F > 9 or carry:
        acc += 0x60
    cpu.sfr[ACC] = acc & 0xFF
    cpu.set_flags(CARRY, CARRY if carry or acc > 0xFF else 0)


def _rotate_left(cpu: Cpu) -> None:
    acc = cpu.sfr[ACC]
    cpu.sfr[ACC] = acc << 1 & 0xFF | acc >> 7


def _rotate_right(cpu: Cpu) -> None:
    acc = cpu.sfr[ACC]
    cpu.sfr[ACC] = acc >> 1 | acc << 7 & 0x80


def _rotate_left_through_carry(cpu: Cpu) -> None:
    acc = cpu.sfr[ACC] << 1 | cpu.carry
    cpu.sfr[ACC] = acc & 0xFF
    cpu.set_flags(CARRY, CARRY if acc > 0xFF else 0)


def _rotate_right_through_carry(cpu: Cpu) -> None:
    acc, carry = cpu.sfr[ACC], cpu.carry
    cpu.sfr[ACC] = acc >> 1 | carry << 7
    cpu.set_flags(CARRY, CARRY if acc & 1 else 0)


def _swap(cpu: Cpu) -> None:
    acc = cpu.sfr[ACC]
    cpu.sfr[ACC] = acc >> 4 | acc << 4 & 0xF0


# --- Operands by the low half of the opcode: 4 or 5 direct or immediate, 6 and 7 indirect, 8 to F a register


def _location(low: int) -> tuple[Callable[[Cpu], int], Callable[[Cpu, int], int], Callable[[Cpu, int, int], None]]:
    """How to find where an operand is, how to read what is there, and how to write it."""
    if low == 5:
        return Cpu.fetch, Cpu.read, Cpu.write

    def read(cpu: Cpu, address: int) -> int:
        return cpu.iram[address]

    def write(cpu: Cpu, address: int, value: int) -> None:
        cpu.iram[address] = value

    if low < 8:
        return lambda cpu: cpu.iram[cpu.register(low & 1)], read, write
    return lambda cpu: cpu.register(low & 7), read, write


def _with_operand(low: int, action: Callable[[Cpu, int], None]) -> Instruction:
    if low == 4:
        return lambda cpu: action(cpu, cpu.fetch())
    where, read, _ = _location(low)
    return lambda cpu: action(cpu, read(cpu, where(cpu)))


def _changing(low: int, change: Callable[[int], int]) -> Instruction:
    if low == 4:

        def change_accumulator(cpu: Cpu) -> None:
            cpu.sfr[ACC] = change(cpu.sfr[ACC]) & 0xFF

        return change_accumulator
    where, read, write = _location(low)

    def change_there(cpu: Cpu) -> None:
        address = where(cpu)
        write(cpu, address, change(read(cpu, address)) & 0xFF)

    return change_there


def _storing(low: int, value: Callable[[Cpu], int]) -> Instruction:
    """The location stands before the value in the code."""
    where, _, write = _location(low)

    def store(cpu: Cpu) -> None:
        address = where(cpu)
        write(cpu, address, value(cpu))

    return store


def _exchange(low: int) -> Instruction:
    where, read, write = _location(low)

    def exchange(cpu: Cpu) -> None:
        address = where(cpu)
        acc, cpu.sfr[ACC] = cpu.sfr[ACC], read(cpu, address)
        write(cpu, address, acc)

    return exchange


def _exchange_digit(low: int) -> Instruction:
    where, read, write = _location(low)

    def exchange(cpu: Cpu) -> None:
        address = where(cpu)
        value, acc = read(cpu, address), cpu.sfr[ACC]
        cpu.sfr[ACC] = acc & 0xF0 | value & 0x0F
        write(cpu, address, value & 0xF0 | acc & 0x0F)

    return exchange


def _compare_and_jump(low: int) -> Instruction:
    """CJNE: the accumulator with an immediate or direct value, or a location with an immediate one."""

    def compare(cpu: Cpu, left: int, right: int) -> None:
        cpu.set_flags(CARRY, CARRY if left < right else 0)
        cpu.jump(left != right)

    if low < 6:
        return _with_operand(low, lambda cpu, value: compare(cpu, cpu.sfr[ACC], value))
    return _with_operand(low, lambda cpu, value: compare(cpu, value, cpu.fetch()))


def _decrement_and_jump(low: int) -> Instruction:
    where, read, write = _location(low)

    def decrement(cpu: Cpu) -> None:
        address = where(cpu)
        value = read(cpu, address) - 1 & 0xFF
        write(cpu, address, value)
        cpu.jump(value)

    return decrement


def _direct_with(action: Callable[[int, int], int], operand: Callable[[Cpu], int]) -> Instruction:
    def change(cpu: Cpu) -> None:
        address = cpu.fetch()
        cpu.write(address, action(cpu.read(address), operand(cpu)))

    return change


# --- Jumps, bits, tables, stack


def _page_jump(opcode: int) -> Instruction:
    def target(cpu: Cpu) -> int:
        low = cpu.fetch()
        return cpu.pc & 0xF800 | (opcode >> 5) << 8 | low

    if opcode & 0x10:
        return lambda cpu: cpu.call(target(cpu))

    def jump(cpu: Cpu) -> None:
        cpu.pc = target(cpu)

    return jump


def _word(cpu: Cpu) -> int:
    high = cpu.fetch()
    return high << 8 | cpu.fetch()


def _long_jump(cpu: Cpu) -> None:
    cpu.pc = _word(cpu)


def _indexed_jump(cpu: Cpu) -> None:
    cpu.pc = cpu.dptr + cpu.sfr[ACC] & 0xFFFF


def _return_from_interrupt(cpu: Cpu) -> None:
    cpu.return_()
    cpu.on_return_from_interrupt()


def _set_dptr(cpu: Cpu, value: int) -> None:
    cpu.sfr[DPH], cpu.sfr[DPL] = value >> 8 & 0xFF, value & 0xFF


def _table(base: Callable[[Cpu], int]) -> Instruction:
    def look_up(cpu: Cpu) -> None:
        cpu.sfr[ACC] = cpu.code[base(cpu) + cpu.sfr[ACC] & 0xFFFF]

    return look_up


def _move_direct(cpu: Cpu) -> None:
    value = cpu.read(cpu.fetch())  # the source stands first
    cpu.write(cpu.fetch(), value)


def _jump_on_bit(wanted: int, *, clears: bool = False) -> Instruction:
    def jump(cpu: Cpu) -> None:
        bit = cpu.fetch()
        is_so = cpu.read_bit(bit) == wanted
        if is_so and clears:
            cpu.write_bit(bit, 0)
        cpu.jump(is_so)

    return jump


def _set_carry(condition: Callable[[Cpu], int]) -> Instruction:
    return lambda cpu: cpu.set_flags(CARRY, CARRY if condition(cpu) else 0)


def _change_bit(change: Callable[[Cpu, int], int]) -> Instruction:
    def write(cpu: Cpu) -> None:
        bit = cpu.fetch()
        cpu.write_bit(bit, change(cpu, bit))

    return write


def _push(cpu: Cpu) -> None:
    cpu.push(cpu.read(cpu.fetch()))


def _pop(cpu: Cpu) -> None:
    address = cpu.fetch()
    value = cpu.pop()
    if address == SP:
        cpu.sfr[SP] = value
    else:
        cpu.write(address, value)


def _fault(reason: str) -> Instruction:
    def stop(cpu: Cpu) -> None:
        cpu.fault = f"{reason}, at {cpu.pc - 1:#06x}"

    return stop


def _all_instructions() -> list[Instruction]:
    table: list[Instruction] = [_fault("no such instruction")] * 256
    accumulator = ((0x20, _add), (0x30, _add_with_carry), (0x40, _or), (0x50, _and), (0x60, _xor), (0x90, _subtract), (0xE0, _load))
    for low in range(4, 16):
        for high, action in accumulator:
            table[high | low] = _with_operand(low, action)
        table[0x00 | low] = _changing(low, lambda value: value + 1)
        table[0x10 | low] = _changing(low, lambda value: value - 1)
        table[0xB0 | low] = _compare_and_jump(low)
    for low in range(5, 16):
        table[0x70 | low] = _storing(low, Cpu.fetch)
        table[0xC0 | low] = _exchange(low)
        table[0xF0 | low] = _storing(low, lambda cpu: cpu.sfr[ACC])
        if low > 5:
            table[0x80 | low] = _with_operand(low, lambda cpu, value: cpu.write(cpu.fetch(), value))
            table[0xA0 | low] = _storing(low, lambda cpu: cpu.read(cpu.fetch()))
    for low in (5, *range(8, 16)):
        table[0xD0 | low] = _decrement_and_jump(low)
    for opcode in range(0x01, 0x100, 0x10):
        table[opcode] = _page_jump(opcode)
    for opcode in (0xE0, 0xE2, 0xE3, 0xF0, 0xF2, 0xF3):
        table[opcode] = _fault("MOVX, but this board has no external RAM")
    for high, operation in ((0x40, int.__or__), (0x50, int.__and__), (0x60, int.__xor__)):
        table[high | 2] = _direct_with(operation, lambda cpu: cpu.sfr[ACC])
        table[high | 3] = _direct_with(operation, Cpu.fetch)
    others: dict[int, Instruction] = {
        0x00: lambda _: None,
        0x02: _long_jump,
        0x03: _rotate_right,
        0x10: _jump_on_bit(1, clears=True),
        0x12: lambda cpu: cpu.call(_word(cpu)),
        0x13: _rotate_right_through_carry,
        0x20: _jump_on_bit(1),
        0x22: Cpu.return_,
        0x23: _rotate_left,
        0x30: _jump_on_bit(0),
        0x32: _return_from_interrupt,
        0x33: _rotate_left_through_carry,
        0x40: lambda cpu: cpu.jump(cpu.carry),
        0x50: lambda cpu: cpu.jump(not cpu.carry),
        0x60: lambda cpu: cpu.jump(cpu.sfr[ACC] == 0),
        0x70: lambda cpu: cpu.jump(cpu.sfr[ACC]),
        0x72: _set_carry(lambda cpu: cpu.read_bit(cpu.fetch()) | cpu.carry),
        0x73: _indexed_jump,
        0x74: _with_operand(4, _load),
        0x80: lambda cpu: cpu.jump(True),
        0x82: _set_carry(lambda cpu: cpu.read_bit(cpu.fetch()) & cpu.carry),
        0x83: _table(lambda cpu: cpu.pc),
        0x84: _divide,
        0x85: _move_direct,
        0x90: lambda cpu: _set_dptr(cpu, _word(cpu)),
        0x92: _change_bit(lambda cpu, _: cpu.carry),
        0x93: _table(lambda cpu: cpu.dptr),
        0xA0: _set_carry(lambda cpu: cpu.read_bit(cpu.fetch()) ^ 1 | cpu.carry),
        0xA2: _set_carry(lambda cpu: cpu.read_bit(cpu.fetch())),
        0xA3: lambda cpu: _set_dptr(cpu, cpu.dptr + 1),
        0xA4: _multiply,
        0xB0: _set_carry(lambda cpu: (cpu.read_bit(cpu.fetch()) ^ 1) & cpu.carry),
        0xB2: _change_bit(lambda cpu, bit: cpu.read_bit(bit) ^ 1),
        0xB3: _set_carry(lambda cpu: cpu.carry ^ 1),
        0xC0: _push,
        0xC2: _change_bit(lambda *_: 0),
        0xC3: _set_carry(lambda _: 0),
        0xC4: _swap,
        0xD0: _pop,
        0xD2: _change_bit(lambda *_: 1),
        0xD3: _set_carry(lambda _: 1),
        0xD4: _decimal_adjust,
        0xD6: _exchange_digit(6),
        0xD7: _exchange_digit(7),
        0xE4: lambda cpu: _load(cpu, 0),
        0xF4: _changing(4, lambda value: ~value),
    }
    for opcode, instruction in others.items():
        table[opcode] = instruction
    return table


INSTRUCTIONS = _all_instructions()
