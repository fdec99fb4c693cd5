# Shared by the scripts beside it: where the project is, what it needs from Debian, its virtual environment.
# Sourced, never run. Everything said here goes to stderr, so that a script's stdout holds its result only.
# shellcheck shell=bash disable=SC2034 # variables for those who source this

set -euo pipefail

# Packages of another Python (ROS sets PYTHONPATH on many a Jetson) must not reach into ours.
unset CDPATH PYTHONHOME PYTHONPATH

ROOT=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.." && pwd -P)
VENV=$ROOT/.venv
VENV_STAMP=$VENV/mcpax-stamp

# Every Debian package that any script asks for, and what for.
declare -A PACKAGE_REASON=(
  [python3]="runs the gateway"
  [python3-venv]="keeps the gateway's Python packages apart from the system's"
  [gcc]="compiles the virtual boards"
  [libc6-dev]="the C library headers that the virtual boards include"
  [make]="builds the virtual boards"
  [clang]="compiles the fuzz targets of the C library"
  [shellcheck]="checks the shell scripts"
  [gcc-avr]="compiles the images for AVR"
  [avr-libc]="the C library of AVR images"
  [avrdude]="uploads to an Arduino Uno, real or emulated"
  [gcc-arm-none-eabi]="compiles the images for Cortex-M0 and M0+"
  [libnewlib-arm-none-eabi]="the C library of Cortex-M images"
  [clang-19]="compiles the images for MSP430"
  [lld-19]="links the images for MSP430"
  [llvm-19]="sizes and converts the images for MSP430"
  [msp430mcu]="the registers of MSP430 chips"
  [sdcc]="compiles the image for the 8051"
  [libsimavr-dev]="the processor of the emulated Uno"
  [libelf-dev]="reads images for the emulated Uno"
  [qemu-system-arm]="emulates the micro:bit"
  [mspdebug]="the reference that the emulated MSP430 is held against"
  [sdcc-ucsim]="the reference that the emulated 8051 is held against"
  [cppcheck]="checks the C code"
  [clang-tidy-19]="checks the C code"
  [etcd-server]="the store that aggregators of one tree share; the tests start their own"
)

RUN_PACKAGES=(gcc libc6-dev make)
PIO_PACKAGES=("${RUN_PACKAGES[@]}" gcc-avr avr-libc avrdude gcc-arm-none-eabi libnewlib-arm-none-eabi clang-19 lld-19 llvm-19 msp430mcu)
HIL_PACKAGES=("${PIO_PACKAGES[@]}" sdcc libsimavr-dev libelf-dev qemu-system-arm)
TEST_PACKAGES=("${HIL_PACKAGES[@]}" mspdebug sdcc-ucsim cppcheck clang-tidy-19 clang shellcheck etcd-server)

say() { printf 'mcpax: %s\n' "$*" >&2; }

# die MESSAGE [LINE…]: what went wrong, and in further lines what to do about it.
die() {
  printf 'mcpax: error: %s\n' "$1" >&2
  shift
  (($# == 0)) || printf '    %s\n' "$@" >&2
  exit 1
}

# --- Debian packages ---------------------------------------------------------------------------------------------------

reason_for() {
  case $1 in
    python3.*-venv) echo "${PACKAGE_REASON[python3-venv]}" ;;
    libclang-rt-*) echo "libFuzzer and the sanitizers, for the fuzz targets of the C library" ;;
    *) echo "${PACKAGE_REASON[$1]:-needed by this script}" ;;
  esac
}

has_package() {
  local package=$1
  case $package in
    gcc | make | clang | shellcheck) command -v "$package" >/dev/null && return ;; # wherever it came from
    etcd-server) command -v etcd >/dev/null && return ;;
    libclang-rt-*) has_fuzzer_runtime && return ;;
  esac
  [[ $(dpkg-query --show --showformat='${Status}' "$package" 2>/dev/null) == "install ok installed" ]]
}

has_fuzzer_runtime() {
  command -v clang >/dev/null && compgen -G "$(clang -print-resource-dir)/lib/*/libclang_rt.fuzzer-*.a" >/dev/null
}

# can_install PACKAGE…: the package lists that are here know them all.
can_install() {
  apt-get install --simulate --no-install-recommends "$@" >/dev/null 2>&1
}

