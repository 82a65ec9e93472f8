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

`robust_test`: a test that survives repeated measurements and weights.

U is the score at the identity, H the information there, ``U_g`` the score of unit g (a group, or a
row), G the number of units (`_fit/covariance`, which has the errors of estimates):

====================  ======================================================================
score statistic       ``S = U' H^-1 U``
its mean under H0     ``sum_k lambda_k``, eigenvalues of ``H^-1 V``, ``V = sum_g U_g U_g'``
reported statistic    ``S d / sum_k lambda_k``, to be compared with d, the rank of H
F (Rao and Scott)     ``S / sum_k lambda_k ~ F(nu, (G - 1) nu)``,
                      ``nu = (sum_k lambda_k)^2 / sum_k lambda_k^2``
sign flips            ``S* = |sum_g s_g H^-1/2 U_g|^2`` with random signs ``s_g = +-1``
drawn labels          `_inference/robust`: weights that are no counts, one row a unit
====================  ======================================================================

====================  ======================================================================
rows                  p-value
====================  ======================================================================
in groups             flips up to 1000 groups, else F; never below that of independent rows,
                      nor, where the groups' scores are skewed, below that of `null_labels`
weights, no counts    drawn labels up to 1000 effective rows, else F
frequencies           flips up to 1000 rows, else F; never below that of independent rows
====================  ======================================================================

Under H0 every U_g has mean 0, so V is not centred and its mean is the variance of U. Flipping signs
is exact where the U_g are symmetric about 0, at any number of groups, and right in large samples
whatever they are. F is the form of Rao and Scott (1984) with the denominator of Thomas and Rao
(1987). The floor by independent rows is for few groups of sharp predictions: while no surprise has
happened all scores point one way, and no flip exceeds them. It costs power only where rows of a
group avoid each other's labels.

Why not ``U' V^-1 U``, the usual generalised score test? Labels are skewed, and V^-1 turns
directions in which no surprise has happened yet into evidence. Rejections under H0 at nominal 5 %,
in 18 designs for each number of groups (c = 2, 3, 8; flat and sharp predictions; single rows and
groups of about five whose labels come from one uniform; 400 data sets each):

==========================  ==============  ==============
test                        60 groups       600 groups
==========================  ==============  ==============
independent rows            4 to 100 %      4 to 100 %
``U' V^-1 U``, Hotelling F  7 to 31 %       4 to 11 %
S with flips                2 to 9 %        2 to 8 %
S with F                    1 to 7 %        2 to 6 %
==========================  ==============  ==============

The last two are with the floor of independent rows. The power of S is the higher one in most
designs but not in all: with eight classes and flat predictions, 60 groups, 25 % against 49 %.
`docs/explanation/groups-and-weights.md` has what is rejected now, rare events and weights included.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from .._fit.covariance import n_effective, row_sums, score_sums, unit_scores
from .._fit.objective import free_parameters
from .._model.kernel import LogPartition
from .._model.likelihood import identity_theta
from .._utils.formatting import format_count, format_number, format_p
from .._utils.linalg import whitening
from .._utils.results import Codes, Floats
from .._utils.statements import Statement
from .._validation.predictions import Predictions, RowOptions, judged_predictions, reads_rows
from ..exceptions import InputError
from . import budget
from .budget import BATCH_ENTRIES, N_EXCEEDANCES, N_RESAMPLES, WORK_WITHOUT_EARLY_STOP
from .likelihood_tests import chi2_sf
from .monte_carlo import (
    Seed,
    check_resamples,
    draw_labels,
    labels_at,
    monte_carlo_p,
    seed_entropy,
    uniforms,
)
from .pvalue import PValue, Tested

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


RobustMethod = Literal["auto", "flip", "f", "draw"]

MAX_PVALUE_IN_DOUBT = 0.2
"""P-values above it are not worth a second look: they reject at no level in use."""
MIN_EFFECTIVE_ROWS = 20.0
"""Effective rows below which weighted rows cannot be judged."""
MIN_EFFECTIVE_SHARE_OF_EQUALS = 0.995
"""Units are all alike when this share of them is effective."""
ONE_LABEL = "all rows have one label, and what rows of other labels would weigh is not known"
TOO_MANY_ROWS_FOR_SKEWNESS = "too many rows to ask how skewed the groups' scores are"
SKEWED_NOTE = (
    "the groups' scores are skewed: the p-value is the largest over how strongly rows of a group "
    "may hang together"
)


