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
skew                  ``k = sum_g E |W_g|^2 W_g / (sum_g E |W_g|^2)^1.5`` for r = 1; of one
                      group ``|sum_g E |W_g|^2 W_g| / sum_g (E |W_g|^2)^1.5``
p-value of groups     the largest of ``P_r(S* / Q* >= S / Q | U* on the same side of k)`` over
                      the r with ``P_r(Q* <= Q) >= 0.05``; ``S = |sum_g W_g|^2``,
                      ``Q = sum_g |W_g|^2``, W_g the score of a group in units of its spread
====================  ======================================================================

Where weights are a function of the label (or of the label and of being right) the first p-value is
exact, and where they have nothing to do with the labels it is too. A class that no row has is left
out of the draws where weights hang on the label: nobody knows what its rows would have weighed.

The second is for groups whose scores are skewed. Rare events come in bursts where rows of a group
hang together; while none has come, nothing in the rows shows that one might, and signs flipped at
random find the few events that there are too few. A sum of squares as small as the observed one
tells which dependence is out of the question; and too few events are compared with too few, too
many with too many.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .._fit.objective import free_parameters
from .._utils.linalg import whitening
from .._utils.results import Codes, Floats
from .._validation.predictions import Predictions
from .budget import BATCH_ENTRIES, N_EXCEEDANCES, WORK_WITHOUT_EARLY_STOP
from .monte_carlo import draw_labels, labels_at, monte_carlo_p, uniforms
from .pvalue import PValue

TIE_TOL = 1e-9
"""Statistics closer than this (relative) count as equal."""
WEIGHT_EFFECT_LEVEL = 0.05
"""Level of the test that weights have to do with labels."""
MIN_ROWS_PER_EFFECT = 3
"""Rows for each coefficient, at least, or the row's log odds stay out."""
N_SKEWNESS_POINTS = 400
"""Uniform numbers at which the skewness is computed."""
DEPENDENCE_STRENGTHS = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
"""How strongly rows of a group may hang together."""
MAX_SKEWNESS = 0.3  # of the score; above, sign flips alone are not trusted
MAX_GROUP_SKEWNESS = 1.0  # of the score of one group; the same
DEPENDENCE_EXCLUSION_LEVEL = 0.05
"""Chance of a sum of squares as small, below which a dependence is out of the question."""


