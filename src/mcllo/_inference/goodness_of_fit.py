"""`goodness_of_fit`: is anything wrong that the fitted map of shifts and slopes leaves?

Sizes, attribution and "divide the logits by" are those of a map g that was fitted to the rows. They
describe the rows only if what is left after the map is chance. Residuals are summed over cells of
rows, as Hosmer and Lemeshow do:

==================  ============================================================================
top cells           rows in `N_TOP_GROUPS` groups by top probability, equal in number;
                    ``R = sum (1[y = top] - g_top)``
class cells         for each class j rows in up to `MAX_CLASS_GROUPS` groups by ``x_j``, of about
                    equal variance ``sum x_j (1 - x_j)``; ``R = sum (1[y = j] - g_j)``
estimated map       ``R~ = R - C I^-1 s``: s the score of the labels, I its information, C the
                    covariance of R and s. Estimating the map moves R by the same to first order,
                    so that R~ does not depend on it (Andrews 1988; Nikulin 1973, Rao and Robson)
statistic           the larger one of ``sum R~^2 / (v + 1)`` over top cells and over class cells,
                    v the variance of R~, each less its mean and in its standard deviations. The 1
                    keeps a cell that expects next to nothing from deciding alone
==================  ============================================================================

Cells can be sparse, so chi-square is not used. If the map fits, labels are draws from g; R and s
are sums over labels, so a draw costs no fit (a parametric bootstrap, linearised). Labels of
rows that depend on each other cannot be drawn: the contributions of whole groups change their signs
at random instead, and v is the sum of their squares.

Where the test does not reject, the map may still be wrong by less than these rows show.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from .._fit.choice_fit import ChoiceFit
from .._fit.fit import MCLLOFit
from .._model.kernel import LogPartition, probabilities_and_log_sums
from .._utils.formatting import format_number
from .._utils.linalg import pseudo_inverse
from .._utils.parallel import one_blas_thread
from .._utils.results import Codes, Floats
from .._validation.predictions import Predictions
from .budget import BATCH_ENTRIES, FIT_WORK, MIN_DRAWS, N_RESAMPLES_REPEATED
from .hypothesis_test import TestResult
from .monte_carlo import (
    Seed,
    class_counts_and_sums,
    critical_value,
    draw_labels,
    seed_entropy,
)

N_TOP_GROUPS = 10  # Hosmer and Lemeshow's deciles
MIN_CLASS_GROUPS = 4
MAX_CLASS_GROUPS = 10
N_CLASS_CELLS = 40
"""Groups of a class: so many cells in all, few classes finely and many coarsely. A step between
25 and 75 % of 2,000 rows is found in 24 of 24 data sets with 10 groups, in 11 of 16 with 5."""
MAX_CLASSES_BY_CLASS = 50
"""Classes beyond which there are top cells alone: covariances of class cells cost their square."""
MAX_CLASSES = 400
"""Classes beyond which there is no test: the information has the square of so many entries."""
MAX_FLIPPED_ENTRIES = 4_000_000
"""Groups times cells whose signs are changed (32 MB); of more rows some are taken."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GoodnessOfFit(TestResult):
    """A test of H0: labels follow the fitted map of the predictions.

    Attributes
    ----------
    statistic, expected, high, pvalue : float
        The statistic, its mean if the map fits, what 95 % of such data sets stay below, and the
        p-value; NaN where there is no test.
    method : {'bootstrap', 'flip', 'none'}
        Labels drawn from the map, signs of groups changed at random, or no test.
    n_samples, n_resamples, seed : int
        Rows that were used, draws, and what they were made from.
    reason : str
        Why there is no test; else empty.
    """

    expected: float
    high: float
    n_samples: int
    left_out = ("df", "why")
    method_texts: ClassVar[Mapping[str, str]] = {
        "bootstrap": "simulated",
        "flip": "simulated",
    }

    @classmethod
    def without(cls, reason: str) -> GoodnessOfFit:
        """Return that there is no test, and why."""
        return cls(
            statistic=math.nan,
            df=None,
            pvalue=math.nan,
            method="none",
            reason=reason,
            expected=math.nan,
            high=math.nan,
            n_samples=0,
        )

    def __str__(self) -> str:
        if self.method == "none":
            return f"What the map leaves was not tested: {self.reason}"
        return (
            f"What the map leaves: {format_number(self.statistic)} (if the map is right: 95 % "
            f"below {format_number(self.high)}), {self.p_text} ({self.how})"
        )


