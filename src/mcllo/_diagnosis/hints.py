"""What predictions look like when something other than the model went wrong: hints, not tests.

==============  ==================================================================================
hint.own_rows   the statistic is all but 0: probabilities were repaired on these very rows
hint.columns    the most probable class is the true one after a permutation of the columns
hint.rows       predictions promise much and tell nothing of these labels: those of other rows?
==============  ==================================================================================

Calibrated predictions should get one in about a million tables, and merely bad ones none:

==============  ==================================================================================
hint.own_rows   `statistic` below the quantile `RARELY` of chi-square, and below `ALL_BUT_ZERO`
                unless the rows hold enough information for chi-square
hint.columns    in a cycle of L of the c classes, W rows have their most probable class where the
                permutation has the true one, H where the columns have it. Calibrated, W of the
                W + H is at most Binomial(W + H, 1/2); Chernoff's bound of that tail lies below
                ``RARELY / c^L``, as there are at most c^L such cycles. Beyond that W leads the
                runner-up by `LEAD`, in most classes of the cycle, also without the largest W
                Of two classes it is enough that labels follow the other column: T (below) under
                minus `AGAINST`; an event may be too rare ever to be the most probable class
hint.rows       T = sum_i x_i,y less its mean over permutations of the labels, in their standard
                deviations: below `NOTHING`, where calibrated predictions show `PROMISED`; and no
                other pair of label and column goes together either
==============  ==================================================================================

With C the covariance of the columns of x and pi the shares of the labels, calibrated predictions
have T = n tr C on average, and permutations of the labels the variance n (sum pi_k C_kk - pi'C pi).
Rows that depend or count unequally count as many as would be worth as much (Kish).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._fit.fit import MCLLOFit
from .._ground.results import Codes, Floats
from .._ground.statements import Statement
from .._ground.text import ellipsis, listed
from .._inference.pvalue import Ground
from .._input.predictions import Predictions
from ..exceptions import PYTHON, Either, Option, Phrase, Words
from ..metrics._bins import top_label

RARELY = 1e-6
"""Chance that calibrated predictions show what a hint speaks of."""
SELDOM = 1e-3
"""The same of all classes of a cycle but the one that speaks loudest: a shift has only that."""
ALL_BUT_ZERO = 1e-3
"""A statistic that rows of little information do not fall below by chance."""
DISTINCT, MANY_ROWS = 20, 100_000
"""Different rows, or rows, without which a statistic may be exactly 0 by chance."""
LEAD, MOST_CLEAR = 1.5, 0.8
"""How far a permutation leads the runner-up, and the share of its classes that it leads in."""
NOTHING, PROMISED, AGAINST = 2.0, 25.0, 6.0
"""Standard deviations over permutations of the labels."""
OTHERS = 25.0
"""Rows of other labels than the most frequent one, below which nothing can be missed."""
LITTLE = 0.2
"""Agreement of labels and most probable classes from which they clearly belong together."""
MOST_ENTRIES = 1_000_000
"""Probabilities that are looked at: of larger tables every second row, every third, ..."""
MOST_NAMED = 4
"""Classes that a hint names."""
CHECK_COLUMNS = Either(
    Phrase("Check which column is which class; {} names them in their order.", Option("classes")),
    shell="Check the names of the columns.",
)


class Counted(Protocol):
    """Rows, in memory or not."""

    @property
    def n_samples(self) -> int:
        """Number of rows."""

    @property
    def sample_weight(self) -> Any:
        """Weights, their sum, or None."""


class Hits(NamedTuple):
    """Rows of each label (first index) by their most probable class, and what a row is worth."""

    table: Floats
    worth: float

    @property
    def accuracy(self) -> float:
        """Share of rows whose most probable class is the true one."""
        return float(self.table.trace() / max(self.table.sum(), 1e-150))

    @property
    def agreement(self) -> float:
        """Accuracy beyond that of labels which know nothing of the rows (Cohen's kappa)."""
        total = max(self.table.sum(), 1e-150)
        chance = float(self.table.sum(axis=0) @ self.table.sum(axis=1) / total**2)
        return (self.accuracy - chance) / max(1.0 - chance, 1e-12)

    def ordered(self, order: Codes) -> Hits:
        """Return the table with column ``order[k]`` in the place of column k."""
        return self._replace(table=self.table[:, order])


def hints_of(
    predictions: Counted, fit: MCLLOFit, test: Any, called: Words = PYTHON
) -> list[Statement]:
    """Return what may have gone wrong before the predictions came here.

    Of rows that are not in memory only the statistic is looked at. `test` is that of the verdict;
    `called` are the words for arguments.
    """
    said = [OWN_ROWS] if judged_on_its_own_rows(predictions, fit, test) else []
    if not isinstance(predictions, Predictions):
        return said
    some = predictions.take(np.arange(0, predictions.n_samples, step_of(predictions)))
    hits = _hits(some)
    if hits.agreement >= LITTLE or not hits.table.any():
        together = None
    else:
        together = Together.of(some, hits.worth)
    order = columns_order(hits)
    if order is None and together is not None and together.turned and len(hits.table) == 2:
        order = np.array([1, 0])
    if order is not None:
        return [*said, _columns(predictions, order, called)]
    lost = together is not None and together.nothing
    return [*said, *([_rows(predictions)] if lost else [])]


def step_of(predictions: Predictions) -> int:
    """Return which of so many rows are looked at: every one of a small table."""
    return max(1, math.ceil(predictions.probs.size / MOST_ENTRIES))


OWN_ROWS = Statement(
    "hint.own_rows",
    "These probabilities look as if they had been repaired on these very rows: rows that a repair "
    "has not seen never follow it so closely. Judge a repair on other rows.",
    "doubt",
)


def judged_on_its_own_rows(predictions: Counted, fit: MCLLOFit, test: Any) -> bool:
    """Whether the likelihood has its maximum at the identity, as after a fit to the same rows."""
    from scipy.special import gammaincinv

    if not fit.converged or fit.separated or fit.df == 0:
        return False
    weight = predictions.sample_weight
    mean = 1.0 if weight is None else float(np.sum(weight)) / predictions.n_samples
    least = 2.0 * float(gammaincinv(0.5 * fit.df, RARELY))
    enough = getattr(test.why, "ground", None) is Ground.ENOUGH
    if not (fit.statistic / mean < (least if enough else min(least, ALL_BUT_ZERO))):
        return False
    probs = getattr(predictions, "probs", None)
    many = predictions.n_samples >= MANY_ROWS
    return many or (probs is not None and len(np.unique(probs, axis=0)) >= DISTINCT)


def columns_order(hits: Hits) -> Codes | None:
    """Return the column in which each class seems to be, or None when each is in its own."""
    table, c = hits.table, len(hits.table)
    if (table.max(axis=1) <= table.diagonal()).all():
        return None
    from scipy.optimize import linear_sum_assignment

    best = linear_sum_assignment(table + 1e-9 * np.eye(c), maximize=True)[1]
    order = np.arange(c)
    for cycle in _cycles(best):
        moved, own = table[cycle, best[cycle]], table[cycle, cycle]
        rest = table[cycle].copy()
        rest[np.arange(len(cycle)), best[cycle]] = 0.0
        second, seen = rest.max(axis=1), table[cycle].sum(axis=1) > 0.0
        clear = float(np.mean(moved[seen] > second[seen])) if seen.any() else 0.0
        few = np.delete(np.stack([moved, own]), int(moved.argmax()), axis=1).sum(axis=1)
        tail = _half_tail(hits.worth * float(moved.sum()), hits.worth * float(own.sum()))
        sure = tail < math.log(RARELY) - len(cycle) * math.log(c)
        sure &= _half_tail(*(hits.worth * few)) < math.log(SELDOM)
        if sure and clear >= MOST_CLEAR and moved.sum() >= LEAD * second.sum():
            order[cycle] = best[cycle]
    return None if (order == np.arange(c)).all() else order


class Together(NamedTuple):
    """Covariances of labels and columns, in units of a row, and what chance or calibration shows.

    `promised` and `shown` are the sums over each class with its own column, if calibrated and here;
    `reach` is the standard deviation of the latter over permutations of the labels, `chance` the
    mean sum of squares of `links`.
    """

    links: Floats
    promised: float
    shown: float
    reach: float
    chance: float
    others: float
    """Rows of other labels than the most frequent one."""

    @classmethod
    def of(cls, predictions: Predictions, worth: float = 1.0) -> Together:
        """Return them for rows that are worth so many independent ones."""
        p, weight = predictions, predictions.class_weight * worth
        total = float(weight.sum())
        shares = weight / total
        own = p.row_weight
        own = own * (worth / total)
        means = own @ p.probs
        spread = (p.probs.T * own) @ p.probs - np.outer(means, means)
        sums = [np.bincount(p.codes, own * column, p.n_classes) for column in p.probs.T]
        links = np.array(sums).T - np.outer(shares, means)
        variance = float(shares @ spread.diagonal() - shares @ spread @ shares) / total
        promised, shown = float(spread.trace()), float(links.trace())
        chance = float((1.0 - shares @ shares) * promised) / total
        reach = math.sqrt(max(variance, 0.0))
        return cls(links, promised, shown, reach, chance, total - float(weight.max()))

    @property
    def nothing(self) -> bool:
        """Whether the labels follow no column, where calibrated predictions would show clearly."""
        promised = self.promised > PROMISED * self.reach and self.others >= OTHERS
        nothing = abs(self.shown) <= NOTHING * self.reach
        return promised and nothing and (self.links**2).sum() <= NOTHING**2 * self.chance

    @property
    def turned(self) -> bool:
        """Whether the labels clearly follow the other columns than their own."""
        return self.shown < -AGAINST * self.reach and self.others >= OTHERS


def _hits(predictions: Predictions) -> Hits:
    """Return how often rows of each label have each class as the most probable one."""
    p, c = predictions, predictions.n_classes
    top, _ = top_label(p.probs)
    table = np.bincount(p.codes * c + top, p.sample_weight, c * c).reshape(c, c)
    return Hits(table.astype(np.float64), _worth(predictions))


def _worth(predictions: Predictions) -> float:
    """Return independent rows for each unit of weight: 1 for rows that were counted (Kish)."""
    p = predictions
    if p.groups is None and p.has_whole_weights:
        return 1.0
    weight = p.row_weight
    parts = weight if p.groups is None else np.bincount(p.groups, weight)
    return float(weight.sum() / (parts**2).sum())


def _cycles(order: Codes) -> list[Codes]:
    """Return the cycles of a permutation that move something."""
    found, left = [], set(np.flatnonzero(order != np.arange(len(order))).tolist())
    while left:
        cycle = [min(left)]
        while (after := int(order[cycle[-1]])) != cycle[0]:
            cycle.append(after)
        left -= set(cycle)
        found.append(np.array(cycle))
    return found


def _half_tail(many: float, few: float) -> float:
    """Return Chernoff's bound of log P(Binomial(many + few, 1/2) >= many); 0 unless many > few."""
    m = many + few
    if many <= few:
        return 0.0
    entropy = -sum(part / m * math.log(part / m) for part in (many, few) if part > 0.0)
    return m * (entropy - math.log(2.0))


def _columns(predictions: Predictions, order: Codes, called: Words) -> Statement:
    """Return which classes seem to be in which columns."""
    hits = _hits(predictions)
    classes, moved = predictions.classes, np.flatnonzero(order != np.arange(len(order)))
    found = {classes[k]: classes[order[k]] for k in moved}
    pairs = [f"class {ellipsis(k)!r} in column {ellipsis(j)!r}" for k, j in found.items()]
    rest = len(pairs) - MOST_NAMED
    named = [*pairs[:MOST_NAMED], *([f"{rest} more"] if rest > 0 else [])]
    now, then = hits.accuracy, hits.ordered(order).accuracy
    words = (
        f"The columns seem to be in another order: {listed(named)}. Accuracy is "
        f"{100 * now:.1f} %, and would be {100 * then:.1f} % with them exchanged. "
        f"{CHECK_COLUMNS.text(called)}"
    )
    numbers = {"columns": found, "accuracy": now, "exchanged": then}
    return Statement("hint.columns", words, "bad", numbers)


def _rows(predictions: Predictions) -> Statement:
    """Return that the labels seem to belong to other rows."""
    p, hits = predictions, _hits(predictions)
    promised = float(np.average(p.probs.max(axis=1), weights=p.sample_weight))
    chance = float(p.class_weight.max() / p.class_weight.sum())
    words = (
        "The labels seem to belong to other rows: the probabilities tell nothing about them "
        f"(accuracy {100 * hits.accuracy:.1f} %, where they promise {100 * promised:.1f} %). "
        "Check that both are in the same order."
    )
    numbers = {"accuracy": hits.accuracy, "promised": promised, "largest_class": chance}
    return Statement("hint.rows", words, "bad", numbers)
