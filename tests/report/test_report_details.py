"""`_report.details`: what lies behind the verdict, in words and tables."""

import math
from dataclasses import replace

import numpy as np
import pytest
from approval import check_text, sections
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
from mcllo._ground.text import Table
from mcllo._inference.pvalue import Ground, Reason
from mcllo._report.details import (
    baselines_part,
    class_names,
    classes_note,
    how_computed,
    kind_headline,
    ladder_part,
    posterior_part,
    robust_part,
    shares_table,
    worst_classes,
    zeros_part,
)
from mcllo._report.summarize import assessment_of
from mcllo._report.views import Names, Part
from mcllo.plot._words import model_name


def titles(table):
    return [head.title for head in table.columns]


def column(table, title):
    return [row[titles(table).index(title)] for row in table.rows]


def with_part(a, name, part):
    """Return the assessment with another detail."""
    details = Details(a.details.fitted, a.details.n_resamples, a.details.seed)
    details.__dict__[name] = part
    return replace(a, details=details)


def with_tests(a, **columns):
    """Return the assessment with other numbers in its class tests."""
    tests = a.details.class_tests
    changed = replace(tests, table=Table(tests.table.to_dict() | columns))
    return with_part(a, "class_tests", changed)


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


def test_the_first_screen_names_classes_after_a_rejection_only():
    assert worst_classes(calm(), 0.05) is None
    assert worst_classes(grouped(), 0.05) is None
    assert len(worst_classes(overconfident(), 0.05).names) == 2
    none = with_tests(overconfident(), adjusted=[0.9, 0.9, math.nan])
    assert worst_classes(none, 0.05).names == ()


def texts(table):
    return [[cell.text for cell in row] for row in table.rows]


def test_baselines_have_the_numbers_of_the_details():
    found, part = calm().details.baselines, baselines_part(calm())
    assert [row[1].sort for row in part.table.rows] == found.table["statistic"]
    assert [row[3].sort for row in part.table.rows[:2]] == found.table["mean_change"][:2]


def test_zeros_have_p_values_at_three_floors():
    part, found = zeros_part(zeros(), 0.05), zeros().details.zeros
    assert [row[2].sort for row in part.table.rows] == [test.pvalue for test in found.tests]


def test_the_table_has_the_numbers_of_the_ladder():
    ladder = overconfident().details.ladder
    table = ladder_part(overconfident(), 0.05).table
    assert [cell.text for cell in column(table, "Model")] == [
        model_name(row.model) for row in ladder.rows
    ]
    assert [cell.sort for cell in column(table, "Gain")] == [row.statistic for row in ladder.rows]
    assert [cell.sort for cell in column(table, "Parameters")] == [row.df for row in ladder.rows]
    enough = column(table, "Enough? p")
    assert [cell.sort for cell in enough[:-1]] == [row.larger_pvalue for row in ladder.rows[:-1]]
    assert enough[-1].text == "-"


def test_marks_are_what_closed_testing_says():
    ladder = overconfident().details.ladder
    cells = column(ladder_part(overconfident(), 0.05).table, "Enough? p")
    for row, cell in zip(ladder.rows, cells, strict=True):
        expected = "best" if row.model == ladder.chosen else "off" if row.rejected else ""
        assert cell.mark == expected
    assert [cell.mark for cell in cells].count("best") == 1


def test_aic_and_bic_are_above_the_smallest_and_rounded():
    table = ladder_part(overconfident(), 0.05).table
    for name in ("AIC", "BIC"):
        values = [cell.sort for cell in column(table, name)]
        assert min(values) == 0.0
        assert [cell.text for cell in column(table, name)] == [f"{v:.1f}" for v in values]


def ladder(**changes):
    return ladder_part(with_part(calm(), "ladder", replace(calm().details.ladder, **changes)), 0.01)


def bounded():
    first, second, *rest = calm().details.ladder.rows
    second = replace(second, larger_pvalue=1e-20, larger_method="bound", rejected=True)
    return ladder(rows=(first, second, *rest))


def baselines(column=None, **changes):
    found = calm().details.baselines
    table = Table(found.table.to_dict() | (column or {}))
    return baselines_part(with_part(calm(), "baselines", replace(found, table=table, **changes)))


def floors():
    found = zeros().details.zeros
    ways = tuple(
        replace(found.tests[0], method=m, n_resamples=99) for m in ("chi2", "bound", "exact")
    )
    return zeros_part(with_part(zeros(), "zeros", replace(found, tests=ways)), 0.05)


def posterior(**changes):
    found = replace(calm().details.posterior, **changes) if changes else None
    return posterior_part(with_part(calm(), "posterior", found))


