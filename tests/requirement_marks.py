"""Which requirement lines the tests prove: reads the list, scans the tests for `@pytest.mark.req`, compares the two.

The scan reads source, not pytest's collection, so that the answer is the same whichever tests are selected. Only the standard
library is used: `scripts/requirements` runs this file as a program.
"""

import argparse
import ast
import json
import re
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

TESTS = Path(__file__).resolve().parent
LIST = TESTS / "requirements.toml"

STATES = ("proven", "planned")
LEVELS = ("must", "should", "may", "goal")
PROMOTE = "run scripts/requirements --promote"


class RequirementsError(Exception):
    """The list or a test file cannot be read; the message says where and why."""


@dataclass(frozen=True)
class Requirement:
    """One line of the list."""

    id: str
    document: str
    section: str
    level: str
    state: str
    text: str


@dataclass
class Scan:
    """What the tests claim: the places of each id, relative to the tests' folder, and marks that cannot be understood."""

    places: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    faults: list[str] = field(default_factory=list)


def load(path: Path = LIST) -> dict[str, Requirement]:
    """Return the list by id, in the order of the file."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise RequirementsError(f"{path.name}: {error}") from error
    lines: dict[str, Requirement] = {}
    for document in tables.pop("documents", {}):
        for id_, entry in tables.pop(document, {}).items():
            if set(entry) != {"state", "level", "section", "text"}:
                raise RequirementsError(f"{path.name}: {id_}: needs exactly state, level, section, text; has {', '.join(sorted(entry))}")
            if entry["state"] not in STATES:
                raise RequirementsError(f"{path.name}: {id_}: state {entry['state']!r} is none of {', '.join(STATES)}")
            if entry["level"] not in LEVELS:
                raise RequirementsError(f"{path.name}: {id_}: level {entry['level']!r} is none of {', '.join(LEVELS)}")
            if not id_.startswith(f"{document}-"):
                raise RequirementsError(f"{path.name}: {id_}: stands under [{document}] but does not begin with {document}-")
            lines[id_] = Requirement(id=id_, document=document, **entry)
    if tables:
        raise RequirementsError(f"{path.name}: [{next(iter(tables))}] is not named under [documents]")
    return lines


def scan(tests: Path = TESTS) -> Scan:
    """Find every requirement mark in the test modules below a folder."""
    found = Scan()
    for path in sorted(tests.rglob("test_*.py")):
        where = path.relative_to(tests).as_posix()
        try:
            tree = ast.parse(path.read_bytes())
        except SyntaxError as error:
            raise RequirementsError(f"{where}:{error.lineno}: {error.msg}") from error
        for mark in _marks(tree):
            place = f"{where}:{mark.lineno}"
            ids = [argument.value for argument in mark.args if isinstance(argument, ast.Constant) and isinstance(argument.value, str)]
            if not ids or mark.keywords or len(ids) != len(mark.args):
                found.faults.append(f'{place}: the req mark takes ids as plain strings: @pytest.mark.req("AX-5.2-2")')
            for id_ in ids:
                found.places[id_].append(place)
    return found


def _marks(node: ast.AST) -> Iterator[ast.Call]:
    """Yield each `pytest.mark.req(…)` below a node, leaving out what never has to pass: a skipped or xfailed test proves nothing."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        names = {_mark_name(decorator.func if isinstance(decorator, ast.Call) else decorator) for decorator in node.decorator_list}
        if names & {"skip", "xfail"}:
            return
    if isinstance(node, ast.Call) and _mark_name(node.func) == "req":
        yield node
    for child in ast.iter_child_nodes(node):
        yield from _marks(child)


def _mark_name(node: ast.AST) -> str | None:
    match node:
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id="pytest"), attr="mark"), attr=name):
            return name
    return None


def audit(lines: Mapping[str, Requirement], found: Scan) -> list[str]:
    """Return what is wrong between the list and the tests, each with what to do about it."""
    faults = list(found.faults)
    for id_, places in found.places.items():
        if id_ not in lines:
            faults.append(f"{places[0]}: {id_} is not in {LIST.name}: misspelt, or a line to add there")
        elif lines[id_].state == "planned":
            faults.append(f"{id_} is planned, yet {places[0]} carries it: {PROMOTE}")
    faults += [
        f"{id_} is proven, yet no test carries it: bring the test back, or {PROMOTE}"
        for id_, line in lines.items()
        if line.state == "proven" and id_ not in found.places
    ]
    return faults


def summary(lines: Mapping[str, Requirement]) -> str:
    """Return the one line that a test run ends with."""
    count = Counter(line.state for line in lines.values())
    return f"requirements: {count['proven']} proven, {count['planned']} planned of {len(lines)}"


def promote(found: Scan, path: Path = LIST) -> list[str]:
    """Set each line's state in the file from the scan, leaving everything else as it is; return what changed."""
    text = path.read_text(encoding="utf-8")
    changes = []
    for id_, line in load(path).items():
        state = "proven" if id_ in found.places else "planned"
        if state != line.state:
            text = re.sub(rf'^("{re.escape(id_)}"\s*=\s*{{ state = )"{line.state}"', rf'\1"{state}"', text, flags=re.MULTILINE)
            changes.append(f"{id_}: {line.state} -> {state}")
    path.write_text(text, encoding="utf-8")
    return changes


def table(lines: Mapping[str, Requirement], found: Scan) -> str:
    """Return the list for people, by document and section."""
    rows: list[str] = []
    heading = ("", "")
    for line in lines.values():
        if heading != (line.document, line.section):
            heading = (line.document, line.section)
            rows.append(f"\n{line.document} {line.section}")
        rows.append(f"  {line.id:<10} {line.state:<8} {line.level:<7} {line.text}")
        rows += [f"  {'':<10} {'':<8} {'':<7} · {place}" for place in found.places.get(line.id, ())]
    return "\n".join([*rows, "", summary(lines)]).lstrip()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as `scripts/requirements`."""
    parser = argparse.ArgumentParser(prog="scripts/requirements", description="Show which requirement lines the tests prove.")
    parser.add_argument("--json", action="store_true", help="print for programs")
    parser.add_argument("--promote", action="store_true", help="set each line's state from the tests that carry its id")
    options = parser.parse_args(arguments)
    try:
        found = scan()
        changes = promote(found) if options.promote else []
        lines = load()
    except RequirementsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    faults = audit(lines, found)
    if options.json:
        rows = [asdict(line) | {"tests": found.places.get(line.id, [])} for line in lines.values()]
        print(json.dumps({"requirements": rows, "changes": changes, "faults": faults}, ensure_ascii=False))
    elif options.promote:
        print("\n".join([*changes, summary(lines)]))
    else:
        print(table(lines, found))
    if not options.json:
        for fault in faults:
            print(f"fault: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
