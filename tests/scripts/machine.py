"""A machine of stand-ins for the scripts to run on: each outside program writes down how it was called, chatters and obeys."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]

# What every Debian has, and the scripts may therefore use without asking.
ESSENTIAL: Final = (
    *("awk", "bash", "cat", "cp", "cut", "dirname", "env", "flock", "grep", "head", "mkdir", "mv"),
    *("readlink", "rm", "sed", "sha256sum", "tail", "tee", "touch"),
)


@dataclass(frozen=True)
class Outcome:
    """How a script ended, what it said, and which stand-ins it called to change something."""

    status: int
    stdout: str
    stderr: str
    calls: list[str]


class Machine:
    """A copy of the scripts in a folder with a space in its name, and a PATH that leads nowhere else."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "my project"
        self.bin = folder / "bin"
        self.log = folder / "calls"
        self.bin.mkdir(parents=True)
        for name in ("scripts", ".ci"):
            shutil.copytree(ROOT / name, self.project / name)
        (self.project / "firmware").mkdir()
        for name in ("pyproject.toml", "requirements.lock", "requirements-dev.lock"):
            (self.project / name).write_text(f"{name}==1\n")
        for name in ESSENTIAL:
            self.bin.joinpath(name).symlink_to(shutil.which(name) or f"/missing/{name}")
        self.user("pi", 1000)
        self.packages()

    def program(self, name: str, body: str = "", *, folder: Path | None = None) -> None:
        """Put a stand-in on the PATH (or elsewhere): it notes its call, then runs the body."""
        path = (folder or self.bin) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#!{shutil.which("bash")}\necho "{name} $*" >>"{self.log}"\n{body}\n')
        path.chmod(0o755)

    def user(self, name: str, number: int) -> None:
        """Say who runs the scripts."""
        self.program("id", f"[[ $1 == -un ]] && echo {name} || echo {number}")

    def packages(self, *installed: str, known: bool = True, install: str = "true") -> None:
        """Say which packages are there, whether the lists know the others, and what installing does."""
        lists = self.log.with_name("lists")
        lists.unlink(missing_ok=True)
        if known:
            lists.touch()
        self.program("dpkg-query", f'[[ " {" ".join(installed)} " == *" ${{@: -1}} "* ]] && printf "install ok installed"')
        self.program("apt-cache")
        self.program(
            "apt-get",
            f"""echo chatter; case "$*" in
            *--simulate*) [[ -e "{lists}" ]] ;;
            *update) touch "{lists}" ;;
            *) {install} ;;
            esac""",
        )

    def python(self, *, venv: bool = True, pip: str = "true") -> None:
        """Put a Python there that can or cannot make environments, and whose pip does as told."""
        blank = self.bin.parent / "blank"
        self.program("python", f'case "$*" in "-m pip --version") ;; "-m pip "*) echo chatter; {pip} ;; esac', folder=blank)
        self.program(
            "python3",
            f"""case "$*" in
            *version_info*) echo "{self.bin}/python3" ;;
            *ensurepip*) {"true" if venv else "false"} ;;
            "-m venv "*) echo chatter; venv="${{@: -1}}/bin"; mkdir -p "$venv"
                cp "{blank}/python" "$venv"; echo "#!$venv/python" >"$venv/pip" ;;
            esac""",
        )

    def run(self, *command: str, cwd: Path | None = None, **environment: str) -> Outcome:
        """Run a command of the project; nobody sits at the keyboard."""
        return self._finish([str(self.project / command[0]), *command[1:]], cwd, environment)

    def shell(self, text: str, **environment: str) -> Outcome:
        """Run a line of shell with the shared functions at hand."""
        return self._finish(["bash", "-c", f'source "{self.project}/scripts/lib.sh"; {text}'], None, environment)

    def _finish(self, command: list[str], cwd: Path | None, environment: dict[str, str]) -> Outcome:
        self.log.write_text("")
        done = subprocess.run(
            command,
            cwd=cwd or self.bin.parent,
            env={"PATH": str(self.bin), "HOME": os.devnull, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        asking = ("id ", "dpkg-query ", "apt-cache ", "apt-get install --simulate", "python -c", "python3 -c", "python -m pip --version")
        calls = [line for line in self.log.read_text().splitlines() if not line.startswith(asking)]
        return Outcome(done.returncode, done.stdout, done.stderr, calls)
