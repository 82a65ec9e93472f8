"""Labels of weighted and of grouped rows as H0 has them: what robust tests are compared with.

H0 says how likely each label of a row was, not how rows came to be here, nor how rows of a group
hang together. With ``x_ij`` the predictions and ``s_ij`` the score of row i under label j:

====================  ======================================================================
weight of a label     ``w_ij = b_i a_ij``: what row i weighs, or would have weighed, under label
                      j; ``log a_ij = e_j + h 1[j is the top class]`` by least squares of
                      ``log w_i``, beside the row's log odds, shrunk by ``1 - F_crit / F``
chance of a label     ``q_ij = (x_ij / w_ij) / sum_k (x_ik / w_ik)``: rows are here with a chance
                      of ``1 / w_ij``, so labels of large weight are rare
mean of a row         ``sum_j q_ij w_ij s_ij = 0``, whatever the weights
statistic             ``T = (U - m)' V^-1 (U - m)``; m, V mean and variance of ``U = sum w s``
p-value of weights    ``T* >= T``, labels drawn from q
dependence r          each row takes its group's uniform number with chance r, else its own
skewness              ``k = sum_g E |W_g|^2 W_g / (sum_g E |W_g|^2)^1.5`` for r = 1; of one
                      group ``|sum_g E |W_g|^2 W_g| / sum_g (E |W_g|^2)^1.5``
p-value of groups     the largest of ``P_r(S* / Q* >= S / Q | U* on the same side of k)`` over
                      the r with ``P_r(Q* <= Q) >= 0.05``; ``S = |sum_g W_g|^2``,
                      ``Q = sum_g |W_g|^2``, W_g the score of a group in units of its spread
====================  ======================================================================

Where weights are a function of the label (or of the label and of being right) the first p-value is
exact, and where they have nothing to do with the labels it is too. A class that no row has is left
out of the draws where weights depend on the label: nobody knows what its rows would have weighed.

The second is for groups whose scores are skewed. Rare events come in bursts where rows of a group
hang together; while none has come, nothing in the rows shows that one might, and signs flipped at
random find the few events that there are too few. A sum of squares as small as the observed one
tells which dependence is out of the question; and too few events are compared with too few, too
many with too many.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .._fit.objective import free_parameters
from .._utils.linalg import whitening_matrix
from .._utils.results import Codes, Floats
from .._validation.predictions import Predictions
from .budget import BATCH_ENTRIES, N_EXCEEDANCES, WORK_WITHOUT_EARLY_STOP
from .hypothesis_test import TestResult
from .monte_carlo import (
    draw_labels,
    labels_from_uniforms,
    monte_carlo_pvalue,
    uniform_draws,
)

TIE_TOL = 1e-9  # relative difference of statistics that counts as none
WEIGHT_EFFECT_LEVEL = 0.05  # of the test that weights have to do with labels
DEPENDENCE_STRENGTHS = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
"""Chances that a row takes the uniform number of its group: a grid of round numbers."""
DEPENDENCE_EXCLUSION_LEVEL = 0.05
"""Chance of a sum of squares as small, below which a dependence is out of the question."""
MAX_SKEWNESS = {"score": 0.3, "group": 1.0}
"""Skewness of the whole score, and of the score of one group, up to which sign flips are trusted.
Round numbers: the flips' null distribution is symmetric."""


