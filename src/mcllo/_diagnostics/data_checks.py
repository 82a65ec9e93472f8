"""Data checks: marks that mistakes in the rows leave, and hardly ever a bad model. No tests.

===================  ===============================================================================
data_check.own_rows  the statistic is all but 0: probabilities were recalibrated on these very rows
data_check.columns   the most probable class is the true one after a permutation of the columns
data_check.rows      predictions are sure and tell nothing of these labels: those of other rows?
data_check.copies    rows are there more than once (`_diagnostics/duplicate_rows`)
===================  ===============================================================================

Calibrated predictions should get one in about a million tables, and merely bad ones none:
docs/explanation/data-checks.md has how often they do.

===================  ===============================================================================
data_check.own_rows  `statistic` below the quantile `FALSE_CHECK_LEVEL` of chi-square, and below
                     `MAX_STATISTIC_OF_OWN_ROWS` unless the rows hold enough information for
                     chi-square
data_check.columns   in a cycle of L of the c classes, W rows have their most probable class where
                     the permutation has the true one, H where the columns have it. Calibrated, W of
                     the W + H is at most Binomial(W + H, 1/2); Chernoff's bound of that tail lies
                     below ``FALSE_CHECK_LEVEL / c^L``, as there are at most c^L such cycles. Beyond
                     that W leads the runner-up by `MIN_LEAD_FACTOR`, in most classes of the cycle,
                     also without the largest W. Of two classes it is enough that labels follow the
                     other column: T (below) under minus `MIN_Z_OF_REVERSAL`; an event may be too
                     rare ever to be the most probable class. Or, where few rows are not enough for
                     that: the likelihood ratio of the labels, a cycle of columns against the
                     columns as they are (`find_likelier_order`)
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
from .._model.many_classes import has_far_fewer_rows
from .._utils.formatting import ellipsis, join_words
from .._utils.results import Codes, Floats
from .._utils.statements import Statement
from .._validation.predictions import Predictions
from ..metrics._bins import top_label
from .duplicate_rows import state_copies

# The numbers below are round. What they do together is measured: studies/claims/data_checks.py.
FALSE_CHECK_LEVEL = 1e-6
"""Chance that calibrated predictions show what a data check looks for."""
MAX_STATISTIC_OF_OWN_ROWS = 1e-3
"""A statistic that rows of little information do not fall below by chance."""
MIN_LEAD_FACTOR = 1.5  # by which a permutation of columns leads the runner-up
# standard deviations over permutations of the labels, as the two below
MAX_Z_OF_NO_RELATION = 2.0
MIN_EXPECTED_Z = 25.0  # what calibrated predictions would show
MIN_Z_OF_REVERSAL = 6.0  # below minus this, labels and columns go against each other
MAX_CLASSES_ORDERED_BY_LIKELIHOOD = 100
"""Classes up to which orders are compared by likelihood: round; of more, most have few rows."""
MIN_OTHER_LABEL_ROWS = 25.0
"""Rows of other labels than the most frequent one, below which nothing can be missed."""


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
        return float(self.table.trace() / self._total_weight)

    @property
    def _total_weight(self) -> float:
        """Number of rows; of no rows a number to divide by."""
        return max(float(self.table.sum()), 1e-150)

    @property
    def agreement(self) -> float:
        """Accuracy beyond that of labels which know nothing of the rows (Cohen's kappa)."""
        shares_of_labels = self.table.sum(axis=1) / self._total_weight
        shares_of_predictions = self.table.sum(axis=0) / self._total_weight
        by_chance = float(shares_of_labels @ shares_of_predictions)
        return (self.accuracy - by_chance) / max(1.0 - by_chance, 1e-12)

    def with_columns_ordered(self, order: Codes) -> LabelPredictionCounts:
        """Return the table with column ``order[k]`` in the place of column k."""
        return self._replace(table=self.table[:, order])


def check_data(predictions: RowCounts, fit: MCLLOFit, test: Any) -> list[Statement]:
    """Return what may have gone wrong before the predictions came here.

    Of rows that are not in memory only the statistic is looked at. `test` is that of the verdict.
    """
    statements = []
    if is_recalibrated_on_same_rows(predictions, fit, test):
        statements.append(OWN_ROWS)
    if not isinstance(predictions, Predictions):
        return statements
    copies = state_copies(predictions, fit)
    if copies is not None:
        statements.append(copies)

    sample = predictions.take(
        np.arange(0, predictions.n_samples, subsample_stride(predictions))
    )
    if has_far_fewer_rows(sample.n_samples, 2 * (sample.n_classes - 1)):
        return statements  # most classes have no label: `skipped` says so
    hits = _count_labels_by_top_class(sample)
    covariances = None
    # Where labels and most probable classes clearly belong together, they are those of these rows.
    if hits.agreement < 0.2 and hits.table.any():
        covariances = LabelCovariances.from_predictions(sample, hits.worth)
    order = find_column_permutation(hits)
    is_reversed = covariances is not None and covariances.are_reversed
    if order is None and is_reversed and predictions.n_classes == 2:
        order = np.array([1, 0])
    if order is None:
        order = find_likelier_order(sample, hits.worth)
    if order is not None:
        statements.append(_permuted_columns_statement(predictions, order))
    elif covariances is not None and covariances.are_unrelated:
        statements.append(_labels_of_other_rows_statement(predictions))
    return statements


def subsample_stride(predictions: Predictions) -> int:
    """Return which of so many rows are looked at: every one of a small table."""
    # far more than any of these checks needs, and read in no time
    max_probs = 1_000_000
    return max(1, math.ceil(predictions.probs.size / max_probs))


OWN_ROWS = Statement(
    "data_check.own_rows",
    "These probabilities look as if they had been recalibrated on these very rows: rows that a "
    "recalibration "
    "has not seen never follow it so closely. Judge a recalibration on other rows.",
    "doubt",
)


def is_recalibrated_on_same_rows(
    predictions: RowCounts, fit: MCLLOFit, test: Any
) -> bool:
    """Whether the likelihood has its maximum at the identity, as after a fit to the same rows."""
    from scipy.special import gammaincinv

    if not fit.converged or fit.separated or fit.df == 0:
        return False
    weight = predictions.sample_weight
    mean_weight = (
        1.0 if weight is None else float(np.sum(weight)) / predictions.n_samples
    )
    # Rows that all count twice have twice the statistic, and tell no more.
    statistic = fit.statistic / mean_weight
    threshold = 2.0 * float(gammaincinv(0.5 * fit.df, FALSE_CHECK_LEVEL))
    can_trust_chi2 = getattr(test.why, "ground", None) == "enough_errors"
    if not can_trust_chi2:
        threshold = min(threshold, MAX_STATISTIC_OF_OWN_ROWS)
    if not statistic < threshold:
        return False
    # The statistic of a few different rows may be exactly 0 by chance; 100,000 rows are never few.
    if predictions.n_samples >= 100_000:
        return True
    probs = getattr(predictions, "probs", None)
    return probs is not None and len(np.unique(probs, axis=0)) >= 20


def find_column_permutation(label_counts: LabelPredictionCounts) -> Codes | None:
    """Return the column in which each class seems to be, or None when each is in its own."""
    if not _may_be_permuted(label_counts):
        return None
    from scipy.optimize import linear_sum_assignment

    n_classes = len(label_counts.table)
    own_column_wins_ties = 1e-9 * np.eye(n_classes)
    _, best = linear_sum_assignment(
        label_counts.table + own_column_wins_ties, maximize=True
    )
    order = np.arange(n_classes)
    for cycle in _nontrivial_cycles(best):
        if _is_surely_permuted(label_counts, cycle, best[cycle]):
            order[cycle] = best[cycle]
    if (order == np.arange(n_classes)).all():
        return None
    return order


def _may_be_permuted(label_counts: LabelPredictionCounts) -> bool:
    """Whether any cycle of columns can be sure: a table of 1,000 classes need not be assigned."""
    n_classes = len(label_counts.table)
    most = label_counts.worth * label_counts.table.max(axis=1)
    own = label_counts.worth * label_counts.table.diagonal()
    # The logarithm of Chernoff's bound is concave and homogeneous in the two counts: that of the
    # sums of a cycle is at least the sum of those of its classes. Each class must pay for the
    # number of cycles by itself, or it makes a cycle less sure.
    log_bound = 0.0
    for k in np.flatnonzero(most > own):
        log_tail = _log_binomial_tail_bound(most[k], own[k])
        log_bound += min(0.0, log_tail + math.log(n_classes))
    return log_bound < math.log(FALSE_CHECK_LEVEL)


def _is_surely_permuted(
    label_counts: LabelPredictionCounts, cycle: Codes, columns: Codes
) -> bool:
    """Whether the classes of a cycle surely have each other's `columns`."""
    counts = label_counts.table[cycle]
    rows = np.arange(len(cycle))
    moved = counts[rows, columns]
    own = counts[rows, cycle]
    log_n_cycles = len(cycle) * math.log(len(label_counts.table))
    n_moved = label_counts.worth * moved.sum()
    n_own = label_counts.worth * own.sum()
    if (
        _log_binomial_tail_bound(n_moved, n_own)
        >= math.log(FALSE_CHECK_LEVEL) - log_n_cycles
    ):
        return False

    # Also without the class that speaks loudest, at the level 0.001: where a class is merely
    # predicted too often, no other class speaks for the cycle.
    others = np.delete(rows, moved.argmax())
    n_moved = label_counts.worth * moved[others].sum()
    n_own = label_counts.worth * own[others].sum()
    if _log_binomial_tail_bound(n_moved, n_own) >= math.log(1e-3):
        return False

    # A model that calls everything a dog is no exchange of cats and dogs: in most classes of the
    # cycle the new column must lead all others, and clearly in the sum.
    counts[rows, columns] = 0.0
    runner_up = counts.max(axis=1)
    occurs = label_counts.table[cycle].sum(axis=1) > 0.0
    if not occurs.any() or np.mean(moved[occurs] > runner_up[occurs]) < 0.8:
        return False
    return bool(moved.sum() >= MIN_LEAD_FACTOR * runner_up.sum())


def find_likelier_order(predictions: Predictions, worth: float = 1.0) -> Codes | None:
    """Return the column in which each class seems to be by the likelihood of the labels, or None.

    For a cycle of columns ``E = prod_i x_i,moved(y_i) / x_i,y_i`` is an e-value: calibrated
    predictions give it a mean of 1, as ``sum_j x_ij x_i,moved(j) / x_ij = 1``, and so exceed
    ``c^L / FALSE_CHECK_LEVEL`` in any of the c^L cycles of L classes with a probability of at most
    `FALSE_CHECK_LEVEL` [1]_. That is for calibrated rows alone. Merely bad ones must not be taken
    for exchanged: the ratio is taken at twice the temperature; also without the class that speaks
    loudest it favours the cycle; most of its classes have their largest mean logarithm in the new
    column; and exchanged columns, at some temperature, tell more of the labels than the shares of
    the classes do.

    References
    ----------
    .. [1] V. Vovk, R. Wang (2021). E-values: calibration, combination and applications. The Annals
           of Statistics 49:1736-1754.
    """
    n_classes = predictions.n_classes
    if n_classes > MAX_CLASSES_ORDERED_BY_LIKELIHOOD:
        return None
    logs = np.log(predictions.probs)
    weight = worth * predictions.row_weight
    table = np.zeros((n_classes, n_classes))  # label, column: sum of log x
    for k in range(n_classes):
        rows = predictions.codes == k
        table[k] = weight[rows] @ logs[rows]
    if (table.max(axis=1) - table.diagonal()).sum() < -math.log(FALSE_CHECK_LEVEL):
        return None
    from scipy.optimize import linear_sum_assignment

    _, best = linear_sum_assignment(table, maximize=True)
    order = np.arange(n_classes)
    for cycle in _nontrivial_cycles(best):
        if _is_surely_likelier(table[cycle], cycle, best[cycle]):
            order[cycle] = best[cycle]
    if (order == np.arange(n_classes)).all():
        return None
    if not _tell_more_than_shares(predictions, logs[:, order], weight):
        return None
    return order


def _is_surely_likelier(table: Floats, cycle: Codes, columns: Codes) -> bool:
    """Whether the likelihood ratio of a cycle is beyond chance, and not the work of one class."""
    rows = np.arange(len(cycle))
    gain = table[rows, columns] - table[rows, cycle]
    log_n_cycles = len(cycle) * math.log(table.shape[1])
    # Half of it: the ratio of x^(1/2), whose logarithm is half, for rows that are twice too sure.
    if 0.5 * gain.sum() < log_n_cycles - math.log(FALSE_CHECK_LEVEL):
        return False
    if gain.sum() - gain.max() < -math.log(1e-3):
        return False
    occurs = table.any(axis=1)
    leads = table[rows, columns] >= table.max(axis=1)
    return bool(occurs.any() and np.mean(leads[occurs]) >= 0.8)


def _tell_more_than_shares(
    predictions: Predictions, logs: Floats, weight: Floats
) -> bool:
    """Whether probabilities, at the best of a few temperatures, beat the shares of the classes."""
    from scipy.special import log_softmax

    codes = predictions.codes
    counts = np.bincount(codes, weight, predictions.n_classes)
    by_shares = float(weight @ np.log(counts / counts.sum())[codes])
    rows = np.arange(len(codes))
    by_temperature = []
    for inverse_temperature in (
        1.0,
        0.5,
        0.25,
    ):  # sure predictions may be right, if tempered
        tempered = log_softmax(inverse_temperature * logs, axis=1)
        by_temperature.append(float(weight @ tempered[rows, codes]))
    return max(by_temperature) - by_shares > -math.log(FALSE_CHECK_LEVEL)


class LabelCovariances(NamedTuple):
    """Covariances of labels and columns, and what chance or calibration would show.

    Attributes
    ----------
    covariance : ndarray of shape (n_classes, n_classes)
        Of the indicator of each label (first index) with each column.
    observed : float
        Its trace: T of the module's text, per row.
    expected : float
        T of calibrated predictions, per row.
    null_sd : float
        Standard deviation of T per row over permutations of the labels.
    null_sum_of_squares : float
        Mean sum of squares of `covariance` over permutations of the labels.
    n_other_labels : float
        Rows of other labels than the most frequent one.
    """

    covariance: Floats
    observed: float
    expected: float
    null_sd: float
    null_sum_of_squares: float
    n_other_labels: float

    @classmethod
    def from_predictions(
        cls, predictions: Predictions, worth: float = 1.0
    ) -> LabelCovariances:
        """Return the covariances of labels and columns; a row is worth `worth` independent ones."""
        p = predictions
        counts = p.class_weight * worth
        total = float(counts.sum())
        shares = counts / total
        weight = p.row_weight * (worth / total)
        means = weight @ p.probs
        spread = (p.probs.T * weight) @ p.probs - np.outer(means, means)
        sums_by_label = [
            np.bincount(p.codes, weight * x, p.n_classes) for x in p.probs.T
        ]
        covariance = np.array(sums_by_label).T - np.outer(shares, means)
        expected = float(spread.trace())
        null_variance = (
            float(shares @ spread.diagonal() - shares @ spread @ shares) / total
        )
        return cls(
            covariance=covariance,
            observed=float(covariance.trace()),
            expected=expected,
            null_sd=math.sqrt(max(null_variance, 0.0)),
            null_sum_of_squares=float((1.0 - shares @ shares) * expected) / total,
            n_other_labels=total - float(counts.max()),
        )

    @property
    def are_unrelated(self) -> bool:
        """Whether the labels follow no column, where calibrated predictions would show clearly."""
        if self.n_other_labels < MIN_OTHER_LABEL_ROWS:
            return False
        if not self.expected > MIN_EXPECTED_Z * self.null_sd:
            return False
        if abs(self.observed) > MAX_Z_OF_NO_RELATION * self.null_sd:
            return False
        sum_of_squares = float((self.covariance**2).sum())
        return sum_of_squares <= MAX_Z_OF_NO_RELATION**2 * self.null_sum_of_squares

    @property
    def are_reversed(self) -> bool:
        """Whether the labels clearly follow the other columns than their own."""
        is_negative = self.observed < -MIN_Z_OF_REVERSAL * self.null_sd
        return is_negative and self.n_other_labels >= MIN_OTHER_LABEL_ROWS


def _count_labels_by_top_class(predictions: Predictions) -> LabelPredictionCounts:
    """Return how often rows of each label have each class as the most probable one."""
    c = predictions.n_classes
    top, _ = top_label(predictions.probs)
    label_and_top = predictions.codes * c + top
    counts = np.bincount(label_and_top, predictions.sample_weight, c * c)
    table = counts.reshape(c, c).astype(np.float64)
    return LabelPredictionCounts(table, _independent_rows_per_weight(predictions))


def _independent_rows_per_weight(predictions: Predictions) -> float:
    """Return independent rows for each unit of weight: 1 for rows that were counted (Kish)."""
    if predictions.groups is None and predictions.has_whole_weights:
        return 1.0
    weight = predictions.row_weight
    independent_weights = weight
    if predictions.groups is not None:
        independent_weights = np.bincount(predictions.groups, weight).astype(np.float64)
    return float(weight.sum() / (independent_weights**2).sum())


def _nontrivial_cycles(permutation: Codes) -> list[Codes]:
    """Return the cycles of a permutation that move something."""
    cycles = []
    left = set(np.flatnonzero(permutation != np.arange(len(permutation))).tolist())
    while left:
        first = min(left)
        cycle = [first]
        following = int(permutation[first])
        while following != first:
            cycle.append(following)
            following = int(permutation[following])
        left -= set(cycle)
        cycles.append(np.array(cycle))
    return cycles


def _log_binomial_tail_bound(n_more: float, n_fewer: float) -> float:
    """Return Chernoff's bound of log P(Binomial(n, 1/2) >= n_more), n the sum of both.

    0 unless there are more than `n_fewer`.
    """
    if n_more <= n_fewer:
        return 0.0
    total = n_more + n_fewer
    entropy = 0.0
    for count in (n_more, n_fewer):
        if count > 0.0:
            entropy -= count / total * math.log(count / total)
    return total * (entropy - math.log(2.0))


def _permuted_columns_statement(predictions: Predictions, order: Codes) -> Statement:
    """Return which classes seem to be in which columns."""
    hits = _count_labels_by_top_class(predictions)
    classes = predictions.classes
    moved = np.flatnonzero(order != np.arange(len(order)))
    column_of_class = {classes[k]: classes[order[k]] for k in moved}
    pairs = [
        f"class {ellipsis(label)!r} in column {ellipsis(column)!r}"
        for label, column in column_of_class.items()
    ]
    if len(pairs) > 4:
        pairs = [*pairs[:4], f"{len(pairs) - 4} more"]
    accuracy = hits.accuracy
    exchanged = hits.with_columns_ordered(order).accuracy
    template = (
        "The columns seem to be in another order: {order}. Accuracy is "
        f"{100 * accuracy:.1f} %, and would be {100 * exchanged:.1f} % with them exchanged. "
        "{check_columns}"
    )
    values = {"order": join_words(pairs)}
    numbers = {"columns": column_of_class, "accuracy": accuracy, "exchanged": exchanged}
    return Statement.filled("data_check.columns", template, values, "bad", numbers)


def _labels_of_other_rows_statement(predictions: Predictions) -> Statement:
    """Return that the labels seem to belong to other rows."""
    accuracy = _count_labels_by_top_class(predictions).accuracy
    top_probs = predictions.probs.max(axis=1)
    expected = float(np.average(top_probs, weights=predictions.sample_weight))
    largest_class = float(
        predictions.class_weight.max() / predictions.class_weight.sum()
    )
    words = (
        "The labels seem to belong to other rows: the probabilities tell nothing about them "
        f"(accuracy {100 * accuracy:.1f} %, where {100 * expected:.1f} % is expected). "
        "Check that both are in the same order."
    )
    numbers = {
        "accuracy": accuracy,
        "promised": expected,
        "largest_class": largest_class,
    }
    return Statement("data_check.rows", words, "bad", numbers)
