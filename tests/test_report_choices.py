"""`_report.choices`: baselines, zeros, Bayes and dependent rows in words."""

from dataclasses import replace

import numpy as np
from report_data import PETS, calm, grouped, overconfident, predictions, separated, zeros

import mcllo
from mcllo._details import Details
from mcllo._report.choices import baselines_part, posterior_part, robust_part, zeros_part
from mcllo._table import Table


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