# The package with clang's libFuzzer. Its name carries clang's version, which differs from one Debian to the next.
# Prints nothing as long as neither clang nor the package lists can tell.
fuzzer_runtime_package() {
  local version
  if command -v clang >/dev/null; then
    version=$(clang -dumpversion)
    echo "libclang-rt-${version%%.*}-dev"
  else
    version=$(apt-cache depends clang 2>/dev/null | sed -n 's/^.*Depends: clang-\([0-9]\+\)$/\1/p' | head -n 1) || true
    if [[ $version ]] && can_install "libclang-rt-$version-dev"; then
      echo "libclang-rt-$version-dev"
    fi
  fi
}

# need_debian PACKAGE…: installs those that are missing, or says which they are and how to get them.
need_debian() {
  local package missing=() update
  for package in "$@"; do
    has_package "$package" || missing+=("$package")
  done
  ((${#missing[@]})) || return 0

  say "missing Debian packages:"
  for package in "${missing[@]}"; do
    printf '    %-20s %s\n' "$package" "$(reason_for "$package")" >&2
  done
  command -v apt-get >/dev/null || die "there is no apt-get here: install ${missing[*]} (Debian's names) with this system's own tool, then start again"

  local as_root=()
  if (($(id -u) != 0)); then
    if ! command -v sudo >/dev/null || ! { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
      can_install "${missing[@]}" || update="sudo apt-get update && "
      die "installing needs root or sudo. Have this run, then start again:" "${update:-}sudo apt-get install ${missing[*]}"
    fi
    as_root=(sudo)
  fi

  say "installing them with apt-get"
  # A fresh Raspberry Pi OS often updates itself at first boot: wait for its lock. Fetch package lists only where they are absent or stale.
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
  local install=("${apt[@]}" install --yes --no-install-recommends "${missing[@]}")
  {
    if ! can_install "${missing[@]}"; then
      "${apt[@]}" update && "${install[@]}"
    else
      "${install[@]}" || { "${apt[@]}" update && "${install[@]}"; }
    fi
  } </dev/null >&2 || die "apt-get could not install ${missing[*]}: its own message is above"
}

# --- Python ------------------------------------------------------------------------------------------------------------

# Prints the path of a Python that can run the gateway; of a virtual environment, the one underneath.
find_python() {
  local candidate candidates=(python3 python3.13 python3.12 python3.11)
  [[ ${MCPAX_PYTHON:-} ]] && candidates=("$MCPAX_PYTHON")
  for candidate in "${candidates[@]}"; do
    "$candidate" -c 'import sys; sys.exit(1) if sys.version_info < (3, 11) else print(sys._base_executable)' 2>/dev/null && return
  done
  return 1
}

# The Debian packages that are missing for a virtual environment, one a line.
python_packages() {
  local python
  if python=$(find_python); then
    "$python" -c 'import ensurepip, venv' 2>/dev/null && return
    if [[ $python -ef /usr/bin/python3 ]]; then
      echo python3-venv
    else
      "$python" -c 'import sys; print("python{}.{}-venv".format(*sys.version_info))'
    fi
  elif [[ ${MCPAX_PYTHON:-} ]]; then
    die "MCPAX_PYTHON=$MCPAX_PYTHON is not a Python 3.11 or newer"
  elif command -v python3 >/dev/null; then
    die "Python 3.11 or newer is needed, and $(command -v python3) is $(python3 --version 2>&1)." \
      "Install a newer one beside it (Ubuntu 22.04: sudo apt-get install python3.11 python3.11-venv) and start again;" \
      "if it is not on the PATH, name it: MCPAX_PYTHON=/path/to/python3.11"
  else
    printf '%s\n' python3 python3-venv
  fi
}

# need_packages PACKAGE…: need_debian, for these and for what a virtual environment needs, in one go.
need_packages() {
  local python
  python=$(python_packages) # on a line of its own: a failure in there ends the script
  # shellcheck disable=SC2086 # several words
  need_debian $python "$@"
}

# What the environment was made from. It changes with the locks, with Python, and when the project is moved.
venv_digest() {
  {
    printf '%s\n' "$ROOT" &&
      "$VENV/bin/python" -c 'import sys; print(sys.version_info[:2])' &&
      cat -- "$ROOT/pyproject.toml" "$ROOT/requirements.lock" "$ROOT/requirements-dev.lock"
  } 2>/dev/null | sha256sum | cut -d ' ' -f 1
}

venv_is_current() {
  local kind=$1 stamp digest
  stamp=$(cat -- "$VENV_STAMP" 2>/dev/null) || return 1
  digest=$(venv_digest) || return 1
  [[ $stamp == "$digest $kind" || $stamp == "$digest dev" ]] # dev includes runtime
}

# need_venv runtime|dev: .venv holds exactly what the lock names, and the project itself. Fast and offline when it already does.
need_venv() {
  local kind=$1 held
  venv_is_current "$kind" && return
  [[ -w $ROOT && (! -e $VENV || -w $VENV) ]] || die "$VENV is not writable for $(id -un): an earlier start by another user?" \
    "sudo chown -R $(id -un) '$ROOT'"

  exec {held}<"$ROOT" # one at a time
  flock --nonblock "$held" || { say "waiting for another start that prepares $VENV" && flock "$held"; }
  venv_is_current "$kind" || make_venv "$kind"
  exec {held}<&-
}

# It runs, has pip, and was made here: the commands in it know their own path.
venv_is_sound() {
  "$VENV/bin/python" -m pip --version >/dev/null 2>&1 && [[ $(head -n 3 -- "$VENV/bin/pip") == *"$VENV/bin/python"* ]]
}

make_venv() {
  local kind=$1 lock=$ROOT/requirements.lock python
  [[ $kind == dev ]] && lock=$ROOT/requirements-dev.lock

  [[ ! -L $VENV ]] || die "$VENV is a link: what it points to would be emptied. Remove it and start again"
  rm -f -- "$VENV_STAMP" # back only when all is done: an interrupted start is taken up again by the next
  if ! venv_is_sound; then
    python=$(find_python) || die "no Python 3.11 or newer found"
    say "making a virtual environment in $VENV"
    "$python" -m venv --clear -- "$VENV" >&2 || die "$python could not make a virtual environment in $VENV: its message is above"
  fi

  say "installing $(grep -c '^[^ #]' -- "$lock") Python packages into $VENV, as ${lock##*/} names them"
  local pip=("$VENV/bin/python" -m pip --quiet --disable-pip-version-check --no-input)
  PIP_USER=0 PIP_REQUIRE_VIRTUALENV=1 "${pip[@]}" install --require-hashes --requirement "$lock" >&2 ||
    die "pip could not install what ${lock##*/} names: its message is above. Is the network up?"
  PIP_USER=0 PIP_REQUIRE_VIRTUALENV=1 "${pip[@]}" install --no-deps --no-build-isolation --editable "$ROOT" >&2 ||
    die "pip could not install the project itself: its message is above"
  printf '%s %s\n' "$(venv_digest)" "$kind" >"$VENV_STAMP.new"
  mv -- "$VENV_STAMP.new" "$VENV_STAMP"
}

# help_before_setup MODULE ARGUMENT…: asked for help, answers and ends. Nothing is installed for that: where nothing is yet, the comment at
# the top of the script has to do.
help_before_setup() {
  local module=$1 argument
  shift
  for argument; do
    [[ $argument == -h || $argument == --help ]] || continue
    venv_is_current runtime && cd -- "$ROOT" && exec "$VENV/bin/python" -m "$module" "$@"
    sed -n '2,${/^#/!q; s/^# \{0,1\}//p}' -- "$0"
    exit
  done
}

# --- C -----------------------------------------------------------------------------------------------------------------

build_emulators() {
  make --no-print-directory --silent -C "$ROOT/hil/emulators" >&2 || die "the emulators did not build: the compiler's message is above"
}

# The images of all chips, with PlatformIO where it has an environment for them. It builds one after the other, and most of the time only
# one processor works: so there are two of it, each with half of them.
build_images() {
  local environments half other result=0 pio=("$VENV/bin/python" "$ROOT/firmware/pio/offline" run --silent)
  mapfile -t environments < <(sed -n 's/^\[env:\(.*\)\]$/--environment=\1/p' "$ROOT/firmware/platformio.ini")
  # The first alone: whoever finds that the project has changed empties the folder.
  "${pio[@]}" "${environments[0]}" || return
  half=$((${#environments[@]} / 2))
  "${pio[@]}" "${environments[@]:0:half}" &
  other=$!
  "${pio[@]}" "${environments[@]:half}" || result=1
  wait "$other" || result=1
  make --no-print-directory --silent -C "$ROOT/firmware" mcs51 || result=1
  return "$result"
}

build_boards() {
  local make=(make --no-print-directory --silent -C "$ROOT/firmware" virtual)
  "${make[@]}" --question &>/dev/null && return
  if [[ -e $ROOT/build && ! -w $ROOT/build ]]; then
    die "cannot write to $ROOT/build: another user made it" "sudo chown -R $(id -un) '$ROOT'"
  fi
  say "building the virtual boards"
  "${make[@]}" >&2 || die "the virtual boards did not build: the compiler's message is above"
}
