"""`_report.by_class`: shares and tests of single classes."""

import math
from dataclasses import replace

import numpy as np
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
    separated,
    zeros,
)

import mcllo
from mcllo import Details
from mcllo._diagnosis.ladder import _evidence
from mcllo._diagnosis.ladder_models import MODELS
from mcllo._ground.text import Table
from mcllo._report.details import (
    EVIDENCE,
    baselines_part,
    class_names,
    classes_note,
    how_computed,
    kind_headline,
    ladder_part,
    posterior_part,
    robust_part,
    shares_table,
    standing_out,
    worst_classes,
    zeros_part,
)
from mcllo._report.summarize import assessment_of
from mcllo.plot._words import model_name


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


def with_part(a, name, part):
    """Return the assessment with another detail."""
    details = Details(a.details.fitted, a.details.n_resamples, a.details.seed)
    details.__dict__[name] = part
    return replace(a, details=details)


def texts(table):
    return [[cell.text for cell in row] for row in table.rows]


def test_the_baseline_line_has_the_p_value_over_all():
    found, part = calm().details.baselines, baselines_part(calm())
    assert part.lead.startswith("The test decision does not hang on the baseline: statistic ")
    assert f"Over all baselines together p = {found.pvalue:.2g} (exact, 199 sim" in part.lead
    assert [row[0] for row in texts(part.table)] == ["cat", "dog", "truck"]
    assert texts(part.table)[-1][3:] == ["reference", "-", "-"]
    assert [row[1].sort for row in part.table.rows] == found.table["statistic"]
    assert [row[3].sort for row in part.table.rows[:2]] == found.table["mean_change"][:2]


def test_a_p_value_at_the_floor_of_the_draws_says_so():
    assert "which can show no smaller one" in baselines_part(overconfident()).lead
    assert "no smaller one" not in baselines_part(calm()).lead


def test_fractional_weights_are_said():
    found = replace(calm().details.baselines, method="bonferroni")
    assert "fractional weights" in baselines_part(with_part(calm(), "baselines", found)).lead


def test_fits_that_do_not_exist_have_no_changes():
    found = calm().details.baselines
    columns = found.table.to_dict() | {"separated": [True, False, False]}
    part = baselines_part(with_part(calm(), "baselines", replace(found, table=Table(columns))))
    assert texts(part.table)[0][3:] == ["no estimate", "-", "-"]
    assert part.notes[0].startswith("For 1 of 3 baselines (cat) the estimate does not exist")


def test_without_a_repair_no_change_is_claimed():
    part = baselines_part(separated())
    assert "repaired probabilities" not in part.lead
    assert part.lead.startswith("The test decision does not hang on the baseline: statistic 2.57")
    assert "have no meaning" in part.notes[0]


def test_two_classes_and_too_many():
    two = mcllo.assess(predictions(300, ("a", "b")), seed=0, n_resamples=19)
    assert baselines_part(two).lead == "With two classes either baseline gives the same answer."
    assert baselines_part(grouped()).lead.startswith("Other baselines are left out: they assume")


def test_zeros_have_p_values_at_three_floors():
    part, found = zeros_part(zeros(), 0.05), zeros().details.zeros
    assert "with floors 1e-12, 1e-6, 1e-4" in part.lead
    assert [row[0].text for row in part.table.rows] == ["1e-12", "1e-6", "1e-4"]
    assert [row[2].sort for row in part.table.rows] == [test.pvalue for test in found.tests]
    assert part.notes[0].startswith("1 label had probability 0: the raw predictions are refuted")


def test_each_way_of_a_floor_has_words():
    found = zeros().details.zeros
    ways = tuple(replace(found.tests[0], method=m) for m in ("chi2", "bound", "exact"))
    part = zeros_part(with_part(zeros(), "zeros", replace(found, tests=ways)), 0.05)
    assert [row[3] for row in texts(part.table)][:2] == ["chi-square", "guaranteed bound"]
    assert texts(part.table)[2][3].endswith("simulated data sets")
    assert texts(part.table)[1][2].startswith("≤ ")


def test_no_zeros_no_question():
    assert zeros_part(calm(), 0.05).lead == "No probability was 0, so no floor was needed."
    p = replace(grouped().predictions, n_zeros=2)
    left = zeros_part(replace(grouped(), predictions=p), 0.05)
    assert left.lead.startswith("Other floors for zeros are left out: they assume")


def test_bayes_with_its_warning():
    part, found = posterior_part(calm()), calm().details.posterior
    assert "from even odds, if MCLLO is the only alternative (BIC, n = 600)" in part.lead
    assert part.notes == ()
    small = replace(found, posterior=2.5e-7)
    assert ": 2.5 × 10⁻⁷, from" in posterior_part(with_part(calm(), "posterior", small)).lead
    assert ": below 10⁻¹², from" in posterior_part(overconfident()).lead
    warned = replace(found, warning="BIC favours calibration (p = 2.5e-07).")
    notes = posterior_part(with_part(calm(), "posterior", warned)).notes
    assert notes == ("BIC favours calibration (p = 2.5 × 10⁻⁷).",)
    assert posterior_part(grouped()).lead.startswith("The posterior probability is left out: it")
    light = posterior_part(with_part(calm(), "posterior", None))
    assert "the weights do not count rows" in light.lead


def test_groups_have_a_part_and_independent_rows_do_not():
    assert robust_part(calm()) is None
    part, found = robust_part(grouped()), grouped().details.robust
    assert part.title == "Dependent rows"
    assert f"p = {found.pvalue:.2g}, from 199 random sign flips" in part.lead
    assert "120 groups" in part.lead
    assert part.notes[-1].startswith("Left out, because they assume independent rows")


