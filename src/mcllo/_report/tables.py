"""The tables of an assessment: estimates, and what calibration would show.

The column "90 : 10 becomes" says what an estimate does: where class and baseline are predicted
90 to 10, the odds 9 become ``delta 9^gamma``.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from .._assessment.assessment import Assessment
from .._assessment.words import departure_sizes
from .._fit.fit import MCLLOFit
from .._ground.text import ellipsis, format_count, format_interval, format_number
from .._inference.calibration_test import needs_robust
from .._inference.omnibus import NAMES
from .views import Cell, Column, TableView, capital, name_cell, percent, typeset


def parameters_table(fit: MCLLOFit) -> TableView:
    """Return delta and gamma of every class with intervals, the largest departure first."""
    interval, count, rows = fit.confidence_interval(), 2 * len(fit.compared), []
    caption = (
        f"Log odds of each class against {ellipsis(fit.baseline)!r}, largest departure first. "
        f"δ = γ = 1 changes nothing. Marked: 95 % intervals without 1; of {count} intervals about "
        f"{format_number(0.05 * count, 2)} would be marked by chance alone."
    )
    if not fit.converged:
        caption = "These rows do not determine the estimates, so none are shown."
    for j in np.argsort(-departure_sizes(fit), kind="stable"):
        cells = [Cell("-")] * 5
        if fit.converged:
            cells = [
                number_cell(fit.delta[j]),
                _interval_cell(*interval.delta[j]),
                number_cell(fit.gamma[j]),
                _interval_cell(*interval.gamma[j]),
                _ninety(float(fit.tau[j] + fit.gamma[j] * math.log(9.0))),
            ]
        rows.append((name_cell(fit.compared[j]), *cells))
    return TableView(
        "parameters",
        caption,
        (
            Column("Class", "name"),
            Column("δ (shift)", help="Above 1: more likely than predicted, at even odds"),
            Column("95 % interval"),
            Column("γ (slope)", help="Below 1: predictions too extreme; above 1: too timid"),
            Column("95 % interval"),
            Column("90 : 10 becomes", help="Class against baseline, after the repair"),
        ),
        tuple(rows),
    )


def _ninety(log_odds: float) -> Cell:
    """Return 90 to 10 after the repair, in words that never say never."""
    if math.isnan(log_odds):
        return Cell("-")
    share = 100.0 / (1.0 + math.exp(-min(max(log_odds, -700.0), 700.0)))
    if not 0.05 < share < 99.95:
        return Cell("> 99.9 : < 0.1" if share > 50.0 else "< 0.1 : > 99.9", share)
    digits = 0 if 0.95 < share < 99.05 else 1
    return Cell(f"{share:.{digits}f} : {100.0 - share:.{digits}f}", share)


def _interval_cell(low: float, high: float) -> Cell:
    cell = Cell(format_interval(low, high), or_none(float(low)))
    off = high < 1.0 or low > 1.0
    return replace(cell, mark="off", note="interval excludes 1") if off else cell


def null_lead(a: Assessment) -> str:
    """Return what calibrated predictions would show, in a sentence."""
    if "ece" not in a.nulls:
        why = "the weights are not whole numbers, or the table is too large"
        if needs_robust(a.predictions):
            why = "that assumes independent rows that each count once"
        return f"What calibrated predictions would show was not simulated: {why}."
    ece = a.nulls["ece"]
    return (
        f"An ECE is never 0, not even for perfect predictions. With these "
        f"{format_count(a.predictions.n_samples)} rows, {100 * ece.level:.0f} % of calibrated data "
        f"sets show a top-label ECE between {ece.low:.4f} and {ece.high:.4f}; here it is "
        f"{ece.observed:.4f}."
    )


def null_table(a: Assessment) -> TableView:
    """Return each measure beside what calibrated predictions like these would show."""
    m, rows = a.metrics, []
    for key, title in (("ece", "ECE, top label"), ("classwise_ece", "ECE, class by class")):
        null, span, p = a.nulls.get(key), Cell("-"), Cell("-")
        if null is not None:
            span = Cell(f"{null.low:.4f} to {null.high:.4f}", null.low)
            p = p_cell(null.pvalue)
        rows.append((Cell(title), Cell(f"{m[key]:.4f}", m[key]), span, p))
    for kind, test in a.companions.items():
        name = Cell(f"{capital(NAMES[kind])} statistic ({test.how})")
        value = Cell(test.statistic_text, or_none(test.statistic))
        rows.append((name, value, Cell(test.null_text, or_none(test.high)), p_cell(test.pvalue)))
    for key, title, show in (
        ("accuracy", "Accuracy", percent),
        ("log_loss", "Log loss", "{:.4f}".format),
        ("brier", "Brier score", "{:.4f}".format),
    ):
        about = Cell(f"about {show(a.promised[key])}")
        rows.append((Cell(title), Cell(show(m[key])), about, Cell("-")))
    return TableView(
        "nulls",
        "Measured, and what calibrated predictions of the same values would show. p: share of "
        "calibrated data sets that look at least as bad.",
        (Column("Measure", "name"), Column("Here"), Column("If calibrated"), Column("p")),
        tuple(rows),
    )


def p_cell(pvalue: float | None, method: str = "") -> Cell:
    """Return a p-value as a cell."""
    if pvalue is None or math.isnan(pvalue):
        return Cell("-")
    return Cell(typeset(pvalue, bound=method == "bound").bare, pvalue)


def number_cell(value: float) -> Cell:
    """Return a number as a cell."""
    return Cell(format_number(float(value)), or_none(float(value)))


def or_none(value: float) -> float | None:
    """Return what a table can be sorted by; None for what is no number."""
    return value if math.isfinite(value) else None