class RowsUnderNull:
    """Rows that count, in an order of their own, with q, w and what makes up the scores.

    The baseline is the last class. Frequencies are expanded, other weights looked at label by
    label. `starts` is where groups begin; `weights_depend_on_labels` says so.
    """

    def __init__(self, predictions: Predictions) -> None:
        rows = predictions.expand_weights() if predictions.counts_rows else predictions
        b = rows.baseline_index
        others = np.delete(rows.probs, b, axis=1)
        probs = np.column_stack([others, rows.probs[:, b]])
        order, self.starts = _sort_rows(rows, probs, rows.row_weight)
        self.n = len(order)
        self.probs = probs[order]
        self.odds = rows.log_odds.T[order]
        self.codes = rows.model_codes[order]
        self.free = free_parameters(rows.log_odds)
        row_weight = rows.row_weight[order]

        log_effects = np.zeros(self.probs.shape)  # log a_ij
        self.weights_depend_on_labels = False
        if not rows.counts_rows:
            log_effects, self.weights_depend_on_labels = log_weight_effects(
                self.probs, self.odds, self.codes, np.log(row_weight)
            )
        # The weight that is known is that of the label that came true: b_i = w_i / a_i,y_i.
        effect_of_label = log_effects[np.arange(self.n), self.codes]
        row_part = row_weight * np.exp(-effect_of_label)
        self.weight = row_part[:, None] * np.exp(log_effects)
        self.chance = self.probs * np.exp(-log_effects)
        if self.weights_depend_on_labels:
            is_absent = np.bincount(self.codes, minlength=rows.n_classes) == 0
            self.chance[:, is_absent] = 0.0
        self.chance /= self.chance.sum(axis=1, keepdims=True)
        n_possible_labels = int((self.chance > 0.0).any(axis=0).sum())
        self.one_label = n_possible_labels == 1
        self.expected = self._features(
            self.probs
        )  # what a label takes from the score of its row

    def _features(self, values: Floats) -> Floats:
        """Return ``(v, v l)`` of a number for each row and class, l the log odds."""
        k = self.odds.shape[1]
        compared = values[:, :k]
        return np.hstack([compared, compared * self.odds])

    @cached_property
    def _row_means(self) -> Floats:
        """Mean score of each row."""
        weighted = self.chance * self.weight
        mean_weight = weighted.sum(axis=1)[:, None]
        return self._features(weighted) - mean_weight * self.expected

    @cached_property
    def score_mean(self) -> Floats:
        """Mean of U, shape (2K,); 0 but for rounding unless a class was left out."""
        return np.asarray(self._row_means.sum(axis=0))

    @cached_property
    def score_variance(self) -> Floats:
        """Variance of U for independent rows, shape (2K, 2K).

        The score of a row under label j is ``w_j (f_j - m)``, f_j the features of the label and m
        its expected ones: ``E w^2 (f - m)(f - m)'`` less the square of the mean, term by term.
        """
        k = self.odds.shape[1]
        squared = self.chance * self.weight**2
        own = squared[:, :k]
        # E w^2 f f': a label has features of its own class alone.
        features = np.zeros((2 * k, 2 * k))
        j = np.arange(k)
        features[j, j] = own.sum(axis=0)
        features[j, k + j] = (own * self.odds).sum(axis=0)
        features[k + j, j] = features[j, k + j]
        features[k + j, k + j] = (own * self.odds**2).sum(axis=0)
        # E w^2 f m', and E w^2 m m'.
        cross = self._features(squared).T @ self.expected
        mean_squared_weight = squared.sum(axis=1)[:, None]
        expected = self.expected.T @ (self.expected * mean_squared_weight)
        square_of_mean = self._row_means.T @ self._row_means
        return np.asarray(features - cross - cross.T + expected - square_of_mean)

    @cached_property
    def score_whitening(self) -> Floats:
        """W with ``W W' = V^-1`` among the directions that vary, shape (2K, df)."""
        varies = np.diagonal(self.score_variance) > 0.0
        return whitening_matrix(self.score_variance, self.free & varies)

    def group_scores(self, labels: Codes, starts: Codes | None = None) -> Floats:
        """Return scores of groups under labels of shape (size, n), shape (size, n_groups, 2K)."""
        if starts is None:
            starts = np.zeros(1, dtype=np.intp)
        size, n = labels.shape
        n_classes = self.probs.shape[1]
        k = n_classes - 1
        n_groups = len(starts)
        ends = np.append(starts[1:], n)
        # One bincount sums over cells: a class of a group of a data set is one.
        group_offset = n_classes * np.repeat(np.arange(n_groups), ends - starts)
        data_set_offset = n_classes * n_groups * np.arange(size)[:, None]
        cells = (labels + group_offset + data_set_offset).ravel()
        n_cells = size * n_groups * n_classes
        label_places = labels + n_classes * np.arange(n)
        weight = self.weight.ravel()[label_places]
        weighted_odds = np.zeros(self.weight.shape)
        np.multiply(self.weight[:, :k], self.odds, out=weighted_odds[:, :k])
        own_odds = weighted_odds.ravel()[label_places]

        scores = np.empty((size, n_groups, 2 * k))
        for part, values in ((slice(k), weight), (slice(k, None), own_odds)):
            sums = np.bincount(cells, weights=values.ravel(), minlength=n_cells)
            scores[:, :, part] = sums.reshape(size, n_groups, n_classes)[:, :, :k]
        for g, (first, end) in enumerate(zip(starts, ends, strict=True)):
            scores[:, g] -= weight[:, first:end] @ self.expected[first:end]
        return scores


