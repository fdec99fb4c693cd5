"""The build script of the offline stand-ins for PlatformIO's platforms: a program without a framework, from the compilers on the PATH.

It gives the compiler and the linker what the registry's platforms give them when there is no framework, in the same order, so that
platformio.ini means the same with both. Left out is what a C program does not use, such as the C++ library.
"""

import sys
from dataclasses import dataclass

from SCons.Script import AlwaysBuild, Builder, Default, DefaultEnvironment

MCU = "-mmcu=$BOARD_MCU"
CPU = "-mcpu=$BOARD_CPU"
SECTIONS = ["-ffunction-sections", "-fdata-sections"]
SIZE_OF_DATA = r"^(?:\.data|\.bss|\.noinit)\s+(\d+).*"


@dataclass(frozen=True)
class Toolchain:
    """How a platform compiles, links and uploads."""

    prefix: str
    compile: list[str]
    link: list[str]
    libraries: list[str]
    code_sections: str
    image: str
    """The format, as objcopy calls it, of the file beside the ELF file."""
    upload: str
    archiver: str = "gcc-ar"
    c_only: tuple[str, ...] = ()


OPENOCD = 'openocd -f interface/%s.cfg -f target/%s.cfg -c "program {$BUILD_DIR/${PROGNAME}.elf} verify reset; shutdown"'
ARM_CODE = r"\.text|\.data|\.rodata|\.text.align|\.ARM.exidx"

TOOLCHAINS = {
    "atmelavr": Toolchain(
        prefix="avr-",
        compile=[MCU, "-Os", "-Wall", *SECTIONS, "-flto"],
        link=[MCU, "-Os", "-Wl,--gc-sections", "-flto", "-fuse-linker-plugin"],
        libraries=["m"],
        code_sections=r"\.text|\.data|\.bootloader",
        image="ihex",
        upload="avrdude -p $BOARD_MCU -c $UPLOAD_PROTOCOL -b $UPLOAD_SPEED -D -P $UPLOAD_PORT -U flash:w:$SOURCE:i",
        c_only=("-std=gnu11", "-fno-fat-lto-objects"),
    ),
    "ststm32": Toolchain(
        prefix="arm-none-eabi-",
        compile=["-Os", *SECTIONS, "-Wall", "-mthumb", CPU],
        link=["-Os", "-Wl,--gc-sections,--relax", "-mthumb", CPU],
        libraries=["c", "gcc", "m"],
        code_sections=ARM_CODE,
        image="binary",
        upload=OPENOCD % ("stlink", "stm32l0"),
    ),
    "nordicnrf51": Toolchain(
        prefix="arm-none-eabi-",
        compile=["-Os", *SECTIONS, "-Wall", "-mthumb", "-nostdlib", CPU],
        link=["-Os", "-Wl,--gc-sections,--relax", "-mthumb", "--specs=nano.specs", "--specs=nosys.specs", CPU],
        libraries=["c", "gcc", "m", "nosys"],
        code_sections=ARM_CODE,
        image="ihex",
        upload=OPENOCD % ("cmsis-dap", "nrf51"),
        archiver="ar",
    ),
    "timsp430": Toolchain(
        prefix="msp430-",
        compile=[MCU, "-Os", *SECTIONS],
        link=[MCU, "-Os", "-Wl,-gc-sections,-u,main"],
        libraries=["m"],
        code_sections=r"\.text|\.data|\.rodata|\.vectors",
        image="ihex",
        upload='mspdebug $UPLOAD_PROTOCOL --force-reset "prog $SOURCES"',
        archiver="ar",
    ),
}
SUFFIX = {"ihex": ".hex", "binary": ".bin"}

env = DefaultEnvironment()


def check_port(target, source, env):  # noqa: ARG001 - as SCons calls it
    """An uploader that is given no port takes the next word of its command for it, and says something else entirely."""
    if "$UPLOAD_PORT" in env["UPLOADCMD"] and not env.subst("$UPLOAD_PORT"):
        sys.stderr.write("Error: this board takes firmware over its serial port, and none is named: add --upload-port PORT\n")
        return 1
    return 0


def build_for(chip: Toolchain) -> None:
    """Make the targets of a chip's image: build, size, upload."""
    env.Replace(
        CC=f"{chip.prefix}gcc",
        AR=f"{chip.prefix}{chip.archiver}",
        RANLIB=f"{chip.prefix}{chip.archiver.replace('ar', 'ranlib')}",
        OBJCOPY=f"{chip.prefix}objcopy",
        SIZETOOL=f"{chip.prefix}size",
        LINK="$CC",
        ARFLAGS=["rc"],
        PROGNAME="firmware",
        PROGSUFFIX=".elf",
        SIZEPROGREGEXP=rf"^(?:{chip.code_sections})\s+(\d+).*",
        SIZEDATAREGEXP=SIZE_OF_DATA,
        SIZECHECKCMD="$SIZETOOL -A -d $SOURCES",
        SIZEPRINTCMD="$SIZETOOL -B -d $SOURCES",
        BOARD_CPU=env.BoardConfig().get("build.cpu", ""),
        UPLOADCMD=chip.upload,
    )
    to_image = env.VerboseAction(f"$OBJCOPY -O {chip.image} -R .eeprom $SOURCES $TARGET", "Building $TARGET")
    env.Append(
        CFLAGS=list(chip.c_only),
        CCFLAGS=chip.compile,
        LINKFLAGS=chip.link,
        CPPDEFINES=[("F_CPU", "$BOARD_F_CPU")],
        LIBS=chip.libraries,
        BUILDERS={"ElfToImage": Builder(action=to_image, suffix=SUFFIX[chip.image])},
    )
    elf = env.BuildProgram()
    image = env.ElfToImage("$BUILD_DIR/${PROGNAME}", elf)
    env.Depends(image, "checkprogsize")
    AlwaysBuild(env.Alias("size", elf, env.VerboseAction("$SIZEPRINTCMD", "Calculating size $SOURCE")))
    upload = [env.Action(check_port, None), env.VerboseAction("$UPLOADCMD", "Uploading $SOURCE")]
    AlwaysBuild(env.Alias("upload", image, upload))
    Default([env.Alias("buildprog", image, image), "size"])


def build_for_this_machine() -> None:
    """Make the targets of a program that runs here: build, execute."""
    program = env.BuildProgram()
    AlwaysBuild(env.Alias("exec", program, env.VerboseAction("$SOURCE $PROGRAM_ARGS", "Executing $SOURCE")))
    Default([program])


if env["PIOPLATFORM"] in TOOLCHAINS:
    build_for(TOOLCHAINS[env["PIOPLATFORM"]])
else:
    build_for_this_machine()
