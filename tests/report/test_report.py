"""`mcllo._report`: `report` and what it writes."""

import json
import re
from dataclasses import replace
from functools import partial
from html import unescape
from importlib import resources
from xml.etree import ElementTree

import pytest
from report_data import (
    HOSTILE,
    PETS,
    calm,
    compared,
    grouped,
    hostile,
    many,
    overconfident,
    predictions,
    reported,
    separated,
)

import mcllo
from mcllo import Report
from mcllo._assessment.details import PARTS
from mcllo._ground.text import ellipsis
from mcllo._report import report
from mcllo._report.method import CITED, REFERENCES, method_facts, references
from mcllo._report.render import escape_markdown
from mcllo._report.summarize import assessment_of, summarize
from mcllo._report.views import name_cell, show_p
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
    kinds = ("matters", "little", "none_found", "cannot_tell")
    assert content["summary"]["verdict"]["kind"] in kinds


def test_a_comparison_computes_no_details():
    r = report(compared())
    r.html()
    r.markdown()
    content = json.loads(r.json())["assessment"]
    assert content["test"]["pvalue"] == compared()["uncalibrated"].pvalue
    assert content["ladder"] is content["class_tests"] is content["baselines"] is None
    assert "assess these rows" in content["skipped"]["ladder"]
    d = r.assessment.details
    assert all(d.__dict__.get(name) is None for name in PARTS)


def test_json_of_an_assessment_has_the_details():
    content = json.loads(report(calm()).json())
    assert "assessment" not in content
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


def test_it_shows_itself_in_a_notebook_and_on_a_line():
    assert reported(calm)._repr_html_().startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    short = "<Report 'Pets': No miscalibration found.>"
    assert repr(report(calm(), title="Pets")) == short


def test_half_a_character_does_not_break_the_file(tmp_path):
    r = report(calm(), title="half \ud800")
    for name in ("r.html", "r.md"):
        r.write(tmp_path / name)
        assert "half \ufffd" in (tmp_path / name).read_text(encoding="utf-8")


def test_templates_are_part_of_the_package():
    folder = resources.files("mcllo._report") / "templates"
    names = {entry.name for entry in folder.iterdir()}
    assert {"report.html.jinja", "report.md.jinja", "style.css", "tables.js"} <= names


def test_a_comparison_of_hostile_names_is_small_and_whole():
    text = report(compared(HOSTILE)).html()
    assert len(text.encode()) < 2_000_000
    assert text.count("<script") == 1


SENTENCES = [
    *("Verdict: fine. x", "p = 0.05", "But these reject: none", "Note: no. At level 0.05, p = 1"),
    *("none, because. Every smaller model is", "a; repaired by b", "it assumes {x} vs c:"),
]
"""Names of classes that look like what was once cut out of sentences."""


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("baseline", range(2))
def test_classes_named_like_sentences_change_no_sentence(baseline):
    plain = [f"class {j}" for j in range(len(SENTENCES))]
    rows = predictions(500, plain, 2.0)
    first, second = (
        mcllo.assess(
            rows.probs,
            [names[code] for code in rows.codes],
            classes=names,
            baseline=names[baseline],
            seed=0,
            n_resamples=19,
        )
        for names in (plain, SENTENCES)
    )
    for said, odd in zip(first.statements(), second.statements(), strict=True):
        text = said.text
        for name, strange in zip(plain, SENTENCES, strict=True):
            text = text.replace(name, ellipsis(strange))
        assert (odd.kind, odd.level, odd.text) == (said.kind, said.level, text)
    expected, found = summarize(first), summarize(second)
    assert found.verdict == expected.verdict
    assert [said.lead for said in found.wrong] == [said.lead for said in expected.wrong]
    markdown = report(second).markdown()
    page = re.sub(r"(?s)<(style|script|svg).*?</\1>", "", report(second).html())
    shown = unescape(re.sub(r"<[^>]+>", "\n", page)).splitlines()
    for name in SENTENCES:
        cut = name_cell(name).text
        assert ellipsis(name) in second.text(full=True)
        assert f"| {escape_markdown(cut)} |" in markdown
        assert cut in shown
    assert f"with the baseline, {escape_markdown(repr(ellipsis(SENTENCES[baseline])))};" in markdown


def test_a_comparison_and_its_verdict_agree():
    assert assessment_of(calm()) is calm()
    c = compared()
    a, row = assessment_of(c), c["uncalibrated"]
    assert (a.test.pvalue, a.test.statistic) == (row.pvalue, row.statistic)
    assert a.predictions is c.holdout
    s = summarize(c)
    assert s.verdict.pvalue == f"p {show_p(row.pvalue, row.pvalue_method)}"
    assert s.kind == "comparison"
    assert s.repairs.recommendation is c.recommendation
    direct = mcllo.assess(predictions(500, PETS, 2.0, seed=1), seed=0, n_resamples=99)
    assert a.test.statistic == pytest.approx(direct.test.statistic)


@pytest.mark.parametrize(
    ("make", "options", "title"),
    [
        (calm, {}, "Calibration report"),
        (calm, {"source": "a/b/rows.csv"}, "Calibration report: rows.csv"),
        (calm, {"title": "Mine", "source": "rows.csv"}, "Mine"),
        (compared, {"source": ["t.csv", "h.csv"]}, "Repairs compared: t.csv, h.csv"),
    ],
)
def test_titles(make, options, title):
    assert summarize(make(), **options).title == title


