"""`_report.repairs`: which repair, and what cannot be told from it."""

from dataclasses import replace

import pytest
from report_data import compared

from mcllo._report.repairs import (
    NAMES,
    comparison_table,
    recommend,
    repair_steps,
    repairs_of,
    short_name,
    ties_with_best,
    title_of,
)
from mcllo.calibrators import CALIBRATORS


def changed(c, **rows):
    """Return the comparison with values of some rows replaced: ``mcllo={"log_loss": 0.1}``."""
    new = tuple(replace(row, **rows.get(row.method, {})) for row in c.rows)
    return replace(c, rows=new)


def only(c, *methods):
    return replace(c, rows=tuple(row for row in c.rows if row.method in methods))


def test_every_method_has_names():
    assert set(CALIBRATORS) <= set(NAMES)
    assert short_name("new_method") == title_of("new_method") == "new_method"


def test_the_recommended_repair_has_the_smallest_log_loss():
    c = compared()
    r = recommend(c, 0.05)
    assert r.best == "mcllo"
    assert r.headline == "Recommended: MCLLO."
    # 0.8414 - 0.7853 = 0.0561: the table of the comparison, printed
    assert "0.7853; uncalibrated it is 0.8414. The gain is 0.0561" in r.sentences[0]


def test_ties_are_those_whose_interval_reaches_zero():
    c = compared()
    assert ties_with_best(c) == ("temperature", "histogram")
    sharper = changed(c, histogram={"difference_low": 0.001})
    assert ties_with_best(sharper) == ("temperature",)
    sentence = recommend(sharper, 0.05).sentences[1]
    assert "cannot be told from temperature scaling" in sentence
    assert "temperature scaling changes no label" in sentence


def test_a_gain_within_chance_is_not_recommended():
    c = changed(compared(), uncalibrated={"difference_low": -0.001})
    assert (
        recommend(c, 0.05).headline
        == "MCLLO has the smallest log loss, but its gain may be chance."
    )


def test_leaving_things_alone_can_win():
    c = changed(compared(), uncalibrated={"log_loss": 0.5})
    r = recommend(c, 0.05)
    assert r.headline == "No repair beats leaving the predictions as they are."
    assert "Leave the predictions" in repair_steps(c)[0].text


def test_nothing_compared():
    r = recommend(only(compared(), "uncalibrated"), 0.05)
    assert r.headline == "No repair was compared."


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"pvalue": 0.2, "pvalue_corrected": None}, "no miscalibration is found at level 0.05"),
        ({"pvalue": 0.01, "pvalue_corrected": 0.3}, "corrected for the noise of the fitted map"),
        ({"pvalue": 0.01, "pvalue_corrected": None}, "makes this p too small"),
        ({"pvalue": 0.01, "pvalue_corrected": 0.01}, "Even after it the test rejects"),
        ({"pvalue": float("nan"), "pvalue_corrected": None}, "could not be tested"),
    ],
)
def test_what_is_said_of_the_repaired_predictions(values, words):
    assert words in " ".join(recommend(changed(compared(), mcllo=values), 0.05).sentences)


def test_after_a_repair_nothing_is_called_calibrated():
    c = changed(compared(), mcllo={"pvalue_corrected": 0.9})
    text = " ".join(recommend(c, 0.05).sentences)
    assert "not proof of calibration" in text


def test_steps_give_code_that_runs():
    import ast

    for step in repair_steps(compared()):
        ast.parse(step.code)
    assert "CALIBRATORS['mcllo']" in repair_steps(compared())[0].code


def test_the_table_marks_the_best_and_ranks_by_log_loss():
    table = comparison_table(compared())
    names = [row[0].text for row in table.rows]
    assert names == ["MCLLO", "Temperature", "Histogram", "Uncalibrated", "Uncalibrated (train)"]
    for title, best in (("Log loss", "MCLLO"), ("ECE, top label", "Histogram")):
        j = [head.title for head in table.columns].index(title)
        assert [row[0].text for row in table.rows if row[j].mark == "best"] == [best]
    assert all(cell.mark == "" for cell in table.rows[-1])  # other rows than the judged ones


def test_no_minus_zero():
    c = changed(compared(), temperature={"difference_low": -0.00001})
    cells = [row[2].text for row in comparison_table(c).rows]
    assert not any("-0.0000" in text for text in cells)


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
    c = changed(compared(), uncalibrated={"pvalue": 1e-30, "pvalue_method": "bound"})
    row = next(row for row in comparison_table(c).rows if row[0].text == "Uncalibrated")
    assert any(cell.text == "≤ 10⁻³⁰" for cell in row)


def test_cross_validation_is_said():
    caption = comparison_table(replace(compared(), cross_validated=True)).caption
    assert "other folds" in caption
