"""`XuDavoine`: evidential calibration by one scalar soft-max model, after Xu and others (2015).

Of their paper only title, abstract and first page could be read. One scalar for all classes, the
smoothed targets and the sampling by cumulative probabilities are known from a third party's code;
that scores are the probabilities themselves is inferred from what the paper on MCLLO prints (labels
do not change, calibrated rows are moved); the rest follows from Denoeux (2014). No combination of
the options gives the label changes that the paper prints.

=================  ==========================================================================
score              ``s = x`` (as the paper on MCLLO seems to use it) or ``s = log x``
model              ``p_k(theta) = exp(theta s_k) / sum_j exp(theta s_j)``, s the scores of a row
targets            the label; or smoothed, Platt's for c classes: a row of class k, which has n_k
                   rows, counts ``(n_k + 1) / (n_k + c)`` for k and ``1 / (n_k + c)`` for the others
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
prediction         BetP, or ``Pl / sum Pl``, or the plug-in ``p(theta_hat)``
=================  ==========================================================================

These are the predictive belief functions of Denoeux [1]_: every theta is as plausible as its
likelihood. U and L grow with k, so phi is a run of neighbouring classes, and given u the run k ..
k+d has the probability ``(min(U_k, L_k+d) - max(U_k-1, L_k+d-1))_+``; that is what
`integrate_belief` adds up.

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

References
----------
.. [1] Denoeux (2014), Likelihood-based belief function: justification and some extensions to
       low-quality data. International Journal of Approximate Reasoning 55, 1535-1547.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

from .._fit.linear_fit import transposed_scores
from .._model.kernel import CHUNK_ELEMENTS, Derivatives, softmax_in_place
from .._model.newton import Solution, minimize
from .._utils.linalg import TINY
from .._utils.results import Codes, Floats, Result
from .._validation.predictions import Predictions
from .._validation.probabilities import Simplex
from ..exceptions import InputError
from ._base import Calibrator, check_choice

Objective = Callable[[Floats], Derivatives]
Order = Literal["score", "index", "envelope"]

N_NODES = 64  # levels u of the quadrature


@cache
def plausibility_quadrature() -> tuple[Floats, Floats]:
    """Return nodes u, falling from 1 to 0 so that the sets grow, and their weights.

    ``int f(u) du = int f(v^2) 2 v dv`` over [0, 1]: in v the weight is 0 where Gamma(u) grows
    without end. Nodes of [-1, 1] are moved to [0, 1], and weights halved.
    """
    x, weight = np.polynomial.legendre.leggauss(N_NODES)
    v = 0.5 * (x[::-1] + 1.0)
    nodes = v**2
    weights = v * weight[::-1]
    nodes.setflags(write=False)  # cached: nobody may change them
    weights.setflags(write=False)
    return nodes, weights


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
        low = np.array(content["low"], dtype=float)
        high = np.array(content["high"], dtype=float)
        return cls(float(content["theta"]), low, high)


class ScalarLikelihood:
    """``theta -> Derivatives`` of ``-l(theta)``.

    Parameters
    ----------
    scores : ndarray of shape (c, n)
        s.
    target : ndarray of shape (n,)
        t, the score of each row's target.
    weight : ndarray of shape (n,), optional
        w; by default 1.

    Attributes
    ----------
    top, bottom : ndarray of shape (n,)
        Largest and smallest score of each row.
    lead, lag : float
        Sums over rows of ``top - target`` and of ``target - bottom``: 0 where the most, or the
        least, probable class came true in every row.
    """

    def __init__(
        self, scores: Floats, target: Floats, weight: Floats | None = None
    ) -> None:
        self.weight = np.ones(len(target)) if weight is None else weight
        self.target = target
        self.top = scores.max(axis=0)
        self.bottom = scores.min(axis=0)
        self.lead = float(self.weight @ (self.top - target))
        self.lag = float(self.weight @ (target - self.bottom))
        self._below_top = scores - self.top
        self._above_bottom = scores - self.bottom

    def __call__(self, theta: Floats) -> Derivatives:
        """Return value, gradient and Hessian at `theta`, an array of one number."""
        at = float(theta[0])
        # Shifted so that every exponent is <= 0; measured from the target's score, not from 0, so
        # that a likelihood near 1 keeps its digits.
        if at >= 0.0:
            shifted = self._below_top
            target_sum = -self.lead
        else:
            shifted = self._above_bottom
            target_sum = self.lag
        p = at * shifted
        log_sums = softmax_in_place(p)
        mean = np.einsum("kn,kn->n", p, shifted)
        mean_square = np.einsum("kn,kn->n", p * shifted, shifted)
        variance = mean_square - mean**2
        value = float(self.weight @ log_sums) - at * target_sum
        slope = float(self.weight @ mean) - target_sum
        curvature = float(self.weight @ variance)
        return Derivatives(value, np.array([slope]), np.array([[curvature]]))


def plausible_sets_of_scalar(likelihood: ScalarLikelihood) -> PlausibleSets:
    """Return theta_hat and every Gamma(u); rows that say nothing make every theta plausible."""
    spread = likelihood.weight * (likelihood.top - likelihood.bottom)
    if not spread.any():
        far = np.full(N_NODES, 1e8)  # for infinity
        return PlausibleSets(0.0, -far, far)
    for gap, which in ((likelihood.lead, "most"), (likelihood.lag, "least")):
        if gap == 0.0:
            raise InputError(
                f"theta must have a finite estimate; the {which} probable class came true in "
                "every row, so the likelihood grows for ever. Use smooth=True."
            )
    nodes, _ = plausibility_quadrature()
    return plausible_sets(likelihood, nodes)


def plausible_sets(objective: Objective, levels: Floats) -> PlausibleSets:
    """Return theta_hat and both ends of Gamma(u) at falling `levels` u, for a convex ``-l``."""
    solution = minimize(objective, np.zeros(1))
    radii = np.sqrt(-2.0 * np.log(levels))
    low = _solve_outward(objective, solution, -1.0, radii)
    high = _solve_outward(objective, solution, 1.0, radii)
    return PlausibleSets(float(solution.x[0]), low, high)


def _solve_outward(
    objective: Objective, solution: Solution, side: float, radii: Floats
) -> Floats:
    """Solve ``r(theta) = radius`` on one side of theta_hat, each radius from the one before.

    theta is nearly a straight line in r: a parabola through the last two ends is so near the next
    one that one evaluation or two are enough.
    """
    ends = np.empty(len(radii))
    theta = float(solution.x[0])
    radius = 0.0
    curvature = max(float(solution.derivatives.hessian[0, 0]), TINY)
    rate = curvature**-0.5  # d theta / d r
    change_of_rate = 0.0
    for q, next_radius in enumerate(radii):
        ahead = next_radius - radius
        mean_rate = max(rate + 0.5 * ahead * change_of_rate, 0.5 * rate)
        rate_before = rate
        theta, rate = _solve_for_radius(
            objective, solution.value, side, theta, ahead * mean_rate, next_radius
        )
        change_of_rate = (rate - rate_before) / ahead
        radius = next_radius
        ends[q] = theta
    return ends


def _solve_for_radius(
    objective: Objective,
    best: float,
    side: float,
    inner: float,
    step: float,
    radius: float,
    max_iter: int = 200,
) -> tuple[float, float]:
    """Return theta beyond `inner` with ``|r(theta)| = radius``, and ``d theta / d r`` there.

    Newton in r, kept between what is known to be too near and too far; `step` is the first guess
    of the distance from `inner`.
    """
    too_near = 0.0
    too_far = np.inf
    distance = step
    for _ in range(max_iter):
        terms = objective(np.array([inner + side * distance]))
        r = np.sqrt(2.0 * max(terms.value - best, 0.0))
        rate = r / max(side * float(terms.gradient[0]), TINY)
        newton = distance + (radius - r) * rate
        if (
            abs(radius - r) <= 1e-5
        ):  # from where one more Newton step is exact to rounding
            return inner + side * newton, rate
        if r < radius:
            too_near = distance
        else:
            too_far = distance
        if too_near < newton < too_far:
            distance = newton
        elif np.isinf(too_far):
            distance = 2.0 * too_near + step
        else:
            distance = 0.5 * (too_near + too_far)
    return inner + side * distance, rate


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
    belief_of_chunk = {
        "score": _belief_by_score,
        "index": _belief_by_index,
        "envelope": _belief_without_order,
    }[order]
    n_rows, n_classes = scores.shape
    n_at_once = max(16, CHUNK_ELEMENTS // (n_classes * len(sets.low)))
    numbers = np.empty((3, n_rows, n_classes))
    for start in range(0, n_rows, n_at_once):
        part = slice(start, start + n_at_once)
        numbers[:, part] = belief_of_chunk(scores[part], sets)
    bel, pl, betp = numbers
    betp /= betp.sum(axis=1, keepdims=True)
    return Belief(bel, pl, betp)


def softmax_at(scores: Floats, theta: Any) -> Floats:
    """Return ``p_k(theta)``; classes on the first axis, the others broadcast."""
    p: Floats = scores * theta
    softmax_in_place(p)
    return p


def cumulate_from_zero(p: Floats) -> Floats:
    """Return F_0 = 0 .. F_c = 1 along the first axis."""
    total = np.zeros((len(p) + 1, *p.shape[1:]))
    np.cumsum(p, axis=0, out=total[1:])
    total /= total[-1].copy()
    return total


def integrate_belief(upper: Floats, lower: Floats, weight: Floats) -> Floats:
    """Return Bel, Pl and BetP, shape (3, c, m), from U and L of shape (c + 1, n_nodes, m)."""
    c = len(upper) - 1
    pl = weight @ (upper[1:] - lower[:-1])
    bel = np.zeros_like(pl)
    # A run k .. k+d adds its mass / (d + 1) to the BetP of its classes: as changes of BetP from one
    # class to the next these are two additions for each run, whatever its length.
    change = np.zeros((c + 1, upper.shape[2]))
    for d in range(c):
        n_runs = c - d
        run_end = np.minimum(upper[1 : n_runs + 1], lower[d + 1 : c + 1])
        run_begin = np.maximum(upper[:n_runs], lower[d:c])
        mass = weight @ np.maximum(run_end - run_begin, 0.0)
        if d == 0:
            bel = mass
        change[:n_runs] += mass / (d + 1)
        change[d + 1 :] -= mass / (d + 1)
        has_longer_run = (lower[d + 1 : c] < upper[1:n_runs]).any()
        if not has_longer_run:
            break
    betp = change[:c].cumsum(axis=0)
    return np.stack([bel, pl, np.maximum(betp, bel)])


def _belief_by_score(scores: Floats, sets: PlausibleSets) -> Floats:
    """Return the numbers of a chunk in the order "score"."""
    order = np.argsort(scores, axis=1, kind="stable")
    ranked = np.take_along_axis(scores, order, axis=1)
    by_class = np.ascontiguousarray(ranked.T)[:, None, :]
    upper = cumulate_from_zero(softmax_at(by_class, sets.low[:, None]))
    lower = cumulate_from_zero(softmax_at(by_class, sets.high[:, None]))
    _, weights = plausibility_quadrature()
    numbers = integrate_belief(upper, lower, weights).transpose(0, 2, 1)
    answer = np.empty_like(numbers)
    np.put_along_axis(answer, order[None], _average_ties(numbers, ranked), axis=2)
    return answer


def _average_ties(numbers: Floats, ranked: Floats) -> Floats:
    """Give classes of equal score the mean of their numbers; rows are sorted by score."""
    is_new = np.ones(ranked.shape, dtype=bool)
    is_new[:, 1:] = ranked[:, 1:] != ranked[:, :-1]
    if is_new.all():
        return numbers
    group = is_new.ravel().cumsum() - 1
    size = np.bincount(group)
    averaged = np.empty_like(numbers)
    for average, values in zip(averaged, numbers, strict=True):
        mean = np.bincount(group, weights=values.ravel()) / size
        average[:] = mean[group].reshape(ranked.shape)
    return averaged


def _belief_by_index(scores: Floats, sets: PlausibleSets) -> Floats:
    """Return the numbers of a chunk in the order "index"."""
    smallest, largest = extreme_probabilities(scores.T, sets, cumulative=True)
    zero = np.zeros((1, *smallest.shape[1:]))  # F_0
    lower = np.concatenate([zero, smallest])
    upper = np.concatenate([zero, largest])
    _, weights = plausibility_quadrature()
    return integrate_belief(upper, lower, weights).transpose(0, 2, 1)


def _belief_without_order(scores: Floats, sets: PlausibleSets) -> Floats:
    """Return the numbers of a chunk without an order."""
    smallest, largest = extreme_probabilities(scores.T, sets, cumulative=False)
    _, weights = plausibility_quadrature()
    lower = weights @ smallest
    upper = weights @ largest
    width = upper - lower
    missing = 1.0 - lower.sum(axis=0)
    total_width = np.maximum(width.sum(axis=0), TINY)
    betp = lower + width * (missing / total_width)
    return np.stack([lower.T, upper.T, betp.T])


def extreme_probabilities(
    scores: Floats, sets: PlausibleSets, *, cumulative: bool
) -> tuple[Floats, Floats]:
    """Return least and largest p_k (or F_k) over each Gamma(u), shape (c, n_nodes, m) each."""
    least_below, most_below = _extremes_of_side(
        scores, sets.theta, sets.low, cumulative
    )
    least_above, most_above = _extremes_of_side(
        scores, sets.theta, sets.high, cumulative
    )
    return np.minimum(least_below, least_above), np.maximum(most_below, most_above)


def _extremes_of_side(
    scores: Floats, theta: float, ends: Floats, cumulative: bool
) -> tuple[Floats, Floats]:
    """Return the running extremes from theta_hat to each of the ends on one side."""
    grid = np.concatenate([[theta], ends])
    value, slope = _probabilities_and_slopes(
        scores[:, None, :], grid[:, None], cumulative
    )
    at_theta = value[:, :1]
    at_ends = value[:, 1:]

    # In a cell between two ends where the slope changes its sign a curve has a stationary point.
    inside = at_ends.copy()
    changes_sign = slope[:, :-1] * slope[:, 1:] < 0.0
    curve, cell, row = np.nonzero(changes_sign)
    if len(row):
        inside[curve, cell, row] = _stationary_values(
            scores[:, row], curve, grid[cell], grid[cell + 1], cumulative
        )
    least_of_cell = np.minimum(at_ends, inside)
    most_of_cell = np.maximum(at_ends, inside)
    least = np.minimum.accumulate(least_of_cell, axis=1)
    most = np.maximum.accumulate(most_of_cell, axis=1)
    return np.minimum(least, at_theta), np.maximum(most, at_theta)


def _stationary_values(
    scores: Floats,
    curve: Codes,
    start: Floats,
    stop: Floats,
    cumulative: bool,
    n_halvings: int = 26,
) -> Floats:
    """Return the value of each curve where its derivative changes sign from start to stop.

    By bisection; the value there is flat, so that its error is of the order ``4**-n_halvings``.
    """
    own = (curve, np.arange(len(curve)))
    _, slope = _probabilities_and_slopes(scores, start, cumulative)
    sign_at_start = np.sign(slope[own])
    for _ in range(n_halvings):
        middle = 0.5 * (start + stop)
        _, slope = _probabilities_and_slopes(scores, middle, cumulative)
        is_before = np.sign(slope[own]) == sign_at_start
        start = np.where(is_before, middle, start)
        stop = np.where(is_before, stop, middle)
    value, _ = _probabilities_and_slopes(scores, 0.5 * (start + stop), cumulative)
    return value[own]


def _probabilities_and_slopes(
    scores: Floats, theta: Floats, cumulative: bool
) -> tuple[Floats, Floats]:
    """Return p_k (or F_k) and its derivative in theta; classes on the first axis."""
    p = softmax_at(scores, theta)
    slope = p * (scores - (p * scores).sum(axis=0))
    if not cumulative:
        return p, slope
    slope = slope.cumsum(axis=0)
    slope[-1] = 0.0  # F_c is 1; what is left is rounding
    return cumulate_from_zero(p)[1:], slope


Scores = Literal["prob", "log"]
Output = Literal["pignistic", "plausibility", "plug_in"]


class XuDavoine(Calibrator):
    """Evidential calibration: soft-max with one scalar, and what the data leave open about it.

    A reading of the method of Xu and others, whose paper could not be read whole: see Notes.

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
    abstracts and first pages of these were at hand; one scalar and smoothed targets are those of
    another's code, the rest is derived from the likelihood-based belief function that they build
    on. Options are the choices that they leave open; the defaults are a reading of how [3]_ used
    the method: that scores are probabilities is inferred from its results. No combination of the
    options gives the label changes that its tables print. A comparison judges this reading, not the
    method of [2]_.

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

    def _learned_words(self) -> str:
        return f"slope {self.theta_:.3g}, with the sets around it"

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
        scores = self._transposed_scores(self._validate_rows(X))
        return belief(scores.T, self.sets_, self.order)

    def _check_options(self) -> None:
        check_choice("scores", self.scores, ("prob", "log"))
        check_choice("output", self.output, ("pignistic", "plausibility", "plug_in"))
        check_choice("order", self.order, ("score", "index", "envelope"))

    def _learn(self, predictions: Predictions) -> None:
        scores = self._transposed_scores(predictions)
        codes = predictions.codes
        target = scores[codes, np.arange(len(codes))]
        if self.smooth:
            size = predictions.class_weight[codes]
            score_sum = scores.sum(axis=0)  # each class counts once more
            target = (size * target + score_sum) / (size + len(scores))
        likelihood = ScalarLikelihood(scores, target, predictions.sample_weight)
        self.sets_ = plausible_sets_of_scalar(likelihood)

    def _apply(self, simplex: Simplex) -> Floats:
        scores = self._transposed_scores(simplex)
        if self.output == "plug_in":
            return np.ascontiguousarray(softmax_at(scores, self.theta_).T)
        bounds = belief(scores.T, self.sets_, self.order)
        if self.output == "pignistic":
            return bounds.betp
        return bounds.pl / bounds.pl.sum(axis=1, keepdims=True)

    def _transposed_scores(self, rows: Predictions | Simplex) -> Floats:
        """Return s, shape (c, n)."""
        if self.scores == "log":
            return transposed_scores(rows)
        return rows.probs.T.copy()

    def _state(self) -> dict[str, Any]:
        return self.sets_.to_dict()

    def _restore_state(self, state: dict[str, Any]) -> None:
        self.sets_ = PlausibleSets.from_dict(state)
