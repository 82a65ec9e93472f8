"""The comparison of recalibrations: the table with its marks, and the recommendation in plain
words.

Which recalibration to use, what cannot be told from it and every interval are those of
`Comparison.recommendation`; nothing is decided here.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ..._assessment.verdict import Verdict
from ..._comparison.comparison import Comparison, ComparisonRow
from ..._comparison.recommend import UNCALIBRATED
from ..._utils.formatting import format_count, join_words
from .tables import p_cell
from .views import (
    Column,
    Fact,
    Recalibrations,
    TableCell,
    TableView,
    capital,
    percent,
    show_p,
)

NAMES = {
    "uncalibrated_train": ("Uncalibrated (train)", "the uncalibrated training rows"),
    "uncalibrated": ("Uncalibrated", "the uncalibrated predictions"),
    "mcllo": ("MCLLO", "MCLLO"),
    "auto": ("Auto", "the weighted mean of recalibrations (auto)"),
    "temperature": ("Temperature", "temperature scaling"),
    "vector": ("Vector", "vector scaling"),
    "vector_log_probs": ("Vector (log p)", "vector scaling of log probabilities"),
    "matrix": ("Matrix", "matrix scaling"),
    "matrix_log_probs": ("Matrix (log p)", "matrix scaling of log probabilities"),
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


def method_title(method: str) -> str:
    """Return a method's name inside a sentence."""
    return NAMES[method][1] if method in NAMES else method


def summarize_comparison(c: Comparison, judged: Verdict) -> Recalibrations:
    """Return the comparison in words and as a table; `judged` are the predictions as they are."""
    warned = [
        Fact(row.method, short_name(row.method), row.note) for row in c.rows if row.note
    ]
    skipped = [
        Fact(name, f"{short_name(name)}: not run", capital(why) + ".")
        for name, why in c.skipped.items()
    ]
    notes = [
        "p asks whether the recalibrated numbers are calibrated. A large p is not proof of "
        "calibration, and the largest is not the best."
    ]
    if any(row.pvalue_corrected is not None for row in c.rows):
        notes.append(
            "The corrected p asks whether the same map holds in both samples: a fitted map carries "
            "the noise of the rows it was fitted on, which makes the plain p too small."
        )
    notes += [said.text for row in c.rows if (said := row.correction) is not None]
    zeros = [
        f"{short_name(row.method)} {row.n_zero_labels}"
        for row in c.rows
        if row.n_zero_labels
    ]
    if zeros:
        notes.append(
            f"Labels that came true with probability 0 (clipped to 1e-6 here): {', '.join(zeros)}."
        )
    improves = c.recommendation.improves
    return Recalibrations(
        recommendation=c.recommendation,
        headline=recommendation_text(c),
        sentence=reconcile_with_verdict(c, judged),
        after=_remaining_error_sentence(c[c.best], judged.alpha) if improves else "",
        table=comparison_table(c),
        notes=tuple(notes),
        warnings=(*warned, *skipped),
    )


def recommendation_text(c: Comparison) -> str:
    """Return the recommendation in plain words."""
    n = c.recommendation.n_methods
    if not n:
        return "No recalibration was compared."
    if c.recommendation.improves:
        return f"Recommended recalibration: {method_title(c.best)}."
    few = {1: "The recalibration is not", 2: "Neither recalibration is"}
    one = few.get(n, f"None of {n} recalibrations is")
    return f"{one} shown to do better than leaving the predictions as they are."


def reconcile_with_verdict(c: Comparison, judged: Verdict) -> str:
    """Return what the recommendation means beside the verdict on the predictions as they are."""
    if not c.recommendation.improves:
        ahead = (
            ""
            if c.best == UNCALIBRATED
            else f"{capital(method_title(c.best))} may lead by chance. "
        )
        return {
            "miscalibrated": f"{ahead}The probabilities are off, but these rows do not show a "
            "recalibration that helps.",
            "inconclusive": f"{ahead}These rows are too few for either question.",
        }.get(judged.kind, ahead.strip())
    words = "It does better on rows that it was not fitted to, beyond chance."
    words += {
        "miscalibrated": "",
        "negligible": " The gain is as small as the error.",
        "not_detected": " The verdict above asks for errors of one kind; a recalibration may mend "
        "others.",
        "inconclusive": " Judge it on more rows before relying on it.",
    }[judged.kind]
    ties = c.recommendation.ties
    if ties:
        names = join_words([method_title(method) for method in ties])
        words += f" {capital(names)} cannot be told from it."
    return words


