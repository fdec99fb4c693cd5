"""Images of programs: what flash contains after an ELF or Intel hex file was written into it. Refuses what would not fit the chip."""

from __future__ import annotations

import io
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from hil.emulators.board import BoardError

ERASED = b"\xff"
MACHINE_ARM = "EM_ARM"
HEX_DATA, HEX_END = 0, 1


def arm_elf(path: Path, flash: range) -> bytes:
    """The contents of a flash that begins with the vector table."""
    content = bytearray(ERASED * len(flash))
    used = False
    try:
        elf = ELFFile(io.BytesIO(_read(path)))
        if elf["e_machine"] != MACHINE_ARM:
            raise BoardError(f"{path}: is for {elf['e_machine']}, this chip is an ARM; build the image for this board")
        for segment in elf.iter_segments("PT_LOAD"):
            start, data = segment["p_paddr"], segment.data()
            if not data:
                continue
            if start < flash.start or start + len(data) > flash.stop:
                where = f"{flash.start:#x} to {flash.stop - 1:#x}"
                raise BoardError(f"{path}: has {len(data)} bytes at {start:#x}, flash is {where}; build the image for this board")
            content[start - flash.start : start - flash.start + len(data)] = data
            used = True
    except ELFError as error:
        raise BoardError(f"{path}: is no whole ELF file: {error}; build the image again") from error
    if not used or content[:4] == ERASED * 4:
        raise BoardError(f"{path}: has no vector table at {flash.start:#x}; link the image for this board")
    return bytes(content)


def end_of_variables(path: Path, ram: range) -> int:
    """The first address in RAM, on a word's boundary, that an ELF file has not given to a variable."""
    sections = ELFFile(io.BytesIO(_read(path))).iter_sections()
    ends = [section["sh_addr"] + section["sh_size"] for section in sections if section["sh_addr"] in ram and section["sh_size"]]
    return -(-max(ends, default=ram.start) // 4) * 4


def intel_hex(path: Path, flash: range) -> bytes:
    """The contents of flash after an Intel hex file of 16-bit addresses."""
    content = bytearray(ERASED * len(flash))
    text = _read(path).decode("ascii", errors="replace")
    for number, line in enumerate(text.split(), start=1):
        record = _hex_record(line)
        if record is None:
            raise BoardError(f"{path}: line {number} is no whole record of an Intel hex file; build the image again")
        length, address, kind = record[0], int.from_bytes(record[1:3], "big"), record[3]
        if kind == HEX_END:
            return bytes(content)
        if kind != HEX_DATA or address + length > len(flash):
            raise BoardError(f"{path}: line {number} is not for a flash of {len(flash)} bytes; build the image for this board")
        content[address : address + length] = record[4:-1]
    raise BoardError(f"{path}: ends without an end record; build the image again")


def _hex_record(line: str) -> bytes | None:
    """The bytes of a record whose length and sum are right."""
    try:
        record = bytes.fromhex(line.removeprefix(":"))
    except ValueError:
        return None
    whole = line.startswith(":") and len(record) >= 5 and len(record) == record[0] + 5 and sum(record) % 256 == 0
    return record if whole else None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BoardError(f"{path}: cannot be read: {error.strerror}; build the image first, or correct the path") from error
