"""What a PlatformIO core directory must hold so that ../../platformio.ini builds without the registry.

Names, owners and versions are those of the registry, because PlatformIO looks for them; the contents are ours and the compilers Debian's.
So the versions that PlatformIO prints say nothing about the compilers that ran.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Board:
    """A board as its platform's manifest describes it."""

    id: str
    title: str
    mcu: str
    clock_hz: int
    flash_bytes: int
    ram_bytes: int
    upload_protocol: str
    upload_speed_baud: int | None = None
    cpu: str | None = None
    defines: str = ""

    def manifest(self) -> dict[str, object]:
        """The contents of boards/ID.json."""
        build = {"mcu": self.mcu, "f_cpu": f"{self.clock_hz}L", "extra_flags": self.defines} | ({"cpu": self.cpu} if self.cpu else {})
        upload: dict[str, object] = {
            "maximum_size": self.flash_bytes,
            "maximum_ram_size": self.ram_bytes,
            "protocol": self.upload_protocol,
        }
        if self.upload_speed_baud:
            upload |= {"speed": self.upload_speed_baud, "require_upload_port": True}
        return {"name": self.title, "vendor": "", "url": "", "frameworks": [], "build": build, "upload": upload}


@dataclass(frozen=True)
class Package:
    """A package of tools: which programs it must offer, and which Debian packages have them."""

    name: str
    version: str
    programs: tuple[str, ...]
    debian: tuple[str, ...]
    kind: str = "toolchain"


@dataclass(frozen=True)
class Platform:
    """A development platform with the one board that we use of it."""

    name: str
    version: str
    packages: tuple[Package, ...] = ()
    board: Board | None = None

    def manifest(self) -> dict[str, object]:
        """The contents of platform.json."""
        packages = {
            package.name: {
                "type": package.kind,
                "owner": "platformio",
                "version": package.version,
                "optional": package.kind == "uploader",  # PlatformIO makes it mandatory for `-t upload`
            }
            for package in self.packages
        }
        return {
            "name": self.name,
            "title": f"{self.name} with the compilers of this machine",
            "description": "Offline stand-in for the registry's platform of this name",
            "version": self.version,
            "engines": {"platformio": "^6"},
            "frameworks": {},
            "packages": packages,
        }


ARM = Package("toolchain-gccarmnoneeabi", "1.70201.0", ("arm-none-eabi-gcc",), ("gcc-arm-none-eabi", "libnewlib-arm-none-eabi"))
AVR = Package("toolchain-atmelavr", "1.70300.191015", ("avr-gcc",), ("gcc-avr", "avr-libc"))
AVRDUDE = Package("tool-avrdude", "1.60300.200527", ("avrdude",), ("avrdude",), kind="uploader")
MSP430 = Package(
    "toolchain-timsp430",
    "1.40603.190926",
    ("clang-19", "ld.lld-19", "llvm-ar-19", "llvm-objcopy-19", "llvm-size-19", "msp430mcu-config"),
    ("clang-19", "lld-19", "llvm-19", "msp430mcu"),
)

PLATFORMS = (
    Platform(
        "atmelavr",
        "5.2.0",
        (AVR, AVRDUDE),
        Board("uno", "Arduino Uno", "atmega328p", 16_000_000, 32_256, 2048, "arduino", 115_200, defines="-DARDUINO_AVR_UNO"),
    ),
    Platform(
        "ststm32",
        "19.6.0",
        (ARM,),
        Board(
            "nucleo_l053r8",
            "ST Nucleo L053R8",
            "stm32l053r8t6",
            32_000_000,
            65_536,
            8192,
            "stlink",
            cpu="cortex-m0plus",
            defines="-DSTM32L0 -DSTM32L053xx",
        ),
    ),
    Platform(
        "nordicnrf51",
        "9.0.0",
        (ARM,),
        Board(
            "bbcmicrobit",
            "BBC micro:bit",
            "nrf51822",
            16_000_000,
            262_144,
            16_384,
            "cmsis-dap",
            cpu="cortex-m0",
            defines="-DARDUINO_BBC_MICROBIT -DUSE_LFRC",
        ),
    ),
    Platform(
        "timsp430",
        "2.4.0",
        (MSP430,),
        Board(
            "lpmsp430g2553",
            "TI LaunchPad MSP-EXP430G2553LP",
            "msp430g2553",
            16_000_000,
            16_384,
            512,
            "rf2500",
            defines="-DENERGIA_ARCH_MSP430 -DENERGIA_MSP_EXP430G2553LP",
        ),
    ),
    Platform("native", "1.2.1"),
)
