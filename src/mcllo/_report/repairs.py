"""The comparison of repairs: the table with its best values, and which one to use.

The recommended repair has the smallest log loss on the judged rows. Another cannot be told from it
when the paired interval of their difference reaches 0.
"""

from __future__ import annotations

import math

from .._ground.text import format_count
from .._workflows.comparison import HIGHER_IS_BETTER, LOWER_IS_BETTER, Comparison, ComparisonRow
from .tables import p_cell
from .views import (
    Cell,
    Column,
    Fact,
    Recommendation,
    Repairs,
    Step,
    TableView,
    capital,
    percent,
    show_p,
)

NAMES = {
    "uncalibrated_train": ("Uncalibrated (train)", "the uncalibrated training rows"),
    "uncalibrated": ("Uncalibrated", "the uncalibrated predictions"),
    "mcllo": ("MCLLO", "MCLLO"),
    "auto": ("Auto", "the weighted mean of repairs (auto)"),
    "temperature": ("Temperature", "temperature scaling"),
    "vector": ("Vector", "vector scaling"),
    "matrix": ("Matrix", "matrix scaling"),
    "dirichlet": ("Dirichlet", "Dirichlet calibration"),
    "histogram": ("Histogram", "histogram binning"),
    "xu_davoine": ("Xu Davoine", "the evidential method of Xu and Davoine"),
    "isotonic": ("Isotonic", "isotonic regression"),
    "beta": ("Beta", "beta calibration"),
    "identity": ("Identity", "the identity"),
}
"""Each method as tables and figures name it, and as sentences do."""


def short_name(method: str) -> str:
    """Return a method's name in a table."""
    return NAMES[method][0] if method in NAMES else method


def title_of(method: str) -> str:
    """Return a method's name inside a sentence."""
    return NAMES[method][1] if method in NAMES else method


def repairs_of(c: Comparison, alpha: float) -> Repairs:
    """Return the comparison in words and as a table."""
    warned = [Fact(row.method, short_name(row.method), row.note) for row in c.rows if row.note]
    skipped = [
        Fact(name, f"{short_name(name)}: not run", capital(why) + ".")
        for name, why in c.skipped.items()
    ]
    return Repairs(recommend(c, alpha), comparison_table(c), _notes(c), (*warned, *skipped))


def recommend(c: Comparison, alpha: float) -> Recommendation:
    """Return the repair of smallest log loss, what it gains, and what cannot be told from it."""
    best, ties = c[c.best], ties_with_best(c)
    title = capital(title_of(best.method))
    if len(c.judged) == 1:
        return Recommendation(best.method, "No repair was compared.", (), ())
    sentences = [_loss_sentence(c, best)]
    if best.method == "uncalibrated":
        headline = "No repair beats leaving the predictions as they are."
    elif "uncalibrated" in ties:
        headline = f"{title} has the smallest log loss, but its gain may be chance."
    else:
        headline = f"Recommended: {title_of(best.method)}."
    if ties:
        sentences.append(_tie_sentence(c, ties))
    if best.method != "uncalibrated":
        sentences += [_after_sentence(best, alpha), _FLATTERED]
    return Recommendation(best.method, headline, tuple(sentences), ties)


_FLATTERED = "The winner was picked on the judged rows, which flatters its numbers a little."


def ties_with_best(c: Comparison) -> tuple[str, ...]:
    """Return the methods whose paired interval reaches 0: they cannot be told from the best."""
    rows = [row for row in c.judged if row.method != c.best]
    return tuple(row.method for row in rows if not row.difference_low > 0.0)


def _loss_sentence(c: Comparison, best: ComparisonRow) -> str:
    before = c["uncalibrated"]
    if best.method == "uncalibrated":
        return f"Log loss is smallest without any repair, {best.log_loss:.4f}."
    return (
        f"{capital(title_of(best.method))} has the smallest log loss on the "
        f"{format_count(best.n)} judged rows, {best.log_loss:.4f}; uncalibrated it is "
        f"{before.log_loss:.4f}. The gain is "
        f"{before.log_loss_difference:.4f} (95 % paired interval {before.difference_low:.4f} to "
        f"{before.difference_high:.4f})."
    )


def _tie_sentence(c: Comparison, ties: tuple[str, ...]) -> str:
    names = _listed([title_of(name) for name in ties])
    still = [title_of(name) for name in ties if c[name].label_change == 0.0]
    text = (
        f"On these rows it cannot be told from {names}: the paired interval of each difference in "
        "log loss reaches 0."
    )
    if still:
        text += (
            f" Of these, {_listed(still)} {'changes' if len(still) == 1 else 'change'} no label."
        )
    return text