def test_survey_weights_have_a_part():
    rows = predictions(200, PETS, 2.0)
    a = mcllo.assess(
        rows.probs,
        rows.codes,
        sample_weight=np.linspace(0.5, 3.0, 200),
        weight_kind="survey",
        seed=0,
        n_resamples=99,
    )
    part = robust_part(a)
    assert part.title == "Survey weights"
    assert "comes from the 200 rows" in part.lead
    assert "allow for the weights" in part.notes[0]


def test_limits_of_few_groups_are_said():
    found = replace(grouped().details.robust, method="f", reason="4 groups; so few can give none")
    a = grouped()
    d = a.details
    fitted = replace(d.fitted, robust=found)
    part = robust_part(replace(a, details=Details(fitted, d.n_resamples, d.seed)))
    assert "from the F distribution" in part.lead
    assert "So few can give none." in part.notes


def column_kinds(table, title):
    j = [head.title for head in table.columns].index(title)
    return [row[j] for row in table.rows]


def with_ladder(a, **changes):
    """Return the assessment with another ladder."""
    details = Details(a.details.fitted, a.details.n_resamples, a.details.seed)
    details.__dict__["ladder"] = replace(a.details.ladder, **changes)
    return replace(a, details=details)


def test_the_table_has_the_numbers_of_the_ladder():
    ladder = overconfident().details.ladder
    table = ladder_part(overconfident(), 0.05).table
    assert [cell.text for cell in column_kinds(table, "Model")] == [
        model_name(row.model) for row in ladder.rows
    ]
    assert [cell.sort for cell in column_kinds(table, "Gain")] == [
        row.statistic for row in ladder.rows
    ]
    assert [cell.sort for cell in column_kinds(table, "Parameters")] == [
        row.df for row in ladder.rows
    ]
    enough = column_kinds(table, "Enough? p")
    assert [cell.sort for cell in enough[:-1]] == [row.larger_pvalue for row in ladder.rows[:-1]]
    assert enough[-1].text == "-"


def test_marks_are_what_closed_testing_says():
    ladder = overconfident().details.ladder
    cells = column_kinds(ladder_part(overconfident(), 0.05).table, "Enough? p")
    for row, cell in zip(ladder.rows, cells, strict=True):
        expected = "best" if row.model == ladder.chosen else "off" if row.rejected else ""
        assert cell.mark == expected
    assert [cell.mark for cell in cells].count("best") == 1


def test_aic_and_bic_are_above_the_smallest_and_rounded():
    table = ladder_part(overconfident(), 0.05).table
    for name in ("AIC", "BIC"):
        values = [cell.sort for cell in column_kinds(table, name)]
        assert min(values) == 0.0
        assert [cell.text for cell in column_kinds(table, name)] == [f"{v:.1f}" for v in values]


def test_the_lead_is_the_ladders_sentence_with_printed_p_values():
    lead = ladder_part(with_ladder(calm(), sentence="Found (p = 2.5e-07)."), 0.05).lead
    assert lead == "Found (p = 2.5 × 10⁻⁷)."


def test_what_limits_the_ladder_is_said():
    assert ladder_part(calm(), 0.05).notes == ()
    a = with_ladder(calm(), skipped="the full map is left out: too much data")
    assert ladder_part(a, 0.01).notes == (
        "The full map is left out: too much data.",
        "The models are judged at level 0.05, not at 0.01.",
    )


def test_a_bound_is_shown_as_one():
    a = overconfident()
    first, *rest = a.details.ladder.rows
    first = replace(first, larger_pvalue=1e-20, larger_method="bound")
    cell = column_kinds(ladder_part(with_ladder(a, rows=(first, *rest)), 0.05).table, "Enough? p")[
        0
    ]
    assert (cell.text, cell.title) == ("≤ 10⁻²⁰", "guaranteed bound")


@pytest.mark.parametrize("model", MODELS)
def test_the_headline_is_the_kind_without_the_evidence(model):
    row = overconfident().details.ladder.rows[0]
    larger = None if model == "full" else "mcllo"
    row = replace(row, model=model, larger=larger, larger_pvalue=0.2)
    sentence = f"The kind of 'St. Bernard' (slope 0.5). {_evidence(row, 0.05)} And more."
    assert EVIDENCE.split(sentence)[0] == "The kind of 'St. Bernard' (slope 0.5)"
    a = with_ladder(overconfident(), sentence=sentence, chosen=model)
    expected = "" if model == "identity" else "The kind of 'St. Bernard' (slope 0.5)."
    assert kind_headline(a, 0.05) == expected


def test_no_headline_without_a_rejection_or_a_ladder():
    assert kind_headline(calm(), 0.05) == ""
    assert kind_headline(overconfident(), 1e-40) == ""
    assert kind_headline(grouped(), 0.05) == ""


def test_dependent_rows_have_no_ladder():
    part = ladder_part(grouped(), 0.05)
    assert part.table is None
    assert part.lead.startswith("The kinds of miscalibration are left out: they assume independ")


def test_a_hundred_classes_say_that_the_full_map_is_missing():
    assert any("full map is left out" in note for note in ladder_part(many(), 0.05).notes)


def test_how_computed():
    assert how_computed("bootstrap", "as asked") == "simulated from the fitted model, approximate"
    assert how_computed("new", "why") == "new (why)"


def test_every_number_can_be_sorted_by():
    for row in ladder_part(overconfident(), 0.05).table.rows:
        assert all(cell.sort is None or np.isfinite(cell.sort) for cell in row)
