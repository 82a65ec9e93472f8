"""`_report.tables`: estimates, nulls and shares as tables."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_data import calm, grouped, hostile, many, overconfident, separated

from mcllo._report.summarize import summarize
from mcllo._report.tables import (
    classes_lead,
    departure_sentences,
    null_lead,
    null_table,
    p_cell,
    parameters_table,
)
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


def column(table, title, nth=0):
    places = [j for j, head in enumerate(table.columns) if head.title == title]
    return [row[places[nth]] for row in table.rows]


def with_map(fit, tau, gamma):
    return replace(fit, tau=np.array(tau, dtype=float), gamma=np.array(gamma, dtype=float))


def test_the_identity_changes_nothing():
    table = parameters_table(with_map(calm().fit, [0, 0], [1, 1]))
    assert [cell.text for cell in column(table, "90 : 10 becomes")] == ["90 : 10", "90 : 10"]


def test_what_ninety_to_ten_becomes_by_hand():
    # gamma 1/2: odds 9 -> 3, 75 : 25. delta 3, gamma 1: odds 9 -> 27, 27/28 = 96.4 %.
    table = parameters_table(with_map(calm().fit, [0, math.log(3)], [0.5, 1.0]))
    shares = dict(zip([c.text for c in column(table, "Class")], table.rows, strict=True))
    assert shares["cat"][-1].text == "75 : 25"
    assert shares["dog"][-1].text == "96 : 4"


def test_extreme_maps_do_not_overflow_or_say_never():
    table = parameters_table(with_map(calm().fit, [600, -600], [1, 1]))
    assert sorted(c.text for c in column(table, "90 : 10 becomes")) == [
        "< 0.1 : > 99.9",
        "> 99.9 : < 0.1",
    ]


def test_marks_are_the_intervals_without_one():
    fit = overconfident().fit
    table, interval = parameters_table(fit), fit.confidence_interval()
    order = [fit.compared.index(cell.text) for cell in column(table, "Class")]
    for nth, ends in enumerate((interval.delta, interval.gamma)):
        marked = [cell.mark == "off" for cell in column(table, "95 % interval", nth)]
        assert marked == [bool(ends[j][1] < 1 or ends[j][0] > 1) for j in order]
    assert any(cell.mark for cell in column(table, "95 % interval", 1))


def test_the_largest_departure_comes_first():
    fit = many().fit
    z = np.fmax(np.abs(fit.tau / fit.se_tau), np.abs((fit.gamma - 1) / fit.se_gamma))
    table = parameters_table(fit)
    assert table.rows[0][0].text == fit.compared[int(np.argmax(z))]
    assert len(table.rows) == 99
    assert table.is_tall


def test_estimates_that_do_not_exist_are_not_shown():
    table = parameters_table(separated().fit)
    assert "none are shown" in table.caption
    assert [row[0].text for row in table.rows] == ["a", "b"]
    assert {cell.text for row in table.rows for cell in row[1:]} == {"-"}


def test_departures_name_class_baseline_and_what_is_wrong():
    first = departure_sentences(overconfident().fit)[0]
    assert (first.label.text, first.baseline.text) == ("dog", "truck")
    assert first.words.startswith("too extreme, gamma 0.")


def test_departures_keep_names_out_of_the_words():
    for sentence in departure_sentences(hostile().fit):
        assert "script" not in sentence.words
        assert "vs" not in sentence.words


def test_no_departures_where_estimates_do_not_exist():
    assert departure_sentences(separated().fit) == ()
    assert len(departure_sentences(many().fit)) <= 12


def test_lead_counts_what_is_wrong():
    lead = classes_lead(overconfident(), 0.05)
    assert lead.startswith("2 of 2 classes depart")
    assert "2 too extreme" in lead
    assert "no single class stands accused" in classes_lead(calm(), 0.05)
    assert "estimates do not exist" in classes_lead(separated(), 0.05)


def test_nulls_stand_beside_what_was_measured():
    a = overconfident()
    table = null_table(a)
    cells = {row[0].text: row for row in table.rows}
    null = a.nulls["ece"]
    assert cells["ECE, top label"][1].sort == a.metrics["ece"]
    assert cells["ECE, top label"][2].text == f"{null.low:.4f} to {null.high:.4f}"
    assert cells["ECE, top label"][3].text == "0.005"  # 1 / (199 + 1): no draw was as bad
    assert "Hosmer-Lemeshow statistic" in cells
    assert f"between {null.low:.4f} and {null.high:.4f}" in null_lead(a)


def test_without_nulls_it_says_why():
    a = replace(overconfident(), nulls={}, companions={})
    assert "was not simulated" in null_lead(a)
    assert null_table(a).rows[0][2].text == "-"


def test_dependent_rows_say_why_nothing_was_simulated():
    assert "assumes independent rows that each count once" in null_lead(grouped())


def test_p_cells():
    assert (p_cell(0.03).text, p_cell(0.03).sort) == ("0.03", 0.03)
    assert p_cell(1e-9, "bound").text == "≤ 10⁻⁹"
    assert p_cell(None).text == p_cell(math.nan).text == "-"


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
