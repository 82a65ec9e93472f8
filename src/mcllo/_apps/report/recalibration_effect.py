"""What the recommended recalibration does to the judged rows: to single rows, and to the classes.

It is the map that the comparison judged, of whatever kind: probabilities before and after, nothing
else is known of it here.
"""

from __future__ import annotations

import numpy as np

from ..._comparison.comparison import Comparison
from ..._comparison.recommend import UNCALIBRATED
from ..._utils.formatting import ellipsis, format_count, join_words
from ..._utils.results import Floats
from ..._validation.predictions import Predictions
from .recalibrations import method_title
from .views import (
    Column,
    RecalibrationEffect,
    TableCell,
    TableView,
    capital,
    name_cell,
    percent,
)

EXAMPLE_QUANTILES = (0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
"""Rows that are shown, by how far they move: typical ones, and the one that moves most."""
MAX_NAMED_CLASSES = 3


def summarize_effect(c: Comparison) -> RecalibrationEffect | None:
    """Return what the method of smallest log loss does; None where that is to do nothing."""
    if c.best == UNCALIBRATED:
        return None
    before = c.recalibrated[UNCALIBRATED]
    after = c.recalibrated[c.best]
    # total variation: the probability that a row's classes exchange
    moved: Floats = 0.5 * np.abs(after.probs - before.probs).sum(axis=1)
    return RecalibrationEffect(
        method=c.best,
        title=_title(c),
        lead=_lead(c, before, after, moved),
        classes=_classes_table(before, after),
        rows=_rows_table(before, after, moved),
    )


def _title(c: Comparison) -> str:
    if c.recommendation.improves:
        return "What the recommended recalibration does"
    return f"What {method_title(c.best)} would do"


def _lead(c: Comparison, before: Predictions, after: Predictions, moved: Floats) -> str:
    weight = before.row_weight
    average = float(np.average(moved, weights=weight))
    changed = before.probs.argmax(axis=1) != after.probs.argmax(axis=1)
    share = float(np.average(changed, weights=weight))
    judged = "by maps fitted to the other folds"
    if not c.cross_validated:
        judged = f"by a map fitted to {format_count(c.train.n_samples)} others"
    words = (
        f"{capital(method_title(c.best))} as it was judged: "
        f"{format_count(before.n_samples)} rows, recalibrated {judged}. It moves "
        f"{percent(average)} of a row's probability to other classes on average, and gives "
        f"{percent(share)} of the rows another most probable class."
    )
    if not c.recommendation.improves:
        words += " That it helps is not shown."
    return f"{words} {_most_moved_classes(before, after)}"


def _mean_change(before: Predictions, after: Predictions) -> Floats:
    """Return how far the probability of each class moves on average."""
    change: Floats = np.average(
        np.abs(after.probs - before.probs), axis=0, weights=before.row_weight
    )
    return change


def _most_moved_classes(before: Predictions, after: Predictions) -> str:
    change = _mean_change(before, after)
    places = np.argsort(-change, kind="stable")[:MAX_NAMED_CLASSES]
    names = join_words([repr(ellipsis(before.classes[j])) for j in places])
    return f"Most of it concerns {names}."


def _classes_table(before: Predictions, after: Predictions) -> TableView:
    """Return the shares of each class before and after, the class that moves most first."""
    weight = before.row_weight
    change = _mean_change(before, after)
    share_before = np.average(before.probs, axis=0, weights=weight)
    share_after = np.average(after.probs, axis=0, weights=weight)
    observed = before.class_weight / before.class_weight.sum()
    rows = []
    for j in np.argsort(-change, kind="stable"):
        shares = (share_before[j], share_after[j], observed[j], change[j])
        cells = [TableCell(percent(float(share)), float(share)) for share in shares]
        rows.append((name_cell(before.classes[j]), *cells))
    return TableView(
        "effect_classes",
        "The classes it moves, most first: their mean probability before and after, how often they "
        "came true, and by how much their probability changes in a row on average.",
        (
            Column("Class", "name"),
            Column("Before"),
            Column("After"),
            Column("Came true"),
            Column("Change in a row"),
        ),
        tuple(rows),
    )


def _rows_table(before: Predictions, after: Predictions, moved: Floats) -> TableView:
    """Return a few rows before and after, the one that moves most last."""
    order = np.argsort(moved, kind="stable")
    ranks = [round(share * (len(order) - 1)) for share in EXAMPLE_QUANTILES]
    rows = []
    for i in dict.fromkeys(order[ranks].tolist()):
        label = int(before.codes[i])
        truth = [float(part.probs[i, label]) for part in (before, after)]
        rows.append(
            (
                TableCell(format_count(i + 1), float(i + 1)),
                _top_cell(before, i),
                _top_cell(after, i),
                TableCell(ellipsis(before.classes[label])),
                *(TableCell(_percent_of_row(share), share) for share in truth),
            )
        )
    return TableView(
        "effect_rows",
        "Rows of the judged table, from one that moves little to the one that moves most: the most "
        "probable class before and after, and the probability of the class that came true.",
        (
            Column("Row", "name"),
            Column("Says", "words"),
            Column("Recalibrated", "words"),
            Column("Came true", "words"),
            Column("Its probability"),
            Column("Recalibrated"),
        ),
        tuple(rows),
    )


def _top_cell(p: Predictions, row: int) -> TableCell:
    """Return the most probable class of a row with its probability."""
    j = int(p.probs[row].argmax())
    share = float(p.probs[row, j])
    return TableCell(f"{ellipsis(p.classes[j])} {_percent_of_row(share)}", share)


def _percent_of_row(share: float) -> str:
    """Return a probability that never claims to be certain."""
    if share < 0.0005:
        return "< 0.1 %"
    return "> 99.9 %" if share > 0.9995 else percent(share)