def _sort_rows(rows: Predictions, probs: Floats, weight: Floats) -> tuple[Codes, Codes]:
    """Return rows that count in an order of their values alone, and where groups start.

    Neither the order of the table nor names of groups can then change what is drawn.
    """
    counted = np.flatnonzero(weight)
    relative_weight = weight / weight.max()
    values = np.column_stack([probs, rows.model_codes, relative_weight])
    rounded = np.round(values[counted], 12)
    order = counted[np.lexsort(rounded.T)]
    if rows.groups is None:
        return order, np.arange(len(order))
    # Groups in the order of their first rows.
    groups = rows.groups[order]
    _, first_row, group_of_row = np.unique(
        groups, return_index=True, return_inverse=True
    )
    rank_of_group = np.argsort(np.argsort(first_row))
    rank = rank_of_group[group_of_row.ravel()]
    by_group = np.argsort(rank, kind="stable")
    is_first = np.diff(rank[by_group], prepend=-1)
    return order[by_group], np.flatnonzero(is_first)


def log_weight_effects(
    probs: Floats, odds: Floats, codes: Codes, log_weights: Floats
) -> tuple[Floats, bool]:
    """Return ``log a`` of each row and class, and whether weights depend on labels at all.

    1. Least squares of the log weights on the labels and on being right, beside the log odds.
    2. Shrink the effects by ``1 - F_crit / F``: 0 where they could be noise.
    """
    from scipy.special import fdtri

    n, c = probs.shape
    top = probs.argmax(axis=1)
    # 1. The log odds stay out where there are fewer than three rows for each coefficient.
    labels = np.zeros((n, c + 1))
    labels[np.arange(n), codes] = 1.0
    labels[:, c] = codes == top
    covariates = np.column_stack([np.ones(n), odds])
    if n < 3 * (covariates.shape[1] + c + 1):
        covariates = covariates[:, :1]
    basis = np.linalg.qr(covariates)[0]
    centred = labels - labels.mean(axis=0)
    label_part = centred - basis @ (basis.T @ centred)
    weight_part = log_weights - basis @ (basis.T @ log_weights)
    effects, _, rank, _ = np.linalg.lstsq(label_part, weight_part, rcond=1e-9)

    # 2. By the F test of the labels.
    residual = weight_part - label_part @ effects
    sum_before = float(weight_part @ weight_part)
    sum_after = float(residual @ residual)
    rank = int(rank)
    residual_df = n - covariates.shape[1] - rank
    shrinkage = 0.0
    if (
        rank > 0 and residual_df >= 1 and sum_before > 1e-18 * n
    ):  # else the weights are all equal
        residual_variance = max(sum_after, 1e-30 * sum_before) / residual_df
        f_value = (sum_before - sum_after) / rank / residual_variance
        f_critical = float(fdtri(rank, residual_df, 1.0 - WEIGHT_EFFECT_LEVEL))
        shrinkage = max(0.0, 1.0 - f_critical / f_value)
    effects = shrinkage * effects
    table = np.tile(effects[:c], (n, 1))
    table[np.arange(n), top] += effects[c]
    return table - table.mean(axis=1, keepdims=True), bool(effects.any())


