"""Which kind of miscalibration: the ladder of nested models as words and as a table."""

from __future__ import annotations

import re

from .._assess import Assessment
from .._ladder import Ladder
from .._ladder_rows import LadderRow
from .._plot.plain_words import model_name
from .tables import number_cell, p_cell
from .views import Cell, Column, Part, TableView, capital, left_out, printed_p

EVIDENCE = re.compile(r"\. (?=(?:Nothing beyond that was|At level|Every smaller model is) )")
"""Where the ladder's sentence goes on from the kind to the evidence."""
WAYS = {
    "chi2": "chi-square",
    "exact": "exact, simulated",
    "bootstrap": "simulated from the fitted model, approximate",
    "score": "simulated scores, without refits",
    "bound": "guaranteed bound",
    "simulated": "simulated, or a guaranteed bound (≤)",
    "mixed": "partly chi-square, partly simulated or a guaranteed bound (≤)",
}


def ladder_part(a: Assessment, alpha: float) -> Part:
    """Return the verdict of the ladder, its table, and what limits them."""
    ladder = a.details.ladder
    if ladder is None:
        return Part(left_out("The kinds of miscalibration are", a.details.skipped["ladder"]))
    notes = [f"{capital(ladder.skipped)}."] if ladder.skipped else []
    if alpha != ladder.alpha:
        notes.append(f"The models are judged at level {ladder.alpha:g}, not at {alpha:g}.")
    return Part(printed_p(ladder.sentence), _ladder_table(ladder), tuple(notes))


def kind_headline(a: Assessment, alpha: float) -> str:
    """Return the kind in a sentence, for the first screen; empty where nothing was rejected."""
    if not a.test.rejects(alpha) or a.details.ladder is None:
        return ""
    if a.details.ladder.chosen == "identity":  # another test than the ladder's rejected
        return ""
    return EVIDENCE.split(a.details.ladder.sentence)[0].removesuffix(".") + "."


def _ladder_table(ladder: Ladder) -> TableView:
    least = {name: min(getattr(row, name) for row in ladder.rows) for name in ("aic", "bic")}
    how = how_computed(ladder.method, ladder.reason)
    return TableView(
        "ladder",
        "Gain: likelihood ratio statistic against the predictions as they are, and its p-value. "
        "Enough?: p-value of the model against shifts and slopes for every class (of those against "
        f"the full matrix); ◆ rejected by closed testing at level {ladder.alpha:g}, ★ the smallest "
        f"model not rejected. AIC and BIC: above the smallest. P-values: {how}.",
        (
            Column("Model", "name"),
            Column("Parameters"),
            Column("Gain", help="Likelihood ratio statistic against the predictions as they are"),
            Column("p"),
            Column("Enough? p", help="Small: the labels contradict this model"),
            Column("AIC", help="Above the smallest"),
            Column("BIC", help="Above the smallest"),
        ),
        tuple(_ladder_row(row, ladder, least) for row in ladder.rows),
    )


def _ladder_row(row: LadderRow, ladder: Ladder, least: dict[str, float]) -> tuple[Cell, ...]:
    first = row.model == "identity"
    return (
        Cell(model_name(row.model)),
        Cell(str(row.df), row.df),
        Cell("0", 0.0) if first else number_cell(row.statistic),
        Cell("-") if first else p_cell(row.pvalue, row.method),
        _enough(row, row.model == ladder.chosen),
        *(_above(getattr(row, name) - least[name]) for name in ("aic", "bic")),
    )


def _above(difference: float) -> Cell:
    return Cell(f"{difference:.1f}", difference)


def _enough(row: LadderRow, chosen: bool) -> Cell:
    cell = p_cell(row.larger_pvalue, row.larger_method or "")
    how = WAYS.get(row.larger_method or "", "")
    if chosen:
        return Cell(cell.text, cell.sort, how, "best", "the smallest model not rejected")
    if row.rejected:
        return Cell(cell.text, cell.sort, how, "off", "rejected")
    return Cell(cell.text, cell.sort, how)


def how_computed(method: str, reason: str) -> str:
    """Return how p-values of nested models were computed, and why so.

    Examples
    --------
    >>> how_computed("chi2", "120 expected errors per parameter")
    'chi-square (120 expected errors per parameter)'
    """
    why = f" ({reason})" if reason and reason != "as asked" else ""
    return WAYS.get(method, method) + why
