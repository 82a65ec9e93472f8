"""What a notebook shows of results: short, safe, of one theme with the notebook, and true."""

import re
from functools import cache

import numpy as np
import pytest
from figure_checks import (
    HOSTILE,
    assessment,
    comparison,
    hostile,
    predictions,
    separated,
)
from report_data import calm, few
from test_render import Page

import mcllo
from mcllo._apps.report.cards import MAX_TABLE_ROWS, view
from mcllo._apps.report.html import render_card
from mcllo._apps.report.views import Card
from mcllo._utils.formatting import Table
from mcllo.simulate import power

ALLOWED = {
    *("div", "style", "p", "span", "strong", "code", "pre", "bdi"),
    *("table", "thead", "tbody", "tr", "th", "td"),
    *("svg", "g", "path", "defs", "use", "clippath", "rect", "text", "tspan"),
}
"""Elements that cards are made of; none of them runs or asks for anything."""


RESULTS = {
    "Assessment": lambda: assessment(3),
    "Comparison": comparison,
    "NestedModels": lambda: assessment(3).details.nested_models,
    "ClassTests": lambda: mcllo.class_tests(
        predictions(3, 200), seed=0, n_resamples=19
    ),
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
    "IsotonicCurve": lambda: mcllo.isotonic_curve(
        predictions(3, 200), seed=0, n_resamples=19
    ),
}
WITH_PICTURE = {"Assessment", "Comparison", "NestedModels", "MCLLOFit", "Subgroups"} | {
    "BaselineSensitivity",
    "PowerStudy",
}


def words(page):
    """Return the text of a card in one line."""
    return " ".join(page.elements[0]["text"].split())


@cache
def shown(name):
    return RESULTS[name]()._repr_html_()


def test_cards_are_small_and_ask_for_nothing():
    for name in RESULTS:
        page, text = Page(shown(name)), shown(name)
        assert len(text) < 45_000, name
        assert {element["tag"] for element in page.elements} <= ALLOWED, name
        assert page.elements[0]["data-mcllo"] == name
        assert len(page.all("svg")) == (name in WITH_PICTURE), name
        for element in page.elements:
            assert not [
                key for key in element if key.startswith("on") or key == "src"
            ], name
            assert element.get("xlink:href", "#").startswith("#"), name
        assert "url(http" not in text, name
        assert "@import" not in text, name


def rules(text):
    """Return the selectors that set the colour of the ink, with that colour."""
    style = re.search(r"<style>(.*?)</style>", text, flags=re.DOTALL)[1]
    return re.findall(r"([^{}]*)\{[^{}]*--ink: (#[0-9a-f]+)", style)


@pytest.mark.usefixtures("undrawn")
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
    text, summary = words(Page(shown("Assessment"))), mcllo.report(a).summary
    for said in (summary.lead, summary.verdict.headline, summary.verdict.size):
        assert said in text
    for fact in summary.facts:
        assert fact.value in text
    assert view(a).level == "bad"


def test_the_level_is_that_of_the_verdict():
    good = calm()
    assert (good.verdict.kind, view(good).level) == ("not_detected", "plain")
    assert (few().verdict.kind, view(few()).level) == ("inconclusive", "doubt")
    assert any("penalty" in but for but in view(separated()).buts)


def test_a_comparison_and_a_nested_models_say_what_they_print():
    c, nested_models = comparison(), assessment(3).details.nested_models
    card = view(c)
    assert card.level == c.recommendation.statements[0].level
    assert set(card.sentences) <= set(c.recommendation.sentences)
    assert view(nested_models).headline == nested_models.statements()[0].text


def test_hostile_names_are_text():
    a = hostile()
    tests = mcllo.class_tests(a.predictions, seed=0, n_resamples=19)
    for result in (tests, tests.table, a.details.baselines):
        page = Page(result._repr_html_())
        assert {element["tag"] for element in page.elements} <= ALLOWED
        assert "\u202e" not in words(page)
    page = Page(tests._repr_html_())
    assert "<script>alert('1')</script>" in words(page)  # as text
    assert '" id="x" : #ffffff &amp;' in words(page)
    titles = [element.get("title") for element in page.elements]
    assert HOSTILE[0] in titles  # the name that was cut


def test_long_tables_are_cut_and_say_so():
    table = Table(
        {"class": [f"c{k}" for k in range(60)], "pvalue": [2e-9] * 60, "n": [None] * 60}
    )
    page = Page(table._repr_html_())
    assert len(page.all("tr")) == 1 + MAX_TABLE_ROWS
    assert f"and {60 - MAX_TABLE_ROWS} more rows" in words(page)
    assert "2 × 10⁻⁹" in words(page) or "2.0 × 10⁻⁹" in words(page)
    assert "more rows" not in words(Page(Table({"a": [1.0]})._repr_html_()))


def test_marks_of_classes_that_are_off():
    tests = RESULTS["ClassTests"]()
    cells = Page(shown("ClassTests")).all("td")
    off = sum("off" in cell["class"].split() for cell in cells)
    assert off == len(tests.rejected()) + len(tests.rejected_in_the_large()) > 0


def test_what_has_no_card_of_its_own_is_printed():
    class Other:
        def __str__(self):
            return "a <b>\n  c"

    assert view(Other()) == Card("Other", text="a <b>\n  c")
    assert "<pre>a &lt;b&gt;\n  c</pre>" in render_card(view(Other()))
