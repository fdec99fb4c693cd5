"""PlatformIO, before the build: gives the environment's `custom_code_flags` to the compiler and to the linker.

With link-time optimisation both make code, but PlatformIO hands build_flags to the compiler alone.
"""

import shlex

from SCons.Script import DefaultEnvironment

env = DefaultEnvironment()
flags = shlex.split(env.GetProjectOption("custom_code_flags", ""))
env.Append(BUILD_FLAGS=flags, LINKFLAGS=flags)
