"""`mcllo._apps.report`: `report` and what it writes."""

import json
import re
from dataclasses import replace
from html import unescape
from xml.etree import ElementTree

import pytest
from report_data import (
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
from test_plain import JARGON

import mcllo
from mcllo._apps.report import report
from mcllo._apps.report.html import escape_markdown
from mcllo._apps.report.method import CITED, REFERENCES, method_facts, references
from mcllo._apps.report.summarize import assessment_to_report, summarize
from mcllo._apps.report.views import name_cell, show_p
from mcllo._assessment.details import PARTS
from mcllo._utils.formatting import ellipsis
from mcllo.exceptions import FileFormatError, InputError
from mcllo.plot import reliability


def test_html_is_one_whole_page():
    text = reported(overconfident).html()
    assert text.startswith("<!doctype html>")
    assert text.rstrip().endswith("</html>")
    # reliability, nested_models (screen, phone), parameters, classes (screen, phone), baselines,
    # map
    assert text.count("<svg") == 8


@pytest.mark.slow  # draws twice; test_plot.py draws one figure of each kind of file twice
def test_the_same_input_gives_the_same_bytes():
    assert report(calm()).html() == reported(calm).html()


@pytest.mark.parametrize("make", [calm, compared, separated, hostile])
def test_json_is_strict_and_has_the_numbers(make):
    result = make()
    content = json.loads(report(result).json(), parse_constant=pytest.fail)
    assert content["result"] == json.loads(json.dumps(result.to_dict(), default=str))
    assert (
        content["summary"]["verdict"]["kind"]
        == assessment_to_report(result).verdict.kind
    )
    assert ("assessment" in content) == (make is compared)
    json.dumps(
        summarize(result).to_dict(), allow_nan=False
    )  # plain values: `default` did nothing


@pytest.mark.usefixtures("undrawn")
def test_a_comparison_computes_no_details():
    r = report(compared())
    r.html()
    r.markdown()
    content = json.loads(r.json())["assessment"]
    assert content["test"]["pvalue"] == compared()["uncalibrated"].pvalue
    assert (
        content["nested_models"]
        is content["class_tests"]
        is content["baselines"]
        is None
    )
    assert "assess these rows" in content["skipped"]["nested_models"]
    assert all(getattr(r.assessment.details, name) is None for name in PARTS)


@pytest.mark.usefixtures("undrawn")
def test_write_by_the_ending(tmp_path):
    made = report(calm(), title="half \ud800")  # half a character does not break a file
    for name, start in (
        ("r.html", "<!doctype"),
        ("R.HTM", "<!doctype"),
        ("r.md", "# half \ufffd"),
    ):
        made.write(tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)
    report(calm()).write(tmp_path / "r.json")
    assert (tmp_path / "r.json").read_text().startswith("{")
    assert len(list(tmp_path.iterdir())) == 4  # nothing temporary stays


def test_write_refuses(tmp_path):
    with pytest.raises(
        InputError, match=r"must end in .html, .md or .json; got 'r.pdf'"
    ):
        report(calm()).write(tmp_path / "r.pdf")
    with pytest.raises(FileFormatError, match="no directory"):
        report(calm()).write(tmp_path / "none" / "r.html")


@pytest.mark.usefixtures("undrawn")
def test_it_shows_itself_in_a_notebook_and_on_a_line():
    made = report(calm(), title="Pets")
    assert made._repr_html_().startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    assert repr(made) == "<Report 'Pets': No miscalibration found.>"


SENTENCES = [
    *(
        "Verdict: fine. x",
        "p = 0.05",
        "But these reject: none",
        "Note: no. At level 0.05, p = 1",
    ),
    *(
        "none, because. Every smaller model is",
        "a; recalibrated by b",
        "it assumes {x} vs c:",
    ),
]
"""Names of classes that look like what was once cut out of sentences."""


@pytest.mark.usefixtures("undrawn")
def test_classes_named_like_sentences_change_no_sentence():
    baseline = 1
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
    assert (
        f"with the baseline, {escape_markdown(repr(ellipsis(SENTENCES[baseline])))};"
        in markdown
    )


def test_a_comparison_and_its_verdict_agree():
    assert assessment_to_report(calm()) is calm()
    c = compared()
    a, row = assessment_to_report(c), c["uncalibrated"]
    assert (a.test.pvalue, a.test.statistic) == (row.pvalue, row.statistic)
    assert a.predictions is c.holdout
    s = summarize(c)
    assert s.verdict.pvalue == f"p {show_p(row.pvalue, row.pvalue_method)}"
    assert s.kind == "comparison"
    assert s.recalibrations.recommendation is c.recommendation
    direct = mcllo.assess(predictions(500, PETS, 2.0, seed=1), seed=0, n_resamples=99)
    assert a.test.statistic == pytest.approx(direct.test.statistic)


def test_titles():
    assert summarize(calm()).title == "Calibration report"
    assert (
        summarize(calm(), source="a/b/rows.csv").title == "Calibration report: rows.csv"
    )
    assert summarize(calm(), title="Mine", source="rows.csv").title == "Mine"
    several = summarize(compared(), source=["t.csv", "h.csv"])
    assert several.title == "Recalibrations compared: t.csv, h.csv"


def test_other_things_are_refused():
    with pytest.raises(
        InputError, match=r"must get an Assessment or a Comparison; got ndarray"
    ):
        report(calm().predictions.probs)
    with pytest.raises(InputError, match=r"alpha must lie in \(0, 1\)"):
        summarize(calm(), alpha=5)


def keys(facts):
    return [fact.key for fact in facts]


def with_test(**changes):
    return replace(calm(), test=replace(calm().test, **changes), null_distributions={})


def test_only_what_was_used_is_explained_and_credited():
    for a, comparison, there, missing in (
        (
            calm(),
            None,
            "exact nested_models holm bayes",
            "bound paired robust max_score",
        ),
        (with_test(), None, "nested_models", "exact bound"),
        (with_test(method="bound"), None, "bound", "exact"),
        (with_test(kind="max_score"), None, "max_score", "exact"),
        (grouped(), None, "robust", "nested_models holm bayes"),
        (calm(), compared(), "paired", "nested_models holm bayes"),
    ):
        facts = method_facts(a, comparison)
        assert set(there.split()) <= set(keys(facts))
        assert not set(missing.split()) & set(keys(facts))
        for key, cited in CITED.items():
            assert (key in keys(facts)) == (cited in keys(references(facts))), key
    assert set(CITED.values()) <= set(keys(REFERENCES))


def drawings(make):
    """Return the drawings of a report, for screens and for phones."""
    pictures = reported(make).pictures.values()
    return [svg for p in pictures for svg in (p.svg, p.narrow) if svg]


slow = pytest.mark.slow
each_drawn = pytest.mark.parametrize(
    "make",
    [overconfident, *(pytest.param(m, marks=slow) for m in (compared, hostile, many))],
)
"""Reports that are drawn: one in `make test`, as test_plot.py draws hostile names there too."""


@slow
def test_which_pictures_there_are():
    both = {"reliability", "by_class"}
    always = both | {"parameters", "map"}
    assert set(reported(overconfident).pictures) == {
        *always,
        "nested_models",
        "baselines",
    }
    assert set(reported(compared).pictures) == {*both, "effect", "dots", "panels"}
    assert set(reported(grouped).pictures) == always
    narrow = {key for key, p in reported(compared).pictures.items() if p.narrow}
    assert narrow == {"by_class", "panels"}  # drawn once more, for phones


@each_drawn
def test_ids_do_not_collide_and_all_references_are_met(make):
    ids, used = [], []
    for svg in drawings(make):
        own = re.findall(r'\sid="([^"]+)"', svg)
        wanted = re.findall(r'(?:url\(#|href="#)([^)"]+)', svg)
        assert set(wanted) <= set(own)
        ids += own
        used += wanted
    assert len(ids) == len(set(ids))
    assert used  # or the two lines above test nothing


@each_drawn
def test_every_drawing_is_described_small_and_asks_for_nothing(make):
    for p in reported(make).pictures.values():
        assert p.caption.endswith(".")
        for svg in filter(None, (p.svg, p.narrow)):
            root = ElementTree.fromstring(svg)
            assert root.get("role") == "img"
            assert root.get("aria-label") == p.alt != ""
            assert root.get("viewBox")
            names = {node.tag.split("}")[-1] for node in root.iter()}
            assert not {"script", "img"} & names
            assert not re.search(r"<[^>]*\son\w+=", svg)
            assert not re.search(r'(?:href|src)="(?!#)', svg)
            assert not re.search(r"url\((?!#)", svg)
            assert "var(--mcllo-ink" in svg  # its colours follow the page
    assert sum(map(len, drawings(make))) < 1_000_000


def test_the_picture_of_the_first_screen_has_no_jargon():
    made = reported(overconfident).pictures["reliability"]
    shown = " ".join(re.findall(r">([^<]+)</text>", made.svg)) + made.caption + made.alt
    assert not JARGON.findall(shown)
    texts = [text.get_text() for text in reliability(overconfident()).texts]
    assert any(
        text.startswith("ICI") for text in texts
    )  # outside the report it is there