class ChiSquareMixture:
    """S with the eigenvalues of its distribution under H0, a mixture of chi-squares.

    From ``root = whitening(H)``, U and V; for independent rows the eigenvalues are all 1.
    """

    def __init__(self, root: Floats, total: Floats, gram: Floats, n_units: float) -> None:
        u, values = total @ root, np.linalg.eigvalsh(root.T @ gram @ root)
        self.score, self.eigenvalues = float(u @ u), np.maximum(values, 0.0)
        self.n_units = n_units

    @property
    def statistic(self) -> float:
        """S over the mean eigenvalue: about the number of parameters under H0."""
        mean = float(self.eigenvalues.mean()) if len(self.eigenvalues) else 0.0
        return self.score / mean if mean > 0.0 else 0.0

    def f_pvalues(self) -> tuple[float, float]:
        """Return the p-value by F with Satterthwaite's degrees of freedom, and the least of all.

        That is what units such as these can give at most: ``S <= G sum_k lambda_k``.
        """
        from scipy.special import fdtrc

        total = float(self.eigenvalues.sum())
        if total == 0.0:
            return 1.0, 1.0
        nu = total**2 / float(self.eigenvalues @ self.eigenvalues)
        found, least = fdtrc(nu, (self.n_units - 1.0) * nu, [self.score / total, self.n_units])
        return float(found), float(least)


