"""How much a linked image takes of flash and RAM, read from the image itself. Runs nothing and knows no budget."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

SCHEMA_TABLES = ("mcpax_registration", "mcpax_tools", "mcpax_arguments", "mcpax_outputs", "mcpax_events")
"""What the map's header puts into flash, and nothing else."""
RAM_SECTIONS = (".data", ".bss", ".noinit")


class ImageError(Exception):
    """No sizes can be had of a file; says which, why, and what to do."""


@dataclass(frozen=True, slots=True)
class ImageSize:
    code: int
    """All of flash but the schema: vectors, startup, drivers, library, application, first values of variables."""
    schema: int | None
    """None where the file does not tell it from the code."""
    static_ram: int


def elf_size(path: Path) -> ImageSize:
    try:
        with path.open("rb") as file:
            elf = ELFFile(file)
            sections = [section for section in elf.iter_sections() if section["sh_flags"] & SH_FLAGS.SHF_ALLOC]
            flash = sum(section["sh_size"] for section in sections if section["sh_type"] == "SHT_PROGBITS")
            ram = sum(section["sh_size"] for section in sections if section.name in RAM_SECTIONS)
            schema = _schema(elf)
    except OSError as error:
        raise ImageError(f"{path}: {error.strerror}; build it first") from error
    except ELFError as error:
        raise ImageError(f"{path}: is no whole ELF file: {error}; build it again") from error
    if not schema:
        raise ImageError(f"{path}: has none of the tables {', '.join(SCHEMA_TABLES)}; is it stripped, or another program?")
    return ImageSize(flash - schema, schema, ram)


def _schema(elf: ELFFile) -> int:
    symbols = [symbol for table in elf.iter_sections() if isinstance(table, SymbolTableSection) for symbol in table.iter_symbols()]
    # Optimisation of the whole program may put something behind a name: mcpax_tools.lto_priv.0
    return sum(symbol["st_size"] for symbol in symbols if symbol.name.partition(".")[0] in SCHEMA_TABLES)


def sdcc_size(path: Path) -> ImageSize:
    """From the .mem file that SDCC's linker leaves. What lies below the stack, the register bank included, is static."""
    try:
        text = path.read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise ImageError(f"{path}: {error.strerror}; build it first") from error
    stack = re.search(r"Stack starts at: 0x([0-9a-f]+)", text)
    code, external = (_sdcc_memory(name, text) for name in ("ROM/EPROM/FLASH", "EXTERNAL RAM"))
    if stack is None or code is None or external is None:
        raise ImageError(f"{path}: does not look like SDCC's memory summary; build it again")
    return ImageSize(code, None, int(stack[1], 16) + external)


def _sdcc_memory(name: str, text: str) -> int | None:
    """Bytes used of a memory; its first and last address are left out if there are none."""
    found = re.search(rf"^ *{name} +(?:0x\w+ +0x\w+ +)?(\d+)", text, re.MULTILINE)
    return None if found is None else int(found[1])
