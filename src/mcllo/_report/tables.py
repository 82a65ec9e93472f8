"""The tables of an assessment: estimates, and what calibration would show.

The column "90 : 10 becomes" says what an estimate does: where class and baseline are predicted
90 to 10, the odds 9 become ``delta 9^gamma``.
"""

from __future__ import annotations

import math

import numpy as np

from .._assessment.assessment import Assessment
from .._assessment.words import MOST_CLASSES, departure_sizes, departures
from .._fit.fit import MCLLOFit
from .._ground.text import ellipsis, format_count, format_interval, format_number
from .._inference.calibration_test import needs_robust
from .._inference.omnibus import NAMES
from .verdict import expected_metrics
from .views import Cell, Column, Sentence, TableView, capital, name_cell, percent, typeset

EXCLUDES = "interval excludes 1"


def departure_sentences(fit: MCLLOFit) -> tuple[Sentence, ...]:
    """Return a sentence for each class that departs, the largest first, at most `MOST_CLASSES`."""
    found = [said.numbers for said in departures(fit) if said.kind == "departure"]
    return tuple(
        Sentence(name_cell(f["class"]), name_cell(f["baseline"]), f["words"])
        for f in found[:MOST_CLASSES]
    )


def classes_lead(a: Assessment, alpha: float) -> str:
    """Return how many classes depart and in which way, or why none can be named."""
    fit, departing = a.fit, departures(a.fit)
    if fit.converged and not a.test.rejects(alpha):
        return (
            "The main test did not reject, so no single class stands accused; the intervals show "
            "how much room these rows leave."
        )
    if departing[0].kind == "departure.none":
        return departing[0].text
    found = len(departing)
    slope, shift = fit.confidence_interval().gamma, fit.confidence_interval().delta
    kinds = {
        "too extreme": (slope[:, 1] < 1.0) & (fit.gamma > 0.0),
        "too timid": slope[:, 0] > 1.0,
        "ranked the wrong way": (slope[:, 1] < 1.0) & (fit.gamma <= 0.0),
        "with shifted odds": (shift[:, 1] < 1.0) | (shift[:, 0] > 1.0),
    }
    counts = ", ".join(f"{int(which.sum())} {kind}" for kind, which in kinds.items() if which.any())
    rest = f" The {MOST_CLASSES} largest departures:" if found > MOST_CLASSES else ""
    return (
        f"{found} of {len(fit.compared)} classes {'departs' if found == 1 else 'depart'} from what "
        f"was predicted, measured against {ellipsis(fit.baseline)!r}: {counts}.{rest}"
    )


def parameters_table(fit: MCLLOFit) -> TableView:
    """Return delta and gamma of every class with intervals, the largest departure first."""
    interval = fit.confidence_interval()
    return TableView(
        "parameters",
        _parameters_caption(fit),
        (
            Column("Class", "name"),
            Column("δ (shift)", help="Above 1: more likely than predicted, at even odds"),
            Column("95 % interval"),
            Column("γ (slope)", help="Below 1: predictions too extreme; above 1: too timid"),
            Column("95 % interval"),
            Column("90 : 10 becomes", help="Class against baseline, after the repair"),
        ),
        tuple(
            _parameter_row(fit, int(j), interval.delta[j], interval.gamma[j])
            for j in np.argsort(-departure_sizes(fit), kind="stable")
        ),
    )


def _parameters_caption(fit: MCLLOFit) -> str:
    if not fit.converged:
        return "These rows do not determine the estimates, so none are shown."
    count = 2 * len(fit.compared)
    return (
        f"Log odds of each class against {ellipsis(fit.baseline)!r}, largest departure first. "
        f"δ = γ = 1 changes nothing. Marked: 95 % intervals without 1; of {count} intervals about "
        f"{format_number(0.05 * count, 2)} would be marked by chance alone."
    )


def _parameter_row(fit: MCLLOFit, j: int, delta: np.ndarray, gamma: np.ndarray) -> tuple[Cell, ...]:
    if not fit.converged:
        return (name_cell(fit.compared[j]), *[Cell("-")] * 5)
    return (
        name_cell(fit.compared[j]),
        number_cell(fit.delta[j]),
        _interval_cell(*delta),
        number_cell(fit.gamma[j]),
        _interval_cell(*gamma),
        _ninety(float(fit.tau[j] + fit.gamma[j] * math.log(9.0))),
    )


def _ninety(log_odds: float) -> Cell:
    if math.isnan(log_odds):
        return Cell("-")
    share = 100.0 / (1.0 + math.exp(-min(max(log_odds, -700.0), 700.0)))
    if not 0.05 < share < 99.95:
        return Cell("> 99.9 : < 0.1" if share > 50.0 else "< 0.1 : > 99.9", share)
    digits = 0 if 0.95 < share < 99.05 else 1
    return Cell(f"{share:.{digits}f} : {100.0 - share:.{digits}f}", share)


def _interval_cell(low: float, high: float) -> Cell:
    off = bool(high < 1.0 or low > 1.0)
    return Cell(
        format_interval(low, high),
        or_none(float(low)),
        mark="off" if off else "",
        note=EXCLUDES if off else "",
    )


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
    return TableView(
        "nulls",
        "Measured, and what calibrated predictions of the same values would show. p: share of "
        "simulated calibrated data sets that look at least as bad.",
        (Column("Measure", "name"), Column("Here"), Column("If calibrated"), Column("p")),
        (*_ece_rows(a), *_omnibus_rows(a), *_score_rows(a)),
    )


def _ece_rows(a: Assessment) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for key, title in (("ece", "ECE, top label"), ("classwise_ece", "ECE, class by class")):
        null, value = a.nulls.get(key), a.metrics[key]
        span, p = Cell("-"), Cell("-")
        if null is not None:
            span = Cell(f"{null.low:.4f} to {null.high:.4f}", null.low)
            p = p_cell(null.pvalue)
        rows.append((Cell(title), Cell(f"{value:.4f}", value), span, p))
    return rows


def _omnibus_rows(a: Assessment) -> list[tuple[Cell, ...]]:
    return [
        (
            Cell(f"{capital(NAMES[kind])} statistic"),
            number_cell(test.statistic),
            Cell(f"about {format_number(test.expected)}", test.expected),
            p_cell(test.pvalue),
        )
        for kind, test in a.companions.items()
    ]


def _score_rows(a: Assessment) -> list[tuple[Cell, ...]]:
    m, expected = a.metrics, expected_metrics(a.predictions)
    rows = [
        ("Accuracy", percent(m["accuracy"]), percent(expected["accuracy"])),
        ("Log loss", f"{m['log_loss']:.4f}", f"{expected['log_loss']:.4f}"),
        ("Brier score", f"{m['brier']:.4f}", f"{expected['brier']:.4f}"),
    ]
    return [
        (Cell(name), Cell(here), Cell(f"about {there}"), Cell("-")) for name, here, there in rows
    ]


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