def survey():
    rows = predictions(200, PETS, 2.0)
    options = {"sample_weight": np.linspace(0.5, 3.0, 200), "weight_kind": "survey"}
    return mcllo.assess(rows.probs, rows.codes, **options, seed=0, n_resamples=99)


def few_groups():
    a, d = grouped(), grouped().details
    robust = replace(d.robust, method="f", limits=("so few can give no p-value below 0.1",))
    fitted = replace(d.fitted, robust=robust)
    return robust_part(replace(a, details=Details(fitted, d.n_resamples, d.seed)))


def classes(a, **columns):
    a = with_tests(a, **columns) if columns else a
    return (worst_classes(a, 0.05), *class_names(a, 0.05))


NONE = {"adjusted": [0.9, 0.9, math.nan], "large_adjusted": [0.9] * 3}
SAID = {
    "kind, groups": lambda: ladder_part(grouped(), 0.05),
    "kind, judged at another level": lambda: ladder(skipped="the full map is left out: too large"),
    "kind, a bound": bounded,
    "headlines": lambda: [
        kind_headline(a.statements(alpha))
        for a, alpha in ((overconfident(), 0.05), (overconfident(), 1e-40), (grouped(), 0.05))
    ],
    "classes, rejected": lambda: classes(overconfident()),
    "classes, none stands out": lambda: classes(overconfident(), **NONE),
    "classes, not rejected": lambda: classes(calm(), **NONE | {"adjusted": [0.01, 0.9, math.nan]}),
    "classes, cut": lambda: classes(
        hostile(),
        adjusted=[0.04, 0.01, 0.001, 0.02, 0.03, 0.9, math.nan],
        method=["chi2", "chi2", "bound", *["chi2"] * 4],
        large_adjusted=[0.9] * 7,
    ),
    "classes, how": lambda: classes_note(overconfident(), 0.01),
    "classes, groups": lambda: classes_note(grouped(), 0.05),
    "baselines": lambda: baselines(),
    "baselines, no smaller p-value": lambda: baselines_part(overconfident()),
    "baselines, fractional weights": lambda: baselines(method="bonferroni"),
    "baselines, one without a fit": lambda: baselines({"separated": [True, False, False]}),
    "baselines, none with a fit": lambda: baselines_part(separated()),
    "baselines, groups": lambda: baselines_part(grouped()),
    "baselines, two classes": lambda: baselines_part(
        mcllo.assess(predictions(300, ("a", "b")), seed=0, n_resamples=19)
    ),
    "zeros": lambda: zeros_part(zeros(), 0.05),
    "zeros, each way": floors,
    "zeros, none": lambda: zeros_part(calm(), 0.05),
    "zeros, groups": lambda: zeros_part(
        replace(grouped(), predictions=replace(grouped().predictions, n_zeros=2)), 0.05
    ),
    "Bayes": lambda: posterior_part(calm()),
    "Bayes, small": lambda: posterior(posterior=2.5e-7),
    "Bayes, tiny": lambda: posterior_part(overconfident()),
    "Bayes against the test": lambda: posterior(posterior=0.9, pvalue=2.5e-7),
    "Bayes, groups": lambda: posterior_part(grouped()),
    "Bayes, weights that count nothing": lambda: posterior(),
    "groups": lambda: robust_part(grouped()),
    "groups, few": few_groups,
    "survey weights": lambda: robust_part(survey()),
    "independent rows": lambda: robust_part(calm()),
}


def shown(said):
    """Return what a page would say, a line for each piece."""
    if isinstance(said, (list, tuple)):
        return "\n".join(map(shown, said))
    if isinstance(said, Names):
        names = "; ".join(f"{cell.text} ({words})" for cell, words in said.names)
        return " ".join(filter(None, (f"{said.lead}:", names, said.rest)))
    if not isinstance(said, Part):
        return str(said)
    rows = texts(said.table) if said.table else []
    lines = [said.title, said.lead, *(f"- {note}" for note in said.notes), *map(" | ".join, rows)]
    return "\n".join(filter(None, lines))


def test_words_of_the_details(approve):
    check_text("details.txt", sections({k: shown(make()) for k, make in SAID.items()}), approve)


def test_a_hundred_classes_say_that_the_full_map_is_missing():
    assert any("full map is left out" in note for note in ladder_part(many(), 0.05).notes)


def test_how_computed():
    asked, enough = Reason(Ground.ASKED), Reason(Ground.ENOUGH, errors=120.0)
    assert how_computed("bootstrap", asked) == "simulated from the fitted model, approximate"
    assert how_computed("chi2", enough) == "chi-square (120 expected errors per parameter)"
    assert how_computed("new", None) == "new"


def test_every_number_can_be_sorted_by():
    for row in ladder_part(overconfident(), 0.05).table.rows:
        assert all(cell.sort is None or np.isfinite(cell.sort) for cell in row)
