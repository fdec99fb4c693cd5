"""What an image takes, read from the image; what is over budget, and by how much; and the tables that tell it."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from hil.budget import COLUMNS, DRAFT, Footprint, markdown, table
from hil.footprint import columns, load_footprint
from hil.image_size import ImageError, elf_size, sdcc_size

FITS = Footprint("uno", "ATmega328P", "valve-actuator", "B", code=2047, schema=511, static_ram=200, stack=55, budget=DRAFT)


# --- Budget


def test_what_is_less_than_the_budget_is_not_over_it() -> None:
    assert FITS.over() == []
    assert FITS.ram == 255


@pytest.mark.parametrize(
    ("part", "fat", "bytes_used", "limit"),
    [
        ("code", replace(FITS, code=2048), 2048, 2048),
        ("schema", replace(FITS, schema=512), 512, 512),
        ("ram", replace(FITS, stack=56), 256, 256),
        ("ram", replace(FITS, static_ram=300), 355, 256),
    ],
)
def test_what_is_not_less_is_named_with_what_is_too_much(part: str, fat: Footprint, bytes_used: int, limit: int) -> None:
    too_many = bytes_used - (limit - 1)
    assert fat.over() == [f"uno-valve-actuator: {part} takes {bytes_used} bytes, {too_many} too many: the budget is less than {limit}"]


def test_everything_that_is_over_is_told() -> None:
    assert len(replace(FITS, code=9999, schema=9999, static_ram=9999).over()) == 3


def test_without_a_budget_or_a_number_nothing_is_over() -> None:
    assert replace(FITS, code=9999, budget=None).over() == []
    assert replace(FITS, schema=None, stack=None).over() == []


# --- Tables


def test_the_table_has_a_line_for_each_and_marks_what_is_over() -> None:
    head, first, second = table([FITS, replace(FITS, board="l053", code=2100)]).splitlines()
    assert head.split() == " ".join(COLUMNS).split()
    assert first.endswith("< 2048 / 512 / 256")
    assert second.split()[:4] == ["l053", "valve-actuator", "B", "2100"]
    assert second.endswith("OVER")
    assert first.index("2047") == second.index("2100"), "numbers stand below each other"


def test_markdown_has_as_many_cells_in_every_line() -> None:
    lines = markdown([FITS, replace(FITS, schema=None, budget=None)]).splitlines()
    assert {line.count("|") for line in lines} == {len(COLUMNS) + 1}
    assert lines[1].count("---:") == 5
    assert lines[3] == "| uno | valve-actuator | B | 2047 | – | 200 | 55 | 255 | none |"


def test_the_report_reads_what_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "footprint.json"
    file.write_text(json.dumps({"rows": [FITS.to_json(), replace(FITS, schema=None, budget=None).to_json()]}))
    rows = load_footprint(file)
    assert rows[0]["budget ram"] == 256
    assert "schema" not in rows[1]
    assert columns(rows)[:9] == ["board", "chip", "app", "profile", "code", "schema", "static ram", "stack", "ram"]


# --- Images

PROGRAM = """
const unsigned char mcpax_registration[REGISTRATION] = {1};
const unsigned char mcpax_tools[32] = {1};
const unsigned char no_schema[40] = {1};
unsigned char initialised[DATA] = {1};
unsigned char zeroed[BSS];
__asm__(".pushsection .noinit,\\"aw\\",@nobits\\n.zero 8\\n.popsection");
void _start(void) { for (;;) { } }
"""

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs cc")


def linked(folder: Path, *, registration: int = 205, data: int = 16, bss: int = 64) -> Path:
    source, image = folder / "program.c", folder / f"{registration}-{data}-{bss}.elf"
    source.write_text(PROGRAM)
    sizes = [f"-DREGISTRATION={registration}", f"-DDATA={data}", f"-DBSS={bss}"]
    flags = ["-Os", "-nostdlib", "-static", "-no-pie", "-fno-asynchronous-unwind-tables", "-Wl,--build-id=none"]
    subprocess.run(["cc", *sizes, *flags, str(source), "-o", str(image)], check=True)
    return image


@needs_compiler
def test_schema_and_variables_are_those_of_the_image(tmp_path: Path) -> None:
    size = elf_size(linked(tmp_path))
    assert size.schema == 205 + 32
    assert size.static_ram == 16 + 64 + 8


@needs_compiler
def test_first_values_of_variables_take_flash_too_and_zeros_do_not(tmp_path: Path) -> None:
    size, more_data, more_zeros = (elf_size(image) for image in (linked(tmp_path), linked(tmp_path, data=48), linked(tmp_path, bss=96)))
    assert (more_data.code, more_data.static_ram) == (size.code + 32, size.static_ram + 32)
    assert (more_zeros.code, more_zeros.static_ram) == (size.code, size.static_ram + 32)


@needs_compiler
def test_a_longer_table_is_schema_and_no_code(tmp_path: Path) -> None:
    size, longer = elf_size(linked(tmp_path)), elf_size(linked(tmp_path, registration=205 + 64))
    assert (longer.code, longer.schema) == (size.code, 205 + 32 + 64)


@needs_compiler
def test_an_image_without_symbols_or_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    stripped = linked(tmp_path)
    subprocess.run(["strip", str(stripped)], check=True)
    with pytest.raises(ImageError, match="has none of the tables mcpax_registration"):
        elf_size(stripped)
    (tmp_path / "text").write_text("no image")
    with pytest.raises(ImageError, match=r"is no whole ELF file: .*build it again"):
        elf_size(tmp_path / "text")
    with pytest.raises(ImageError, match="build it first"):
        elf_size(tmp_path / "nothing")


SUMMARY = """\
Stack starts at: 0xaa (sp set to 0xa9) with 86 bytes available.
Other memory:
   Name             Start    End      Size     Max
   ---------------- -------- -------- -------- --------
   PAGED EXT. RAM                         0      256
   EXTERNAL RAM     {external}    65536
   ROM/EPROM/FLASH  0x0000   0x1077    4216     8192
"""


@pytest.mark.parametrize(("external", "ram"), [("                    0", 0xAA), ("0x0001   0x0020      32", 0xAA + 32)])
def test_sdcc_tells_code_and_what_lies_below_the_stack_or_outside(external: str, ram: int, tmp_path: Path) -> None:
    file = tmp_path / "program.mem"
    file.write_text(SUMMARY.format(external=external))
    size = sdcc_size(file)
    assert (size.code, size.schema, size.static_ram) == (4216, None, ram)


def test_another_file_is_no_summary(tmp_path: Path) -> None:
    (tmp_path / "program.mem").write_text("ROM/EPROM/FLASH")
    with pytest.raises(ImageError, match="does not look like SDCC's memory summary"):
        sdcc_size(tmp_path / "program.mem")
