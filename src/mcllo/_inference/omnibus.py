"""Omnibus tests beside the likelihood ratio test: they see departures that are not linear.

The likelihood ratio test looks for shifts and slopes of the log odds, and is blind to anything
orthogonal to those. Two tests that are not, both with exact p-values (labels drawn from the
predictions, `_inference/monte_carlo`):

==================  ==========================================================================
Hosmer-Lemeshow     rows in g groups of equal size by ``1 - x_ref``; ``sum_k D_k' V_k^-1 D_k`` with
                    ``D_k = sum (Y_i - x_i)`` and ``V_k = sum (diag x_i - x_i x_i')`` over group k,
                    one class left out; mean g (c - 1) under H0, and chi-square in large samples
kernel              the biased squared kernel calibration error of all pairs of rows (Widmann 2019)
==================  ==========================================================================

The quadratic form replaces the sum of ``(O - E)^2 / E`` of Fagerland, Hosmer and Bofin (2008),
whose degrees of freedom hold only for a model fitted on the same rows.

Tables too large to simulate get chi-square, and that only for what varies enough: a count that
expects almost nothing would make the form heavy-tailed (196 on 90 df for calibrated rows, once in
some twenty tables). In each group

==========  ========================================================================================
classes     whose count has a variance below `MIN_COUNT_VARIANCE` are pooled, in column order, until
            the pooled count has one; what remains at the end is left out
groups      in which no such count is found are merged with the next one
directions  of the counts D, eigenvectors u of their V with ``u'Vu < MIN_COUNT_VARIANCE``, are left
            out; ``sum (u'D)^2 / u'Vu`` of the others, their number the df
==========  ========================================================================================

None of it looks at the labels. Where all counts vary enough this is the quadratic form itself.
Independent Poisson counts of variance 20, 1 to 90 of them: rejected 5.1 to 5.6 % at 5 %, at most
1.2 % at 1 % and 0.16 % at 0.1 % (of variance 5: 6.0, 1.5 and 0.30 %).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from .._model.many_classes import MIN_CLASSES_FOR_PCG
from .._utils.formatting import format_number
from .._utils.linalg import inverse_if_well_conditioned
from .._utils.results import Floats
from .._validation.predictions import Predictions, predictions_for_inference
from .._validation.row_options import TableOptions, takes_row_options
from ..exceptions import InputError
from ..metrics._unbinned import KernelError
from .budget import MAX_KERNEL_ENTRIES, MAX_KERNEL_ROWS, N_RESAMPLES_SINGLE
from .hypothesis_test import TestResult
from .likelihood_tests import chi2_sf
from .monte_carlo import MetricNull, Seed, metric_nulls

Kind = Literal["hosmer_lemeshow", "kernel"]

N_GROUPS = 10  # Hosmer and Lemeshow's deciles
MIN_COUNT_VARIANCE = 20.0
"""Variance of a count from which its square is chi-square; see the sizes at the end of the text."""
MAX_MERGED_GROUPS = 3
"""Groups whose rows of many classes are copied at once."""
TABLE_TOO_LARGE = "the table is too large to simulate"
TEST_NAMES = {"hosmer_lemeshow": "Hosmer-Lemeshow", "kernel": "kernel"}


@dataclass(frozen=True, eq=False, kw_only=True)
class OmnibusTest(TestResult):
    """A test of H0: labels follow the predicted probabilities, against any departure.

    Attributes
    ----------
    kind : {'hosmer_lemeshow', 'kernel'}
        Which statistic.
    statistic, expected, pvalue : float
        Its value, its mean when the predictions are calibrated, and the p-value by `method`.
    n_resamples, seed : int
        Draws of labels, and what they were made from.
    low, high : float
        Where 95 % of calibrated data sets lie: from 0, as only large values speak against
        calibration, to what `statistic` exceeds exactly where ``pvalue <= 0.05``.
    method : {'exact', 'chi2', 'none'}
        How the p-value was computed: by drawing labels from the predictions, by chi-square, or not
        at all; numbers are then NaN.
    df : int or None
        Degrees of freedom of chi-square.
    reason, why : str, Reason or None
        Why labels were not drawn, in words and as facts.

    See Also
    --------
    omnibus_test : Makes it.
    CalibrationTest : The main test.
    Assessment : Has two as `omnibus_tests`.

    Notes
    -----
    The statistics are variants of those of [1]_ and [2]_; `omnibus_test` says where they differ.

    References
    ----------
    .. [1] M. W. Fagerland, D. W. Hosmer, A. M. Bofin (2008). Multinomial goodness-of-fit tests for
           logistic regression models. Statistics in Medicine 27:4238-4253.
    .. [2] D. Widmann, F. Lindsten, D. Zachariah (2019). Calibration tests in multi-class
           classification: a unifying framework. arXiv:1910.11385.

    Examples
    --------
    >>> import mcllo
    >>> probs = [[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]] * 10
    >>> y = [0, 1, 1, 0, 0, 0, 1, 1] * 5
    >>> test = mcllo.omnibus_test(probs, y, n_groups=2, seed=0)
    >>> test.kind, test.method, test.pvalue > 0.05
    ('hosmer_lemeshow', 'exact', True)
    """

    kind: str
    expected: float
    low: float
    high: float
    method_texts: ClassVar[Mapping[str, str]] = {
        "exact": "simulated",
        "chi2": "chi-square on {df} df",
    }

    @classmethod
    def from_null(cls, kind: str, null: MetricNull) -> OmnibusTest:
        """Return the test that a simulated null distribution (of level 0.95) gives."""
        return cls(
            statistic=null.observed,
            df=None,
            pvalue=null.pvalue,
            method="exact",
            n_resamples=null.n_resamples,
            seed=null.seed,
            kind=kind,
            expected=null.mean,
            low=0.0,
            high=null.critical,
        )

    @classmethod
    def large_sample(cls, predictions: Predictions) -> OmnibusTest:
        """Return the Hosmer-Lemeshow test with its chi-square p-value, for very many rows."""
        groups = HosmerLemeshow(predictions)
        excess = groups.observed(predictions.codes[None])[0] - groups.expected
        form = None
        if predictions.n_classes >= MIN_CLASSES_FOR_PCG:
            form = _quadratic_form_by_columns(predictions.probs, groups.group, excess)
        if form is None:
            form = pooled_quadratic_form(excess, groups.spread)
        return cls.of_form(*form)

    @classmethod
    def of_groups(cls, excess: Floats, spread: Floats) -> OmnibusTest:
        """Return the same from counts less what was expected, (g, c), and their covariances."""
        return cls.of_form(*pooled_quadratic_form(excess, spread))

    @classmethod
    def of_form(cls, value: float, df: int) -> OmnibusTest:
        """Return the same from the value of the quadratic form and its df."""
        from scipy.special import chdtri

        if df == 0:
            return cls(
                statistic=math.nan,
                df=None,
                pvalue=math.nan,
                method="none",
                reason=f"{TABLE_TOO_LARGE}, and its groups expect too little for chi-square",
                kind="hosmer_lemeshow",
                expected=math.nan,
                low=math.nan,
                high=math.nan,
            )
        return cls(
            statistic=value,
            df=df,
            pvalue=chi2_sf(value, df),
            method="chi2",
            reason=TABLE_TOO_LARGE,
            kind="hosmer_lemeshow",
            expected=float(df),
            low=0.0,
            high=float(chdtri(df, 0.05)),
        )

    @property
    def statistic_text(self) -> str:
        """The statistic, with as many digits as tell it from the end of its range."""
        return self._rounded_value_and_end[0]

    @property
    def null_text(self) -> str:
        """What calibrated predictions would show; agrees with the p-value as printed."""
        return (
            f"95 % below {self._rounded_value_and_end[1]}"
            if math.isfinite(self.high)
            else "-"
        )

    @property
    def how(self) -> str:
        """How the p-value was computed, or why not."""
        return f"left out: {self.reason}" if self.method == "none" else super().how

    def __str__(self) -> str:
        if self.method == "none":
            return f"{TEST_NAMES[self.kind]} {self.how}"
        return (
            f"{TEST_NAMES[self.kind]} {self.statistic_text} (calibrated: {self.null_text}), "
            f"{self.p_text} ({self.how})"
        )

    @property
    def _rounded_value_and_end(self) -> tuple[str, str]:
        """Statistic and end of its range, with as many digits as tell them apart."""
        for digits in range(3, 9):
            statistic = format_number(self.statistic, digits)
            high = format_number(self.high, digits)
            if statistic != high:
                break
        return statistic, high


class HosmerLemeshow:
    """The quadratic form of fixed predictions without weights, for any number of label vectors.

    Rows are ordered by the probability of the baseline.
    """

    def __init__(self, predictions: Predictions, n_groups: int = N_GROUPS) -> None:
        self._probs = predictions.probs
        n, self.n_classes = self._probs.shape
        self.n_groups = min(n_groups, n)
        order = np.argsort(
            1.0 - self._probs[:, predictions.baseline_index], kind="stable"
        )
        self.group = np.empty(n, dtype=np.intp)
        for k, rows in enumerate(np.array_split(order, self.n_groups)):
            self.group[rows] = k
        self.expected = np.empty((self.n_groups, self.n_classes))
        for k in range(self.n_groups):
            self.expected[k] = self._probs[self.group == k].sum(axis=0)

    @cached_property
    def spread(self) -> Floats:
        """The covariance of each group's counts, shape (n_groups, n_classes, n_classes)."""
        spread = np.empty((self.n_groups, self.n_classes, self.n_classes))
        for k, own in enumerate(spread):
            rows = self._probs[self.group == k]
            np.subtract(np.diag(self.expected[k]), rows.T @ rows, out=own)
        return spread

    @cached_property
    def _inverse(self) -> Floats:
        """The inverse covariance of each group's counts, the last class left out."""
        inverses = []
        for covariance in self.spread[:, :-1, :-1]:
            # A Cholesky factor takes a fraction of the time of a pseudo-inverse, but needs a matrix
            # that is surely definite: no class of these rows may be all but impossible.
            inverse = inverse_if_well_conditioned(covariance, 1e-13)
            if inverse is None:
                inverse = np.linalg.pinv(covariance, 1e-13, hermitian=True)
            inverses.append(inverse)
        return np.array(inverses)

    def of_labels(self, labels: NDArray[np.intp]) -> Floats:
        """Return the statistic of each row of `labels`, shape (n_draws, n_samples)."""
        if self._few_rows is not None:
            size = max(1, FEW_ROWS_ENTRIES // self.expected.size)
            starts = range(0, len(labels), size)
            parts = [self._of_few_rows(labels[k : k + size]) for k in starts]
            return np.concatenate(parts)
        excess = (self.observed(labels) - self.expected)[:, :, :-1]
        return np.einsum("bki,kij,bkj->b", excess, self._inverse, excess, optimize=True)

    def _of_few_rows(self, labels: NDArray[np.intp]) -> Floats:
        assert self._few_rows is not None
        excess = self.observed(labels) - self.expected
        total = np.zeros(len(labels))
        for k, form in enumerate(self._few_rows):
            total += form(excess[:, k])
        return total

    @cached_property
    def _few_rows(self) -> list[QuadraticFormOfFewRows] | None:
        """The forms of groups that have far fewer rows than there are classes, else None."""
        n, n_classes = self._probs.shape
        if n_classes < MIN_CLASSES_OF_FEW_ROWS or 8 * n > n_classes * self.n_groups:
            return None
        groups = [self._probs[self.group == k] for k in range(self.n_groups)]
        return [QuadraticFormOfFewRows(rows) for rows in groups]

    def observed(self, labels: NDArray[np.intp]) -> Floats:
        """Return counts of each class in each group, shape (n_draws, n_groups, n_classes)."""
        n_draws = len(labels)
        shape = (n_draws, self.n_groups, self.n_classes)
        n_cells = self.n_groups * self.n_classes  # of a draw
        offset = n_cells * np.arange(n_draws)[:, None]
        cells = labels + self.n_classes * self.group + offset
        counts = np.bincount(cells.ravel(), minlength=n_draws * n_cells)
        return counts.reshape(shape).astype(np.float64)


MIN_CLASSES_OF_FEW_ROWS = 200
"""Classes from which the form of few rows pays: a round number."""
FEW_ROWS_ENTRIES = 500_000
"""Counts that are made at a time there: 4 MB."""


class QuadraticFormOfFewRows:
    """``e' C^+ e`` of the counts of m rows, where there are far more classes than rows.

    The covariance of the counts is ``C = D - P'P``, D the diagonal of the expected counts and P the
    m rows. With the most expected class left out, which changes nothing, and ``Q = D^(-1/2) P'``,

    ``C^-1 = D^(-1/2) (I + Q (I - Q'Q)^-1 Q') D^(-1/2)``

    needs the inverse of m x m numbers. For one row it is Pearson's chi-square. Classes that are all
    but impossible count nothing, as in a pseudo-inverse.
    """

    def __init__(self, probs: Floats) -> None:
        expected = probs.sum(axis=0)
        kept = expected > 1e-13 * expected.max()
        kept[int(expected.argmax())] = False
        self._kept = np.flatnonzero(kept)
        self._root = np.sqrt(expected[self._kept])
        self._q = (probs[:, self._kept] / self._root).T
        values, vectors = np.linalg.eigh(self._q.T @ self._q)
        rest = np.maximum(1.0 - values, np.finfo(np.float64).eps)
        self._middle = (vectors / rest) @ vectors.T

    def __call__(self, excess: Floats) -> Floats:
        """Return the form of each row of excess counts, shape (n_draws, n_classes)."""
        scaled = excess[:, self._kept] / self._root
        seen = scaled @ self._q
        own = np.einsum("bj,bj->b", scaled, scaled)
        return own + np.einsum("bi,ij,bj->b", seen, self._middle, seen)


@takes_row_options(TableOptions)
def omnibus_test(
    probs: Any = None,
    y: Any = None,
    *,
    kind: Kind = "hosmer_lemeshow",
    n_groups: int = N_GROUPS,
    n_resamples: int = N_RESAMPLES_SINGLE,
    seed: Seed = None,
    baseline: Hashable | None = None,
    **data: Unpack[TableOptions],
) -> OmnibusTest:
    """Test calibration against departures of any shape.

    Parameters
    ----------
    probs : array-like, frame or Predictions
        Predicted probabilities, shape (n_samples, n_classes).
    y : array-like of shape (n_samples,)
        The labels that came true; not given beside a `Predictions`.
    kind : {'hosmer_lemeshow', 'kernel'}
        Observed against expected counts in groups of rows ordered by the baseline's probability; or
        the kernel calibration error, for up to a few thousand rows.
    n_groups : int
        Groups of the Hosmer-Lemeshow test.
    n_resamples : int
        Draws of labels for the exact p-value.
    seed : int or numpy Generator, optional
        Makes draws repeatable.
    baseline : label, optional
        Reference class of the log odds. Default: the last class that occurs in `y`.
    logits, classes, prefix, sample_weight, normalize, clip, missing : optional
        How rows are read; each is described in `Predictions.from_arrays`.

    Returns
    -------
    OmnibusTest
        `statistic`, `expected`, `pvalue`, `method`; ``print`` it.

    See Also
    --------
    OmnibusTest : What comes out.
    calibration_test : More powerful where log odds are off by a shift or slope.
    mcllo.metrics.kernel_calibration_error : The statistic of the kernel test.
    assess : Runs both beside the main test.

    Notes
    -----
    The multinomial Hosmer-Lemeshow test of [1]_ sums ``(O - E)^2 / E``, whose degrees of freedom
    hold for a model fitted on the same rows. Here predictions are given, and the statistic is the
    quadratic form of ``O - E`` in its covariance, with mean g (c - 1) under H0 for g groups and c
    classes. The kernel statistic is the biased one of [2]_, with p-values from drawn labels.

    References
    ----------
    .. [1] M. W. Fagerland, D. W. Hosmer, A. M. Bofin (2008). Multinomial goodness-of-fit tests for
           logistic regression models. Statistics in Medicine 27:4238-4253.
    .. [2] D. Widmann, F. Lindsten, D. Zachariah (2019). Calibration tests in multi-class
           classification: a unifying framework. arXiv:1910.11385.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(0.1, 0.9, size=2000)
    >>> truth = x + 0.08 * np.cos(4 * np.pi * (x - 0.5) / 0.8)  # a wave: no shift, no slope
    >>> y = (rng.random(2000) < truth).astype(int)
    >>> omnibus_test(np.column_stack([1 - x, x]), y, seed=0).pvalue < 0.01
    True
    """
    if kind not in TEST_NAMES:
        raise InputError(f"kind must be 'hosmer_lemeshow' or 'kernel'; got {kind!r}.")
    if (
        isinstance(n_groups, bool)
        or not isinstance(n_groups, (int, np.integer))
        or n_groups < 1
    ):
        raise InputError(f"n_groups must be a whole number >= 1; got {n_groups!r}.")
    predictions = predictions_for_inference(
        probs, y, independent=True, baseline=baseline, **data
    )
    metric = (
        KernelError if kind == "kernel" else partial(HosmerLemeshow, n_groups=n_groups)
    )
    null = metric_nulls(predictions, {kind: metric}, n_resamples=n_resamples, seed=seed)
    return OmnibusTest.from_null(kind, null[kind])


def kernel_omnibus_test(
    rows: Predictions, n_resamples: int, seed: int
) -> dict[str, MetricNull]:
    """Return the kernel test where the rows are few enough for all pairs, else nothing."""
    n_rows = float(rows.class_weight.sum())
    is_large = n_rows > MAX_KERNEL_ROWS or n_rows * rows.n_classes > MAX_KERNEL_ENTRIES
    if is_large or not rows.has_whole_weights:
        return {}
    return metric_nulls(
        rows, {"kernel": KernelError}, n_resamples=n_resamples, seed=seed
    )


def pooled_quadratic_form(excess: Floats, spread: Floats) -> tuple[float, int]:
    """Return the quadratic form of what varies enough for chi-square, and its df."""
    # Groups wait until a count among them varies enough; those that wait at the end join the last.
    merged: list[list[int]] = []
    waiting: list[int] = []
    for k in range(len(spread)):
        waiting.append(k)
        if len(_classes_of_counts(spread[waiting].sum(axis=0))) > 0:
            merged.append(waiting)
            waiting = []
    if merged:
        merged[-1] += waiting
    value = 0.0
    df = 0
    for groups in merged:
        covariance = spread[groups].sum(axis=0)
        cells = _classes_of_counts(covariance)
        pooled_excess = cells @ excess[groups].sum(axis=0)
        own_value, own_df = _quadratic_form(pooled_excess, cells @ covariance @ cells.T)
        value += own_value
        df += own_df
    return value, df


def _quadratic_form(excess: Floats, covariance: Floats) -> tuple[float, int]:
    """Return ``sum (u'D)^2 / u'Vu`` over eigenvectors u that vary enough, and their number."""
    variance, directions = np.linalg.eigh(covariance)
    varies = variance >= MIN_COUNT_VARIANCE
    along = directions[:, varies].T @ excess
    value = float((along**2 / variance[varies]).sum())
    return value, int(varies.sum())


def _quadratic_form_by_columns(
    probs: Floats, group: NDArray[np.intp], excess: Floats
) -> tuple[float, int] | None:
    """Return the same from the rows, without covariances of all classes.

    None where more than `MAX_MERGED_GROUPS` groups had to be merged, rows and all.
    """

    def form_of_groups(groups: list[int]) -> tuple[float, int] | None:
        """Return the form of merged groups; None where no count varies enough."""
        rows = np.flatnonzero(np.isin(group, groups))
        columns, pooled_excess = _pooled_columns(
            probs, rows, excess[groups].sum(axis=0)
        )
        if not len(columns):
            return None
        covariance = np.diag(columns.sum(axis=1)) - columns @ columns.T
        return _quadratic_form(pooled_excess, covariance)

    forms: list[tuple[float, int]] = []
    merged: list[int] = []  # the groups of the last form
    waiting: list[int] = []
    for k in range(len(excess)):
        waiting.append(k)
        if len(waiting) > MAX_MERGED_GROUPS:
            return None
        form = form_of_groups(waiting)
        if form is not None:
            forms.append(form)
            merged = waiting
            waiting = []
    if waiting and forms:
        merged = merged + waiting
        if len(merged) > MAX_MERGED_GROUPS:
            return None
        forms[-1] = form_of_groups(merged) or forms[-1]
    value = sum(value for value, _ in forms)
    df = sum(df for _, df in forms)
    return value, df


def _pooled_columns(
    probs: Floats, rows: NDArray[np.intp], excess: Floats
) -> tuple[Floats, Floats]:
    """Return the pooled columns whose counts vary enough, (n_cells, n), and what these exceed.

    The variance of a count is ``sum q (1 - q)``, q its column.
    """
    pooled = []
    pooled_excess = []
    pool = np.zeros(len(rows))
    pool_excess = 0.0
    step = 100  # columns that are copied at once
    for first in range(0, probs.shape[1], step):
        part = slice(first, first + step)
        columns = np.ascontiguousarray(probs[rows, part].T)
        for column, own_excess in zip(columns, excess[part].tolist(), strict=True):
            if float(column.sum() - column @ column) >= MIN_COUNT_VARIANCE:
                # A copy, or the whole block of columns would stay in memory.
                pooled.append(column.copy())
                pooled_excess.append(own_excess)
                continue
            pool += column
            pool_excess += own_excess
            if float(pool.sum() - pool @ pool) >= MIN_COUNT_VARIANCE:
                pooled.append(pool)
                pooled_excess.append(pool_excess)
                pool = np.zeros(len(rows))
                pool_excess = 0.0
    return np.array(pooled), np.array(pooled_excess)


def _classes_of_counts(spread: Floats) -> Floats:
    """Return which classes make up each count that varies enough, shape (n_cells, n_classes)."""
    n_classes = len(spread)
    cells = []
    pool = np.zeros(n_classes)
    pool_variance = 0.0
    for j, variance in enumerate(spread.diagonal()):
        if variance >= MIN_COUNT_VARIANCE:
            cells.append(np.eye(1, n_classes, j)[0])
            continue
        pool_variance += float(variance + 2.0 * spread[j] @ pool)
        pool[j] = 1.0
        if pool_variance >= MIN_COUNT_VARIANCE:
            cells.append(pool)
            pool = np.zeros(n_classes)
            pool_variance = 0.0
    return np.array(cells)