def drawn_labels_pvalue(
    rows: RowsUnderNull, *, n_resamples: int, seed: int
) -> TestResult:
    """Test independent rows by T: how often do drawn labels give as much?

    Of large tables drawing stops once enough draws did.
    """

    def statistics(labels: Codes) -> Floats:
        score = rows.group_scores(labels)[:, 0]
        standardized = (score - rows.score_mean) @ rows.score_whitening
        return np.asarray((standardized**2).sum(axis=1))

    statistic = float(statistics(rows.codes[None])[0])
    threshold = statistic * (1.0 - TIE_TOL)

    def exceeds(start: int, size: int) -> NDArray[np.bool_]:
        labels = draw_labels(rows.chance, seed, start, size)
        return np.asarray(statistics(labels) >= threshold)

    is_large = float(rows.chance.size) * n_resamples > WORK_WITHOUT_EARLY_STOP
    found = monte_carlo_pvalue(
        exceeds,
        n_resamples=n_resamples,
        batch=max(1, min(512, BATCH_ENTRIES // rows.n)),
        seed=seed,
        stop_at=N_EXCEEDANCES if is_large else None,
    )
    return replace(found, statistic=statistic, df=rows.score_whitening.shape[1])


class ScoreSkewness:
    """How skewed scores are where rows of a group share one uniform number.

    `vector` is k, `of_group` the same of a single group, on average. It `is_large` where groups are
    skewed, and too few to make up for it. Moments are means over 400 uniform numbers, the middles
    of as many equal parts.
    """

    def __init__(self, rows: RowsUnderNull, root: Floats) -> None:
        n_points = 400
        third = np.zeros(root.shape[1])
        second = np.zeros(len(rows.starts))
        batch = max(1, BATCH_ENTRIES // rows.n)
        for start in range(0, n_points, batch):
            points = np.arange(start, min(n_points, start + batch))
            levels = (points + 0.5) / n_points
            shared_by_all = np.repeat(levels[:, None], rows.n, axis=1)
            labels = labels_from_uniforms(rows.chance, shared_by_all)
            scores = rows.group_scores(labels, rows.starts) @ root
            squares = (scores**2).sum(axis=2)
            second += squares.sum(axis=0) / n_points
            third += np.einsum("dg,dgk->k", squares, scores) / n_points
        self.vector = third
        self.of_group = 0.0
        if second.any():
            self.vector = third / second.sum() ** 1.5
            self.of_group = float(np.linalg.norm(third) / (second**1.5).sum())
        of_score = float(np.linalg.norm(self.vector))
        is_group_skewed = self.of_group > MAX_SKEWNESS["group"]
        self.is_large = is_group_skewed and of_score > MAX_SKEWNESS["score"]


def dependent_labels_pvalue(
    rows: RowsUnderNull, root: Floats, skewness: Floats, *, n_resamples: int, seed: int
) -> float:
    """Return the largest p-value over the strengths of dependence that Q does not rule out.

    `skewness` is the vector k.
    """

    def statistics(labels: Codes) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Return Q, ``S / Q`` and the side of k."""
        scores = rows.group_scores(labels, rows.starts) @ root
        total = scores.sum(axis=1)
        sum_of_squares = np.asarray((scores**2).sum(axis=(1, 2)))
        ratio = np.zeros(len(total))
        square_of_sum = (total**2).sum(axis=1)
        np.divide(square_of_sum, sum_of_squares, out=ratio, where=sum_of_squares > 0.0)
        return sum_of_squares, ratio, total @ skewness > 0.0

    observed_squares, observed_ratio, observed_side = statistics(rows.codes[None])
    n = rows.n
    n_groups = len(rows.starts)
    group_sizes = np.diff(np.append(rows.starts, n))
    group_of_row = np.repeat(np.arange(n_groups), group_sizes)
    n_strengths = len(DEPENDENCE_STRENGTHS)
    n_exceed = np.zeros(n_strengths)
    n_same_side = np.zeros(n_strengths)
    n_small_squares = np.zeros(n_strengths)
    entries_of_draw = max(n, n_groups * root.shape[0])
    batch = max(1, min(512, BATCH_ENTRIES // entries_of_draw))
    for start in range(0, n_resamples, batch):
        size = min(batch, n_resamples - start)
        # All strengths share the uniform numbers, so that p-values differ by strength alone.
        u = uniform_draws(seed, start, size, 2 * n + n_groups)
        own = u[:, :n]
        choice = u[:, n : 2 * n]
        shared = u[:, 2 * n :][:, group_of_row]
        for place, strength in enumerate(DEPENDENCE_STRENGTHS):
            u_of_row = np.where(choice < strength, shared, own)
            labels = labels_from_uniforms(rows.chance, u_of_row)
            squares, ratio, side = statistics(labels)
            same_side = side == observed_side
            exceeds = ratio >= observed_ratio * (1.0 - TIE_TOL)
            n_exceed[place] += (same_side & exceeds).sum()
            n_same_side[place] += same_side.sum()
            n_small_squares[place] += (
                squares <= observed_squares * (1.0 + TIE_TOL)
            ).sum()
    # Dependence makes sums of squares large or small; the weakest is never ruled out.
    is_possible = n_small_squares >= DEPENDENCE_EXCLUSION_LEVEL * n_resamples
    strongest = np.flatnonzero(is_possible).max(initial=0)
    pvalues = (1.0 + n_exceed) / (1.0 + n_same_side)
    return float(pvalues[: strongest + 1].max())
