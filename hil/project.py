"""What firmware/platformio.ini offers: which boards, which applications on each, and which device map each was made from.

Reads the file by itself, because whoever has PlatformIO elsewhere need not have it in this Python. Builds nothing.
"""

from __future__ import annotations

import configparser
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hil.places import ROOT
from mcpax.documents.faults import nearest

ENVIRONMENT = "env:"
BOARD = "board:"
COMMON = "env"
"""The section whose options all environments have, unless they have their own."""
PLATFORMS_WITH_BOOTLOADER = ("atmelavr",)
"""Their boards take firmware over the serial port that the gateway uses, the others through a debugger beside it."""


class NoSuchFirmware(Exception):
    """There is no such board or application; says what there is."""


@dataclass(frozen=True, slots=True)
class Firmware:
    """One environment."""

    env: str
    board: str
    app: str
    map_file: Path
    over_serial_port: bool


@dataclass(frozen=True)
class Project:
    root: Path = ROOT

    @property
    def folder(self) -> Path:
        return self.root / "firmware"

    def firmware(self, board: str, app: str | None) -> Firmware:
        """`app` None: the board's own environment, which is named like it."""
        if board not in self.boards:
            raise NoSuchFirmware(self._no_board(board))
        env = board if app is None else f"{board}-{app}"
        if env not in self._environments:
            apps = [name.removeprefix(f"{board}-") for name in self._environments if name.startswith(f"{board}-")]
            raise NoSuchFirmware(f"there is no application {app!r} for {board}: {_suggestion(str(app), apps)}")
        name = self._option(env, "custom_map")
        platform = self._option(env, "platform").split()[0]
        return Firmware(env, board, app or name, self.root / "device-maps" / f"{name}.toml", platform in PLATFORMS_WITH_BOOTLOADER)

    @property
    def boards(self) -> list[str]:
        return [section.removeprefix(BOARD) for section in self._ini.sections() if section.startswith(BOARD)]

    @property
    def _environments(self) -> list[str]:
        return [section.removeprefix(ENVIRONMENT) for section in self._ini.sections() if section.startswith(ENVIRONMENT)]

    @cached_property
    def _ini(self) -> configparser.ConfigParser:
        ini = configparser.ConfigParser(interpolation=None)
        ini.read(self.folder / "platformio.ini", encoding="utf-8")
        return ini

    def _option(self, env: str, name: str) -> str:
        """As PlatformIO finds it: the environment's own, else that of the last section which it extends and which has one."""
        own = f"{ENVIRONMENT}{env}"
        extended = [section.strip() for section in self._ini.get(own, "extends", fallback="").split(",") if section.strip()]
        for section in (own, *reversed(extended), COMMON):
            if self._ini.has_option(section, name):
                return self._ini.get(section, name)
        return ""

    def _no_board(self, board: str) -> str:
        page = Path("boards") / board / "README.md"
        if (self.root / page).is_file():
            return f"{board} is not built by PlatformIO: {page} says how it is built and flashed"
        return f"there is no board {board!r}: {_suggestion(board, self.boards)}"


def _suggestion(word: str, known: Iterable[str]) -> str:
    known = list(known)
    near = nearest(word, known)
    return near if near.startswith("known") else f"{near} Known: {', '.join(known)}"