def _after_sentence(best: ComparisonRow, alpha: float) -> str:
    if math.isnan(best.pvalue):
        return "Whether the repaired predictions are calibrated could not be tested."
    p = best.pvalue if best.pvalue_corrected is None else best.pvalue_corrected
    how = "" if best.pvalue_corrected is None else ", corrected for the noise of the fitted map"
    if p > alpha:
        return (
            f"After it, no miscalibration is found at level {alpha:g} (p {show_p(p)}{how}); "
            "that is not proof of calibration."
        )
    noise = " (a fitted map carries the noise of its rows, which makes this p too small)"
    return (
        f"Even after it the test rejects calibration (p {show_p(p)}{how})"
        f"{noise if best.pvalue_corrected is None else ''}: a repair improves, it need not perfect."
    )


def repair_steps(c: Comparison) -> tuple[Step, ...]:
    """Return what to do with the recommended repair."""
    if c.best == "uncalibrated":
        return (Step("Leave the predictions as they are, and ask again when there are new rows."),)
    return (
        Step(
            f"Fit {title_of(c.best)} on all rows whose labels you know, and apply it to new ones.",
            f"calibrator = mcllo.CALIBRATORS[{c.best!r}]().fit(probs, y)\n"
            "repaired = calibrator.predict_proba(new_probs)",
        ),
        Step(
            "Assess the repaired predictions on rows that took no part in this comparison.",
            "after = mcllo.assess(repaired, new_y)\nmcllo.report(after).write('after.html')",
        ),
    )


def comparison_table(c: Comparison) -> TableView:
    """Return one row for each repair, the best values marked."""
    how = (
        f"each row judged by maps fitted on the other folds of {format_count(c.train.n_samples)}"
        if c.cross_validated
        else f"fitted on {format_count(c.train.n_samples)} rows, judged on "
        f"{format_count(c.holdout.n_samples)} others"
    )
    return TableView(
        "repairs",
        f"Repairs compared: {how}. Smallest log loss first. "
        "Marked: best value of its column among the judged rows.",
        (
            Column("Repair", "name"),
            Column("Log loss", help="Smaller is better"),
            Column("Worse than best by", help="95 % paired bootstrap interval"),
            Column("ECE, top label", help="Smaller is better"),
            Column("ECE, class by class", help="Smaller is better"),
            Column("Brier score", help="Smaller is better"),
            Column("Accuracy", help="Larger is better"),
            Column("Labels changed"),
            Column("p", help="Are these numbers calibrated?"),
            Column("p, corrected", help="Is it the same map in both samples?"),
            Column("Fitting time"),
        ),
        tuple(_row(c, row) for row in _ranked(c)),
    )


def _ranked(c: Comparison) -> list[ComparisonRow]:
    judged = sorted(c.judged, key=lambda row: row.log_loss)
    return judged + [row for row in c.rows if row.method == "uncalibrated_train"]


def _row(c: Comparison, row: ComparisonRow) -> tuple[Cell, ...]:
    changed, seconds = row.label_change, row.fit_seconds
    return (
        Cell(short_name(row.method), title=title_of(row.method)),
        _value(c, row, "log_loss"),
        _difference(row),
        _value(c, row, "ece"),
        _value(c, row, "classwise_ece"),
        _value(c, row, "brier"),
        _value(c, row, "accuracy"),
        Cell("-") if changed is None else Cell(percent(changed), changed),
        p_cell(row.pvalue, row.pvalue_method),
        p_cell(row.pvalue_corrected),
        Cell("-") if seconds is None else Cell(_time(seconds), seconds),
    )


def _value(c: Comparison, row: ComparisonRow, name: str) -> Cell:
    value = getattr(row, name)
    text = f"{100 * value:.2f} %" if name == "accuracy" else f"{value:.4f}"
    best = row.method != "uncalibrated_train" and value == _best(c, name)
    return Cell(text, value, mark="best" if best else "", note="best" if best else "")


def _best(c: Comparison, name: str) -> float:
    assert name in LOWER_IS_BETTER + HIGHER_IS_BETTER
    values = [float(getattr(row, name)) for row in c.judged]
    return max(values) if name in HIGHER_IS_BETTER else min(values)


def _difference(row: ComparisonRow) -> Cell:
    if math.isnan(row.log_loss_difference):
        return Cell("-")
    if row.log_loss_difference == 0.0:
        return Cell("best", 0.0)
    text = f"{row.log_loss_difference:.4f} [{row.difference_low:.4f}, {row.difference_high:.4f}]"
    return Cell(text.replace("-0.0000", "0.0000"), row.log_loss_difference)


def _time(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms" if seconds < 1.0 else f"{seconds:.1f} s"


def _notes(c: Comparison) -> tuple[str, ...]:
    lines = [
        "p asks whether the repaired numbers are calibrated. A large p is not proof of "
        "calibration, and the largest is not the best."
    ]
    if any(row.pvalue_corrected is not None for row in c.rows):
        lines.append(
            "The corrected p asks whether the same map holds in both samples: a fitted map carries "
            "the noise of the rows it was fitted on, which makes the plain p too small."
        )
    zeros = [f"{short_name(row.method)} {row.n_zero_labels}" for row in c.rows if row.n_zero_labels]
    if zeros:
        lines.append(
            f"Labels that came true with probability 0 (raised to 1e-6 here): {', '.join(zeros)}."
        )
    return tuple(lines)


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
