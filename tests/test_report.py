"""`mcllo._report`: `report` and what it writes."""

import json
from importlib import resources

import pytest
from report_data import HOSTILE, calm, compared, hostile, reported, separated

from mcllo._details import PARTS
from mcllo._report import Report, report
from mcllo.exceptions import FileFormatError, InputError


def test_html_is_one_whole_page():
    text = reported(calm).html()
    assert text.startswith("<!doctype html>")
    assert text.rstrip().endswith("</html>")
    # reliability, ladder (screen, phone), parameters, classes (screen, phone), baselines, map
    assert text.count("<svg") == 8


def test_the_same_input_gives_the_same_bytes():
    assert report(calm()).html() == reported(calm).html()


@pytest.mark.parametrize("make", [calm, compared, separated, hostile])
def test_json_is_strict_and_has_the_numbers(make):
    result = make()
    content = json.loads(report(result).json(), parse_constant=pytest.fail)
    assert content["result"] == json.loads(json.dumps(result.to_dict(), default=str))
    assert content["summary"]["verdict"]["status"] in ("rejected", "not_rejected")


def test_json_of_a_comparison_has_the_assessment_too():
    content = json.loads(report(compared()).json())
    assert content["assessment"]["test"]["pvalue"] == compared()["uncalibrated"].pvalue
    assert "assessment" not in json.loads(report(calm()).json())


def test_a_comparison_computes_no_details():
    r = report(compared())
    r.html()
    r.markdown()
    content = json.loads(r.json())["assessment"]
    assert content["ladder"] is content["class_tests"] is content["baselines"] is None
    assert "assess these rows" in content["skipped"]["ladder"]
    d = r.assessment.details
    assert all(d.__dict__.get(name) is None for name in PARTS)


def test_json_of_an_assessment_has_the_details():
    content = json.loads(report(calm()).json())
    assert content["result"]["ladder"]["chosen"] == calm().details.ladder.chosen
    assert content["summary"]["details"]["ladder"]["table"]["key"] == "ladder"


@pytest.mark.parametrize(
    ("name", "start"),
    [("r.html", "<!doctype"), ("R.HTM", "<!doctype"), ("r.md", "# Calibration"), ("r.json", "{")],
)
def test_write_by_the_ending(tmp_path, name, start):
    path = tmp_path / name
    reported(calm).write(path)
    assert path.read_text(encoding="utf-8").startswith(start)
    assert [p.name for p in tmp_path.iterdir()] == [name]  # nothing temporary stays


def test_write_leaves_the_old_file_when_it_fails(tmp_path, monkeypatch):
    path = tmp_path / "r.json"
    path.write_text("old")

    def fail(self):
        raise RuntimeError("no")

    monkeypatch.setattr(Report, "json", fail)
    with pytest.raises(RuntimeError):
        report(calm()).write(path)
    assert path.read_text() == "old"


def test_write_refuses(tmp_path):
    with pytest.raises(InputError, match=r"must end in .html, .md or .json; got 'r.pdf'"):
        report(calm()).write(tmp_path / "r.pdf")
    with pytest.raises(FileFormatError, match="no directory"):
        report(calm()).write(tmp_path / "none" / "r.html")


def test_other_things_are_refused():
    with pytest.raises(InputError, match="got list"):
        report([0.5, 0.5])


def test_it_shows_itself_in_a_notebook():
    assert reported(calm)._repr_html_().startswith('<iframe srcdoc="&lt;!doctype html&gt;')


def test_repr_says_what_it_is():
    assert repr(report(calm(), title="Pets")) == (
        "<Report 'Pets': No miscalibration found at level 0.05.>"
    )


def test_half_a_character_does_not_break_the_file(tmp_path):
    r = report(calm(), title="half \ud800")
    for name in ("r.html", "r.md"):
        r.write(tmp_path / name)
        assert "half \ufffd" in (tmp_path / name).read_text(encoding="utf-8")


def test_templates_are_part_of_the_package():
    folder = resources.files("mcllo._report") / "templates"
    names = {entry.name for entry in folder.iterdir()}
    assert {"report.html.jinja", "report.md.jinja", "style.css", "sort.js"} <= names


def test_a_comparison_of_hostile_names_is_small_and_whole():
    text = report(compared(HOSTILE)).html()
    assert len(text.encode()) < 2_000_000
    assert text.count("<script") == 1