@one_blas_thread()
def goodness_of_fit(
    predictions: Predictions,
    fit: MCLLOFit | ChoiceFit,
    *,
    n_resamples: int = N_RESAMPLES_REPEATED,
    seed: Seed = None,
) -> GoodnessOfFit:
    """Test whether the map leaves more than chance; `fit` may be that of more such rows.

    Parameters
    ----------
    predictions : Predictions
        The rows, with labels.
    fit : MCLLOFit or ChoiceFit
        The map that was fitted to them.
    n_resamples, seed
        Draws of labels, or of signs, at most: fewer of many rows.
    """
    if not fit.converged:
        return GoodnessOfFit.without("no finite map is best for these labels")
    if predictions.n_classes > MAX_CLASSES:
        return GoodnessOfFit.without(f"{predictions.n_classes:,} classes are too many")
    entropy = seed_entropy(seed)
    can_draw = predictions.has_whole_weights and predictions.groups is None
    rows = _expand_or_sample_rows(
        predictions.with_baseline(fit.baseline), entropy, can_draw=can_draw
    )
    basis = fit.basis if isinstance(fit, ChoiceFit) else None
    cells = _ResidualCells(rows, fit.theta, basis)
    affordable = max(MIN_DRAWS, FIT_WORK / len(cells.codes))
    n_draws = int(min(n_resamples, affordable))
    if can_draw:
        observed = cells.projected_residuals(cells.codes[None])
        drawn = [
            cells.projected_residuals(labels)
            for labels in _draw_labels(cells, n_draws, entropy)
        ]
        null = np.concatenate(drawn)
        variance = cells.variance + 1.0
    else:
        group_residuals = cells.residuals_by_group(rows)
        rng = np.random.default_rng([entropy, 2])
        signs = rng.choice([-1.0, 1.0], (n_draws, len(group_residuals)))
        observed = group_residuals.sum(axis=0, keepdims=True)
        null = signs @ group_residuals
        variance = np.maximum((group_residuals**2).sum(axis=0), 1e-300)
    residuals = np.concatenate([observed, null])
    statistics = _larger_standardized_sum(residuals**2 / variance, cells.n_top)
    value = float(statistics[0])
    drawn_values = statistics[1:]
    n_exceed = (drawn_values >= value - 1e-12).sum()  # equal but for rounding counts
    return GoodnessOfFit(
        statistic=value,
        df=None,
        pvalue=float(1 + n_exceed) / (n_draws + 1),
        method="bootstrap" if can_draw else "flip",
        n_resamples=n_draws,
        seed=entropy,
        expected=float(drawn_values.mean()),
        high=critical_value(drawn_values, 0.95),
        n_samples=rows.n_samples,
    )


