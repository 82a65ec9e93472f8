"""What a notebook shows of results: short, safe, of one theme with the notebook, and true."""

import re
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pytest
from figure_checks import HOSTILE, assessment, comparison, hostile, predictions, separated

import mcllo
from mcllo._ground.text import Table
from mcllo._report.cards import MOST_ROWS, view
from mcllo._report.render import render_card
from mcllo._report.views import Card
from mcllo.simulate import power

ALLOWED = {
    *("div", "style", "p", "span", "strong", "code", "pre", "bdi"),
    *("table", "thead", "tbody", "tr", "th", "td"),
    *("svg", "g", "path", "defs", "use", "clippath", "rect", "text", "tspan"),
}
"""Elements that cards are made of; none of them runs or asks for anything."""
EMPTY = {"path", "use", "rect"}


RESULTS = {
    "Assessment": lambda: assessment(3),
    "Comparison": comparison,
    "Ladder": lambda: assessment(3).details.ladder,
    "ClassTests": lambda: mcllo.class_tests(predictions(3, 200), seed=0, n_resamples=19),
    "MCLLOFit": lambda: assessment(3).fit,
    "MCLLOMap": lambda: mcllo.MCLLOMap(np.zeros(1), np.ones(1), ("a", "b"), "b"),
    "Table": lambda: assessment(3).fit.parameters(),
    "Subgroups": lambda: mcllo.subgroups(
        predictions(3, 200), by=["a", "b"] * 100, seed=0, n_resamples=19
    ),
    "BaselineSensitivity": lambda: assessment(3).details.baselines,
    "PowerStudy": lambda: power(
        n_samples=(50, 100), delta_1=1.5, n_classes=3, reps=10, seed=0, n_jobs=1
    ),
    "CalibrationTable": lambda: mcllo.calibration_table(predictions(3, 200)),
    "ReliabilityCurve": lambda: mcllo.reliability_curve(predictions(3, 200)),
    "SmoothCurve": lambda: mcllo.smooth_curve(predictions(3, 200)),
    "IsotonicCurve": lambda: mcllo.isotonic_curve(predictions(3, 200), seed=0, n_resamples=19),
}
WITH_PICTURE = {"Assessment", "Comparison", "Ladder", "MCLLOFit", "Subgroups"} | {
    "BaselineSensitivity",
    "PowerStudy",
}


