"""PlatformIO, after the platform's own script: links anew when a linker script or startup code has changed, which PlatformIO overlooks."""

from SCons.Script import DefaultEnvironment

env = DefaultEnvironment()
env.Depends("$PROGPATH", env.Glob("$PROJECT_DIR/ports/ld/*.ld") + env.Glob("$PROJECT_DIR/ports/*_crt.c"))
