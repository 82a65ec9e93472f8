"""Evidential calibration with one scalar: what theta is plausible, and the belief in each class.

=================  ==========================================================================
model              ``p_k(theta) = exp(theta s_k) / sum_j exp(theta s_j)``, s the scores of a row
log likelihood     ``l(theta) = sum_i w_i (theta t_i - log sum_k exp(theta s_ik))``, concave;
                   ``t_i`` is the score of row i's target
plausible set      ``Gamma(u) = {theta: l(theta) >= l(theta_hat) + log u} = [a(u), b(u)]``
signed root        ``r(theta) = +- sqrt(2 (l(theta_hat) - l(theta)))``: grows with theta and is
                   nearly a straight line; the ends of Gamma(u) have ``r = +- sqrt(-2 log u)``
quadrature         ``E_u[f(u)] = sum_q w_q f(u_q)``, u uniform: Gauss-Legendre in v, ``u = v^2``
cumulative         ``F_k = p_1 + .. + p_k`` in a chosen order of the classes, F_0 = 0, F_c = 1
random set         ``phi(u, z) = {k: L_k-1 < z <= U_k}``, z uniform, ``U_k = max_Gamma F_k``,
                   ``L_k = min_Gamma F_k``
plausibility       ``Pl(k) = P(k in phi) = E_u[U_k - L_k-1]``
belief             ``Bel(k) = P(phi = {k}) = E_u[(L_k - U_k-1)_+]``
pignistic          ``BetP(k) = E[1{k in phi} / |phi|]``
=================  ==========================================================================

These are the predictive belief functions of Denoeux (2014). U and L grow with k, so phi is a run of
neighbouring classes, and given u the run k .. k+d has the probability ``(min(U_k, L_k+d) -
max(U_k-1, L_k+d-1))_+``; that is what `run_belief` adds up.

Orders:

score     ascending scores: F_k falls as theta grows, so ``U = F(a)`` and ``L = F(b)``. Classes of
          equal score get the mean of their numbers.
index     column order. F_k need not be monotone in theta.
envelope  no order: lower and upper probability ``E_u[min_Gamma p_k]``, ``E_u[max_Gamma p_k]``. For
          three or more classes they are not a belief function and have no focal sets; `betp` is
          then ``lower + t (upper - lower)`` with the one t that makes it sum to 1, for two classes
          the pignistic probability.

For the last two, the sets being nested, extremes are running extremes outward from theta_hat over
the ends of all sets and over the stationary points between neighbouring ends, bisected where the
derivative changes sign. A p_k has at most one stationary point, so none is missed; of a cumulative
F_k two could hide between the same two ends, where it is then flat.

`XuDavoine`: evidential calibration by one scalar soft-max model (Xu, Davoine, Denoeux 2015).

=================  ==========================================================================
score              ``s = x`` (as the paper on MCLLO seems to use it) or ``s = log x``
model              ``p_k = exp(theta s_k) / sum_j exp(theta s_j)``, see `_evidential`
targets            the label; or smoothed, Platt's for c classes: a row of class k, which has n_k
                   rows, counts ``(n_k + 1) / (n_k + c)`` for k and ``1 / (n_k + c)`` for the others
belief function    every theta as plausible as its likelihood, see `_evidential`
prediction         pignistic BetP, or ``Pl / sum Pl``, or the plug-in ``p(theta_hat)``
=================  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

from .._fit.linear_fit import transposed_scores
from .._model.kernel import CHUNK_ELEMENTS, Derivatives, softmax
from .._model.newton import Solution, minimize
from .._utils.results import Codes, Floats, Result
from .._validation.predictions import Predictions
from .._validation.probabilities import Simplex
from ..exceptions import InputError
from ._base import Calibrator, check_choice

Objective = Callable[[Floats], Derivatives]
Order = Literal["score", "index", "envelope"]

N_NODES = 64
NEWTON_TOL = 1e-5
"""Distance in r from which one more Newton step is exact to rounding."""
MAX_STEPS = 200
INFINITE_GAMMA = 1e8
"""Stands for infinity as an end of Gamma(u) when the rows say nothing about theta."""
N_HALVINGS = 26
"""Of a cell that holds a stationary point; the error of the value there is of the order 4**-26."""


@cache
def quadrature() -> tuple[Floats, Floats]:
    """Return nodes u, falling from 1 to 0 so that the sets grow, and their weights."""
    x, w = np.polynomial.legendre.leggauss(N_NODES)
    v = 0.5 * (x[::-1] + 1.0)
    nodes, weight = v**2, v * w[::-1]
    for array in (nodes, weight):
        array.setflags(write=False)
    return nodes, weight


@dataclass(frozen=True, eq=False)
class PlausibleSets(Result):
    """theta_hat and the sets Gamma(u) of some levels u, growing outward.

    Attributes
    ----------
    theta : float
        The maximum likelihood estimate.
    low, high : ndarray of shape (n_levels,)
        Ends of Gamma(u).
    """

    theta: float
    low: Floats
    high: Floats

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> PlausibleSets:
        """Return the sets that `to_dict` described."""
        low, high = (np.array(content[name], dtype=float) for name in ("low", "high"))
        return cls(float(content["theta"]), low, high)


class ScalarLikelihood:
    """``theta -> Derivatives`` of ``-l(theta)``; scores of shape (c, n), and each row's
    target's.
    """

    def __init__(self, scores: Floats, target: Floats, weight: Floats | None = None) -> None:
        self.weight = np.ones(len(target)) if weight is None else weight
        self.target = target
        self.top, self.bottom = scores.max(axis=0), scores.min(axis=0)
        self._below, self._above = scores - self.top, scores - self.bottom
        self.lead = float(self.weight @ (self.top - target))
        self.lag = float(self.weight @ (target - self.bottom))

    def __call__(self, theta: Floats) -> Derivatives:
        """Return value, gradient and Hessian at `theta`, an array of one number."""
        at = float(theta[0])
        # Shifted so that every exponent is <= 0; measured from the target's score, not from 0.
        up = at >= 0.0
        shifted, offset = (self._below, self.lead) if up else (self._above, -self.lag)
        p = at * shifted
        logs = softmax(p)
        mean = np.einsum("kn,kn->n", p, shifted)
        p *= shifted
        spread = np.einsum("kn,kn->n", p, shifted) - mean**2
        value = float(self.weight @ logs) + at * offset
        slope = float(self.weight @ mean) + offset
        return Derivatives(value, np.array([slope]), np.array([[self.weight @ spread]]))


def scalar_sets(likelihood: ScalarLikelihood) -> PlausibleSets:
    """Return theta_hat and every Gamma(u); rows that say nothing make every theta plausible."""
    if not (likelihood.weight * (likelihood.top - likelihood.bottom)).any():
        far = np.full(N_NODES, INFINITE_GAMMA)
        return PlausibleSets(0.0, -far, far)
    for gap, which in ((likelihood.lead, "most"), (likelihood.lag, "least")):
        if gap == 0.0:
            raise InputError(
                f"theta must have a finite estimate; the {which} probable class came true in "
                "every row, so the likelihood grows for ever. Use smooth=True."
            )
    return plausible_sets(likelihood, quadrature()[0])


def plausible_sets(objective: Objective, levels: Floats) -> PlausibleSets:
    """Return theta_hat and both ends of Gamma(u) at falling `levels` u, for a convex ``-l``."""
    solution = minimize(objective, np.zeros(1))
    radii = np.sqrt(-2.0 * np.log(levels))
    low, high = (_outward(objective, solution, side, radii) for side in (-1.0, 1.0))
    return PlausibleSets(float(solution.x[0]), low, high)


def _outward(objective: Objective, solution: Solution, side: float, radii: Floats) -> Floats:
    """Solve ``r(theta) = radius`` on one side of theta_hat, each radius from the one before."""
    ends = np.empty(len(radii))
    theta, radius, bend = float(solution.x[0]), 0.0, 0.0
    rate = max(float(solution.terms.hessian[0, 0]), np.finfo(float).tiny) ** -0.5
    for q, goal in enumerate(radii):
        ahead, before = goal - radius, rate
        step = ahead * max(rate + 0.5 * ahead * bend, 0.5 * rate)
        theta, rate = _solve(objective, solution.value, side, theta, step, goal)
        ends[q], radius, bend = theta, goal, (rate - before) / ahead
    return ends


def _solve(
    objective: Objective, best: float, side: float, inner: float, step: float, goal: float
) -> tuple[float, float]:
    """Return theta beyond `inner` with ``|r(theta)| = goal``, and ``d theta / d r`` there.

    Newton in r, kept between what is known to be too near and too far.
    """
    near, far, at = 0.0, np.inf, step
    for _ in range(MAX_STEPS):
        terms = objective(np.array([inner + side * at]))
        r = np.sqrt(2.0 * max(terms.value - best, 0.0))
        rate = r / max(side * float(terms.gradient[0]), np.finfo(float).tiny)
        newton = at + (goal - r) * rate
        if abs(goal - r) <= NEWTON_TOL:
            return inner + side * newton, rate
        near, far = (at, far) if r < goal else (near, at)
        inside = near < newton < far
        at = newton if inside else (2.0 * near + step if np.isinf(far) else 0.5 * (near + far))
    return inner + side * at, rate


@dataclass(frozen=True, eq=False)
class Belief(Result):
    """Lower, upper and pignistic probability of each class.

    Attributes
    ----------
    bel, pl, betp : ndarray of shape (n_samples, n_classes)
        Belief, plausibility and pignistic probability, ``bel <= betp <= pl``; rows of `betp` sum
        to 1.
    """

    bel: Floats
    pl: Floats
    betp: Floats


def belief(scores: Floats, sets: PlausibleSets, order: Order) -> Belief:
    """Return the predictive belief function of each row of `scores`, shape (n, c)."""
    n, c = scores.shape
    rows = max(16, CHUNK_ELEMENTS // (c * len(sets.low)))
    numbers = np.empty((3, n, c))
    chunk = {"score": _by_score, "index": _by_index, "envelope": _envelope}[order]
    for start in range(0, n, rows):
        part = slice(start, start + rows)
        numbers[:, part] = chunk(scores[part], sets)
    bel, pl, betp = numbers
    betp /= betp.sum(axis=1, keepdims=True)
    return Belief(bel, pl, betp)


def soft_max(scores: Floats, theta: Any) -> Floats:
    """Return ``p_k(theta)``; classes on the first axis, the others broadcast."""
    p: Floats = scores * theta
    softmax(p)
    return p


def cumulate(p: Floats) -> Floats:
    """Return F_0 = 0 .. F_c = 1 along the first axis."""
    total = np.zeros((len(p) + 1, *p.shape[1:]))
    np.cumsum(p, axis=0, out=total[1:])
    total /= total[-1].copy()
    return total


def run_belief(upper: Floats, lower: Floats, weight: Floats) -> Floats:
    """Return Bel, Pl and BetP, shape (3, c, m), from U and L of shape (c + 1, n_nodes, m)."""
    c = len(upper) - 1
    pl = weight @ (upper[1:] - lower[:-1])
    change = np.zeros((c + 1, upper.shape[2]))  # of BetP from one class to the next
    bel = np.zeros_like(pl)
    for d in range(c):
        ends = slice(d + 1, c + 1), slice(d, c)
        length = np.minimum(upper[1 : c + 1 - d], lower[ends[0]])
        length -= np.maximum(upper[: c - d], lower[ends[1]])
        mass = weight @ np.maximum(length, 0.0, out=length)
        if d == 0:
            bel = mass
        change[: c - d] += mass / (d + 1)
        change[d + 1 :] -= mass / (d + 1)
        if not (lower[d + 1 : c] < upper[1 : c - d]).any():
            break  # no run is longer than d + 1
    return np.stack([bel, pl, np.maximum(change[:c].cumsum(axis=0), bel)])


def _by_score(scores: Floats, sets: PlausibleSets) -> Floats:
    """Return the numbers of a chunk in the order "score"."""
    order = np.argsort(scores, axis=1, kind="stable")
    ranked = np.take_along_axis(scores, order, axis=1)
    columns = np.ascontiguousarray(ranked.T)[:, None, :]
    upper, lower = (cumulate(soft_max(columns, end[:, None])) for end in (sets.low, sets.high))
    numbers = run_belief(upper, lower, quadrature()[1]).transpose(0, 2, 1)
    answer = np.empty_like(numbers)
    np.put_along_axis(answer, order[None], _average_ties(numbers, ranked), axis=2)
    return answer


def _average_ties(numbers: Floats, ranked: Floats) -> Floats:
    """Give classes of equal score the mean of their numbers; rows are sorted by score."""
    fresh = np.ones(ranked.shape, dtype=bool)
    fresh[:, 1:] = ranked[:, 1:] != ranked[:, :-1]
    if fresh.all():
        return numbers
    group = fresh.ravel().cumsum() - 1
    size = np.bincount(group)
    means = [np.bincount(group, weights=row.ravel()) / size for row in numbers]
    return np.stack([mean[group].reshape(ranked.shape) for mean in means])


def _by_index(scores: Floats, sets: PlausibleSets) -> Floats:
    """Return the numbers of a chunk in the order "index"."""
    lower, upper = extremes(scores.T, sets, cumulative=True)
    padded = np.zeros((2, len(lower) + 1, *lower.shape[1:]))
    padded[:, 1:] = lower, upper
    return run_belief(padded[1], padded[0], quadrature()[1]).transpose(0, 2, 1)


def _envelope(scores: Floats, sets: PlausibleSets) -> Floats:
    """Return the numbers of a chunk without an order."""
    lower, upper = (quadrature()[1] @ end for end in extremes(scores.T, sets, cumulative=False))
    width = upper - lower
    room = np.maximum(width.sum(axis=0), np.finfo(float).tiny)
    betp = lower + width * ((1.0 - lower.sum(axis=0)) / room)
    return np.stack([lower.T, upper.T, betp.T])


def extremes(scores: Floats, sets: PlausibleSets, *, cumulative: bool) -> tuple[Floats, Floats]:
    """Return least and largest p_k (or F_k) over each Gamma(u), shape (c, n_nodes, m) each."""
    sides = [_one_side(scores, sets.theta, ends, cumulative) for ends in (sets.low, sets.high)]
    return np.minimum(sides[0][0], sides[1][0]), np.maximum(sides[0][1], sides[1][1])


def _one_side(
    scores: Floats, theta: float, ends: Floats, cumulative: bool
) -> tuple[Floats, Floats]:
    """Return the running extremes from theta_hat to each of the ends on one side."""
    grid = np.concatenate([[theta], ends])
    value, slope = _curves(scores[:, None, :], grid[:, None], cumulative)
    inside = value[:, 1:].copy()
    curve, cell, row = np.nonzero(slope[:, :-1] * slope[:, 1:] < 0.0)
    if len(row):
        turn = _stationary(scores[:, row], curve, grid[cell], grid[cell + 1], cumulative)
        inside[curve, cell, row] = turn
    least = np.minimum.accumulate(np.minimum(value[:, 1:], inside), axis=1)
    most = np.maximum.accumulate(np.maximum(value[:, 1:], inside), axis=1)
    return np.minimum(least, value[:, :1]), np.maximum(most, value[:, :1])


def _stationary(
    scores: Floats, curve: Codes, start: Floats, stop: Floats, cumulative: bool
) -> Floats:
    """Return the value of each curve where its derivative changes sign from start to stop."""
    which = curve, np.arange(len(curve))
    sign = np.sign(_curves(scores, start, cumulative)[1][which])
    for _ in range(N_HALVINGS):
        middle = 0.5 * (start + stop)
        same = np.sign(_curves(scores, middle, cumulative)[1][which]) == sign
        start, stop = np.where(same, middle, start), np.where(same, stop, middle)
    return _curves(scores, 0.5 * (start + stop), cumulative)[0][which]


def _curves(scores: Floats, theta: Floats, cumulative: bool) -> tuple[Floats, Floats]:
    """Return p_k (or F_k) and its derivative in theta; classes on the first axis."""
    p = soft_max(scores, theta)
    slope = p * (scores - (p * scores).sum(axis=0))
    if not cumulative:
        return p, slope
    slope = slope.cumsum(axis=0)
    slope[-1] = 0.0  # F_c is 1; what is left is rounding
    return cumulate(p)[1:], slope


Scores = Literal["prob", "log"]
Output = Literal["pignistic", "plausibility", "plug_in"]


class XuDavoine(Calibrator):
    """Evidential calibration: soft-max with one scalar, and what the data leave open about it.

    With ``scores="prob"`` no theta changes nothing, so predictions that need no recalibration are
    changed too; ``scores="log", output="plug_in"`` is temperature scaling. The plug-in never
    changes the most probable class.

    Parameters
    ----------
    scores : {"prob", "log"}
        The scores: probabilities, or their logarithms.
    smooth : bool
        Smooth the targets. It shrinks theta strongly when a class has few rows; without it theta
        has no finite estimate when the most probable class came true in every row.
    output : {"pignistic", "plausibility", "plug_in"}
        How the belief function becomes probabilities.
    order : {"score", "index", "envelope"}
        Order of the classes in the cumulative probabilities: ascending score, columns, or none
        (bounds for each class alone).
    classes : sequence, optional
        The label of each column, when it cannot be told from the columns or the labels.
    normalize : bool
        Accept rows of probabilities that do not sum to 1 and divide them by their sum.
    clip : float, optional
        Clips smaller probabilities, for ``scores="log"``. Default: 1e-6, and only in rows that
        hold a 0.

    Attributes
    ----------
    theta_ : float
        The maximum likelihood estimate.
    sets_ : PlausibleSets
        The ends of the sets Gamma(u) of plausible theta.

    See Also
    --------
    TemperatureScaling : The plug-in of log probabilities.
    mcllo.MCLLOCalibrator : The method that the paper compares with this one.
    mcllo.compare : Both on the same rows.

    Notes
    -----
    Evidential calibration as in [1]_, extended to more than two classes as in [2]_. Only the
    abstracts and first pages of these were at hand; the rest is derived from the likelihood-based
    belief function that they build on. Options are the choices that they leave open; the
    defaults are a reading of how [3]_ used the method, which its tables do not settle.

    References
    ----------
    .. [1] P. Xu, F. Davoine, H. Zha, T. Denœux (2016). Evidential calibration of binary SVM
           classifiers. International Journal of Approximate Reasoning 72:55-70.
    .. [2] P. Xu, F. Davoine, T. Denœux (2015). Evidential multinomial logistic regression for
           multiclass classifier calibration. 18th International Conference on Information Fusion,
           1106-1112.
    .. [3] A. Vennos, X. Xing, C. T. Franck (2026). Multiclass Calibration Assessment and
           Recalibration of Probability Predictions via the Linear Log Odds Calibration Function.
           arXiv:2602.18573.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.dirichlet([1, 1, 1], size=500)
    >>> y = [rng.choice(3, p=row) for row in X]
    >>> evidential = XuDavoine().fit(X, y)
    >>> evidential.predict_proba([[0.6, 0.3, 0.1]]).round(2)
    array([[0.65, 0.23, 0.12]])
    >>> bounds = evidential.belief([[0.6, 0.3, 0.1]])
    >>> bounds.bel.round(2), bounds.pl.round(2)
    (array([[0.62, 0.19, 0.1 ]]), array([[0.68, 0.27, 0.13]]))
    """

    method = "xu_davoine"
    includes_identity = False
    _absent = "its probability is only reshaped as all others are"

    def __init__(
        self,
        *,
        scores: Scores = "prob",
        smooth: bool = True,
        output: Output = "pignistic",
        order: Order = "score",
        classes: Sequence[Hashable] | None = None,
        normalize: bool = False,
        clip: float | None = None,
    ) -> None:
        super().__init__(classes=classes, normalize=normalize)
        self.scores = scores
        self.smooth = smooth
        self.output = output
        self.order = order
        self.clip = clip

    @property
    def needs_logs(self) -> bool:
        """Whether zeros must be raised first: where their logarithm is the score."""
        return self.scores == "log"

    @property
    def theta_(self) -> float:
        """The maximum likelihood estimate."""
        return self.sets_.theta

    def belief(self, X: Any) -> Belief:
        """Return belief, plausibility and pignistic probability of each class, by `order`.

        Parameters
        ----------
        X : array-like, frame or Predictions
            Predicted probabilities, shape (n_samples, n_classes).

        Returns
        -------
        Belief
            `bel`, `pl` and `betp`, arrays of shape (n_samples, n_classes).
        """
        return belief(self._scores(self._rows(X)).T, self.sets_, self.order)

    def _check_options(self) -> None:
        check_choice("scores", self.scores, ("prob", "log"))
        check_choice("output", self.output, ("pignistic", "plausibility", "plug_in"))
        check_choice("order", self.order, ("score", "index", "envelope"))

    def _learn(self, predictions: Predictions) -> None:
        scores, codes = self._scores(predictions), predictions.codes
        target = scores[codes, np.arange(len(codes))]
        if self.smooth:
            size = predictions.class_weight[codes]
            target = (size * target + scores.sum(axis=0)) / (size + len(scores))
        self.sets_ = scalar_sets(ScalarLikelihood(scores, target, predictions.sample_weight))

    def _apply(self, simplex: Simplex) -> Floats:
        scores = self._scores(simplex)
        if self.output == "plug_in":
            return np.ascontiguousarray(soft_max(scores, self.theta_).T)
        found = belief(scores.T, self.sets_, self.order)
        if self.output == "pignistic":
            return found.betp
        return found.pl / found.pl.sum(axis=1, keepdims=True)

    def _scores(self, rows: Predictions | Simplex) -> Floats:
        """Return s, shape (c, n)."""
        return transposed_scores(rows) if self.scores == "log" else rows.probs.T.copy()

    def _state(self) -> dict[str, Any]:
        return self.sets_.to_dict()

    def _restore(self, state: dict[str, Any]) -> None:
        self.sets_ = PlausibleSets.from_dict(state)
