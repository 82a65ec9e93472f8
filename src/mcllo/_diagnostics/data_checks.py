"""What predictions look like when something other than the model went wrong: data checks, not
tests.

===================  ===============================================================================
data_check.own_rows  the statistic is all but 0: probabilities were recalibrated on these very rows
data_check.columns   the most probable class is the true one after a permutation of the columns
data_check.rows      predictions are sure and tell nothing of these labels: those of other rows?
data_check.copies    rows are there more than once (`copies`)
===================  ===============================================================================

Calibrated predictions should get one in about a million tables, and merely bad ones none:

===================  ===============================================================================
data_check.own_rows  `statistic` below the quantile `FALSE_CHECK_LEVEL` of chi-square, and below
                     `MAX_STATISTIC_OF_OWN_ROWS` unless the rows hold enough information for
                     chi-square
data_check.columns   in a cycle of L of the c classes, W rows have their most probable class where
                     the permutation has the true one, H where the columns have it. Calibrated, W of
                     the W + H is at most Binomial(W + H, 1/2); Chernoff's bound of that tail lies
                     below ``FALSE_CHECK_LEVEL / c^L``, as there are at most c^L such cycles. Beyond
                     that W leads the runner-up by `MIN_LEAD_FACTOR`, in most classes of the cycle,
                     also without the largest W Of two classes it is enough that labels follow the
                     other column: T (below) under minus `MIN_Z_OF_REVERSAL`; an event may be too
                     rare ever to be the most probable class
data_check.rows      T = sum_i x_i,y less its mean over permutations of the labels, in their
                     standard deviations: below `MAX_Z_OF_NO_RELATION`, where calibrated predictions
                     show `MIN_EXPECTED_Z`; and no other pair of label and column goes together
                     either
===================  ===============================================================================

With C the covariance of the columns of x and pi the shares of the labels, calibrated predictions
have T = n tr C on average, and permutations of the labels the variance n (sum pi_k C_kk - pi'C pi).
Rows that depend or count unequally count as many as would be worth as much (Kish).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._fit.fit import MCLLOFit
from .._inference.pvalue import Ground
from .._utils.formatting import ellipsis, join_words
from .._utils.results import Codes, Floats
from .._utils.statements import Statement
from .._validation.predictions import Predictions
from ..exceptions import PYTHON, Either, Option, Phrase, Words
from ..metrics._bins import top_label
from .duplicate_rows import check_copies

FALSE_CHECK_LEVEL = 1e-6
"""Chance that calibrated predictions show what a data check looks for."""
FALSE_CYCLE_LEVEL = 1e-3
"""The same of all classes of a cycle but the one that speaks loudest: a shift has only that."""
MAX_STATISTIC_OF_OWN_ROWS = 1e-3
"""A statistic that rows of little information do not fall below by chance."""
MIN_DISTINCT_ROWS = 20  # of fewer different rows a statistic may be exactly 0 by chance
MIN_ROWS_OF_LARGE_TABLE = 100_000  # of so many rows none is, whether they differ or not
MIN_LEAD_FACTOR = 1.5  # how far a permutation leads the runner-up
MIN_CLEAR_CLASS_SHARE = 0.8  # share of its classes in which it leads
MAX_Z_OF_NO_RELATION = 2.0  # standard deviations over permutations of the labels, as the two below
MIN_EXPECTED_Z = 25.0  # what calibrated predictions would show
MIN_Z_OF_REVERSAL = 6.0  # below minus this, labels and columns go against each other
MIN_OTHER_LABEL_ROWS = 25.0
"""Rows of other labels than the most frequent one, below which nothing can be missed."""
MIN_AGREEMENT = 0.2
"""Agreement of labels and most probable classes from which they clearly belong together."""
MAX_ENTRIES = 1_000_000
"""Probabilities that are looked at: of larger tables every second row, every third, ..."""
MAX_NAMED_CLASSES = 4
"""Classes that a data check names."""
CHECK_COLUMNS = Either(
    Phrase("Check which column is which class; {} names them in their order.", Option("classes")),
    shell="Check the names of the columns.",
)


class RowCounts(Protocol):
    """Rows, in memory or not."""

    @property
    def n_samples(self) -> int:
        """Number of rows."""

    @property
    def sample_weight(self) -> Any:
        """Weights, their sum, or None."""


class LabelPredictionCounts(NamedTuple):
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

    def ordered(self, order: Codes) -> LabelPredictionCounts:
        """Return the table with column ``order[k]`` in the place of column k."""
        return self._replace(table=self.table[:, order])


def check_data(
    predictions: RowCounts, fit: MCLLOFit, test: Any, called: Words = PYTHON
) -> list[Statement]:
    """Return what may have gone wrong before the predictions came here.

    Of rows that are not in memory only the statistic is looked at. `test` is that of the verdict;
    `called` are the words for arguments.
    """
    said = [OWN_ROWS] if judged_on_its_own_rows(predictions, fit, test) else []
    if not isinstance(predictions, Predictions):
        return said
    if (copies := check_copies(predictions, fit, called)) is not None:
        said.append(copies)
    some = predictions.take(np.arange(0, predictions.n_samples, subsample_step(predictions)))
    hits = _hits(some)
    if hits.agreement >= MIN_AGREEMENT or not hits.table.any():
        together = None
    else:
        together = LabelCovariances.from_predictions(some, hits.worth)
    order = columns_order(hits)
    if order is None and together is not None and together.turned and len(hits.table) == 2:
        order = np.array([1, 0])
    if order is not None:
        return [*said, _columns(predictions, order, called)]
    lost = together is not None and together.nothing
    return [*said, *([_rows(predictions)] if lost else [])]


def subsample_step(predictions: Predictions) -> int:
    """Return which of so many rows are looked at: every one of a small table."""
    return max(1, math.ceil(predictions.probs.size / MAX_ENTRIES))


OWN_ROWS = Statement(
    "data_check.own_rows",
    "These probabilities look as if they had been recalibrated on these very rows: rows that a "
    "recalibration "
    "has not seen never follow it so closely. Judge a recalibration on other rows.",
    "doubt",
)


def judged_on_its_own_rows(predictions: RowCounts, fit: MCLLOFit, test: Any) -> bool:
    """Whether the likelihood has its maximum at the identity, as after a fit to the same rows."""
    from scipy.special import gammaincinv

    if not fit.converged or fit.separated or fit.df == 0:
        return False
    weight = predictions.sample_weight
    mean = 1.0 if weight is None else float(np.sum(weight)) / predictions.n_samples
    least = 2.0 * float(gammaincinv(0.5 * fit.df, FALSE_CHECK_LEVEL))
    enough = getattr(test.why, "ground", None) is Ground.ENOUGH
    if not (fit.statistic / mean < (least if enough else min(least, MAX_STATISTIC_OF_OWN_ROWS))):
        return False
    probs = getattr(predictions, "probs", None)
    many = predictions.n_samples >= MIN_ROWS_OF_LARGE_TABLE
    return many or (probs is not None and len(np.unique(probs, axis=0)) >= MIN_DISTINCT_ROWS)


def columns_order(hits: LabelPredictionCounts) -> Codes | None:
    """Return the column in which each class seems to be, or None when each is in its own."""
    table, c = hits.table, len(hits.table)
    most, own = hits.worth * table.max(axis=1), hits.worth * table.diagonal()
    # The logarithm of Chernoff's bound is concave and homogeneous in the two counts: that of the
    # sums of a cycle is at least the sum of those of its classes. Each class must pay for the
    # number of cycles by itself, or it makes a cycle less sure.
    tails = [_half_tail(most[k], own[k]) for k in np.flatnonzero(most > own)]
    if sum(min(0.0, tail + math.log(c)) for tail in tails) >= math.log(FALSE_CHECK_LEVEL):
        return None  # no cycle can be sure, and a table of 1,000 classes need not be assigned
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
        sure = tail < math.log(FALSE_CHECK_LEVEL) - len(cycle) * math.log(c)
        sure &= _half_tail(*(hits.worth * few)) < math.log(FALSE_CYCLE_LEVEL)
        if (
            sure
            and clear >= MIN_CLEAR_CLASS_SHARE
            and moved.sum() >= MIN_LEAD_FACTOR * second.sum()
        ):
            order[cycle] = best[cycle]
    return None if (order == np.arange(c)).all() else order


class LabelCovariances(NamedTuple):
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
    def from_predictions(cls, predictions: Predictions, worth: float = 1.0) -> LabelCovariances:
        """Return the covariances of labels and columns; a row is worth `worth` independent ones."""
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
        promised = (
            self.promised > MIN_EXPECTED_Z * self.reach and self.others >= MIN_OTHER_LABEL_ROWS
        )
        nothing = abs(self.shown) <= MAX_Z_OF_NO_RELATION * self.reach
        return (
            promised and nothing and (self.links**2).sum() <= MAX_Z_OF_NO_RELATION**2 * self.chance
        )

    @property
    def turned(self) -> bool:
        """Whether the labels clearly follow the other columns than their own."""
        return self.shown < -MIN_Z_OF_REVERSAL * self.reach and self.others >= MIN_OTHER_LABEL_ROWS


def _hits(predictions: Predictions) -> LabelPredictionCounts:
    """Return how often rows of each label have each class as the most probable one."""
    p, c = predictions, predictions.n_classes
    top, _ = top_label(p.probs)
    table = np.bincount(p.codes * c + top, p.sample_weight, c * c).reshape(c, c)
    return LabelPredictionCounts(table.astype(np.float64), _worth(predictions))


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
    rest = len(pairs) - MAX_NAMED_CLASSES
    named = [*pairs[:MAX_NAMED_CLASSES], *([f"{rest} more"] if rest > 0 else [])]
    now, then = hits.accuracy, hits.ordered(order).accuracy
    found_order = (
        f"The columns seem to be in another order: {join_words(named)}. Accuracy is "
        f"{100 * now:.1f} %, and would be {100 * then:.1f} % with them exchanged."
    )
    words = Phrase("{} {}", found_order, CHECK_COLUMNS)
    numbers = {"columns": found, "accuracy": now, "exchanged": then}
    return Statement("data_check.columns", words.text(called), "bad", numbers, words)


def _rows(predictions: Predictions) -> Statement:
    """Return that the labels seem to belong to other rows."""
    p, hits = predictions, _hits(predictions)
    promised = float(np.average(p.probs.max(axis=1), weights=p.sample_weight))
    chance = float(p.class_weight.max() / p.class_weight.sum())
    words = (
        "The labels seem to belong to other rows: the probabilities tell nothing about them "
        f"(accuracy {100 * hits.accuracy:.1f} %, where {100 * promised:.1f} % is expected). "
        "Check that both are in the same order."
    )
    numbers = {"accuracy": hits.accuracy, "promised": promised, "largest_class": chance}
    return Statement("data_check.rows", words, "bad", numbers)
