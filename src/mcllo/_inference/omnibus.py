"""Omnibus companions of the likelihood ratio test: they see departures that are not linear.

The likelihood ratio test looks for shifts and slopes of the log odds, and is blind to anything
orthogonal to those. Two tests that are not, both with exact p-values (labels drawn from the
predictions, `_inference/draws`):

==================  ==========================================================================
Hosmer-Lemeshow     rows in g groups of equal size by ``1 - x_ref``; ``sum_k D_k' V_k^-1 D_k`` with
                    ``D_k = sum (Y_i - x_i)`` and ``V_k = sum (diag x_i - x_i x_i')`` over group k,
                    one class left out; mean g (c - 1) under H0, and chi-square in large samples
kernel              the biased squared kernel calibration error of all pairs of rows (Widmann 2019)
==================  ==========================================================================

The quadratic form replaces the sum of ``(O - E)^2 / E`` of Fagerland, Hosmer and Bofin (2008),
whose degrees of freedom hold only for a model fitted on the same rows.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from .._ground.results import Floats, Result
from .._ground.text import format_number, format_p
from .._input.labels import find_class
from .._input.predictions import Predictions, TableOptions, judged_predictions, reads_rows
from ..exceptions import InputError
from ..metrics._unbinned import KernelError
from .budget import MOST_KERNEL_ENTRIES, MOST_KERNEL_ROWS, N_RESAMPLES_OMNIBUS
from .draws import MetricNull, Seed, metric_nulls
from .likelihood_tests import chi2_sf

Kind = Literal["hosmer_lemeshow", "kernel"]

N_GROUPS = 10
NAMES = {"hosmer_lemeshow": "Hosmer-Lemeshow", "kernel": "kernel"}


@dataclass(frozen=True, eq=False)
class OmnibusTest(Result):
    """A test of H0: labels follow the predicted probabilities, against any departure.

    Attributes
    ----------
    kind : {'hosmer_lemeshow', 'kernel'}
        Which statistic.
    statistic : float
        Its value.
    expected : float
        Its mean when the predictions are calibrated.
    pvalue : float
        Exact; by chi-square when `n_resamples` is 0.
    n_resamples, seed : int
        Draws of labels, and what they were made from.
    """

    kind: str
    statistic: float
    expected: float
    pvalue: float
    n_resamples: int
    seed: int | None

    @classmethod
    def from_null(cls, kind: str, null: MetricNull) -> OmnibusTest:
        """Return the test that a simulated null distribution gives."""
        return cls(kind, null.observed, null.mean, null.pvalue, null.n_resamples, null.seed)

    @classmethod
    def large_sample(cls, predictions: Predictions) -> OmnibusTest:
        """Return the Hosmer-Lemeshow test with its chi-square p-value, for very many rows."""
        statistic = HosmerLemeshow(predictions)
        value = float(statistic.of_labels(predictions.codes[None])[0])
        p = chi2_sf(value, statistic.df)
        return cls("hosmer_lemeshow", value, float(statistic.df), p, 0, None)

    def __str__(self) -> str:
        return (
            f"{NAMES[self.kind]} {format_number(self.statistic)} "
            f"(calibrated: about {format_number(self.expected)}), p {format_p(self.pvalue)}"
        )


class HosmerLemeshow:
    """The quadratic form of fixed predictions without weights, for any number of label vectors.

    Rows are ordered by the probability of `reference`, by default the baseline.
    """

    def __init__(
        self, predictions: Predictions, n_groups: int = N_GROUPS, reference: Any = None
    ) -> None:
        probs = predictions.probs
        n, c = probs.shape
        self.n_groups, self.n_classes = min(n_groups, n), c
        column = predictions.baseline_index
        if reference is not None:
            column = find_class(reference, predictions.classes, "reference")
        order = np.argsort(1.0 - probs[:, column], kind="stable")
        self.group = np.empty(n, dtype=np.intp)
        for k, rows in enumerate(np.array_split(order, self.n_groups)):
            self.group[rows] = k
        grouped = [probs[self.group == k] for k in range(self.n_groups)]
        self.expected = np.array([rows.sum(axis=0) for rows in grouped])
        self._inverse = np.array([_inverse_spread(rows) for rows in grouped])

    @property
    def df(self) -> int:
        """Degrees of freedom: the exact mean under H0."""
        return int(self.n_groups * (self.n_classes - 1))

    def of_labels(self, labels: NDArray[np.intp]) -> Floats:
        """Return the statistic of each row of `labels`, shape (n_draws, n_samples)."""
        d = (self.observed(labels) - self.expected)[:, :, :-1]
        return np.einsum("bki,kij,bkj->b", d, self._inverse, d, optimize=True)

    def observed(self, labels: NDArray[np.intp]) -> Floats:
        """Return counts of each class in each group, shape (n_draws, n_groups, n_classes)."""
        g, c, size = self.n_groups, self.n_classes, len(labels)
        cells = labels + c * self.group + (g * c * np.arange(size))[:, None]
        counts = np.bincount(cells.ravel(), minlength=size * g * c)
        return counts.reshape(size, g, c).astype(np.float64)


@reads_rows(TableOptions)
def omnibus_test(
    probs: Any,
    y: Any = None,
    *,
    kind: Kind = "hosmer_lemeshow",
    n_groups: int = N_GROUPS,
    n_resamples: int = N_RESAMPLES_OMNIBUS,
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
        Observed against expected counts in groups of rows ordered by the baseline's probability;
        or the kernel calibration error, for up to a few thousand rows.
    n_groups : int
        Groups of the Hosmer-Lemeshow test.
    n_resamples, seed
        Draws of labels for the exact p-value.
    baseline, **data
        How rows are read, as in `Predictions.from_arrays`: `classes`, `sample_weight`,
        `normalize`, `clip`.

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
    if kind not in NAMES:
        raise InputError(f"kind must be 'hosmer_lemeshow' or 'kernel'; got {kind!r}.")
    if isinstance(n_groups, bool) or not isinstance(n_groups, (int, np.integer)) or n_groups < 1:
        raise InputError(f"n_groups must be a whole number >= 1; got {n_groups!r}.")
    predictions = judged_predictions(probs, y, independent=True, baseline=baseline, **data)
    metric = KernelError if kind == "kernel" else partial(HosmerLemeshow, n_groups=n_groups)
    null = metric_nulls(predictions, {kind: metric}, n_resamples=n_resamples, seed=seed)
    return OmnibusTest.from_null(kind, null[kind])


def kernel_companion(
    predictions: Predictions, n_resamples: int, seed: int
) -> dict[str, MetricNull]:
    """Return the kernel test where the rows are few enough for all pairs, else nothing."""
    total = float(predictions.class_weight.sum())
    many = total > MOST_KERNEL_ROWS or total * predictions.n_classes > MOST_KERNEL_ENTRIES
    if many or not predictions.has_whole_weights:
        return {}
    return metric_nulls(predictions, {"kernel": KernelError}, n_resamples=n_resamples, seed=seed)


def _inverse_spread(probs: Floats) -> Floats:
    """Return the inverse covariance of a group's counts, the last class left out."""
    spread = np.diag(probs.sum(axis=0)) - probs.T @ probs
    return np.asarray(np.linalg.pinv(spread[:-1, :-1], rcond=1e-13, hermitian=True), np.float64)
