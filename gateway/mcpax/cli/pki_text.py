"""What `mcpax pki` tells after it made something: which file goes where, and which lines to add to which configuration.

Knows nothing of making. The configuration keys of links stand here and nowhere else on the command line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from mcpax.cli.output import print_json
from mcpax.pki_directory import ANCHORS, PkiDirectory

PORT = 8720
_KEEP_CLOSE = "secret: mode 600, owned by the gateway's user"
SCOPE_LINE = 'scope = "read"  # read, write or admin: the most that may be asked of it'


@dataclass(frozen=True, slots=True)
class Step:
    """What to do on one machine."""

    where: str
    """parent, or child."""
    files: tuple[Path, ...]
    config: tuple[str, ...]
    into: str = "beside its mcpax.toml"


@dataclass(frozen=True, slots=True)
class Made:
    what: str
    files: tuple[Path, ...]
    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()

    def tell(self, *, as_json: bool) -> None:
        if as_json:
            print_json(self.to_json())
            return
        click.echo(f"made {self.what}")
        for step in self.steps:
            click.echo(f"\nOn the {step.where}: copy there, {step.into}")
            _tell_files(step.files)
            if step.config:
                click.echo("and have in that mcpax.toml")
                for line in step.config:
                    click.echo(f"  {line}")
        if not self.steps:
            click.echo("\n".join(f"  {file}" for file in self.files))
        for note in self.notes:
            click.echo(f"\n{note}")

    def to_json(self) -> dict[str, Any]:
        steps = [{"where": step.where, "copy": [str(file) for file in step.files], "config": "\n".join(step.config)} for step in self.steps]
        return {"made": self.what, "files": [str(file) for file in self.files], "steps": steps}


def server_step(directory: PkiDirectory, name: str) -> Step:
    place = directory.server(name)
    lines = _table("[tls]", {"certificate": place.public.name, "key": place.key.name, "client_ca": directory.ca.public.name})
    return Step("parent", (directory.ca.public, place.public, place.key), lines)


def client_step(directory: PkiDirectory, name: str) -> Step:
    place = directory.client(name)
    own = {"certificate": place.public.name, "key": place.key.name, "token_file": directory.token(name).name}
    upstream = {"url": f"wss://{_parent(directory)}:{PORT}", "ca": directory.ca.public.name, **own, "authority": f"dns:{name}"}
    return Step("child", (directory.ca.public, place.public, place.key), _table("[upstream]", upstream))


def token_steps(directory: PkiDirectory, name: str) -> tuple[Step, Step]:
    file = directory.token(name)
    child = {"name": name, "segment": name.partition(".")[0], "token_file": file.name, "certificate": name}
    return (
        Step("parent", (file,), (*_table("[[child]]", child), SCOPE_LINE)),
        Step("child", (file,), (f'token_file = "{file.name}"  # in its [upstream]',)),
    )


def authority_steps(directory: PkiDirectory, name: str) -> tuple[Step, Step]:
    place = directory.authority(name)
    return (
        Step("parent", (place.public,), (f'anchors = "{ANCHORS}"  # in its [links]',), into=f"into {ANCHORS}/ beside its mcpax.toml"),
        Step("child", (place.key,), (f'authority_key = "{place.key.name}"  # in its [upstream]',)),
    )


def _parent(directory: PkiDirectory) -> str:
    """Of one server it is known that it is meant."""
    servers = [name for kind, name, _ in directory.found() if kind == "server"]
    if len(servers) != 1:
        return "PARENT"
    return f"[{servers[0]}]" if ":" in servers[0] else servers[0]


def _table(head: str, members: Mapping[str, str]) -> tuple[str, ...]:
    return (head, *(f'{key} = "{value}"' for key, value in members.items()))


def _tell_files(files: Sequence[Path]) -> None:
    width = max(len(str(file)) for file in files)
    for file in files:
        note = _KEEP_CLOSE if file.suffix in (".key", ".token") else ""
        click.echo(f"  {str(file).ljust(width)}  {note}".rstrip())
