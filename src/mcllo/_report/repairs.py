"""The comparison of repairs: the table with its marks, and the recommendation in plain words.

Which repair to use, what cannot be told from it and every interval are those of
`Comparison.recommendation`; nothing is decided here.
"""

from __future__ import annotations

import math
from dataclasses import replace

from .._assessment.verdict import Verdict
from .._ground.text import format_count, listed
from .._workflows.comparison import Comparison, ComparisonRow
from .._workflows.recommend import NOTHING
from .tables import p_cell
from .views import Cell, Column, Fact, Repairs, TableView, capital, percent, show_p

NAMES = {
    "uncalibrated_train": ("Uncalibrated (train)", "the uncalibrated training rows"),
    "uncalibrated": ("Uncalibrated", "the uncalibrated predictions"),
    "mcllo": ("MCLLO", "MCLLO"),
    "auto": ("Auto", "the weighted mean of repairs (auto)"),
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


def title_of(method: str) -> str:
    """Return a method's name inside a sentence."""
    return NAMES[method][1] if method in NAMES else method


def repairs_of(c: Comparison, judged: Verdict) -> Repairs:
    """Return the comparison in words and as a table; `judged` are the predictions as they are."""
    warned = [Fact(row.method, short_name(row.method), row.note) for row in c.rows if row.note]
    skipped = [
        Fact(name, f"{short_name(name)}: not run", capital(why) + ".")
        for name, why in c.skipped.items()
    ]
    notes = [
        "p asks whether the repaired numbers are calibrated. A large p is not proof of "
        "calibration, and the largest is not the best."
    ]
    if any(row.pvalue_corrected is not None for row in c.rows):
        notes.append(
            "The corrected p asks whether the same map holds in both samples: a fitted map carries "
            "the noise of the rows it was fitted on, which makes the plain p too small."
        )
    notes += [said.text for row in c.rows if (said := row.correction) is not None]
    zeros = [f"{short_name(row.method)} {row.n_zero_labels}" for row in c.rows if row.n_zero_labels]
    if zeros:
        notes.append(
            f"Labels that came true with probability 0 (raised to 1e-6 here): {', '.join(zeros)}."
        )
    improves = c.recommendation.improves
    return Repairs(
        recommendation=c.recommendation,
        headline=recommended(c),
        sentence=reconciled(c, judged),
        after=_after_sentence(c[c.best], judged.alpha) if improves else "",
        table=comparison_table(c),
        notes=tuple(notes),
        warnings=(*warned, *skipped),
    )


def recommended(c: Comparison) -> str:
    """Return the recommendation in plain words."""
    n = c.recommendation.n_methods
    if not n:
        return "No repair was compared."
    if c.recommendation.improves:
        return f"Recommended repair: {title_of(c.best)}."
    few = {1: "The repair is not", 2: "Neither repair is"}
    one = few.get(n, f"None of {n} repairs is")
    return f"{one} shown to do better than leaving the predictions as they are."


def reconciled(c: Comparison, judged: Verdict) -> str:
    """Return what the recommendation means beside the verdict on the predictions as they are."""
    if not c.recommendation.improves:
        ahead = "" if c.best == NOTHING else f"{capital(title_of(c.best))} may lead by chance. "
        return {
            "matters": f"{ahead}The probabilities are off, but these rows do not show a repair "
            "that helps.",
            "cannot_tell": f"{ahead}These rows are too few for either question.",
        }.get(judged.kind, ahead.strip())
    words = "It does better on rows that it was not fitted to, beyond chance."
    words += {
        "matters": "",
        "little": " The gain is as small as the error.",
        "none_found": " The verdict above asks for errors of one kind; a repair may mend others.",
        "cannot_tell": " Judge it on more rows before relying on it.",
    }[judged.kind]
    ties = c.recommendation.ties
    if ties:
        names = listed([title_of(method) for method in ties])
        words += f" {capital(names)} cannot be told from it."
    return words


def _after_sentence(best: ComparisonRow, alpha: float) -> str:
    """Return whether the recommended repair leaves something."""
    if math.isnan(best.pvalue):
        return "Whether the repaired predictions are calibrated could not be tested."
    p, method, how = best.pvalue, best.pvalue_method, ""
    if best.pvalue_corrected is not None:
        p, method = best.pvalue_corrected, best.corrected_method
        how = ", corrected for the noise of the fitted map"
    name, shown = title_of(best.method), show_p(p, method)
    if p > alpha:
        return (
            f"After {name}, no miscalibration is found at level {alpha:g} (p {shown}{how}); "
            "that is not proof of calibration."
        )
    noise = " (a fitted map carries the noise of its rows, which makes this p too small)"
    return (
        f"Even after {name} the test rejects calibration (p {shown}{how})"
        f"{noise if best.pvalue_corrected is None else ''}: a repair improves, it need not perfect."
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
        "★: best value of its column among the judged rows. ≈: cannot be told from the smallest "
        "log loss.",
        (
            Column("Repair", "name"),
            Column("Log loss", help="Smaller is better"),
            Column("Worse than best by", help="Paired intervals that hold for all repairs at once"),
            Column("ECE, top label", help="Smaller is better"),
            Column("ECE, class by class", help="Smaller is better"),
            Column("Brier score", help="Smaller is better"),
            Column("Accuracy", help="Larger is better"),
            Column("Labels changed"),
            Column("p", help="Are these numbers calibrated?"),
            Column("p, corrected", help="Is it the same map in both samples?"),
            Column("Fitting time"),
        ),
        tuple(_row(c, row) for row in (*c.ranked, *(r for r in c.rows if r not in c.judged))),
    )


def _row(c: Comparison, row: ComparisonRow) -> tuple[Cell, ...]:
    changed, seconds, values = row.label_change, row.fit_seconds, {}
    for name in ("log_loss", "ece", "classwise_ece", "brier", "accuracy"):
        value = getattr(row, name)
        text = f"{100 * value:.2f} %" if name == "accuracy" else f"{value:.4f}"
        cell = Cell(text, value)
        values[name] = replace(cell, mark="best", note="best") if c.has_best(row, name) else cell
    worse, other = Cell("-"), c.recommendation.difference(row.method)
    if row.method == c.best:
        worse = Cell("best", 0.0)
    elif other is not None:
        worse = Cell(other.cell, other.difference)
        if not other.told:
            worse = replace(worse, mark="tie", note="cannot be told from the best")
    time = Cell("-")
    if seconds is not None:
        time = Cell(f"{1000 * seconds:.0f} ms" if seconds < 1.0 else f"{seconds:.1f} s", seconds)
    return (
        Cell(short_name(row.method), title=title_of(row.method)),
        values.pop("log_loss"),
        worse,
        *values.values(),
        Cell("-") if changed is None else Cell(percent(changed), changed),
        p_cell(row.pvalue, row.pvalue_method),
        p_cell(row.pvalue_corrected, row.corrected_method),
        time,
    )