def _remaining_error_sentence(best: ComparisonRow, alpha: float) -> str:
    """Return whether the recommended recalibration leaves something."""
    if math.isnan(best.pvalue):
        return (
            "Whether the recalibrated predictions are calibrated could not be tested."
        )
    if best.pvalue_corrected is None:
        p = best.pvalue
        shown = show_p(p, best.pvalue_method)
        how = ""
    else:
        p = best.pvalue_corrected
        shown = show_p(p, best.corrected_method)
        how = ", corrected for the noise of the fitted map"
    name = method_title(best.method)
    if p > alpha:
        return (
            f"After {name}, no miscalibration is found at level {alpha:g} (p {shown}{how}); "
            "that is not proof of calibration."
        )
    noise = (
        " (a fitted map carries the noise of its rows, which makes this p too small)"
    )
    return (
        f"Even after {name} the test rejects calibration (p {shown}{how})"
        f"{noise if best.pvalue_corrected is None else ''}: a recalibration improves, it need not "
        "perfect."
    )


def comparison_table(c: Comparison) -> TableView:
    """Return one row for each recalibration, the best values marked."""
    how = (
        f"each row judged by maps fitted on the other folds of {format_count(c.train.n_samples)}"
        if c.cross_validated
        else f"fitted on {format_count(c.train.n_samples)} rows, judged on "
        f"{format_count(c.holdout.n_samples)} others"
    )
    return TableView(
        "recalibrations",
        f"Recalibrations compared: {how}. Smallest log loss first. "
        "★: best value of its column among the judged rows. ≈: cannot be told from the smallest "
        "log loss.",
        (
            Column("Recalibration", "name"),
            Column("Log loss", help="Smaller is better"),
            Column(
                "Worse than best by",
                help="Paired intervals that hold for all recalibrations at once",
            ),
            Column("ECE, top label", help="Smaller is better"),
            Column("ECE, class by class", help="Smaller is better"),
            Column("Brier score", help="Smaller is better"),
            Column("Accuracy", help="Larger is better"),
            Column("Labels changed"),
            Column("p", help="Are these numbers calibrated?"),
            Column("p, corrected", help="Is it the same map in both samples?"),
            Column("Fitting time"),
        ),
        tuple(
            _comparison_row_cells(c, row)
            for row in (*c.ranked, *(r for r in c.rows if r not in c.judged))
        ),
    )


def _comparison_row_cells(c: Comparison, row: ComparisonRow) -> tuple[TableCell, ...]:
    values = {}
    for name in ("log_loss", "ece", "classwise_ece", "brier", "accuracy"):
        value = getattr(row, name)
        text = f"{100 * value:.2f} %" if name == "accuracy" else f"{value:.4f}"
        values[name] = TableCell(text, value)
        if c.has_best(row, name):
            values[name] = replace(values[name], mark="best", note="best")
    worse = TableCell("-")
    other = c.recommendation.difference(row.method)
    if row.method == c.best:
        worse = TableCell("best", 0.0)
    elif other is not None:
        worse = TableCell(other.cell, other.difference)
        if not other.is_clearly_worse:
            worse = replace(worse, mark="tie", note="cannot be told from the best")
    changed = TableCell("-")
    if row.label_change is not None:
        changed = TableCell(percent(row.label_change), row.label_change)
    time = TableCell("-")
    seconds = row.fit_seconds
    if seconds is not None:
        text = f"{1000 * seconds:.0f} ms" if seconds < 1.0 else f"{seconds:.1f} s"
        time = TableCell(text, seconds)
    return (
        TableCell(short_name(row.method), title=method_title(row.method)),
        values.pop("log_loss"),
        worse,
        *values.values(),
        changed,
        p_cell(row.pvalue, row.pvalue_method),
        p_cell(row.pvalue_corrected, row.corrected_method),
        time,
    )
