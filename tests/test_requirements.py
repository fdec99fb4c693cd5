"""The list of requirement lines and the tests that carry their ids agree; and the means that tell so do tell."""

from pathlib import Path

import pytest

from tests import requirement_marks
from tests.requirement_marks import Requirement, RequirementsError, Scan, audit, load, promote, scan, summary


def test_list_and_tests_agree() -> None:
    faults = audit(load(), scan())
    assert not faults, "\n".join(faults)


def test_list_is_whole() -> None:
    lines = load()
    assert {line.document for line in lines.values()} == {"AX", "MGP", "MX", "PS", "AG"}
    assert all(line.text.endswith(".") for line in lines.values())
    for line in lines.values():
        assert line.id.startswith(f"{line.document}-{line.section}-") or line.section == "-"


def line_of(id_: str, state: str) -> dict[str, Requirement]:
    return {id_: Requirement(id_, "AX", "1", "must", state, "Text.")}


def scan_of(tmp_path: Path, source: str) -> Scan:
    folder = tmp_path / "deep" / "er"
    folder.mkdir(parents=True)
    (folder / "test_sample.py").write_text(f"import pytest\n{source}\n")
    return scan(tmp_path)


@pytest.mark.parametrize(
    ("lines", "places", "expected"),
    [
        pytest.param(line_of("AX-1-1", "proven"), {"AX-1-1": ["t.py:1"]}, [], id="proven and tested"),
        pytest.param(line_of("AX-1-1", "planned"), {}, [], id="planned and not tested"),
        pytest.param({}, {"AX-1-1": ["t.py:1"]}, ["t.py:1: AX-1-1 is not in requirements.toml"], id="unknown"),
        pytest.param(line_of("AX-1-1", "proven"), {}, ["AX-1-1 is proven, yet no test"], id="proven, not tested"),
        pytest.param(line_of("AX-1-1", "planned"), {"AX-1-1": ["t.py:1"]}, ["AX-1-1 is planned, yet t.py:1"], id="tested, still planned"),
    ],
)
def test_audit(lines: dict[str, Requirement], places: dict[str, list[str]], expected: list[str]) -> None:
    faults = audit(lines, Scan(places=places))
    assert len(faults) == len(expected)
    for fault, beginning in zip(faults, expected, strict=True):
        assert fault.startswith(beginning)


@pytest.mark.parametrize(
    "source",
    [
        '@pytest.mark.req("AX-1-1")\ndef test_it(): ...',
        '@pytest.mark.req("AX-1-1")\nasync def test_it(): ...',
        '@pytest.mark.req("AX-1-1")\nclass TestIt: ...',
        'class TestIt:\n    @pytest.mark.req("AX-1-1")\n    def test_it(self): ...',
        'pytestmark = [pytest.mark.req("AX-1-1")]',
        'CASES = [pytest.param(1, marks=pytest.mark.req("AX-1-1"))]',
        '@pytest.mark.skipif(True, reason="")\n@pytest.mark.req("AX-1-1")\ndef test_it(): ...',
    ],
)
def test_scan_finds_marks_wherever_pytest_takes_them(tmp_path: Path, source: str) -> None:
    found = scan_of(tmp_path, source)
    assert list(found.places) == ["AX-1-1"]
    assert found.places["AX-1-1"][0].startswith("deep/er/test_sample.py:")
    assert not found.faults


@pytest.mark.parametrize("mark", ["skip", 'skip(reason="no board")', "xfail"])
def test_a_test_that_need_not_pass_proves_nothing(tmp_path: Path, mark: str) -> None:
    assert not scan_of(tmp_path, f'@pytest.mark.{mark}\n@pytest.mark.req("AX-1-1")\ndef test_it(): ...').places


@pytest.mark.parametrize("arguments", ["", "ID", '*["AX-1-1"]', 'id="AX-1-1"', '"AX-1-1", ID'])
def test_scan_reports_marks_it_cannot_read(tmp_path: Path, arguments: str) -> None:
    (fault,) = scan_of(tmp_path, f"@pytest.mark.req({arguments})\ndef test_it(): ...").faults
    assert fault.startswith("deep/er/test_sample.py:2: the req mark takes ids")


def test_scan_names_the_file_that_is_not_python(tmp_path: Path) -> None:
    with pytest.raises(RequirementsError, match=r"deep/er/test_sample.py:2: "):
        scan_of(tmp_path, "def")


LIST = """\
[documents]
AX = "A document"

[AX]
# kept
"AX-1-1"  = { state = "planned", level = "must", section = "1", text = "One." }
"AX-1-11" = { state = "proven", level = "may", section = "1", text = "Two, state = \\"proven\\"." }
"""


def test_promote_sets_states_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "requirements.toml"
    path.write_text(LIST)
    assert promote(Scan(places={"AX-1-1": ["t.py:1"]}), path) == ["AX-1-1: planned -> proven", "AX-1-11: proven -> planned"]
    before = LIST.splitlines()
    before[5], before[6] = (
        before[5].replace('{ state = "planned"', '{ state = "proven"'),
        before[6].replace('{ state = "proven"', '{ state = "planned"'),
    )
    assert path.read_text().splitlines() == before
    assert promote(Scan(places={"AX-1-1": ["t.py:1"]}), path) == []
    assert summary(load(path)) == "requirements: 1 proven, 1 planned of 2"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"planned"', '"done"', "AX-1-1: state 'done' is none of proven, planned"),
        ('"must"', '"shall"', "AX-1-1: level 'shall' is none of"),
        ('section = "1", ', "", "AX-1-1: needs exactly state, level, section, text"),
        ('"AX-1-1"', '"MX-1-1"', "MX-1-1: stands under"),
        ('AX = "A document"', "", "is not named under"),
        ("[AX]", "[AX", "requirements.toml: "),
    ],
)
def test_load_says_what_is_wrong_with_the_list(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "requirements.toml"
    path.write_text(LIST.replace(old, new, 1))
    with pytest.raises(RequirementsError) as caught:
        load(path)
    assert message in str(caught.value)


def test_program_prints_the_table_and_exits_by_the_faults(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert requirement_marks.main([]) == (1 if audit(load(), scan()) else 0)
    assert summary(load()) in capsys.readouterr().out
    monkeypatch.setattr(requirement_marks, "scan", lambda: Scan(places={"AX-0-0": ["t.py:1"]}))
    assert requirement_marks.main(["--json"]) == 1
    assert "AX-0-0 is not in" in capsys.readouterr().out
