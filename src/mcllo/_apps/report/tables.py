"""What was measured, what is expected under calibration, and what calibrated rows would show."""

from __future__ import annotations

import math

from ..._assessment.assessment import Assessment
from ..._inference.calibration_test import needs_robust_covariance
from ..._inference.omnibus import TEST_NAMES
from ..._utils.formatting import format_count, format_number
from .views import Column, Part, TableCell, TableView, capital, percent, typeset


def null_lead(a: Assessment) -> str:
    """Return what calibrated predictions would show, in a sentence."""
    if "ece" not in a.null_distributions:
        why = "the weights are not whole numbers, or the table is too large"
        if needs_robust_covariance(a.predictions):
            why = "that assumes independent rows that each count once"
        return f"What calibrated predictions would show was not simulated: {why}."
    ece = a.null_distributions["ece"]
    return (
        "The expected calibration error (ECE) is the mean distance between predicted probability "
        "and observed frequency. It is never 0, not even for perfect predictions. With these "
        f"{format_count(a.predictions.n_samples)} rows, {100 * ece.level:.0f} % of calibrated data "
        f"sets show a top-label ECE between {ece.low:.4f} and {ece.high:.4f}; here it is "
        f"{ece.observed:.4f}."
    )


def null_distributions_part(a: Assessment) -> Part:
    """Return each measure beside what calibrated predictions like these would show."""
    rows = []
    for key, title in (
        ("ece", "ECE, top label"),
        ("classwise_ece", "ECE, class by class"),
    ):
        value = a.metrics[key]
        null = a.null_distributions.get(key)
        span = TableCell("-")
        p = TableCell("-")
        if null is not None:
            span = TableCell(f"{null.low:.4f} to {null.high:.4f}", null.low)
            p = p_cell(null.pvalue)
        rows.append((TableCell(title), TableCell(f"{value:.4f}", value), span, p))
    for kind, test in a.omnibus_tests.items():
        name = TableCell(f"{capital(TEST_NAMES[kind])} statistic ({test.how})")
        statistic = TableCell(test.statistic_text, or_none(test.statistic))
        span = TableCell(test.null_text, or_none(test.high))
        rows.append((name, statistic, span, p_cell(test.pvalue)))
    table = TableView(
        "null_distributions",
        "What calibrated predictions of the same values would show. p: share of "
        "calibrated data sets that look at least as bad.",
        (
            Column("Measure", "name"),
            Column("Here"),
            Column("If calibrated"),
            Column("p"),
        ),
        tuple(rows),
    )
    return Part(null_lead(a), table)


def expected_table(a: Assessment) -> TableView:
    """Return accuracy, log loss and Brier score beside what is expected under calibration."""
    rows = []
    for key, title, show in (
        ("accuracy", "Accuracy", percent),
        ("log_loss", "Log loss", "{:.4f}".format),
        ("brier", "Brier score", "{:.4f}".format),
    ):
        found = TableCell(show(a.metrics[key]), a.metrics[key])
        expected = TableCell(show(a.expected[key]), a.expected[key])
        rows.append((TableCell(title), found, expected))
    return TableView(
        "expected",
        "What was found, and what is expected under calibration: the same on average if every "
        "probability were right. It is not what a recalibration would reach.",
        (Column("Measure", "name"), Column("Here"), Column("Expected")),
        tuple(rows),
    )


def p_cell(pvalue: float | None, method: str = "") -> TableCell:
    """Return a p-value as a cell."""
    if pvalue is None or math.isnan(pvalue):
        return TableCell("-")
    return TableCell(typeset(pvalue, bound=method == "bound").without_equals, pvalue)


def number_cell(value: float) -> TableCell:
    """Return a number as a cell."""
    return TableCell(format_number(float(value)), or_none(float(value)))


def or_none(value: float) -> float | None:
    """Return what a table can be sorted by; None for what is no number."""
    return value if math.isfinite(value) else None
