"""What was measured: beside what the predictions promise, and what calibrated ones would show."""

from __future__ import annotations

import math

from .._assessment.assessment import Assessment
from .._ground.text import format_count, format_number
from .._inference.calibration_test import needs_robust
from .._inference.omnibus import NAMES
from .views import Cell, Column, Part, TableView, capital, percent, typeset


def null_lead(a: Assessment) -> str:
    """Return what calibrated predictions would show, in a sentence."""
    if "ece" not in a.nulls:
        why = "the weights are not whole numbers, or the table is too large"
        if needs_robust(a.predictions):
            why = "that assumes independent rows that each count once"
        return f"What calibrated predictions would show was not simulated: {why}."
    ece = a.nulls["ece"]
    return (
        "The expected calibration error (ECE) is the mean distance between predicted probability "
        "and observed frequency. It is never 0, not even for perfect predictions. With these "
        f"{format_count(a.predictions.n_samples)} rows, {100 * ece.level:.0f} % of calibrated data "
        f"sets show a top-label ECE between {ece.low:.4f} and {ece.high:.4f}; here it is "
        f"{ece.observed:.4f}."
    )


def nulls_part(a: Assessment) -> Part:
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
    table = TableView(
        "nulls",
        "What calibrated predictions of the same values would show. p: share of "
        "calibrated data sets that look at least as bad.",
        (Column("Measure", "name"), Column("Here"), Column("If calibrated"), Column("p")),
        tuple(rows),
    )
    return Part(null_lead(a), table)


def promised_table(a: Assessment) -> TableView:
    """Return accuracy, log loss and Brier score beside what the predictions promise."""
    rows = []
    for key, title, show in (
        ("accuracy", "Accuracy", percent),
        ("log_loss", "Log loss", "{:.4f}".format),
        ("brier", "Brier score", "{:.4f}".format),
    ):
        found = (Cell(show(of[key]), of[key]) for of in (a.metrics, a.promised))
        rows.append((Cell(title), *found))
    return TableView(
        "promised",
        "What was found, and what these predictions promise: the same on average if every "
        "probability were right. A promise is not what a repair would reach.",
        (Column("Measure", "name"), Column("Here"), Column("Promised")),
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