def flip_pvalue(scores: Floats, root: Floats, *, n_resamples: int, seed: int) -> PValue:
    """Return how often random signs of the units' scores give at least the observed S.

    Units are first put in an order that depends on their values alone, up to rounding, so that
    neither the order of the rows nor the names of the groups change the answer.
    """
    largest = np.abs(scores).max(axis=0)
    rounded = np.round(scores / np.where(largest > 0.0, largest, 1.0), 9) + 0.0
    white = scores[np.lexsort(rounded.T)] @ root
    observed = float((white.sum(axis=0) ** 2).sum())

    def exceeds(start: int, size: int) -> NDArray[np.bool_]:
        signs = np.where(uniforms(seed, start, size, len(white)) < 0.5, -1.0, 1.0)
        return ((signs @ white) ** 2).sum(axis=1) >= observed * (1.0 - TIE_TOL)

    batch = max(1, min(512, budget.BATCH_ENTRIES // len(white)))
    return monte_carlo_p(exceeds, n_resamples=n_resamples, batch=batch, seed=seed)


@dataclass(frozen=True, eq=False)
class RobustTest(Tested):
    """A test of H0: each row's label follows its probabilities; rows of a group may be dependent.

    Not rejecting H0 does not show that the probabilities are calibrated.

    Attributes
    ----------
    statistic, df : float, int
        Score statistic over the mean of its estimated eigenvalues, or that of drawn labels; under
        H0 about `df`, the number of parameters that the rows can tell apart.
    pvalue, method : float, {'flip', 'f', 'draw'}
        By random signs of the groups' scores, the F distribution, or drawn labels.
    kind : {'cluster', 'sandwich'}
        Whether groups were given, or every row is its own.
    n_groups : int
        Groups, or rows that count.
    n_effective : float
        As many of equal weight would average as well (Kish): ``(sum w)^2 / sum w^2`` over groups
        or rows.
    design_effect : float
        How many times larger the groups make the variance of the score; without groups how many
        times larger unequal weights make that of an average, `n_groups` / `n_effective`.
    smallest_pvalue : float
        No labels of such rows could give a p-value below it.
    n_resamples, seed : int, int or None
        Flips or draws made, and what they were made from.
    reason, limits : str, tuple of str
        Why `method` was used, and what limits the p-value; the latter by itself.
    obstacle : str
        Why these rows cannot show anything at any level; empty where they can.

    See Also
    --------
    robust_test : Makes it.
    CalibrationTest : For independent rows.
    Assessment : Rests on it where rows are in groups.

    Notes
    -----
    The sandwich variance is that of [1]_, the correction of the null distribution that of [2]_.

    References
    ----------
    .. [1] K.-Y. Liang, S. L. Zeger (1986). Longitudinal data analysis using generalized linear
           models. Biometrika 73:13-22.
    .. [2] J. N. K. Rao, A. J. Scott (1984). On chi-squared tests for multiway contingency tables
           with cell proportions estimated from survey data. The Annals of Statistics 12:46-60.

    Examples
    --------
    >>> import mcllo
    >>> probs = [[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.6, 0.4]] * 10
    >>> y = [0, 1, 1, 0, 0, 0, 1, 1] * 5
    >>> test = mcllo.robust_test(probs, y, groups=[i // 4 for i in range(40)], seed=0)
    >>> test.kind, test.n_groups, test.method
    ('cluster', 10, 'flip')
    """

    statistic: float
    df: int
    pvalue: float
    method: str
    kind: str
    n_groups: int
    n_effective: float
    design_effect: float
    smallest_pvalue: float
    n_resamples: int
    seed: int | None
    reason: str
    obstacle: str = ""
    limits: tuple[str, ...] = field(default=(), repr=False)
    left_out = ("limits",)

    def can_reject(self, alpha: float = 0.05) -> bool:
        """Whether these rows can reject at level `alpha`, and keep it.

        Parameters
        ----------
        alpha : float
            Level of the test.

        Returns
        -------
        bool
            False where `inconclusive` says why not.
        """
        self.rejects(alpha)  # refuses a level that is none
        return not self.obstacle and self.smallest_pvalue <= alpha

    def inconclusive(self, alpha: float = 0.05) -> str:
        """Return why these rows cannot reject at level `alpha`, in words; empty where they can.

        Examples
        --------
        >>> test = robust_test([[0.9, 0.1]] * 3, [0, 1, 1], groups=[0, 1, 2], seed=0)
        >>> test.inconclusive(0.05)
        '3 groups give no p-value below 0.25; level 0.05 needs at least 6'
        """
        if self.can_reject(alpha) or self.obstacle:
            return self.obstacle
        found, needed = f"{format_count(self.n_groups)} {self.unit}", 1.0 - math.log2(alpha)
        if self.method != "f" and 2.0 ** (1.0 - self.n_groups) <= alpha:
            found, needed = f"{format_count(self.n_resamples)} draws", 1.0 / alpha - 1.0
        words = f"{found} give no p-value below {format_number(self.smallest_pvalue)}"
        more = f"; level {alpha:g} needs at least {math.ceil(needed)}"
        return words if self.method == "f" else words + more

    def statements(self, alpha: float = 0.05) -> list[Statement]:
        """Return what the test rests on, and why it cannot reject at level `alpha` if so."""
        why, words = self.inconclusive(alpha), f"The test rests on {self.units}."
        if why:
            words += f" It cannot reject at level {alpha:g}: {why}."
        names = ("n_groups", "n_effective", "smallest_pvalue")
        numbers = {name: getattr(self, name) for name in names}
        return [Statement("note.units", words, "doubt" if why else "plain", numbers)]

    @property
    def unit(self) -> str:
        """What is independent: groups, or rows."""
        return "groups" if self.kind == "cluster" else "rows"

    @property
    def way(self) -> str:
        """How the p-value was computed, in words."""
        words = {"flip": "{} sign flips", "f": "F", "draw": "{} simulated data sets"}
        return words[self.method].format(format_count(self.n_resamples))

    @property
    def units(self) -> str:
        """How many independent units there are, and how many equal ones that makes."""
        words = f"{format_count(self.n_groups)} {self.unit}"
        even = self.n_effective > MIN_EFFECTIVE_SHARE_OF_EQUALS * self.n_groups
        return words if even else f"{words}, effectively {format_number(self.n_effective)}"

    def __str__(self) -> str:
        words = (
            f"robust score statistic {format_number(self.statistic, 4)} on {self.df} df, "
            f"p {format_p(self.pvalue)} ({self.way}; {self.units}, design effect "
            f"{format_number(self.design_effect)})"
        )
        return f"{words}; {self.obstacle}" if self.obstacle else words


@reads_rows(RowOptions)
def robust_test(
    probs: Any = None,
    y: Any = None,
    *,
    method: RobustMethod = "auto",
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
    baseline: Any = None,
    **data: Unpack[RowOptions],
) -> RobustTest:
    """Test calibration of rows that depend on each other, or whose weights are no counts.

    Parameters
    ----------
    probs : array-like, frame or Predictions
        Predicted probabilities, shape (n_samples, n_classes).
    y : array-like of shape (n_samples,) or table of label counts
        The labels that came true; not given beside a `Predictions`.
    method : {'auto', 'flip', 'f', 'draw'}
        Random signs of the groups' scores; the F distribution of Rao and Scott; labels drawn as the
        predictions and the weights have them, for weights that are no counts. 'auto' flips up to
        1000 groups, and draws up to 1000 effective rows.
    n_resamples : int
        Flips or draws.
    seed : int or numpy Generator, optional
        Makes draws repeatable.
    baseline : label, optional
        Reference class of the log odds. Default: the last class that occurs in `y`.
    logits, classes, prefix, sample_weight, normalize, clip, weight_kind : optional
        How rows are read; each is described in `Predictions.from_arrays`.
    groups : array-like of shape (n_samples,), optional
        Group of each row (an animal, a patient). Groups must be independent of each other; rows of
        one need not be. Without groups every row is its own.

    Returns
    -------
    RobustTest
        `statistic`, `df`, `pvalue`, `design_effect`, `rejects(alpha)`; ``print`` it.

    See Also
    --------
    RobustTest : What comes out.
    calibration_test : For independent rows.
    MCLLOFit : Its standard errors allow for groups, too.
    Predictions : Takes `groups` and `weight_kind`.

    Notes
    -----
    The variance V of the score U is estimated from the groups' scores, the sandwich of [1]_ and
    [2]_. The statistic is ``U' H^-1 U``, H the information, with random signs or the correction of
    [3]_ for its null distribution. In 18 designs of calibrated rows in 60 groups it rejected 1 to
    9 % at nominal 5 %, the usual ``U' V^-1 U`` 7 to 31 %.

    References
    ----------
    .. [1] H. White (1982). Maximum likelihood estimation of misspecified models. Econometrica
           50:1-25.
    .. [2] K.-Y. Liang, S. L. Zeger (1986). Longitudinal data analysis using generalized linear
           models. Biometrika 73:13-22.
    .. [3] J. N. K. Rao, A. J. Scott (1984). On chi-squared tests for multiway contingency tables
           with cell proportions estimated from survey data. The Annals of Statistics 12:46-60.

    Examples
    --------
    Sixty animals, each filmed five times, with labels that come five at a time:

    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> rows = rng.dirichlet([1, 1, 1], size=60)
    >>> labels = [rng.choice(3, p=row) for row in rows]
    >>> probs, y = np.repeat(rows, 5, axis=0), np.repeat(labels, 5)
    >>> test = robust_test(probs, y, groups=np.repeat(np.arange(60), 5), seed=0)
    >>> test.n_groups, test.kind, test.rejects(alpha=0.05), round(test.design_effect, 1)
    (60, 'cluster', False, 5.1)
    """
    predictions = judged_predictions(probs, y, baseline=baseline, **data)
    if method not in get_args(RobustMethod):
        raise InputError(f"method must be 'auto', 'flip', 'f' or 'draw'; got {method!r}.")
    check_resamples(n_resamples)
    odds, grouped = predictions.log_odds, predictions.groups is not None
    theta = identity_theta(len(odds))
    sums = score_sums(predictions, theta)
    if grouped and sums.n_units <= 1.0:
        raise InputError(
            "groups must name at least two groups among the rows that count; all are in one. "
            "Rows of a single group say nothing about how groups vary: add groups."
        )
    if sums.n_units <= 1.0:
        raise InputError(f"a robust test needs at least two rows; got {sums.n_units:g}.")
    hessian = LogPartition(odds, predictions.sample_weight)(theta).hessian
    root, effective = whitening(hessian, free_parameters(odds)), n_effective(predictions)
    null = ChiSquareMixture(root, sums.total, sums.gram, sums.n_units)
    chosen, reason = _choose(predictions, method, sums.n_units, effective, n_resamples)
    entropy = None if chosen == "f" else seed_entropy(seed)
    pvalue, smallest = null.f_pvalues()
    design_effect = sums.n_units / effective
    if grouped:  # the variance of the score by groups over that by rows, added over directions
        both = (sums.covariance, row_sums(predictions, theta).covariance)
        by_groups, by_rows = (float(np.trace(root.T @ v @ root)) for v in both)
        design_effect = by_groups / by_rows if by_rows > 0.0 else float("nan")
    found = (null.statistic, root.shape[1], pvalue, chosen, "cluster" if grouped else "sandwich")
    units = (round(sums.n_units), effective, design_effect)
    test = RobustTest(*found, *units, smallest, n_resamples=0, seed=entropy, reason=reason)
    if chosen == "flip" and entropy is not None:
        scores, shown = unit_scores(predictions, theta), 1.0 / (n_resamples + 1.0)
        flipped = flip_pvalue(scores, root, n_resamples=n_resamples, seed=entropy)
        least = max(2.0 ** (1.0 - sums.n_units), shown)
        floored = max(flipped.pvalue, least)  # random flips of few groups can fall below all
        test = replace(test, pvalue=floored, n_resamples=n_resamples, smallest_pvalue=least)
        if least > shown:
            test = replace(test, limits=(f"so few can give no p-value below {least:.2g}",))
    if chosen == "draw" and entropy is not None:
        test = _simulate_labels_test(test, NullRows(predictions), n_resamples, entropy)
    else:
        test = _raise_pvalue(test, predictions, root, null.score, n_resamples)
    obstacle, weighted = test.obstacle, not (grouped or predictions.counts_rows)
    if weighted and effective < MIN_EFFECTIVE_ROWS and not obstacle:
        obstacle = f"the weights leave {format_number(effective)} effective rows; at least "
        obstacle += f"{MIN_EFFECTIVE_ROWS:g} are needed"
    return replace(test, reason="; ".join([reason, *test.limits]), obstacle=obstacle)


def _choose(
    predictions: Predictions, method: str, n_units: float, effective: float, n_resamples: int
) -> tuple[str, str]:
    """Return the method to use, and why."""
    grouped, weighted = predictions.groups is not None, not predictions.counts_rows
    if method == "draw" and (grouped or not weighted):
        raise InputError(
            "labels are drawn for weights that are no counts, without groups: "
            "method='draw' must be left out here."
        )
    if method != "auto":
        return method, "as asked"
    found = f"{format_count(n_units)} {'groups' if grouped else 'rows'}"
    if grouped or not weighted:
        return "flip" if n_units <= budget.MAX_FLIPPED_GROUPS else "f", found
    if effective <= budget.MAX_FLIPPED_GROUPS and _drawable(predictions, n_resamples):
        return "draw", f"{found}, effectively {format_number(effective)}"
    return "f", found


def _drawable(predictions: Predictions, n_resamples: int) -> bool:
    """Whether labels can be drawn in a reasonable time."""
    return float(predictions.probs.size) * n_resamples <= budget.TEST_WORK


def _simulate_labels_test(
    test: RobustTest, rows: NullRows, n_resamples: int, seed: int
) -> RobustTest:
    """Return the test of drawn labels."""
    if rows.one_label:
        test = replace(test, pvalue=1.0, smallest_pvalue=1.0, obstacle=ONE_LABEL)
        return replace(test, statistic=0.0, df=0)
    statistic, df, found = draw_pvalue(rows, n_resamples=n_resamples, seed=seed)
    least, drawn = 1.0 / (n_resamples + 1.0), found.n_resamples
    test = replace(test, pvalue=found.pvalue, smallest_pvalue=least, n_resamples=drawn)
    return replace(test, statistic=statistic, df=df)


def _raise_pvalue(
    test: RobustTest, predictions: Predictions, root: Floats, score: float, n_resamples: int
) -> RobustTest:
    """Return the test, its p-value raised to that of independent rows and of skewed groups."""
    alone, counts = "the p-value of independent rows is larger", predictions.counts_rows
    if counts:
        test = _at_least(test, chi2_sf(score, root.shape[1]), alone)
    entropy = test.seed
    if predictions.groups is None or entropy is None:
        return test
    size = float(predictions.class_weight.sum()) if counts else float(predictions.n_samples)
    drawn = not counts and _drawable(predictions, n_resamples)
    asks = test.pvalue <= MAX_PVALUE_IN_DOUBT
    affordable = budget.DEPENDENT_WORK / (size * root.shape[0] * len(DEPENDENCE_STRENGTHS))
    draws = int(min(budget.N_RESAMPLES_DEPENDENT, affordable))
    if asks and draws < budget.MIN_DEPENDENT_DRAWS:
        asks, test = False, replace(test, limits=(*test.limits, TOO_MANY_ROWS_FOR_SKEWNESS))
    if not (drawn or asks):
        return test
    rows = NullRows(predictions)
    if rows.one_label:
        return replace(test, obstacle=ONE_LABEL)
    if drawn:
        found = draw_pvalue(rows, n_resamples=n_resamples, seed=entropy + 1)[2]
        test = _at_least(test, found.pvalue, alone)
    if not asks or test.pvalue > MAX_PVALUE_IN_DOUBT or not (skew := Skew(rows, root)).misleads:
        return test
    largest = dependent_pvalue(rows, root, skew.towards, n_resamples=draws, seed=entropy + 2)
    test = replace(test, smallest_pvalue=max(test.smallest_pvalue, 1.0 / (draws + 1.0)))
    return _at_least(test, largest, SKEWED_NOTE)


def _at_least(test: RobustTest, pvalue: float, why: str) -> RobustTest:
    """Return the test, with the other p-value where that is larger, and why."""
    if pvalue <= test.pvalue:
        return test
    return replace(test, pvalue=pvalue, limits=(*test.limits, why))