def plain_values(value):
    if isinstance(value, dict):
        return all(plain_values(v) for v in value.values())
    if isinstance(value, (list, tuple)):
        return all(plain_values(v) for v in value)
    return value is None or type(value) in (str, int, float, bool)


@pytest.mark.parametrize("make", [calm, overconfident, hostile, separated, compared])
def test_every_summary_is_strict_json(make):
    content = summarize(make()).to_dict()
    assert plain_values({**content, "repairs": None})
    json.dumps(content, allow_nan=False)
    assert content["verdict"]["pvalue"].startswith("p ")


def test_nothing_claims_calibration():
    s = summarize(calm())
    text = " ".join([s.verdict.headline, s.verdict.sentence, *(step.text for step in s.steps)])
    for claim in ("is calibrated", "are calibrated", "well calibrated"):
        assert claim not in text


def test_other_things_are_refused():
    with pytest.raises(InputError, match=r"must get an Assessment or a Comparison; got ndarray"):
        report(calm().predictions.probs)
    with pytest.raises(InputError, match=r"alpha must lie in \(0, 1\)"):
        summarize(calm(), alpha=5)


def words(facts):
    return " ".join(f"{fact.name} {fact.value} {fact.note}" for fact in facts)


def keys(facts):
    return [fact.key for fact in facts]


def test_the_model_and_its_sources_are_there():
    text = words(method_facts(calm(), None))
    assert "log(g_j / g_b) = log δ_j + γ_j · log(x_j / x_b)" in text
    assert {"vennos2026", "vanhoorde2014", "besag1991", *CITED.values()} <= set(keys(REFERENCES))
    assert all(fact.value.startswith("https://") for fact in REFERENCES)


def with_test(**changes):
    return replace(calm(), test=replace(calm().test, **changes), nulls={})


@pytest.mark.parametrize(
    ("make", "comparison", "there", "missing"),
    [
        (calm, None, "exact ladder holm bayes", "bound paired robust max_score"),
        (with_test, None, "ladder", "exact bound"),
        (partial(with_test, method="bound"), None, "bound", "exact"),
        (partial(with_test, kind="max_score"), None, "max_score", "exact"),
        (grouped, None, "robust", "ladder holm bayes"),
        (calm, compared, "paired", "ladder holm bayes"),
    ],
)
def test_only_what_was_used_is_explained_and_credited(make, comparison, there, missing):
    facts = method_facts(make(), comparison and comparison())
    assert set(there.split()) <= set(keys(facts))
    assert not set(missing.split()) & set(keys(facts))
    for key, cited in CITED.items():
        assert (key in keys(facts)) == (cited in keys(references(facts)))


def test_no_claim_that_does_not_hold():
    text = (words(method_facts(calm(), compared())) + words(REFERENCES)).lower()
    assert "the first" not in text
    assert "logits" not in text


def of(make):
    return reported(make).pictures


def drawings(found):
    return [svg for p in found.values() for svg in (p.svg, p.narrow) if svg]


def test_which_pictures_there_are():
    always = {"reliability", "parameters", "by_class", "map"}
    assert set(of(overconfident)) == {*always, "ladder", "baselines"}
    assert set(of(compared)) == {*always, "dots", "panels"}
    assert set(of(grouped)) == always


def test_panels_have_a_drawing_for_phones():
    found = of(compared)
    assert {key for key, p in found.items() if p.narrow} == {"by_class", "panels"}
    assert of(overconfident)["ladder"].narrow


@pytest.mark.parametrize("make", [compared, hostile, separated, many])
def test_ids_do_not_collide_and_all_references_are_met(make):
    ids, used = [], []
    for svg in drawings(of(make)):
        own = re.findall(r'\sid="([^"]+)"', svg)
        wanted = re.findall(r'(?:url\(#|href="#)([^)"]+)', svg)
        assert set(wanted) <= set(own)
        ids += own
        used += wanted
    assert len(ids) == len(set(ids))
    assert used  # or the two lines above test nothing


@pytest.mark.parametrize("make", [compared, hostile])
def test_every_drawing_is_well_formed_and_described(make):
    for p in of(make).values():
        assert p.caption.endswith(".")
        for svg in filter(None, (p.svg, p.narrow)):
            root = ElementTree.fromstring(svg)
            assert root.get("role") == "img"
            assert root.get("aria-label") == p.alt != ""
            assert root.get("viewBox")


def test_hostile_names_are_text():
    for svg in drawings(of(hostile)):
        names = {node.tag.split("}")[-1] for node in ElementTree.fromstring(svg).iter()}
        assert "script" not in names
        assert "img" not in names
        assert not re.search(r"<[^>]*\son\w+=", svg)


def test_nothing_is_fetched():
    for svg in drawings(of(compared)):
        assert not re.search(r'(?:href|src)="(?!#)', svg)
        assert not re.search(r"url\((?!#)", svg)


def test_colours_follow_the_page():
    assert all("var(--mcllo-ink" in svg for svg in drawings(of(overconfident)))


def test_a_hundred_classes_stay_small():
    assert sum(len(svg) for svg in drawings(of(many))) < 1_000_000
