"""PlatformIO, after the platform's own script: lets `-t upload` reach an emulated board. On a real board nothing changes.

Whoever runs an emulated board on the port LINK listens on the unix socket LINK.sock beside it (see control.py). A board whose bootloader
takes the image over the port, as the Uno's does, is emulated with it, so there the platform's own uploader does the work.
"""

from pathlib import Path

from SCons.Script import DefaultEnvironment

BOOTLOADER_PROTOCOLS = ("arduino",)

env = DefaultEnvironment()
control = Path(env.subst("$UPLOAD_PORT") + ".sock")
if control.is_socket():
    if env.subst("$UPLOAD_PROTOCOL") in BOOTLOADER_PROTOCOLS:
        env.BoardConfig().update("upload.disable_flushing", True)  # a pseudo terminal has no DTR and RTS to toggle
        action = f"flash {env['UPLOADCMD']}"
    else:
        action = 'load "$BUILD_DIR/${PROGNAME}.elf"'
    env.Replace(UPLOADCMD=f'"$PYTHONEXE" "$PROJECT_DIR/pio/control.py" "{control}" {action}')
