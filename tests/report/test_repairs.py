"""`_report.repairs`: the table and its marks, and what to do with the recommendation."""

from dataclasses import replace
from functools import cache

import pytest
from report_data import PETS, compared, predictions

import mcllo
from mcllo._report.repairs import (
    NAMES,
    comparison_table,
    repair_steps,
    repairs_of,
    short_name,
    title_of,
)
from mcllo.calibrators import CALIBRATORS


@cache
def helped():
    """Return a comparison whose recommended repair is shown to help."""
    return mcllo.compare(
        predictions(600, PETS, 2.0),
        predictions(2000, PETS, 2.0, seed=1),
        methods=("mcllo", "temperature", "histogram"),
        seed=0,
        n_resamples=99,
    )


def changed(c, **rows):
    """Return the comparison with values of some rows replaced: ``mcllo={"log_loss": 0.1}``."""
    new = tuple(replace(row, **rows.get(row.method, {})) for row in c.rows)
    return replace(c, rows=new)


def without_effect(c):
    """Return the comparison with repairs that change nothing."""
    return replace(c, recalibrated=dict.fromkeys(c.recalibrated, c.holdout))


def test_every_method_has_names():
    assert set(CALIBRATORS) <= set(NAMES)
    assert short_name("new_method") == title_of("new_method") == "new_method"


def test_the_recommendation_is_that_of_the_comparison():
    c = compared()
    assert repairs_of(c, 0.05).recommendation is c.recommendation


def test_what_is_not_shown_to_help_is_not_to_be_applied():
    found = repair_steps(without_effect(compared()))
    assert [step.code for step in found] == [""]
    assert found[0].text.startswith("Leave the predictions as they are")
    weak = compared()
    assert (weak.best, weak.recommendation.improves) == ("mcllo", False)
    assert [step.code for step in repair_steps(weak)] == [""]
    assert repair_steps(weak)[0].text.startswith("Apply no repair yet: the gain of ")
    assert repairs_of(weak, 0.05).after == ""


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"pvalue": 0.2, "pvalue_corrected": None}, "no miscalibration is found at level 0.05"),
        ({"pvalue": 0.01, "pvalue_corrected": 0.3}, "corrected for the noise of the fitted map"),
        ({"pvalue": 0.01, "pvalue_corrected": None}, "makes this p too small"),
        (
            {"pvalue": 0.01, "pvalue_corrected": 0.01},
            "Even after temperature scaling the test rejects",
        ),
        ({"pvalue": float("nan"), "pvalue_corrected": None}, "could not be tested"),
        (
            {"pvalue": 1e-9, "pvalue_corrected": 1e-8, "pvalue_method": "bound"},
            "rejects calibration (p ≤ 10⁻⁸, corrected",
        ),
    ],
)
def test_what_is_said_of_the_repaired_predictions(values, words):
    assert words in repairs_of(changed(helped(), temperature=values), 0.05).after


def test_after_a_repair_nothing_is_called_calibrated():
    c = changed(helped(), temperature={"pvalue_corrected": 0.9})
    assert "not proof of calibration" in repairs_of(c, 0.05).after


def test_steps_give_code_that_runs():
    import ast

    for step in repair_steps(helped()):
        ast.parse(step.code)
    assert "CALIBRATORS['temperature']" in repair_steps(helped())[0].code


def test_the_table_marks_the_best_and_ranks_by_log_loss():
    table = comparison_table(compared())
    names = [row[0].text for row in table.rows]
    assert names == ["MCLLO", "Temperature", "Histogram", "Uncalibrated", "Uncalibrated (train)"]
    for title, best in (("Log loss", "MCLLO"), ("ECE, top label", "Histogram")):
        j = [head.title for head in table.columns].index(title)
        assert [row[0].text for row in table.rows if row[j].mark == "best"] == [best]
    assert all(cell.mark == "" for cell in table.rows[-1])  # other rows than the judged ones


def test_the_table_marks_what_cannot_be_told_from_the_best():
    c = helped()
    cells = {row[0].text: row[2] for row in comparison_table(c).rows}
    ties = {name for name, cell in cells.items() if cell.mark == "tie"}
    assert ties == {short_name(method) for method in c.recommendation.ties}
    assert ties == {"MCLLO"}
    assert cells["Temperature"].text == "best"
    assert cells["Uncalibrated (train)"].text == "-"
    for other in c.recommendation.differences:
        assert cells[short_name(other.method)].text == other.cell
        assert cells[short_name(other.method)].sort == other.difference


def test_warnings_zero_labels_and_skipped_methods_are_told():
    c = replace(
        changed(compared(), mcllo={"note": "flat likelihood"}, histogram={"n_zero_labels": 4}),
        skipped={"vector": "needs logits, and there are none (pass logits=)"},
    )
    r = repairs_of(c, 0.05)
    assert [(w.key, w.value) for w in r.warnings] == [
        ("mcllo", "flat likelihood"),
        ("vector", "Needs logits, and there are none (pass logits=)."),
    ]
    assert any("Histogram 4" in note for note in r.notes)


def test_a_bound_is_shown_as_one():
    small = {"pvalue": 1e-30, "pvalue_corrected": 1e-20, "pvalue_method": "bound"}
    rows = comparison_table(changed(compared(), mcllo=small)).rows
    texts = [cell.text for cell in next(row for row in rows if row[0].text == "MCLLO")]
    assert {"≤ 10⁻³⁰", "≤ 10⁻²⁰"} <= set(texts)


def test_cross_validation_is_said():
    caption = comparison_table(replace(compared(), cross_validated=True)).caption
    assert "other folds" in caption
