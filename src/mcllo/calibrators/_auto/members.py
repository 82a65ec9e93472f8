"""Penalised MCLLO fits for all baselines.

====================  ==========================================================================
map of baseline b     ``eta_j = tau_bj + gamma_bj (x_j - x_b)``, ``eta_b = 0``
as a full map         ``theta_b (x, 1)``: gamma_bj at (j, j), -gamma_bj at (j, b), tau_bj last
minimised             ``nll(theta_b) + r/2 (|tau_b|^2 + |gamma_b - 1|^2)`` for each b
mean                  of all ``theta_b``: the geometric mean of the maps
====================  ==========================================================================

Labels enter only through sums that all baselines share. Without some of the rows, of gradients g
and Hessians H_o at theta_b, a fit begins at ``theta_b + (H - H_o)^-1 g``, which costs a look at
these rows alone: one Newton step is left to do.

Curves of the log odds of two classes: a spline held back by a ridge, and Venn-Abers.

==========  ========================================================================================
scores      ``x = log g_1 - log g_0`` of a row, g the temperature with its slip
units       ``t = (x - m) / s``, m the mean of x and ``s^2`` its variance plus `MIN_VARIANCE`
spline      ``f = x + b + a t + sum_k d_k (|t - t_k| - |t_k|)``, straight lines between the knots
            t_k
minimised   ``sum_i w_i (log(1 + exp f_i) - y_i f_i) + 1/2 (1.4 (b^2 + a^2) + 5 |d|^2)``
Venn-Abers  ``p = p1 / (1 - p0 + p1)``: p1 and p0 are what isotonic regression says at x with one
            more row there, of label 1 or 0; its log odds, joined by straight lines
==========  ========================================================================================

The ridge acts on t, not on x: a model whose log odds all lie within a tenth, such as a zero-shot
classifier's, needs a slope of ten or more, and it is the change of the predictions that is to be
small, not that of the slope. Turning the two classes round turns m, t, f and the knots round.

Isotonic regression alone says 0 or 1 at either end. The two answers of Venn-Abers (Vovk, Petej
and Fedorova 2015) are apart by as much as one row can change, and the mean of theirs that minimises
the largest regret in log loss never reaches 0 or 1. Rows are pooled first, in
`MAX_VENN_ABERS_POOLS` parts of about the same weight, in the order of x; rows of the same x stay
together. So the two regressions of all pools are the max-min formula on one small table.

Fits begin at no change, those to parts of the rows as well: they know nothing of labels left out.

The members of `AutoCalibrator`, each fitted to the whole or to a part of the rows.

====================  ==========================================================================
identity              the predictions themselves
temperature           a temperature with a slip (`calibrators/_auto/temperature_with_lapse`): ``g``
spline, venn_abers    curves of the log odds of two classes (`calibrators/_auto/members`);
                      venn_abers of 200 rows and more
mcllo                 MCLLO maps of g, one for each baseline, their geometric mean: 3 to 12
                      classes; ridge ``d c / 2 (|tau|^2 + |gamma - 1|^2)``
similar               knows which classes look alike (`calibrators/_auto/similarity`): ``s``;
                      3 to 100 classes
full_tight            full map of ``log s``, off-diagonals held back (m = 0.3): 3 to 20 classes
full_loose            the same, held back far less (m = 0.01)
full                  the same, all entries held back alike, ridge ``d c``: 21 to 100 classes
vector                a weight and an intercept for each ``log g_j``: more than 100 classes
====================  ==========================================================================

mcllo, vector and full maps are ``softmax(theta (x, 1))``, x = log g or log s: the mean of the
baselines' maps is such a map, too. A full map begins where look-alike classes leave off: what they
explain with five numbers it need not learn with c (c - 1). Fits to parts of the rows start at the
fit to all, with what it learned of the Hessian.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._fit.linear_fit import by_blocks, identity_map
from ..._model.batched import BatchedProblems, log_partitions
from ..._model.kernel import Derivatives, softmax
from ..._model.likelihood import identity_theta
from ..._model.newton import Product, minimize
from ..._utils.linalg import solve_each
from ..._utils.notebook import show_progress
from ..._utils.parallel import one_blas_thread
from ..._utils.results import Codes, Floats, Result
from .similarity import (
    OfShare,
    SimilarClasses,
    by_factors,
    curvature,
    fit_ridge,
    fit_similar,
    of_share,
    structured_ridge,
)
from .temperature_with_lapse import (
    ScoredRows,
    SoftTemperature,
    fit_soft_temperature,
    last_decrement,
)

MAX_LOG_ODDS_AT_ONCE = 2**21
"""Log odds of the baselines that are fitted at once: bounds their memory."""


@dataclass(frozen=True, eq=False)
class BaselineMaps:
    """(tau, gamma) of each baseline, shape (c, 2c - 2), and the Hessians there."""

    theta: Floats
    hessian: Floats

    def without(self, rows: ScoredRows) -> BaselineMaps:
        """Return the maps, about, had these rows not been there."""
        theta, hessian = self.theta.copy(), self.hessian.copy()
        for part, odds, statistics in _baseline_batches(rows, MAX_LOG_ODDS_AT_ONCE):
            partitions = log_partitions(odds, rows.weight, odds.shape[1])
            terms = [at(own) for at, own in zip(partitions, theta[part], strict=True)]
            lost = np.array([term.hessian for term in terms])
            hessian[part] -= lost
            slopes = np.array([term.gradient for term in terms])
            theta[part] += solve_each(hessian[part], slopes - statistics)
        return BaselineMaps(theta, hessian)


def fit_baselines(
    rows: ScoredRows,
    ridge: float,
    tol: float,
    near: BaselineMaps | None = None,
    most_together: int = MAX_LOG_ODDS_AT_ONCE,
) -> BaselineMaps:
    """Return the best maps, found from those `near`; `tol` is what may be left."""
    few = rows.first() if near is None else None
    if few is not None:
        near = fit_baselines(few, ridge, tol)
    c, size = len(rows.scores), 2 * len(rows.scores) - 2
    identity = identity_theta(c - 1)
    theta = np.tile(identity, (c, 1)) if near is None else near.theta.copy()
    hessian, last = np.empty((c, size, size)), last_decrement(tol)
    for part, odds, statistics in _baseline_batches(rows, most_together):
        problems = BatchedProblems(
            statistics, theta[part], penalty=ridge, centre=identity, tol=last
        )
        minima = problems.minima(odds, rows.weight)
        theta[part], hessian[part] = minima.theta, minima.hessian
    return BaselineMaps(theta, hessian)


def _baseline_batches(rows: ScoredRows, most: int) -> Iterator[tuple[slice, Floats, Floats]]:
    """Yield which baselines, their log odds (K, B, n) and labels' sums."""
    c, n = rows.scores.shape
    sums, together = rows.loss.statistic, max(1, most // (c * n))
    for first in range(0, c, together):
        part = slice(first, first + together)
        others, baselines = _others(c)[part], np.arange(c)[part]
        odds = rows.scores[others.T]
        odds -= rows.scores[baselines]
        shared = sums[others, others] - sums[others, baselines[:, None]]
        yield part, odds, np.concatenate([sums[others, -1], shared], axis=1)


def _others(c: int) -> Codes:
    """Return the classes that are not the baseline, for each baseline."""
    return np.arange(c - 1) + (np.arange(c - 1) >= np.arange(c)[:, None])


def map_parameters(baselines: Floats) -> Floats:
    """Return theta of every map, shape (c, c, c + 1), from (tau, gamma)."""
    c = len(baselines)
    b, j, theta = np.arange(c)[:, None], _others(c), np.zeros((c, c, c + 1))
    theta[b, j, -1], theta[b, j, j] = baselines[:, : c - 1], baselines[:, c - 1 :]
    theta[b, j, b] = -baselines[:, c - 1 :]
    return theta


RIDGE = 1.4  # on intercept and slope: ``0.7 c`` as of other members
BEND_RIDGE = 5.0  # on each change of the slope
KNOTS = np.array([-1.5, -0.75, 0.0, 0.75, 1.5])
"""t_k of the spline."""
RIDGE_OF_PARAMETER = np.array([RIDGE, RIDGE, *(BEND_RIDGE for _ in KNOTS)])
MIN_VARIANCE = 1e-4
"""Added to the variance of x: rows that are all but the same tell nothing of the others."""
MIN_ROWS_FOR_VENN_ABERS = 200
"""Rows below which there is no Venn-Abers: with 100 it gained .0003 on the mean of 71 sets of two
classes, and did harm in 6 % of cases where the pool without it did in 4 %."""
MAX_VENN_ABERS_POOLS = 63
"""Pools of rows of Venn-Abers; odd, so that turning the classes round cuts at the same rows."""


@dataclass(frozen=True, eq=False)
class Curve(Result):
    """Log odds of the second class, straight lines through the points ``(at, value)``.

    Outside the first and the last point they are constant.
    """

    at: Floats
    value: Floats

    def probabilities(self, logs: Floats) -> Floats:
        """Return probabilities, shape (2, n), of ``log g``."""
        odds = np.interp(logs[1] - logs[0], self.at, self.value)
        return np.stack([_logistic(-odds), _logistic(odds)])

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Curve:
        """Return the curve that `to_dict` described."""
        return cls(*(np.array(content[name], dtype=float) for name in ("at", "value")))


def fit_spline(rows: ScoredRows, furthest: float, tol: float) -> Curve:
    """Return the spline of rows ``log g``, whose log odds lie within `furthest` of 0."""
    x, weight = _log_odds(rows), rows.unit
    mean = float(np.average(x, weights=weight))
    spread = float(np.sqrt(np.average((x - mean) ** 2, weights=weight) + MIN_VARIANCE))
    loss = _SplineLoss(x, _features((x - mean) / spread), rows.codes == 1, weight)
    start, last = np.zeros(len(RIDGE_OF_PARAMETER)), last_decrement(tol)
    found = minimize(loss, start, tol=last).x
    knots = mean + spread * KNOTS
    inside = knots[np.abs(knots) < furthest]
    at = np.concatenate([[-furthest], inside, [furthest]])
    return Curve(at, at + found @ _features((at - mean) / spread))


def fit_venn_abers(rows: ScoredRows) -> Curve:
    """Return Venn-Abers of rows ``log g``."""
    own = rows.unit > 0.0
    x, weight, codes = _log_odds(rows)[own], rows.unit[own], rows.codes[own]
    values, value_of_row = np.unique(x, return_inverse=True)
    weights = _sums(value_of_row, weight)
    pool = np.arange(len(values))
    if len(values) > MAX_VENN_ABERS_POOLS:
        middle = np.cumsum(weights) - 0.5 * weights
        part = np.floor(MAX_VENN_ABERS_POOLS * middle / weights.sum())
        _, pool = np.unique(part, return_inverse=True)
    total = _sums(pool, weights)
    at = _sums(pool, weights * values) / total
    hits = _sums(pool[value_of_row], weight * (codes == 1))
    lower, upper = _isotonic_with_one(hits, total)
    value = np.log(upper) - np.log1p(-lower)
    # of a run of equal values the ends will do
    same = np.isclose(value[1:], value[:-1], rtol=0.0, atol=1e-12)
    needed = ~(np.append(same, False) & np.insert(same, 0, False))
    return Curve(at[needed], value[needed])


def _sums(place: Codes, weight: Floats) -> Floats:
    return np.bincount(place, weights=weight).astype(np.float64, copy=False)


def _isotonic_with_one(hits: Floats, total: Floats) -> Floats:
    """Return, for each pool, isotonic regression there with one more row of label 0, or 1: (2, J).

    That is ``max over a <= j of min over b >= j`` of the mean of pools a, ..., b with that row.
    """
    ends, sums = np.cumsum(total), np.cumsum(hits)
    sizes = ends - (ends - total)[:, None] + 1.0
    own = sums - (sums - hits)[:, None]
    backward = np.tri(len(total), k=-1, dtype=bool)  # a > b
    sizes[backward] = 1.0
    means = np.stack([own / sizes, (own + 1.0) / sizes])
    means[:, backward] = np.inf
    least = np.minimum.accumulate(means[:, :, ::-1], axis=2)[:, :, ::-1]
    least[:, backward] = -np.inf
    largest: Floats = least.max(axis=1)
    return largest


def _log_odds(rows: ScoredRows) -> Floats:
    return np.asarray(rows.scores[1] - rows.scores[0], dtype=np.float64)


def _features(t: Floats) -> Floats:
    """Return 1, t and ``|t - t_k| - |t_k|``, shape (2 + K, n)."""
    features = np.empty((len(RIDGE_OF_PARAMETER), len(t)))
    features[0], features[1] = 1.0, t
    for feature, knot in zip(features[2:], KNOTS, strict=True):
        np.abs(t - knot, out=feature)
        feature -= abs(knot)
    return features


class _SplineLoss:
    """``(b, a, d) -> Derivatives`` of what is minimised."""

    def __init__(self, x: Floats, features: Floats, hit: NDArray[np.bool_], weight: Floats) -> None:
        self.x, self.features, self.weight = x, features, weight
        self.weighted_hit = weight * hit

    def __call__(self, b: Floats) -> Derivatives:
        """Return value, gradient and Hessian."""
        f = self.x + b @ self.features
        small = np.exp(-np.abs(f))
        costs = np.log1p(small) + np.maximum(f, 0.0)
        value = self.weight @ costs - self.weighted_hit @ f + 0.5 * RIDGE_OF_PARAMETER @ (b * b)
        p = np.where(f > 0.0, 1.0, small) / (1.0 + small)
        gradient = self.features @ (self.weight * p - self.weighted_hit) + RIDGE_OF_PARAMETER * b
        curved = self.features * (self.weight * small / (1.0 + small) ** 2)
        hessian = curved @ self.features.T + np.diag(RIDGE_OF_PARAMETER)
        return Derivatives(float(value), gradient, hessian)


def _logistic(f: Floats) -> Floats:
    small = np.exp(-np.abs(f))
    return np.where(f > 0.0, 1.0, small) / (1.0 + small)


DIAGONAL_RIDGE = 0.7
"""d: strength of the ridge on what a class does to itself, for each class."""
OFF_DIAGONAL = {"full_tight": 0.3, "full_loose": 0.01}
"""m of the full maps, from strong to weak: each starts at the one before."""
SCALED = ("mcllo", "vector")
"""Members that are linear in ``log g``, and not in ``log s``."""
CURVES = ("spline", "venn_abers")
"""Members of two classes alone."""
MAX_CLASSES_FOR_BASELINE_AVERAGE = 12
MAX_CLASSES_FOR_STRUCTURED = 20
MAX_CLASSES_FOR_FULL = 100
TOL = 1e-6  # Newton decrement, in nats of all rows together, of the last step of a fit to all rows
PARTS_TOL = 2e-4  # the same of fits to parts, or to `MIN_SCORES_FOR_PART_TOL` scores
MIN_SCORES_FOR_PART_TOL = 2**13
"""Newton decrements, in nats of all rows together, at which fits take their last step: fits to all
rows, and fits to parts of them or to so many scores."""
FULL_MAP_TOL = 8.0
FULL_MAP_PARTS_TOL = 0.1
"""The same for 'full' and its thousands of parameters: what is left of them then is below what rows
can tell. Its fits to parts begin at the identity, which knows of no labels. And for the look-alike
map of as many classes."""
MAX_PARAMETERS_FOR_NEW_HESSIAN = 200
"""Parameters of ridge maps up to which the Hessian is made anew for fits to parts."""
LEFT_OUT_TRACE_TOL = 0.1
"""What of the rows left out, at whose fit they begin, may be left in fits to parts: in nats of the
log likelihood of the rows left out. By estimate; measured it is a tenth of that or less."""


def member_names(n_classes: int) -> tuple[str, ...]:
    """Return the members for so many classes and enough rows, from simple to rich."""
    simple = ("identity", "temperature")
    if n_classes > MAX_CLASSES_FOR_FULL:
        return (*simple, "vector")
    if n_classes > MAX_CLASSES_FOR_STRUCTURED:
        return (*simple, "similar", "full")
    if n_classes > MAX_CLASSES_FOR_BASELINE_AVERAGE:
        return (*simple, "similar", *OFF_DIAGONAL)
    if n_classes > 2:
        return (*simple, "mcllo", "similar", *OFF_DIAGONAL)
    return (*simple, *CURVES)


@dataclass(frozen=True, eq=False)
class Members(Result):
    """All members, fitted.

    `soft` is 'temperature', on which the others build; `similar`, where there is one, that on which
    the full maps do; `maps` are theta of 'mcllo', 'vector' and the full maps, shape (c, c + 1), but
    (c, 2) for 'vector'; `curves` are 'spline' and 'venn_abers' of two classes.
    """

    soft: SoftTemperature
    maps: dict[str, Floats]
    similar: SimilarClasses | None = None
    curves: dict[str, Curve] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """All members, from simple to rich."""
        scaled = [name for name in self.maps if name in SCALED]
        similar = [] if self.similar is None else ["similar"]
        full = [name for name in self.maps if name not in SCALED]
        return ("identity", "temperature", *scaled, *similar, *full, *self.curves)

    @show_progress("fitting")
    @one_blas_thread()
    def probabilities(self, scores: Floats) -> dict[str, Floats]:
        """Return what each member but the identity makes of scores, all of shape (c, n)."""
        g, logs = self.soft.both(scores)
        answers = {"temperature": g}
        for name in self.names[2:]:
            if name == "similar" and self.similar is not None:
                answers[name], logs = self.similar.both(g, logs)
                continue
            if name in self.curves:
                answers[name] = self.curves[name].probabilities(logs)
                continue
            theta = self.maps[name]
            eta = theta[:, :1] * logs if theta.shape[1] == 2 else theta[:, :-1] @ logs
            eta += theta[:, -1:]
            softmax(eta)
            answers[name] = eta
        return answers

    def answers(self, scores: Floats) -> list[Floats]:
        """Return what each member makes of scores, the identity too."""
        same = scores.copy()
        softmax(same)
        return [same, *self.probabilities(scores).values()]

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Members:
        """Return the members that `to_dict` described."""
        maps = {name: np.array(theta, dtype=float) for name, theta in content["maps"].items()}
        known = content.get("similar")  # files of before it was there have full maps of log g
        similar = None if known is None else SimilarClasses.from_dict(known)
        curves = {name: Curve.from_dict(one) for name, one in content.get("curves", {}).items()}
        return cls(SoftTemperature(**content["soft"]), maps, similar, curves)


def label_log_likelihoods(answers: list[Floats], codes: Codes) -> Floats:
    """Return the log probability that each answer, shape (c, n), gives to the labels: (n, K)."""
    rows, tiny = np.arange(len(codes)), np.finfo(np.float64).tiny
    return np.log(np.maximum([p[codes, rows] for p in answers], tiny)).T


class MembersFit:
    """Fits the members to all rows, and then to parts of them.

    Scores are logits or log probabilities, shape (c, n); `tol` is the decrement at which fits to
    all rows end, by default as their number asks.
    """

    def __init__(
        self,
        scores: Floats,
        codes: Codes,
        weight: Floats | None = None,
        *,
        tol: float | None = None,
    ) -> None:
        c = len(scores)
        many = scores.size >= MIN_SCORES_FOR_PART_TOL
        self.rows = ScoredRows(scores, codes, weight)
        if tol is None:
            tol = PARTS_TOL if many else TOL
        wide = {"vector": 2, "full": c + 1}
        self.ridges = {
            name: np.full((c, wide[name]), DIAGONAL_RIDGE * c)
            if name in wide
            else structured_ridge(c, OFF_DIAGONAL[name], DIAGONAL_RIDGE)
            for name in member_names(c)
            if name in wide or name in OFF_DIAGONAL
        }
        self.inverses: dict[str, OfShare] = {}
        self.baselines: BaselineMaps | None = None
        self.whole = self._fit(self.rows, tol)

    def parts(self, weights: list[Floats], tol: float = PARTS_TOL) -> list[Members]:
        """Return the members fitted with other weights; rows of weight 0 are left out."""
        left_out = (self.rows.with_weight(self.rows.unit - weight) for weight in weights)
        parts = zip(map(self.rows.with_weight, weights), left_out, strict=True)
        return [self._fit(rows, tol, self.whole, without) for rows, without in parts]

    def _fit(
        self,
        rows: ScoredRows,
        tol: float,
        near: Members | None = None,
        left_out: ScoredRows | None = None,
    ) -> Members:
        """Return the members; `near` are those of all rows, where some are left out."""
        names = member_names(len(rows.scores))
        if near is None:
            trace, soft = np.inf, fit_soft_temperature(rows)
        else:
            trace = LEFT_OUT_TRACE_TOL
            soft = fit_soft_temperature(rows, near.soft, tol, trace)
        g, logs = soft.both(rows.scores)
        rows = told = replace(rows, scores=logs)
        maps: dict[str, Floats] = {}
        if "mcllo" in names:
            start = None if left_out is None else self._without(left_out, soft)
            baselines = fit_baselines(rows, DIAGONAL_RIDGE * len(g), tol, start)
            self.baselines = self.baselines or baselines
            maps["mcllo"] = map_parameters(baselines.theta).mean(axis=0)
        similar = None
        if "similar" in names:
            known = None if near is None else near.similar
            inverse = self._inverse("similar", rows)
            enough = FULL_MAP_PARTS_TOL if "full" in names and tol >= TOL else tol
            similar, logs, inverses = fit_similar(g, rows, enough, known, inverse, trace)
            if inverses is not None:
                self.inverses["similar"] = inverses
            told = replace(rows, scores=logs)
        maps |= self._ridge_maps(rows, told, tol, near)
        curves: dict[str, Curve] = {}
        if len(g) == 2:
            furthest = math.log(2.0 / soft.slip - 1.0)
            curves["spline"] = fit_spline(rows, furthest, tol)
            # rows of the whole: parts have the same members
            if self.rows.total >= MIN_ROWS_FOR_VENN_ABERS:
                curves["venn_abers"] = fit_venn_abers(rows)
        return Members(soft, maps, similar, curves)

    def _without(self, left_out: ScoredRows, soft: SoftTemperature) -> BaselineMaps:
        """Return where baselines' maps begin without these rows, of log g by their own `soft`.

        As log g changes, by u and slip, gamma does: by the slope of the old ones on the new.
        """
        assert self.baselines is not None
        if len(left_out.codes) == 0 or self.rows.scores.size < MIN_SCORES_FOR_PART_TOL:
            return self.baselines  # a pass over few rows costs no more than this
        (_, old), (g, new) = (each.both(left_out.scores) for each in (self.whole.soft, soft))
        start = self.baselines.without(replace(left_out, scores=old))
        new -= (g * new).sum(axis=0)
        spread = float((g * new * new).sum())
        if spread > 0.0:
            start.theta[:, len(g) - 1 :] *= float((g * new * old).sum()) / spread
        return start

    def _ridge_maps(
        self, rows: ScoredRows, told: ScoredRows, tol: float, near: Members | None
    ) -> dict[str, Floats]:
        """Return theta of the vector map (of `rows`) and of full maps (of `told`)."""
        maps: dict[str, Floats] = {}
        start, blocks = identity_map(len(rows.scores), "vector" in self.ridges), None
        before = ""
        for name, ridge in self.ridges.items():
            own, enough, trace = rows if name == "vector" else told, tol, np.inf
            if near is not None and name != "full":
                moved = start - near.maps[before] if before else 0.0
                start, trace, before = near.maps[name] + moved, LEFT_OUT_TRACE_TOL, name
            if name == "full" and tol >= TOL:
                enough = FULL_MAP_TOL
            inverse = self._inverse(name, own)
            if inverse is None and name == "full":
                inverse = by_factors(own, start, DIAGONAL_RIDGE * len(ridge))
                self.inverses[name] = divide_inverse(inverse)
            elif inverse is None:
                blocks = curvature(own, start) if blocks is None else blocks
                inverse = by_blocks(blocks, ridge)
            start, learned = fit_ridge(own, ridge, start, inverse, enough, trace)
            if near is None and start.size <= MAX_PARAMETERS_FOR_NEW_HESSIAN:
                blocks = curvature(own, start)
                self.inverses[name] = of_share(blocks, ridge)
            self.inverses.setdefault(name, divide_inverse(learned))
            maps[name] = start
        return maps

    def _inverse(self, name: str, rows: ScoredRows) -> Product | None:
        """Return that of a share of all rows, about, once the member was fitted to all."""
        known = self.inverses.get(name)
        return None if known is None else known(round(rows.total / self.rows.total, 2))


def divide_inverse(inverse: Product) -> OfShare:
    """Return the same where it is not known apart from the ridge."""
    return lambda share: lambda v: inverse(v) / share