class NullRows:
    """Rows that count, in an order of their own, with q, w and what makes up the scores.

    The baseline is the last class. Frequencies are written out, other weights looked at label by
    label. `starts` is where groups begin, `hangs` whether weights hang on labels.
    """

    def __init__(self, predictions: Predictions) -> None:
        rows = predictions.expand_weights() if predictions.counts_rows else predictions
        weight = rows.row_weight
        b = rows.baseline_index
        probs = np.column_stack([np.delete(rows.probs, b, axis=1), rows.probs[:, b]])
        order, self.starts = _sort_rows(rows, probs, weight)
        self.probs, self.odds, weight = probs[order], rows.log_odds.T[order], weight[order]
        self.codes, self.n = rows.model_codes[order], len(order)
        self.free = free_parameters(rows.log_odds)
        table, self.hangs = np.zeros(self.probs.shape), False
        if not rows.counts_rows:
            table, self.hangs = label_effects(self.probs, self.odds, self.codes, np.log(weight))
        own = weight * np.exp(-table[np.arange(self.n), self.codes])
        self.weight, self.chance = own[:, None] * np.exp(table), self.probs * np.exp(-table)
        if self.hangs:
            self.chance[:, np.bincount(self.codes, minlength=rows.n_classes) == 0] = 0.0
        self.chance /= self.chance.sum(axis=1, keepdims=True)
        self.one_label = int((self.chance > 0.0).any(axis=0).sum()) == 1
        self.expected = self._both(self.probs)  # what a label takes from the score of its row

    def _both(self, values: Floats) -> Floats:
        """Return ``(v, v l)`` of a number for each row and class."""
        k = self.odds.shape[1]
        return np.hstack([values[:, :k], values[:, :k] * self.odds])

    @cached_property
    def _means(self) -> Floats:
        """Mean score of each row."""
        once = self.chance * self.weight
        return self._both(once) - once.sum(axis=1)[:, None] * self.expected

    @cached_property
    def mean(self) -> Floats:
        """Mean of U, shape (2K,); 0 but for rounding unless a class was left out."""
        return np.asarray(self._means.sum(axis=0))

    @cached_property
    def variance(self) -> Floats:
        """Variance of U for independent rows, shape (2K, 2K)."""
        twice, rows = self.chance * self.weight**2, self._means
        k, taken, given = self.odds.shape[1], self.expected, self._both(twice)
        own = np.zeros((2 * k, 2 * k))
        j, square = np.arange(k), twice[:, :k]
        own[j, j] = square.sum(axis=0)
        own[j, k + j] = own[k + j, j] = (square * self.odds).sum(axis=0)
        own[k + j, k + j] = (square * self.odds**2).sum(axis=0)
        cross = given.T @ taken
        total = taken.T @ (taken * twice.sum(axis=1)[:, None])
        return np.asarray(own - cross - cross.T + total - rows.T @ rows)

    @cached_property
    def root(self) -> Floats:
        """W with ``W W' = V^-1`` among the directions that vary, shape (2K, df)."""
        return whitening(self.variance, self.free & (np.diagonal(self.variance) > 0.0))

    def totals(self, labels: Codes, starts: Codes | None = None) -> Floats:
        """Return scores of groups under labels of shape (size, n), shape (size, n_groups, 2K)."""
        starts = np.zeros(1, dtype=np.intp) if starts is None else starts
        (size, n), k, c = labels.shape, self.odds.shape[1], self.probs.shape[1]
        ends = np.append(starts[1:], n)
        groups = np.repeat(np.arange(len(starts)) * c, ends - starts)
        cells = labels + groups + (np.arange(size) * len(starts) * c)[:, None]
        place, many = labels + np.arange(n) * c, size * len(starts) * c
        weight, pulls = self.weight.ravel()[place], np.zeros(self.weight.shape)
        np.multiply(self.weight[:, :k], self.odds, out=pulls[:, :k])
        sums = np.empty((size, len(starts), 2 * k))
        for part, values in ((slice(k), weight), (slice(k, None), pulls.ravel()[place])):
            found = np.bincount(cells.ravel(), weights=values.ravel(), minlength=many)
            sums[:, :, part] = found.reshape(size, len(starts), c)[:, :, :k]
        for g, (first, end) in enumerate(zip(starts, ends, strict=True)):
            sums[:, g] -= weight[:, first:end] @ self.expected[first:end]
        return sums


def _sort_rows(rows: Predictions, probs: Floats, weight: Floats) -> tuple[Codes, Codes]:
    """Return rows that count in an order of their values alone, and where groups start."""
    keep = np.flatnonzero(weight)
    values = np.column_stack([probs, rows.model_codes, weight / weight.max()])[keep]
    order = keep[np.lexsort(np.round(values, 12).T)]
    if rows.groups is None:
        return order, np.arange(len(order))
    _, first, names = np.unique(rows.groups[order], return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))[names.ravel()]
    by_group = np.argsort(rank, kind="stable")
    return order[by_group], np.flatnonzero(np.diff(rank[by_group], prepend=-1))


def label_effects(probs: Floats, odds: Floats, codes: Codes, logs: Floats) -> tuple[Floats, bool]:
    """Return ``log a`` of each row and class, and whether weights hang on labels at all."""
    from scipy.special import fdtri

    n, c = probs.shape
    top = probs.argmax(axis=1)
    marks = np.zeros((n, c + 1))
    marks[np.arange(n), codes] = 1.0
    marks[:, c] = codes == top
    beside = np.column_stack([np.ones(n), odds])
    if n < MIN_ROWS_PER_EFFECT * (beside.shape[1] + c + 1):
        beside = beside[:, :1]
    basis = np.linalg.qr(beside)[0]
    rest, away = (v - basis @ (basis.T @ v) for v in (logs, marks - marks.mean(axis=0)))
    effects, _, rank, _ = np.linalg.lstsq(away, rest, rcond=1e-9)
    left = rest - away @ effects
    before, after = float(rest @ rest), float(left @ left)
    spare, shrunk = n - beside.shape[1] - int(rank), 0.0  # 0 where effects could be noise
    if rank > 0 and spare >= 1 and before > 1e-18 * n:
        ratio = (before - after) / rank * spare / max(after, 1e-30 * before)
        shrunk = max(0.0, 1.0 - float(fdtri(rank, spare, 1.0 - WEIGHT_EFFECT_LEVEL)) / ratio)
    effects = shrunk * effects
    table = np.tile(effects[:c], (n, 1))
    table[np.arange(n), top] += effects[c]
    return table - table.mean(axis=1, keepdims=True), bool(effects.any())