def _expand_or_sample_rows(
    predictions: Predictions, seed: int, *, can_draw: bool
) -> Predictions:
    """Return the rows, each as often as it counts; of too many, some at random."""
    most = int(FIT_WORK / MIN_DRAWS)
    if not can_draw:
        n_cells = N_TOP_GROUPS + max(
            N_CLASS_CELLS, MIN_CLASS_GROUPS * predictions.n_classes
        )
        most = min(most, MAX_FLIPPED_ENTRIES // n_cells)
    elif predictions.sample_weight is not None and predictions.row_weight.sum() <= most:
        return predictions.expand_weights()
    if predictions.n_samples > most:
        rng = np.random.default_rng([seed, 3])
        taken = rng.choice(predictions.n_samples, most, replace=False, shuffle=False)
        predictions = predictions.take(np.sort(taken))
    # Very many counted rows: each stands for itself once, which tests the same with fewer rows.
    return replace(predictions, sample_weight=None) if can_draw else predictions


def _draw_labels(cells: _ResidualCells, n_draws: int, seed: int) -> list[Codes]:
    """Return labels drawn from the map, in batches that stay small."""
    probs = np.ascontiguousarray(cells.g.T)
    batch = max(1, BATCH_ENTRIES // len(probs))
    starts = range(0, n_draws, batch)
    return [
        draw_labels(probs, seed, start, min(batch, n_draws - start)) for start in starts
    ]


def _larger_standardized_sum(squares: Floats, n_top: int) -> Floats:
    """Return the larger one of both sums, each in standard deviations from its mean."""
    top_sums = squares[:, :n_top].sum(axis=1)
    class_sums = squares[:, n_top:].sum(axis=1)
    # Cells that the score determines leave rounding alone, which must not be standardised.
    used = [sums for sums in (top_sums, class_sums) if sums.std() > 1e-9]
    standardized = [(sums - sums.mean()) / sums.std() for sums in used]
    if not standardized:
        return np.zeros(len(squares))
    return np.max(standardized, axis=0)


class _ResidualCells:
    """Cells of rows for the labels of fixed predictions; columns in the order of the model."""

    def __init__(
        self, rows: Predictions, theta: Floats, basis: Floats | None = None
    ) -> None:
        n = rows.n_samples
        self.odds = rows.log_odds
        self.offered = rows.model_mask
        self.basis = basis
        self.weight = np.ones(n) if rows.has_whole_weights else rows.row_weight
        self.codes = rows.model_codes
        self.g, _ = probabilities_and_log_sums(theta, self.odds, self.offered)
        self.n_classes = len(self.g)
        # The predictions themselves, not a softmax of their log odds: groups must not hang on a
        # last digit, which differs between kernels, and equal predictions must stay together.
        if self.offered is None:
            others = np.delete(np.arange(self.n_classes), rows.baseline_index)
            x = rows.probs.T[[*others, rows.baseline_index]]
        else:  # the last class is the option that no row offers
            x = np.vstack([rows.probs.T, np.zeros(n)])
        self.top = x.argmax(axis=0)
        self.g_top = self.g[self.top, np.arange(n)]
        self.top_group = equal_weight_parts(x.max(axis=0), self.weight, N_TOP_GROUPS)
        self.n_top = int(self.top_group.max()) + 1
        self._place_class_cells(x)
        self._set_projection(theta)

    def _place_class_cells(self, x: Floats) -> None:
        """Set the cell of each class in each row, numbered through all classes."""
        self.class_cell = np.zeros(self.g.shape, dtype=np.intp)
        self.n_class_cells = 0
        if self.n_classes > MAX_CLASSES_BY_CLASS:
            return
        most = max(
            MIN_CLASS_GROUPS, min(MAX_CLASS_GROUPS, N_CLASS_CELLS // self.n_classes)
        )
        for j in range(self.n_classes):
            # By the predictions, not by the map: cells must not depend on labels.
            variance = self.weight * x[j] * (1.0 - x[j])
            n_groups = int(
                min(most, max(1.0, variance.sum() / 4.0))
            )  # 4: two rows either way
            group = equal_weight_parts(x[j], variance, n_groups)
            self.class_cell[j] = self.n_class_cells + group
            self.n_class_cells += int(group.max()) + 1

    @property
    def _classes_with_cells(self) -> range:
        """Columns of the classes that have cells of their own: all, or none."""
        return range(self.n_classes if self.n_class_cells else 0)

    def _set_projection(self, theta: Floats) -> None:
        """Set what the residuals of a cell lose for each unit of the score: C I^-1.

        And the variance that is left, ``v = diag(V - C I^-1 C')``.
        """
        k = self.n_classes - 1
        # In one row the covariance of 1[y = j] and the features of y is g_j (z_j - sum_l g_l z_l).
        g = self.g[:k]
        mean_features = np.concatenate([g, g * self.odds])
        covariances = [
            self._covariance_with_score(
                self.top_group, self.g_top, self.top, mean_features
            )
        ]
        variances = [self._count_variance(self.top_group, self.g_top)]
        for j in self._classes_with_cells:
            group = self.class_cell[j] - self.class_cell[j].min()
            counted_class = np.full(len(group), j)
            covariances.append(
                self._covariance_with_score(
                    group, self.g[j], counted_class, mean_features
                )
            )
            variances.append(self._count_variance(group, self.g[j]))
        covariance = np.concatenate(covariances)
        partition = LogPartition(self.odds, self.weight, offered=self.offered)
        inverse = _inverse_information(partition(theta).hessian, self.basis)
        self.projection = covariance @ inverse
        explained = np.einsum("ij,ij->i", self.projection, covariance)
        self.variance = np.maximum(np.concatenate(variances) - explained, 0.0)
        self.expected_cells = self._expected_counts()
        self.expected_score = mean_features @ self.weight

    def _count_variance(self, group: Codes, prob: Floats) -> Floats:
        """Return the variance of the count of each group, `prob` the chance that a row counts."""
        variance = self.weight * prob * (1.0 - prob)
        return np.asarray(np.bincount(group, variance), np.float64)

    def _covariance_with_score(
        self, group: Codes, prob: Floats, classes: Codes, mean_features: Floats
    ) -> Floats:
        """Return the covariance of counts of `classes` in each group with the score: (groups, 2K).

        `classes` has the class that is counted in each row, `prob` its probability.
        """
        k = self.n_classes - 1
        n_groups = int(group.max()) + 1
        covariance = np.empty((n_groups, 2 * k))
        for own in range(n_groups):
            rows = np.flatnonzero(group == own)
            expected = self.weight[rows] * prob[rows]
            covariance[own] = -mean_features[:, rows] @ expected
        # The counted class's own features; the reference class, the last, has none.
        rows = np.flatnonzero(classes < k)
        group_of_row = group[rows]
        class_of_row = classes[rows]
        expected = self.weight[rows] * prob[rows]
        np.add.at(covariance, (group_of_row, class_of_row), expected)
        expected_odds = expected * self.odds[class_of_row, rows]
        np.add.at(covariance, (group_of_row, k + class_of_row), expected_odds)
        return covariance

    def _expected_counts(self) -> Floats:
        """Return the counts of all cells that the map expects."""
        top = np.bincount(self.top_group, self.weight * self.g_top, self.n_top)
        if not self.n_class_cells:
            return np.asarray(top, np.float64)
        expected = (self.weight * self.g).ravel()
        by_class = np.bincount(self.class_cell.ravel(), expected, self.n_class_cells)
        return np.concatenate([top, by_class])

    def projected_residuals(self, labels: Codes) -> Floats:
        """Return the projected residuals of labels of shape (draws, n): (draws, cells)."""
        n = labels.shape[1]
        k = self.n_classes - 1
        hit = (labels == self.top).astype(np.float64)
        top_cell = np.broadcast_to(self.top_group, labels.shape)
        counts = _count_by_draw(top_cell, self.n_top, hit)
        if self.n_class_cells:
            class_cell = self.class_cell[labels, np.arange(n)]
            class_counts = _count_by_draw(class_cell, self.n_class_cells)
            counts = np.hstack([counts, class_counts])
        log_odds = np.concatenate([self.odds, np.zeros((1, n))])
        n_labels, odds_sums = class_counts_and_sums(labels, log_odds)
        sufficient = np.hstack([n_labels[:, :k], odds_sums[:, :k]])
        score = sufficient - self.expected_score
        return counts - self.expected_cells - score @ self.projection.T

    def residuals_by_group(self, rows: Predictions) -> Floats:
        """Return what each group adds to the projected residuals: (groups, cells).

        Where rows are in no groups, each is one.
        """
        n = len(self.codes)
        groups = np.arange(n)
        if rows.groups is not None:
            groups = np.unique(rows.groups, return_inverse=True)[1]
        n_groups = int(groups.max()) + 1
        k = self.n_classes - 1
        residual = -self.g
        residual[self.codes, np.arange(n)] += 1.0
        residual *= self.weight
        of_cells = np.zeros((n_groups, self.n_top + self.n_class_cells))
        residual_of_top = residual[self.top, np.arange(n)]
        np.add.at(of_cells, (groups, self.top_group), residual_of_top)
        for j in self._classes_with_cells:
            cell = self.n_top + self.class_cell[j]
            np.add.at(of_cells, (groups, cell), residual[j])
        score = np.zeros((n_groups, 2 * k))
        for j in range(k):
            by_gamma = residual[j] * self.odds[j]
            score[:, j] = np.bincount(groups, residual[j], n_groups)
            score[:, k + j] = np.bincount(groups, by_gamma, n_groups)
        return of_cells - score @ self.projection.T


def _inverse_information(hessian: Floats, basis: Floats | None) -> Floats:
    """Return the inverse of the information of what was estimated, in parameters of theta."""
    if basis is None:
        return pseudo_inverse(hessian)
    return basis @ pseudo_inverse(basis.T @ hessian @ basis) @ basis.T


def _count_by_draw(cell: Codes, n_cells: int, counts: Floats | None = None) -> Floats:
    """Return how many of each row of `cell` fall into each cell, or the sums of their `counts`."""
    n_draws = len(cell)
    offset = n_cells * np.arange(n_draws)[:, None]
    place = (cell + offset).ravel()
    weights = None if counts is None else counts.ravel()
    totals = np.bincount(place, weights, n_draws * n_cells)
    return totals.reshape(n_draws, n_cells).astype(np.float64)


def equal_weight_parts(values: Floats, weight: Floats, n_parts: int) -> Codes:
    """Return which of so many parts of about equal weight each value falls into, from 0 on.

    Equal values stay together, so that the order of the rows is nothing.
    """
    order = np.argsort(values, kind="stable")
    sorted_values = values[order]
    sorted_weight = weight[order]
    cumulative = np.cumsum(sorted_weight)
    total = max(float(cumulative[-1]), 1e-300)
    middle = (cumulative - 0.5 * sorted_weight) / total
    part = (middle * n_parts).astype(np.intp)
    part = np.minimum(part, n_parts - 1)
    first_of_equals = np.searchsorted(sorted_values, sorted_values, side="left")
    part_of_row = np.empty(len(values), dtype=np.intp)
    part_of_row[order] = part[first_of_equals]
    # Parts that no value fell into are none.
    _, numbered = np.unique(part_of_row, return_inverse=True)
    return np.asarray(numbered, np.intp)