class Page(HTMLParser):
    """Elements, their attributes and the words between them; fails where they are not nested."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.words = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag not in EMPTY:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"style", "svg"} & set(self.open):
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


@cache
def shown(name):
    return RESULTS[name]()._repr_html_()


@pytest.mark.parametrize("name", RESULTS)
def test_cards_are_small_and_ask_for_nothing(name):
    page, text = Page(shown(name)), shown(name)
    assert len(text) < 45_000
    assert {tag for tag, _ in page.elements} <= ALLOWED
    assert page.elements[0][1]["data-mcllo"] == name
    assert sum(tag == "svg" for tag, _ in page.elements) == (name in WITH_PICTURE)
    for _, attributes in page.elements:
        assert not [key for key in attributes if key.startswith("on") or key == "src"]
        assert attributes.get("xlink:href", "#").startswith("#")
    assert "url(http" not in text
    assert "@import" not in text
    assert text == RESULTS[name]()._repr_html_()  # the same bytes again


def rules(text):
    """Return the selectors that set the colour of the ink, with that colour."""
    style = re.search(r"<style>(.*?)</style>", text, flags=re.DOTALL)[1]
    return re.findall(r"([^{}]*)\{[^{}]*--ink: (#[0-9a-f]+)", style)


def test_cards_follow_the_theme_of_the_notebook():
    light, system, chosen = rules(shown("Table"))
    assert light[0].strip() == ".mcllo"
    assert light[1] != system[1] == chosen[1]
    for theme in ('data-jp-theme-light="true"', ".vscode-light", 'data-theme="light"'):
        assert theme in system[0]  # a light notebook on a dark system stays light
    for theme in ('data-jp-theme-light="false"', ".vscode-dark", 'data-theme="dark"'):
        assert theme in chosen[0]
    page = mcllo.report(assessment(3)).html()
    found = re.findall(r"--ink: (#[0-9a-f]+)", page)
    assert found == [light[1], system[1]]  # one palette for both


def test_an_assessment_says_what_its_report_says():
    a = assessment(3)
    words, summary = Page(shown("Assessment")).text, mcllo.report(a).summary
    for said in (summary.lead, summary.verdict.headline, summary.verdict.size):
        assert said in words
    for fact in summary.facts:
        assert fact.value in words
    assert view(a).level == "bad"


def test_the_level_is_that_of_the_verdict():
    tiny = mcllo.assess([[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]], [0, 0, 1, 1], seed=0)
    assert (tiny.verdict.kind, view(tiny).level) == ("cannot_tell", "doubt")
    rng = np.random.default_rng(3)
    probs = rng.dirichlet([1, 1, 1], size=600)
    labels = [rng.choice(3, p=row) for row in probs]
    good = mcllo.assess(probs, labels, seed=0, n_resamples=99)
    assert (good.verdict.kind, view(good).level) == ("none_found", "plain")
    assert "not proof" in Page(good._repr_html_()).text
    assert any("penalty" in but for but in view(separated()).buts)


def test_a_comparison_and_a_ladder_say_what_they_print():
    c, ladder = comparison(), assessment(3).details.ladder
    card = view(c)
    assert card.level == c.recommendation.statements[0].level
    assert set(card.sentences) <= set(c.recommendation.sentences)
    assert view(ladder).headline == ladder.statements()[0].text


def test_hostile_names_are_text():
    a = hostile()
    tests = mcllo.class_tests(a.predictions, seed=0, n_resamples=19)
    for result in (a, a.fit, tests, tests.table, a.details.baselines, a.details.ladder):
        page = Page(result._repr_html_())
        assert {tag for tag, _ in page.elements} <= ALLOWED
        assert "\u202e" not in page.text
    words = Page(tests._repr_html_()).text
    assert "<script>alert('1')</script>" in words  # as text
    assert '" id="x" : #ffffff &amp;' in words
    titles = [attributes.get("title") for _, attributes in Page(tests._repr_html_()).elements]
    assert HOSTILE[0] in titles  # the name that was cut


def test_long_tables_are_cut_and_say_so():
    table = Table({"class": [f"c{k}" for k in range(60)], "pvalue": [2e-9] * 60, "n": [None] * 60})
    page = Page(table._repr_html_())
    assert sum(tag == "tr" for tag, _ in page.elements) == 1 + MOST_ROWS
    assert f"and {60 - MOST_ROWS} more rows" in page.text
    assert "2 × 10⁻⁹" in page.text or "2.0 × 10⁻⁹" in page.text
    assert "more rows" not in Page(Table({"a": [1.0]})._repr_html_()).text


def test_marks_of_classes_that_are_off():
    tests = RESULTS["ClassTests"]()
    marked = [attributes for tag, attributes in Page(shown("ClassTests")).elements if tag == "td"]
    off = sum("off" in attributes["class"].split() for attributes in marked)
    assert off == len(tests.rejected()) + len(tests.rejected_in_the_large()) > 0


def test_what_has_no_card_of_its_own_is_printed():
    class Other:
        def __str__(self):
            return "a <b>\n  c"

    assert view(Other()) == Card("Other", text="a <b>\n  c")
    assert "<pre>a &lt;b&gt;\n  c</pre>" in render_card(view(Other()))


def test_cards_leave_pyplot_alone():
    import matplotlib.pyplot as plt

    assert "<svg" in mcllo.assess(predictions(3, 200), seed=0)._repr_html_()
    assert plt.get_fignums() == []