def draw_pvalue(rows: NullRows, *, n_resamples: int, seed: int) -> tuple[float, int, PValue]:
    """Return T of independent rows, its parameters, and how often drawn labels give as much.

    Of large tables drawing stops once enough draws did.
    """
    root = rows.root
    observed = (rows.totals(rows.codes[None])[0, 0] - rows.mean) @ root
    statistic = float(observed @ observed)

    def exceeds(start: int, size: int) -> NDArray[np.bool_]:
        labels = draw_labels(rows.chance, seed, start, size)
        drawn = (rows.totals(labels)[:, 0] - rows.mean) @ root
        return np.asarray((drawn**2).sum(axis=1) >= statistic * (1.0 - TIE_TOL))

    batch = max(1, min(512, BATCH_ENTRIES // rows.n))
    stop_at = (
        N_EXCEEDANCES if float(rows.chance.size) * n_resamples > WORK_WITHOUT_EARLY_STOP else None
    )
    found = monte_carlo_p(exceeds, n_resamples=n_resamples, batch=batch, seed=seed, stop_at=stop_at)
    return statistic, root.shape[1], found


class Skew:
    """How skewed scores are where rows of a group share one uniform number, by a grid of numbers.

    `towards` is k, `each` the same of a single group, on average; it `misleads` where groups are
    skewed, and too few to make up for it.
    """

    def __init__(self, rows: NullRows, root: Floats) -> None:
        third, second = np.zeros(root.shape[1]), np.zeros(len(rows.starts))
        batch = max(1, BATCH_ENTRIES // rows.n)
        for start in range(0, N_SKEWNESS_POINTS, batch):
            points = np.arange(start, min(N_SKEWNESS_POINTS, start + batch))
            levels = (points + 0.5) / N_SKEWNESS_POINTS
            labels = labels_at(rows.chance, np.repeat(levels[:, None], rows.n, axis=1))
            white = rows.totals(labels, rows.starts) @ root
            squares = (white**2).sum(axis=2)
            second += squares.sum(axis=0) / N_SKEWNESS_POINTS
            third += np.einsum("dg,dgk->k", squares, white) / N_SKEWNESS_POINTS
        self.towards, self.each = third, 0.0
        if second.any():
            self.towards = third / second.sum() ** 1.5
            self.each = float(np.linalg.norm(third) / (second**1.5).sum())
        towards = float(np.linalg.norm(self.towards))
        self.misleads = self.each > MAX_GROUP_SKEWNESS and towards > MAX_SKEWNESS


def dependent_pvalue(
    rows: NullRows, root: Floats, towards: Floats, *, n_resamples: int, seed: int
) -> float:
    """Return the largest p-value over the strengths of dependence that Q does not rule out.

    `towards` is the skew k.
    """

    def sums(labels: Codes) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Return Q, ``S / Q`` and the side of k."""
        white = rows.totals(labels, rows.starts) @ root
        total, spread = white.sum(axis=1), np.asarray((white**2).sum(axis=(1, 2)))
        ratio = np.zeros(len(spread))
        np.divide((total**2).sum(axis=1), spread, out=ratio, where=spread > 0.0)
        return spread, ratio, total @ towards > 0.0

    observed = sums(rows.codes[None])
    n, n_groups = rows.n, len(rows.starts)
    groups = np.repeat(np.arange(n_groups), np.diff(np.append(rows.starts, n)))
    counts = np.zeros((3, len(DEPENDENCE_STRENGTHS)))
    batch = max(1, min(512, BATCH_ENTRIES // max(n, n_groups * root.shape[0])))
    for start in range(0, n_resamples, batch):
        size = min(batch, n_resamples - start)
        u = uniforms(seed, start, size, 2 * n + n_groups)
        own, follows, shared = u[:, :n], u[:, n : 2 * n], u[:, 2 * n :][:, groups]
        for k, strength in enumerate(DEPENDENCE_STRENGTHS):
            labels = labels_at(rows.chance, np.where(follows < strength, shared, own))
            spread, ratio, side = sums(labels)
            alike = side == observed[2]
            beyond = alike & (ratio >= observed[1] * (1.0 - TIE_TOL))
            within = spread <= observed[0] * (1.0 + TIE_TOL)
            counts[:, k] += beyond.sum(), alike.sum(), within.sum()
    n_far, n_alike, n_small = counts
    last = np.flatnonzero(n_small >= DEPENDENCE_EXCLUSION_LEVEL * n_resamples).max(initial=0)
    return float(((1.0 + n_far) / (1.0 + n_alike))[: last + 1].max())
