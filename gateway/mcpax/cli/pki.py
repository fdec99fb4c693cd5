"""`mcpax pki`: certificates, keys and tokens for links between aggregators. Only talks: `mcpax.pki` makes, `mcpax.pki_directory` writes."""

from __future__ import annotations

import functools
import ipaddress
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ParamSpec

import click

from mcpax.cli.output import Failure, json_option, print_json, print_table
from mcpax.cli.pki_text import Made, authority_steps, client_step, server_step, token_steps
from mcpax.dns_names import check_dns_name, is_address
from mcpax.names import InvalidName
from mcpax.pki import CA_DAYS, LEAF_DAYS, PkiError, issue_client, issue_server, make_authority_key, make_ca, make_token
from mcpax.pki_directory import DEFAULT, SECRET, PkiDirectory
from mcpax.pki_survey import Entry, look

P = ParamSpec("P")


def _dns_name(_ctx: click.Context, _parameter: click.Parameter, value: str) -> str:
    """In one spelling, as it becomes the name of a file."""
    try:
        return check_dns_name(value)
    except InvalidName as error:
        raise click.BadParameter(f"{error}.") from None


def _host(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    return str(ipaddress.ip_address(value)) if is_address(value) else _dns_name(ctx, parameter, value)


def _directory(_ctx: click.Context, _parameter: click.Parameter, value: Path) -> PkiDirectory:
    return PkiDirectory(value)


_DIR = click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=DEFAULT,
    show_default=True,
    callback=_directory,
    help="Where everything is kept.",
)
_HOST = click.argument("name", callback=_host)
_NAME = click.argument("name", callback=_dns_name)
_FORCE = click.option("--force", is_flag=True, help="Replace what is there.")
_DAYS = click.option("--days", type=click.IntRange(1, CA_DAYS), default=LEAF_DAYS, show_default=True, help="How long it is valid.")


def _told(make: Callable[P, None]) -> Callable[P, None]:
    """What cannot be made ends the command as a failure of it."""

    @functools.wraps(make)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            make(*args, **kwargs)
        except PkiError as error:
            raise Failure(str(error)) from None

    return wrapped


@click.group("pki")
def command() -> None:
    """Make certificates, keys and tokens for links between aggregators.

    A parent and a child, each step telling what to copy where and what to configure:

    \b
    mcpax pki init
    mcpax pki server hub.example.com
    mcpax pki client edge01.example.com
    mcpax pki token edge01.example.com
    mcpax pki show
    """


@command.command()
@_DIR
@click.option("--domain", "domains", multiple=True, help="Vouch only for names in it, and for private addresses. May be repeated.")
@_FORCE
@json_option
@_told
def init(*, directory: PkiDirectory, domains: tuple[str, ...], force: bool, as_json: bool) -> None:
    """Make the authority that signs all certificates."""
    directory.write_pair(directory.ca, make_ca(_now(), domains=domains), force=force)
    notes = (
        f"Keep {directory.ca.key} here, and a copy of it in a safe place: who has it can be any of your aggregators.",
        f"Next: {directory.command('server NAME')}, for the aggregator that others connect to.",
    )
    Made("an authority, valid for 10 years", (directory.ca.public, directory.ca.key), notes=notes).tell(as_json=as_json)


@command.command()
@_HOST
@click.option("--ip", "addresses", multiple=True, help="An address that it is reached by, too. May be repeated.")
@_DIR
@_DAYS
@_FORCE
@json_option
@_told
def server(*, name: str, addresses: tuple[str, ...], directory: PkiDirectory, days: int, force: bool, as_json: bool) -> None:
    """Make the certificate of a parent. NAME is the host in the URL that children use."""
    place = directory.server(name)
    directory.write_pair(place, issue_server(directory.read_ca(), name, _now(), addresses=addresses, days=days), force=force)
    notes = (f"Next: {directory.command('client NAME')} and {directory.command('token NAME')}, for each child.",)
    made = Made(f"the certificate of the parent {name}", (place.public, place.key), (server_step(directory, name),), notes)
    made.tell(as_json=as_json)


@command.command()
@_NAME
@_DIR
@_DAYS
@_FORCE
@json_option
@_told
def client(*, name: str, directory: PkiDirectory, days: int, force: bool, as_json: bool) -> None:
    """Make the certificate of a child. It proves that the child may register as dns:NAME."""
    place = directory.client(name)
    directory.write_pair(place, issue_client(directory.read_ca(), name, _now(), days=days), force=force)
    notes = () if directory.token(name).exists() else (f"Next: {directory.command(f'token {name}')}",)
    Made(f"the certificate of the child {name}", (place.public, place.key), (client_step(directory, name),), notes).tell(as_json=as_json)


@command.command()
@_NAME
@_DIR
@_FORCE
@json_option
@_told
def token(*, name: str, directory: PkiDirectory, force: bool, as_json: bool) -> None:
    """Make the token that a child shows its parent. The same file goes to both."""
    file = directory.token(name)
    directory.write(file, f"{make_token()}\n".encode(), SECRET, force=force)
    Made(f"the token of the child {name}", (file,), token_steps(directory, name)).tell(as_json=as_json)


@command.command()
@_NAME
@_DIR
@_FORCE
@json_option
@_told
def authority(*, name: str, directory: PkiDirectory, force: bool, as_json: bool) -> None:
    """Make a key that proves dns:NAME where a client certificate cannot: behind a proxy that ends TLS."""
    place = directory.authority(name)
    directory.write_pair(place, make_authority_key(), force=force)
    Made(f"the authority key of {name}", (place.public, place.key), authority_steps(directory, name)).tell(as_json=as_json)


@command.command()
@_DIR
@json_option
def show(*, directory: PkiDirectory, as_json: bool) -> None:
    """Show what there is and how long it is valid; warns 30 days before it ends."""
    survey = look(directory, _now())
    if not survey.entries:
        raise Failure(
            f"{directory.path}: nothing is there yet", f"start with {directory.command('init')}, or name another directory with --dir"
        )
    if as_json:
        print_json(
            {"directory": str(directory.path), "entries": [_described(entry) for entry in survey.entries], "warnings": survey.warnings}
        )
        return
    print_table(
        ("kind", "name", "valid until", "days left", "file"),
        [
            (
                entry.kind,
                entry.name or "–",
                f"{entry.not_after:%Y-%m-%d}" if entry.not_after else "–",
                "–" if entry.days_left is None else entry.days_left,
                entry.file,
            )
            for entry in survey.entries
        ],
    )
    for warning in survey.warnings:
        click.echo(f"{click.style('warning:', fg='yellow')} {warning}", err=True)


def _described(entry: Entry) -> dict[str, Any]:
    not_after = entry.not_after.isoformat() if entry.not_after else None
    return {**asdict(entry), "file": str(entry.file), "not_after": not_after}


def _now() -> datetime:
    return datetime.now(UTC)
