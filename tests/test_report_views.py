"""`_report.views`: the words and cells a report is made of."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_data import overconfident

from mcllo._report.summarize import summarize
from mcllo._report.views import (
    NAME_WIDTH,
    Cell,
    Column,
    TableView,
    capital,
    format_weight,
    name_cell,
    percent,
    show_p,
)


def test_a_short_name_is_shown_as_it_is():
    assert name_cell("cat") == Cell("cat")
    assert name_cell(7) == Cell("7")


def test_a_long_name_is_cut_and_kept_beside():
    cell = name_cell("y" * 200)
    assert cell.text == "y" * (NAME_WIDTH - 1) + "…"
    assert cell.title == "y" * 200


def test_a_name_of_nothing_can_be_seen():
    assert name_cell("").text == "(empty)"
    assert name_cell(" \n ").text == "(empty)"


@pytest.mark.parametrize(
    ("pvalue", "method", "words"),
    [
        (0.0312, "chi2", "= 0.031"),
        (2.134e-5, "chi2", "= 2.1 × 10⁻⁵"),
        (2.6e-57, "bound", "≤ 2.6 × 10⁻⁵⁷"),
        (1e-20, "bound", "≤ 10⁻²⁰"),
        (0.0, "chi2", "< 10⁻³⁰⁰"),
        (float("nan"), "", "not available"),
    ],
)
def test_p_values_in_words(pvalue, method, words):
    assert show_p(pvalue, method) == words


def test_small_words():
    assert percent(0.12345) == "12.3 %"
    assert format_weight(1200.0) == "1,200"
    assert format_weight(1200.25) == "1,200.2"
    assert capital("not calibrated") == "Not calibrated"
    assert capital("") == ""


def test_only_long_tables_scroll_in_a_box():
    rows = ((Cell("1"),),) * 16
    assert not TableView("t", "", (Column("a"),), rows).is_tall
    assert TableView("t", "", (Column("a"),), rows + rows).is_tall


def plain_values(value):
    if isinstance(value, dict):
        return all(plain_values(v) for v in value.values())
    if isinstance(value, (list, tuple)):
        return all(plain_values(v) for v in value)
    return value is None or type(value) in (str, int, float, bool)


def test_a_summary_holds_strings_and_numbers_only():
    content = summarize(overconfident()).to_dict()
    assert plain_values(content)
    assert json.loads(json.dumps(content, allow_nan=False))["kind"] == "assessment"


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=300))
def test_any_name_becomes_one_short_line(text):
    cell = name_cell(text)
    assert 0 < len(cell.text) <= NAME_WIDTH
    assert len(cell.text.splitlines()) == 1
    assert cell.title in ("", text)
