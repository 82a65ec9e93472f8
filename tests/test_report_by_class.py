"""`_report.by_class`: shares and tests of single classes."""

import math
from dataclasses import replace

import pytest
from report_data import calm, compared, grouped, hostile, overconfident

from mcllo._details import Details
from mcllo._report.by_class import (
    class_names,
    classes_note,
    shares_table,
    standing_out,
    worst_classes,
)
from mcllo._report.summarize import assessment_of
from mcllo._table import Table


def titles(table):
    return [head.title for head in table.columns]


def column(table, title):
    return [row[titles(table).index(title)] for row in table.rows]


def with_tests(a, **columns):
    """Return the assessment with other numbers in its class tests."""
    details = Details(a.details.fitted, a.details.n_resamples, a.details.seed)
    tests = a.details.class_tests
    details.__dict__["class_tests"] = replace(tests, table=Table(tests.table.to_dict() | columns))
    return replace(a, details=details)


def test_shares_are_counts_and_per_cent():
    table = shares_table(overconfident())
    assert sum(cell.sort for cell in column(table, "Rows")) == 600
    assert sum(cell.sort for cell in column(table, "Observed share")) == pytest.approx(1.0)
    assert sum(cell.sort for cell in column(table, "Predicted share")) == pytest.approx(1.0)


def test_tests_stand_beside_the_shares():
    a = overconfident()
    tests, table = a.details.class_tests.table, shares_table(a)
    for title, name in (("Shift, slope: statistic", "statistic"), ("Shift, slope: p", "adjusted")):
        cells = column(table, title)
        for cell, value in zip(cells, tests[name], strict=True):
            assert cell.sort is None if math.isnan(value) else cell.sort == value
    assert column(table, "Shift, slope: statistic")[-1].text == "baseline"
    assert [c.sort for c in column(table, "Share: p")] == a.in_the_large["adjusted"]


def test_marks_follow_the_adjusted_p_values_and_the_level():
    a = with_tests(calm(), adjusted=[0.03, 0.2, math.nan])
    columns = a.in_the_large.to_dict() | {"adjusted": [0.5, 0.04, 0.06]}
    a = replace(a, in_the_large=Table(columns))
    for alpha, shift, share in (
        (0.05, ["off", "", ""], ["", "off", ""]),
        (0.01, [""] * 3, [""] * 3),
    ):
        table = shares_table(a, alpha)
        assert [cell.mark for cell in column(table, "Shift, slope: p")] == shift
        assert [cell.mark for cell in column(table, "Share: p")] == share


def test_no_minus_zero_in_z():
    a = overconfident()
    columns = a.in_the_large.to_dict() | {"z": [-0.01, 2.0, -3.0]}
    z = [cell.text for cell in column(shares_table(replace(a, in_the_large=Table(columns))), "z")]
    assert z == ["+0.0", "+2.0", "-3.0"]


def test_a_comparison_has_shares_but_no_tests_of_shift_and_slope():
    table = shares_table(assessment_of(compared()))
    assert titles(table)[-1] == "Share: p"


def test_dependent_rows_have_shares_only():
    table = shares_table(grouped())
    assert titles(table) == ["Class", "Rows", "Predicted share", "Observed share"]
    assert "no single class is tested" in table.caption
    assert class_names(grouped(), 0.05) == ()
    assert classes_note(grouped(), 0.05).startswith("Tests of single classes are left out: they")


def test_classes_are_named_worst_first_with_a_count_of_the_rest():
    tests = hostile().details.class_tests
    p = [0.04, 0.01, 0.001, 0.02, 0.03, 0.9, math.nan]
    tests = replace(tests, table=Table(tests.table.to_dict() | {"adjusted": p}))
    found = standing_out(tests, "adjusted", 0.05, "Off", 3)
    assert [words for _, words in found.names] == ["p = 0.001", "p = 0.01", "p = 0.02"]
    assert found.rest == "and 2 more"
    assert found.names[0][0].title == "x" * 200  # cut, and kept beside


def test_what_is_said_of_classes():
    lead = [found.lead for found in class_names(overconfident(), 0.05)]
    assert lead[0] == "Shift or slope off"
    none = {"adjusted": [0.9, 0.9, math.nan], "large_adjusted": [0.9] * 3}
    assert [f.lead for f in class_names(with_tests(overconfident(), **none), 0.05)] == [
        "No single class stands out, allowing for their number"
    ]
    one = with_tests(calm(), adjusted=[0.01, 0.9, math.nan], large_adjusted=[0.9] * 3)
    assert [f.lead for f in class_names(one, 0.05)] == [
        "The main test did not reject, so read these with doubt",
        "Shift or slope off",
    ]


def test_the_first_screen_names_classes_after_a_rejection_only():
    assert worst_classes(calm(), 0.05) is None
    assert worst_classes(grouped(), 0.05) is None
    assert len(worst_classes(overconfident(), 0.05).names) == 2
    none = with_tests(overconfident(), adjusted=[0.9, 0.9, math.nan])
    assert worst_classes(none, 0.05).names == ()


def test_the_note_says_level_and_method():
    note = classes_note(overconfident(), 0.01)
    assert "probability 1 % at most" in note
    assert "chi-square (" in note
    assert "'truck'" in note
