"""A Cortex-M0+ on Unicorn: instructions by QEMU's translator, and around them what Unicorn leaves out: time, exceptions, sleep.

Time is counted in cycles, block by block, from the costs in `thumb`. An interrupt is taken between the two instructions where it comes
due. A loop that only waits, changing nothing, is not run through but skipped to the next event. There is one stack (MSP) and no code in
RAM; a program that asks for more is reported as at fault. Knows no peripherals but those of the core.
"""

from __future__ import annotations

import struct
from typing import Any, Protocol

from unicorn import (
    UC_ARCH_ARM,
    UC_HOOK_BLOCK,
    UC_HOOK_INTR,
    UC_HOOK_MEM_INVALID,
    UC_MEM_FETCH_PROT,
    UC_MEM_FETCH_UNMAPPED,
    UC_MEM_WRITE_PROT,
    UC_MEM_WRITE_UNMAPPED,
    UC_MODE_THUMB,
    UC_PROT_EXEC,
    UC_PROT_READ,
    UC_PROT_WRITE,
)
from unicorn.arm_const import UC_CPU_ARM_CORTEX_M0
from unicorn.unicorn_py3.unicorn import Uc, UcError

from hil.emulators.cortexm.registers import Registers
from hil.emulators.cortexm.system_control import SVCALL, SYSTEM_CONTROL, SYSTEM_CONTROL_BYTES, SystemControl
from hil.emulators.cortexm.thumb import TAKEN_BRANCH_EXTRA_CYCLES, Block, IllegalInstruction, Last, read_block
from hil.emulators.stack import StackWatch

ENTRY_CYCLES = 15
EXIT_CYCLES = 13
"""Of an exception: stacking and unstacking. One that follows another at once is charged both, some ten cycles more than it takes."""
FRAME_BYTES = 32
FRAME_ALIGNMENT = 8
RETURN_TO_THREAD = 0xFFFFFFF9
RETURN_TO_HANDLER = 0xFFFFFFF1
STACK_WAS_MISALIGNED = 1 << 9
"""In the stacked xPSR."""
THUMB_STATE = 1 << 24
FLAGS = 0xF0000000
SPIN_TURNS = 4
"""Turns of a loop before it is looked at whether anything changes in it."""
UNCOUNTED = 1 << 40
"""Instructions: a bound always given, because Unicorn translates all code anew when a bound comes or goes."""
UNICORN_SVC = 2
UNICORN_EXCEPTIONS = {3: "instruction fetch that failed", 4: "misaligned access", 7: "BKPT without a debugger"}


class Surroundings(Protocol):
    """The chip around the core, seen from it. Times are cycles."""

    def advance(self, now: int) -> None:
        """Let happen what is due by now."""

    def next_event(self) -> int:
        """When something will happen by itself, the core's own SysTick included; `NEVER` if nothing will."""

    def interrupts(self) -> int:
        """One bit for each interrupt line that is high."""

    def read(self, address: int) -> tuple[int, bool]:
        """A peripheral's register, and whether reading has changed anything; raises `BusFault`."""

    def write(self, address: int, value: int) -> None:
        """Raises `BusFault`."""

    def reset_requested(self) -> None:
        """The program wants a reset: the next event is now."""


class BusFault(Exception):
    """There is nothing at this address; says what was tried."""


