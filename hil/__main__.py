"""`scripts/hil`, or `python -m hil`: what there is to do with a rig besides running its tests.

report    write build/hil/report.html from what the last run left
boards    list the boards of a rig
footprint measure every image and hold it against the draft's budget (scripts/footprint)
up        hold boards and keep them running, for work by hand: mcpax, pio run -t upload
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import click

from hil.bench import held
from hil.boards import BoardError
from hil.budget import markdown, table
from hil.build import BuildError, build_missing
from hil.control import control_path
from hil.lease import LeaseError
from hil.measure import MeasureError, build, measure, targets
from hil.places import DEFAULT_RIG, FOOTPRINT, REPORT, RESULTS
from hil.recovery import BoardWedged
from hil.report import page
from hil.results import ResultsError, load
from hil.rig import BoardSpec, Rig, load_rig
from mcpax.documents.faults import DocumentError, nearest

_FILE = click.Path(dir_okay=False, path_type=Path)
_RIG_OPTION = click.option("--rig", "file", type=_FILE, default=DEFAULT_RIG, help="The rig. [hil/rig.toml]")


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]}, help="What there is to do with a rig besides running its tests (pytest hil)."
)
def main() -> None:
    pass


@main.command()
@click.option("--results", type=_FILE, default=RESULTS, help="What a run left. [build/hil/results.json]")
@click.option("--footprint", type=_FILE, default=FOOTPRINT, help="Footprints, if measured. [build/footprint.json]")
@click.option("--output", "-o", type=_FILE, default=REPORT, help="The page. [build/hil/report.html]")
def report(results: Path, footprint: Path, output: Path) -> None:
    """Write one HTML page of the last run."""
    try:
        found = load(results)
    except ResultsError as error:
        raise click.ClickException(str(error)) from None
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(page(found, footprint), encoding="utf-8")
    click.echo(output)


@main.command()
@_RIG_OPTION
def boards(file: Path) -> None:
    """List the boards of a rig."""
    for spec in _rig(file).boards:
        how = f"emulated ({spec.emulator})" if spec.emulator is not None else spec.port
        click.echo(f"{spec.name:16} {spec.chip:14} {spec.app:16} {how}; can: {', '.join(sorted(spec.capabilities)) or 'nothing'}")


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print what is otherwise only written to build/footprint.json.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print the README's table.")
@click.option("--no-build", is_flag=True, help="Take the images that are there.")
@click.option("--seed", default=1, show_default=True, help="Of RAM at power on, and of the moments at which bytes come in.")
@click.option("--output", "-o", type=_FILE, default=FOOTPRINT, help="Where it is kept for the report. [build/footprint.json]")
@click.pass_context
def footprint(ctx: click.Context, *, as_json: bool, as_markdown: bool, no_build: bool, seed: int, output: Path) -> None:
    """Measure code, schema, RAM and stack of every application on every emulated board; exit code 1 if one is over the draft's budget."""
    if as_json and as_markdown:
        raise click.UsageError("give --json or --markdown, not both")
    wanted = targets()
    try:
        if not no_build:
            build(wanted)
        rows = [measure(target, seed) for target in wanted]
    except MeasureError as error:
        raise click.ClickException(str(error)) from None
    kept = json.dumps({"rows": [row.to_json() for row in rows]}, indent=2) + "\n"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(kept, encoding="utf-8")
    click.echo(kept if as_json else markdown(rows) if as_markdown else table(rows), nl=False)
    over = [sentence for row in rows for sentence in row.over()]
    for sentence in over:
        click.echo(f"over budget: {sentence}", err=True)
    ctx.exit(1 if over else 0)


@main.command()
@click.argument("names", metavar="[BOARD]...", nargs=-1)
@_RIG_OPTION
def up(names: tuple[str, ...], file: Path) -> None:
    """Hold boards, all or the named ones, and keep them running until Ctrl-C. Builds the firmware of an emulated one if there is none."""
    rig = _rig(file)
    chosen = _chosen(rig, names)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does: boards are given back in order
    try:
        build_missing(chosen, lambda text: click.echo(text, err=True))
        with held(rig, chosen, "hil up", waiting=lambda text: click.echo(text, err=True)) as running:
            for board in running:
                control = f", flash it through {control_path(Path(board.port))}" if board.spec.emulator is not None else ""
                click.echo(f"{board.name}: {board.port}{control}")
            sys.stdout.flush()
            signal.pause()
    except KeyboardInterrupt:
        return
    except (BoardError, BoardWedged, BuildError, LeaseError) as error:
        raise click.ClickException(str(error)) from None


def _rig(file: Path) -> Rig:
    try:
        return load_rig(file)
    except DocumentError as error:
        raise click.ClickException(str(error)) from None


def _chosen(rig: Rig, names: tuple[str, ...]) -> list[BoardSpec]:
    known = {spec.name: spec for spec in rig.boards}
    for name in names:
        if name not in known:
            raise click.ClickException(f"{rig.file} has no board {name!r}; {nearest(name, known)}")
    return [known[name] for name in names] if names else list(rig.boards)


if __name__ == "__main__":
    main(prog_name="scripts/hil")
