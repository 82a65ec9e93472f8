"""`robust_test`, `robust_fit`: inference that survives repeated measurements and survey weights.

U is the score at the identity, H the information there, ``U_g`` the score of unit g (a group, or a
row), G the number of units:

====================  ======================================================================
score of a row        ``u_i = Z_i' (e_{y_i} - g_i) = (r_i; r_i l_i)``, ``r_ji = 1[y_i=j] - g_ji``
score of a group      ``U_g = sum_{i in g} w_i u_i``, whatever the weights mean
gram, groups          ``sum_g U_g U_g'``
gram, frequencies     ``sum_i w_i u_i u_i'``: row i is w_i rows of their own
gram, survey          ``sum_i w_i^2 u_i u_i'``: row i is one row with the score ``w_i u_i``
units                 groups; ``sum_i w_i``; or rows: what is independent of each other
score statistic       ``S = U' H^-1 U``
its mean under H0     ``sum_k lambda_k``, eigenvalues of ``H^-1 V``, ``V = sum_g U_g U_g'``
reported statistic    ``S d / sum_k lambda_k``, to be compared with d, the rank of H
F (Rao and Scott)     ``S / sum_k lambda_k ~ F(nu, (G - 1) nu)``,
                      ``nu = (sum_k lambda_k)^2 / sum_k lambda_k^2``
sign flips            ``S* = |sum_g s_g H^-1/2 U_g|^2`` with random signs ``s_g = +-1``
p-value               flips up to 1000 groups, else F; never below that of independent rows
covariance            ``H^-1 M H^-1``: H the information at the estimate, a ridge included, and
                      ``M = G / (G - 1) sum_g U_g U_g'``, centred (a maximum has mean 0 itself)
====================  ======================================================================

Rows of weight 0 are no rows, and groups of such rows no groups. Rows are worked through in chunks:
without groups nothing of the size of the data is kept.

Under H0 every U_g has mean 0, so V is not centred and its mean is the variance of U. Flipping signs
is exact where the U_g are symmetric about 0, at any number of groups, and right in large samples
whatever they are. F is the form of Rao and Scott (1984) with the denominator of Thomas and Rao
(1987). The floor by independent rows is for few groups of sharp predictions: while no surprise has
happened all scores point one way, and no flip exceeds them. It costs power only where rows of a
group avoid each other's labels. Survey weights have no such floor: the sampling may depend on the
labels.

Why not ``U' V^-1 U``, the usual generalised score test? Labels are skewed, and V^-1 turns
directions in which no surprise has happened yet into evidence. Rejections under H0 at nominal 5 %,
in 18 designs for each number of groups (c = 2, 3, 8; flat and sharp predictions; single rows and
groups of about five whose labels come from one uniform; 400 data sets each):

==========================  ==============  ==============
test                        60 groups       600 groups
==========================  ==============  ==============
independent rows            4 to 100 %      4 to 100 %
``U' V^-1 U``, Hotelling F  7 to 31 %       4 to 11 %
S with flips, as here       2 to 9 %        2 to 8 %
S with F, as here           1 to 7 %        2 to 6 %
==========================  ==============  ==============

"As here" is with that floor. With 8 and 20 groups flips rejected 0 to 8 %.
The power of S is the higher one in most designs but not in all: with eight classes and flat
predictions, 60 groups, 25 % against 49 %.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from .._fit.fit import MCLLOFit
from .._fit.objective import free_parameters
from .._ground.linalg import whitening
from .._ground.results import Codes, Floats
from .._ground.text import format_count, format_number, format_p
from .._input.predictions import Predictions, RowOptions, as_predictions, reads_rows
from .._math.likelihood import (
    CHUNK_ELEMENTS,
    LogPartition,
    identity_theta,
    softmax_against_zero,
)
from ..exceptions import InputError, Option, Phrase
from .budget import BATCH_ENTRIES, MOST_FLIPPED, N_RESAMPLES
from .draws import Seed, check_resamples, entropy_of, monte_carlo_p, uniforms
from .likelihood_tests import chi2_sf
from .pvalue import PValue, Tested

TIE = 1e-9
"""Statistics closer than this (relative) count as equal: most flips of few groups repeat."""

RobustMethod = Literal["auto", "flip", "f"]


@dataclass(frozen=True, eq=False)
class ScoreSums:
    """Sums over independent units: the score, the gram matrix of unit scores, and their number."""

    total: Floats
    gram: Floats
    n_units: float

    @property
    def covariance(self) -> Floats:
        """Of the total: ``N / (N - 1) (gram - total total' / N)`` for N units."""
        n = self.n_units
        centred: Floats = self.gram - np.outer(self.total, self.total) / n
        return n / (n - 1.0) * centred


def score_sums(predictions: Predictions, theta: Floats) -> ScoreSums:
    """Return the sums over groups, or over rows where there are none."""
    if predictions.groups is not None:
        scores = group_scores(predictions, theta)
        return ScoreSums(scores.sum(axis=0), scores.T @ scores, float(len(scores)))
    return row_sums(predictions, theta)


def row_sums(predictions: Predictions, theta: Floats) -> ScoreSums:
    """Return the sums over rows, as if there were no groups."""
    size = len(theta)
    total, gram = np.zeros(size), np.zeros((size, size))
    weight = predictions.sample_weight
    for rows, scores in _chunks(predictions, theta):
        if weight is None:
            total += scores.sum(axis=1)
            gram += scores @ scores.T
            continue
        own = weight[rows]
        total += scores @ own
        gram += (scores * (own if predictions.weight_kind == "frequency" else own**2)) @ scores.T
    n = float(predictions.n_samples)
    if weight is not None:
        survey = predictions.weight_kind == "survey"
        n = float(np.count_nonzero(weight) if survey else weight.sum())
    if n <= 1.0:
        raise InputError(
            f"a robust variance needs at least two rows; the weights count {n:g}.",
            remedy=Phrase(
                "If they are shares and no counts, pass {}.", Option("weight_kind", "survey")
            ),
        )
    return ScoreSums(total, gram, n)


def unit_scores(predictions: Predictions, theta: Floats) -> Floats:
    """Return the score of every unit, shape (n_units, 2K); frequencies must be whole numbers."""
    if predictions.groups is not None:
        return group_scores(predictions, theta)
    scores = np.concatenate([part for _, part in _chunks(predictions, theta)], axis=1).T
    weight = predictions.sample_weight
    if weight is None:
        return scores
    if predictions.weight_kind == "survey":
        used = weight > 0.0
        return scores[used] * weight[used, None]
    return np.repeat(scores, weight.astype(np.int64), axis=0)


def group_scores(predictions: Predictions, theta: Floats) -> Floats:
    """Return ``U_g`` of every group with a row that counts, shape (n_groups, 2K)."""
    assert predictions.groups is not None
    weight = predictions.sample_weight
    used = np.arange(predictions.n_samples) if weight is None else np.flatnonzero(weight)
    names, codes = np.unique(predictions.groups[used], return_inverse=True)
    if len(names) < 2:
        raise InputError(
            "groups must name at least two groups among the rows that count; all are in one. "
            "Rows of a single group say nothing about how groups vary: add groups."
        )
    order = np.argsort(codes, kind="stable")
    codes, sums, start = codes[order], np.zeros((len(names), len(theta))), 0
    for rows, scores in _chunks(predictions, theta, used[order]):
        own = scores if weight is None else scores * weight[rows]
        here = codes[start : start + len(rows)]
        first = np.flatnonzero(np.diff(here, prepend=-1))
        sums[here[first]] += np.add.reduceat(own, first, axis=1).T
        start += len(rows)
    return sums


def _chunks(
    predictions: Predictions, theta: Floats, order: Codes | None = None
) -> Iterator[tuple[Any, Floats]]:
    """Yield (rows, their scores without weights, shape (2K, rows)), in this order of rows."""
    k, odds, codes = len(theta) // 2, predictions.log_odds, predictions.model_codes
    n = predictions.n_samples if order is None else len(order)
    step = max(256, CHUNK_ELEMENTS // k)
    for start in range(0, n, step):
        rows = slice(start, min(n, start + step)) if order is None else order[start : start + step]
        yield rows, row_scores(theta, odds[:, rows], codes[rows])


def row_scores(theta: Floats, odds: Floats, codes: Codes) -> Floats:
    """Return ``u_i`` of every row, shape (2K, n)."""
    k, n = odds.shape
    scores = np.empty((2 * k, n))
    residual = scores[:k]
    softmax_against_zero(theta, odds, out=residual)
    np.negative(residual, out=residual)
    inside = np.flatnonzero(codes < k)
    residual[codes[inside], inside] += 1.0
    np.multiply(residual, odds, out=scores[k:])
    return scores


@dataclass(frozen=True, eq=False)
class Mixture:
    """S with the eigenvalues of its distribution under H0, a mixture of chi-squares."""

    score: float
    eigenvalues: Floats
    """Of ``H^-1 V``; all 1 for independent rows."""
    n_units: float

    @classmethod
    def of(cls, root: Floats, total: Floats, gram: Floats, n_units: float) -> Mixture:
        """Return S and its eigenvalues from ``root = whitening(H)``, U and V."""
        u = total @ root
        values = np.linalg.eigvalsh(root.T @ gram @ root)
        return cls(float(u @ u), np.maximum(values, 0.0), n_units)

    @property
    def statistic(self) -> float:
        """S over the mean eigenvalue: about the number of parameters under H0."""
        mean = float(self.eigenvalues.mean()) if len(self.eigenvalues) else 0.0
        return self.score / mean if mean > 0.0 else 0.0

    @property
    def f_pvalue(self) -> float:
        """By the F distribution with Satterthwaite's degrees of freedom."""
        from scipy.special import fdtrc

        total = float(self.eigenvalues.sum())
        if total == 0.0:
            return 1.0
        nu = total**2 / float(self.eigenvalues @ self.eigenvalues)
        return float(fdtrc(nu, (self.n_units - 1.0) * nu, self.score / total))


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
        drawn = ((signs @ white) ** 2).sum(axis=1)
        return drawn >= observed * (1.0 - TIE)

    batch = max(1, min(512, BATCH_ENTRIES // len(white)))
    return monte_carlo_p(exceeds, n_resamples=n_resamples, batch=batch, seed=seed)


@dataclass(frozen=True, eq=False)
class RobustTest(Tested):
    """A test of H0: each row's label follows its probabilities; rows of a group may be dependent.

    Not rejecting H0 does not show that the probabilities are calibrated.

    Attributes
    ----------
    statistic : float
        Score statistic over the mean of its estimated eigenvalues; about `df` under H0.
    df : int
        Parameters that the rows can tell apart.
    pvalue : float
        By `method`.
    method : {'flip', 'f'}
        Random signs of the groups' scores, or the F distribution.
    kind : {'cluster', 'sandwich'}
        Whether groups were given, or every row is its own.
    n_groups : int
        Groups, or rows that count.
    n_effective : float
        As many equal ones of them as would tell as much, by their weights (Kish):
        ``(sum w)^2 / sum w^2``.
    design_effect : float
        How many times larger the groups make the variance of the score; 1 without groups.
    smallest_pvalue : float
        No labels of such rows could give a p-value below it.
    n_resamples, seed : int, int or None
        Flips made, and what they were made from.
    reason : str
        Why `method` was used, and what limits the p-value.
    limits : tuple of str
        The latter alone.
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
    limits: tuple[str, ...] = field(default=(), repr=False)
    left_out = ("limits",)

    def cannot_tell(self, alpha: float = 0.05) -> str:
        """Return why these rows cannot reject at level `alpha`, in words; empty where they can.

        Examples
        --------
        >>> test = robust_test([[0.9, 0.1]] * 3, [0, 1, 1], groups=[0, 1, 2], seed=0)
        >>> test.cannot_tell(0.05)
        '3 groups give no p-value below 0.25; level 0.05 needs at least 6'
        """
        self.rejects(alpha)
        if self.smallest_pvalue <= alpha:
            return ""
        found = f"{format_count(self.n_groups)} {self.unit}"
        if 2.0 ** (1.0 - self.n_groups) <= alpha:
            found, needed = f"{format_count(self.n_resamples)} flips", math.ceil(1.0 / alpha) - 1
        else:
            needed = 1 + math.ceil(-math.log2(alpha))
        least = format_number(self.smallest_pvalue)
        return f"{found} give no p-value below {least}; level {alpha:g} needs at least {needed}"

    @property
    def unit(self) -> str:
        """What is independent: groups, or rows."""
        return "groups" if self.kind == "cluster" else "rows"

    def __str__(self) -> str:
        flips = f"{format_count(self.n_resamples)} sign flips"
        return (
            f"robust score statistic {format_number(self.statistic, 4)} on {self.df} df, "
            f"p {format_p(self.pvalue)} ({'F' if self.method == 'f' else flips}; "
            f"{format_count(self.n_groups)} {self.unit}, design effect "
            f"{format_number(self.design_effect)})"
        )


@reads_rows(RowOptions)
def robust_test(
    probs: Any,
    y: Any = None,
    *,
    method: RobustMethod = "auto",
    n_resamples: int = N_RESAMPLES,
    seed: Seed = None,
    baseline: Any = None,
    **data: Unpack[RowOptions],
) -> RobustTest:
    """Test calibration of rows that depend on each other, or that carry survey weights.

    Parameters
    ----------
    probs : array-like, frame or Predictions
        Predicted probabilities, shape (n_samples, n_classes).
    y : array-like of shape (n_samples,), or table of label counts
        The labels that came true; not given beside a `Predictions`.
    method : {'auto', 'flip', 'f'}
        Random signs of the groups' scores; the F distribution of Rao and Scott; 'auto' flips up to
        1000 groups.
    n_resamples, seed
        Flips, and what makes them repeatable.
    baseline, **data
        How rows are read, as in `Predictions.from_arrays`: `classes`, `sample_weight`,
        `weight_kind`, `normalize`, `clip`, and `groups`, the group of each row (an animal,
        a patient). Groups must be independent of each other; rows of one need not be. Without
        groups every row is its own.

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
    predictions = as_predictions(probs, y, baseline=baseline, **data)
    if method not in get_args(RobustMethod):
        raise InputError(f"method must be 'auto', 'flip' or 'f'; got {method!r}.")
    check_resamples(n_resamples)
    odds = predictions.log_odds
    theta, free = identity_theta(len(odds)), free_parameters(odds)
    sums = score_sums(predictions, theta)
    hessian = LogPartition(odds, predictions.sample_weight)(theta).hessian
    own = whitening(hessian[np.ix_(free, free)])
    root = np.zeros((len(free), own.shape[1]))
    root[free] = own
    null = Mixture.of(root, sums.total, sums.gram, sums.n_units)
    chosen, reason, limits = _choose(predictions, method, sums.n_units, n_resamples)
    pvalue, n_flips, entropy = null.f_pvalue, 0, None
    if chosen == "flip":
        entropy = entropy_of(seed)
        scores = unit_scores(predictions, theta)
        pvalue = flip_pvalue(scores, root, n_resamples=n_resamples, seed=entropy).pvalue
        n_flips = n_resamples
    independent = 0.0 if is_survey(predictions) else chi2_sf(null.score, root.shape[1])
    if independent > pvalue:
        pvalue, limits = independent, (*limits, "the p-value of independent rows is larger")
    grouped = predictions.groups is not None
    return RobustTest(
        statistic=null.statistic,
        df=root.shape[1],
        pvalue=pvalue,
        method=chosen,
        kind="cluster" if grouped else "sandwich",
        n_groups=round(sums.n_units),
        n_effective=_n_effective(predictions),
        design_effect=_design_effect(predictions, root, sums) if grouped else 1.0,
        smallest_pvalue=_smallest(null, n_flips),
        n_resamples=n_flips,
        seed=entropy,
        reason="; ".join([reason, *limits]),
        limits=limits,
    )


def _choose(
    predictions: Predictions, method: str, n_units: float, n_resamples: int
) -> tuple[str, str, tuple[str, ...]]:
    """Return the method to use, why, and what limits its p-value."""
    grouped = predictions.groups is not None
    countable = grouped or is_survey(predictions) or predictions.has_whole_weights
    if method == "flip" and not countable:
        raise InputError(
            "sign flips need whole-number weights (rows counted so many times), groups, or survey "
            "weights. Use method='f'."
        )
    found = f"{format_count(n_units)} {'groups' if grouped else 'rows'}"
    if method == "auto":
        few = n_units <= MOST_FLIPPED
        method = "flip" if few and countable else "f"
        reason = found if countable else f"{found} with fractional weights"
    else:
        reason = "as asked"
    limits: tuple[str, ...] = ()
    if method == "flip" and 2.0 ** (1.0 - n_units) > 1.0 / (n_resamples + 1.0):
        limits = (f"so few can give no p-value below {2.0 ** (1.0 - n_units):.2g}",)
    return method, reason, limits


def kish(weight: Floats) -> float:
    """Return how many equal weights would average as well: ``(sum w)^2 / sum w^2``."""
    return float(weight.sum() ** 2 / (weight @ weight))


def _n_effective(predictions: Predictions) -> float:
    """Return the effective number of groups, of rows with survey weights, or of counted rows."""
    weight = predictions.sample_weight
    if predictions.groups is not None:
        return kish(np.bincount(predictions.groups, weights=weight).astype(np.float64))
    if weight is None:
        return float(predictions.n_samples)
    return kish(weight) if is_survey(predictions) else float(weight.sum())


def _smallest(null: Mixture, n_flips: int) -> float:
    """Return the least p-value that units such as these can give, whatever their labels are."""
    if n_flips:
        return max(2.0 ** (1.0 - null.n_units), 1.0 / (n_flips + 1.0))
    return replace(null, score=null.n_units * float(null.eigenvalues.sum())).f_pvalue


def is_survey(predictions: Predictions) -> bool:
    """Whether rows carry survey weights."""
    return predictions.sample_weight is not None and predictions.weight_kind == "survey"


def _design_effect(predictions: Predictions, root: Floats, sums: ScoreSums) -> float:
    """Return the variance of the score by groups over that by rows, added over directions."""
    rows = row_sums(predictions, identity_theta(len(predictions.log_odds))).covariance
    by_groups, by_rows = (float(np.trace(root.T @ v @ root)) for v in (sums.covariance, rows))
    return by_groups / by_rows if by_rows > 0.0 else float("nan")


def robust_covariance(predictions: Predictions, fit: MCLLOFit) -> Floats:
    """Return the sandwich covariance of ``(tau, gamma)``; NaN where the fit has NaN."""
    predictions, theta = predictions.with_baseline(fit.baseline), fit.theta
    free = ~np.isnan(np.diagonal(fit.cov_theta))
    covariance = np.full((len(theta), len(theta)), np.nan)
    if free.any():
        own = np.ix_(free, free)
        partition = LogPartition(predictions.log_odds, predictions.sample_weight)
        bread = partition(theta).hessian[own] + fit.penalty * np.eye(int(free.sum()))
        meat = score_sums(predictions, theta).covariance[own]
        half = np.linalg.solve(bread, meat)
        sandwich = np.linalg.solve(bread, half.T)
        covariance[own] = 0.5 * (sandwich + sandwich.T)
    return covariance


def robust_fit(predictions: Predictions, fit: MCLLOFit) -> MCLLOFit:
    """Return the same estimates with robust standard errors and intervals."""
    return replace(fit, cov_theta=robust_covariance(predictions, fit))