class Core:
    """The processor with flash and RAM. `cycles` only grows, over resets too."""

    def __init__(self, flash: range, ram: range, peripherals: tuple[range, ...], surroundings: Surroundings) -> None:
        self.cycles = 0
        self.sleep_cycles = 0
        self.stack = StackWatch(FRAME_ALIGNMENT)
        self.fault: str | None = None
        self.asleep = False
        self.spinning = False
        """In a loop that only an event can end."""
        self.system = SystemControl(self)
        self._around = surroundings
        self._flash, self._ram = flash, ram
        # The mode for M-class would silently make it a Cortex-M33, which knows Thumb-2 and takes misaligned addresses.
        self._uc = uc = Uc(UC_ARCH_ARM, UC_MODE_THUMB)
        uc.ctl_set_cpu_model(UC_CPU_ARM_CORTEX_M0)
        uc.mem_map(flash.start, len(flash), UC_PROT_READ | UC_PROT_EXEC)
        uc.mem_map(ram.start, len(ram), UC_PROT_READ | UC_PROT_WRITE)
        for area in (*peripherals, range(SYSTEM_CONTROL, SYSTEM_CONTROL + SYSTEM_CONTROL_BYTES)):
            uc.mmio_map(area.start, len(area), self._read, area.start, self._write, area.start)
        uc.ctl_exits_enabled(True)
        uc.ctl_set_exits([RETURN_TO_THREAD & ~1, RETURN_TO_HANDLER & ~1])
        uc.hook_add(UC_HOOK_BLOCK, self._enter_block)
        uc.hook_add(UC_HOOK_INTR, self._interrupted)
        uc.hook_add(UC_HOOK_MEM_INVALID, self._bad_access)
        self._registers = Registers(uc)
        self._blocks: dict[int, Block] = {}
        self._pc = 0
        self._entered: Block | None = None
        """The block that runs, its cycles already counted unless it is stepped through."""
        self._held: Block | None = None
        """The block before which execution was stopped."""
        self._stop_at = 0
        """No instruction begins from this cycle on."""
        self._pause_at = 0
        """No block begins from this cycle on."""
        self._stepping = False
        self._unmasking_matters = False
        self._turns = 0
        self._turn_state: list[int] = []
        self._changed = False
        """Whether a peripheral was changed since this was last looked at."""
        self._unicorn_exception: int | None = None
        self._active: list[int] = []
        self._halted = False

    # --- From outside

    def write_flash(self, data: bytes) -> None:
        self._uc.mem_write(self._flash.start, data)
        self._uc.ctl_remove_cache(self._flash.start, self._flash.stop)
        self._blocks.clear()

    def write_ram(self, data: bytes) -> None:
        self._uc.mem_write(self._ram.start, data)

    def read_ram(self, address: int, length: int) -> bytes:
        return bytes(self._uc.mem_read(address, length))

    def reset(self) -> None:
        """Begin at the reset vector."""
        self.system.reset()
        self.system.vectors = self._flash.start
        self.asleep = self.spinning = self._halted = False
        self.fault = None
        self._active.clear()
        self._entered = None
        self._stop_at = 0
        stack, self._pc = struct.unpack("<2I", self._uc.mem_read(self._flash.start, 8))
        self._registers.all.write([*[0] * (len(self._registers.all) - 2), THUMB_STATE, stack & ~3])
        self._registers.masked.write([0])
        self._note_stack(stack)
        if not self._pc & 1:
            self.fail(f"the reset vector is {self._pc:#010x}, which is not Thumb code")

    def halt(self) -> None:
        """Stop at once, until the next reset."""
        self._halted = True

    def run(self, until: int) -> None:
        """To this cycle or, so as not to cut a block in two, shortly after; or to a fault. Time passes whether it sleeps or not."""
        while self.cycles < until and self.fault is None and not self._halted:
            if self.cycles >= self._around.next_event():
                self._around.advance(self.cycles)
                self.system.advance(self.cycles)
            self._take_exception()
            if self.asleep:
                stop_at = max(min(until, self._around.next_event()), self.cycles)
                self.sleep_cycles += stop_at - self.cycles
                self.cycles = stop_at
            else:
                self._execute(until)

    # --- For what is around it and inside it

    def fail(self, what: str) -> None:
        """The program is at fault; the core stops."""
        self.fault = self.fault or f"{what}, at {self._registers.pc.read()[0]:#010x}"
        self._stop_at = 0

    def now(self) -> int:
        """The cycle of the instruction that accesses a peripheral at this moment."""
        block = self._entered
        if block is None:
            return self.cycles
        began = self.cycles if self._stepping else self.cycles - block.cycles
        return began + block.spent_before(self._registers.pc.read()[0])

    def active_exceptions(self) -> list[int]:
        """Those being handled, the innermost last."""
        return self._active

    def reset_requested(self) -> None:
        self._around.reset_requested()

    # --- Execution

    def _execute(self, until: int) -> None:
        """Until then, or earlier if something needs attention."""
        self._stop_at = self._around.next_event()
        self._pause_at = until
        self._held = None
        self.spinning = False
        if self.cycles < self._stop_at:
            self._emulate(UNCOUNTED)
        if self._held is None or self.fault is not None:
            return
        if self.spinning:
            turn = self._held.cycles + TAKEN_BRANCH_EXTRA_CYCLES
            left = min(self._stop_at, until) - self.cycles
            self.cycles += max(-(-left // turn), 0) * turn
        elif self.cycles < self._stop_at < self.cycles + self._held.cycles:
            self._step(self._held, self._held.instructions_within(self._stop_at - self.cycles))

    def _step(self, block: Block, count: int) -> None:
        """Through the first instructions of a block."""
        self._entered = block
        self._stepping = True
        self._emulate(count)
        self._stepping = False
        self._entered = None
        self.cycles += block.spent[count]
        if count == len(block.spent) - 1 and block.last is Last.CONDITIONAL and self._pc != block.end:
            self.cycles += TAKEN_BRANCH_EXTRA_CYCLES

    def _emulate(self, count: int) -> None:
        failure = None
        try:
            self._uc.emu_start(self._pc | 1, 0, count=count)
        except UcError as error:
            failure = str(error)
        self._pc = self._registers.pc.read()[0]
        block = self._entered
        ended = block.last if block is not None and self._pc == block.end else None
        if failure is not None and ended is not Last.EVENT:  # Unicorn does not know what to do at a WFE
            self.fail(failure)
        elif self._unicorn_exception is not None:
            self._raise_internal()
        elif self._pc in (RETURN_TO_THREAD & ~1, RETURN_TO_HANDLER & ~1):
            self._leave_exception()
        elif ended is Last.WAIT:
            self._fall_asleep()

    def _enter_block(self, _uc: Uc, address: int, size: int, _data: Any) -> None:
        """Before each block: count it, unless execution has to stop first."""
        if self._stepping:
            return
        before = self._entered
        if before is not None and before.last is Last.CONDITIONAL and address != before.end:
            self.cycles += TAKEN_BRANCH_EXTRA_CYCLES
        block = self._blocks.get(address) or self._learn(address, size)
        if block is before:
            self._turns += 1
            if self._turns >= SPIN_TURNS and not block.stores and self._only_spins():
                self.spinning = True
        else:
            self._turns = 0
        if (
            self.spinning
            or self.cycles + block.cycles > self._stop_at
            or self.cycles >= self._pause_at
            or (self._unmasking_matters and before is not None and before.last is Last.MASKING)
        ):
            self._held = block
            self._entered = None
            self._uc.emu_stop()
            return
        self._entered = block
        self.cycles += block.cycles
        if block.stack:
            self._note_stack(self._registers.stack.read()[0] - block.stack)

    def _learn(self, address: int, size: int) -> Block:
        try:
            block = read_block(address, bytes(self._uc.mem_read(address, size)))
        except IllegalInstruction as error:
            self.fail(f"illegal instruction: {error}, in the code")
            return Block(address, address, 0, 0, True, Last.ORDINARY, (0,), (0,))
        self._blocks[address] = block
        return block

    def _only_spins(self) -> bool:
        """Whether a turn of a loop without stores has left everything as it was, so that each further turn will."""
        if self._turns > SPIN_TURNS + 1:
            return False  # it did not before: a loop that counts, not one that waits
        state = self._registers.all.read()
        unchanged = self._turns > SPIN_TURNS and state == self._turn_state and not self._changed
        self._turn_state = state
        self._changed = False
        return unchanged

    def _note_stack(self, pointer: int) -> None:
        self.stack.note(self._ram.stop - pointer)

    def _bad_access(self, _uc: Uc, access: int, address: int, size: int, _value: int, _data: Any) -> bool:
        kind = "write" if access in (UC_MEM_WRITE_UNMAPPED, UC_MEM_WRITE_PROT) else "read"
        if access in (UC_MEM_FETCH_UNMAPPED, UC_MEM_FETCH_PROT):
            kind = "fetch"
        self.fail(f"{kind} of {size} bytes at {address:#010x}, where that is not possible")
        return False

    def _interrupted(self, uc: Uc, number: int, _data: Any) -> None:
        self._unicorn_exception = number
        uc.emu_stop()

    # --- Exceptions and sleep

    def _raise_internal(self) -> None:
        number, self._unicorn_exception = self._unicorn_exception, None
        if number == UNICORN_SVC:
            self.system.pending |= 1 << SVCALL
        else:
            self.fail(UNICORN_EXCEPTIONS.get(number or 0, f"exception {number}"))

    def _fall_asleep(self) -> None:
        if self.system.deep_sleep:
            self.fail("WFI with SLEEPDEEP: stop and standby modes are not emulated")
        self.asleep = True

    def _take_exception(self) -> None:
        """Enter the handler of the most urgent exception that waits, if it may interrupt; wake up even if it may not."""
        self._unmasking_matters = False
        number = self.system.next_exception(self._around.interrupts())
        if number is None:
            return
        self.asleep = False
        if self._registers.masked.read()[0] & 1:
            self._unmasking_matters = True
            return
        self.system.pending &= ~(1 << number)
        *stacked, status, stack = self._registers.frame.read()
        aligned = (stack & ~7) - FRAME_BYTES
        stacked_status = status & ~STACK_WAS_MISALIGNED | (STACK_WAS_MISALIGNED if stack & 4 else 0)
        try:
            self._uc.mem_write(aligned, struct.pack("<8I", *stacked, self._pc & ~1, stacked_status))
            (handler,) = struct.unpack("<I", self._uc.mem_read(self.system.vectors + 4 * number, 4))
        except UcError as error:
            self.fail(f"exception {number} could not be entered with the stack at {stack:#010x}: {error}")
            return
        back = RETURN_TO_HANDLER if self._active else RETURN_TO_THREAD
        self._registers.frame.write([*stacked[:-1], back, status & FLAGS | THUMB_STATE | number, aligned])
        self.stack.interrupted(self._ram.stop - stack)
        self._note_stack(aligned)
        self._active.append(number)
        self._pc = handler
        self._entered = None
        self.cycles += ENTRY_CYCLES

    def _leave_exception(self) -> None:
        to_thread = self._pc == RETURN_TO_THREAD & ~1
        if to_thread != (len(self._active) == 1):
            self.fail(f"return from an exception with {len(self._active)} being handled")
            return
        *_, stack = self._registers.frame.read()
        try:
            *stacked, self._pc, status = struct.unpack("<8I", self._uc.mem_read(stack, FRAME_BYTES))
        except UcError as error:
            self.fail(f"return from an exception with the stack at {stack:#010x}: {error}")
            return
        unstacked = stack + FRAME_BYTES + (4 if status & STACK_WAS_MISALIGNED else 0)
        self._registers.frame.write([*stacked, status & ~STACK_WAS_MISALIGNED, unstacked])
        self._note_stack(unstacked)
        self._active.pop()
        self._entered = None
        self.cycles += EXIT_CYCLES
        if to_thread and self.system.sleep_on_exit:
            self._fall_asleep()

    # --- Peripherals

    def _read(self, _uc: Uc, offset: int, size: int, base: int) -> int:
        address = base + offset
        try:
            if base == SYSTEM_CONTROL:
                value, changed = self.system.read(address & 0xFFFC), False
            else:
                value, changed = self._around.read(address & ~3)
        except BusFault as error:
            self.fail(str(error))
            return 0
        self._changed = self._changed or changed
        return value >> 8 * (address & 3) & (1 << 8 * size) - 1

    def _write(self, _uc: Uc, offset: int, _size: int, value: int, base: int) -> None:
        address = base + offset
        try:
            if address & 3:
                raise BusFault(f"write into the middle of the register at {address & ~3:#010x}")
            if base == SYSTEM_CONTROL:
                self.system.write(address & 0xFFFF, value)
            else:
                self._around.write(address, value)
        except BusFault as error:
            self.fail(str(error))
            return
        self._changed = True
        wanted = self.system.next_exception(self._around.interrupts()) is not None
        self._stop_at = 0 if wanted else min(self._stop_at, self._around.next_event())
