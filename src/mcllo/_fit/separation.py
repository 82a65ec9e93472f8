"""Does the maximum exist, and is it determined? What is asked, in order, and what is said of it.

1. A penalty makes a maximum exist.
2. A class without rows keeps it from existing; of many classes, so does one that its own log odds
   drive apart (`_model/separable_classes`).
3. Where information is left at the estimate (`relative_information`), it exists.
4. Otherwise a linear program decides (`separated_classes`), unless it is too large or the rows are
   not in memory: then nothing is decided, and the estimate counts as not determined.

The program. Write ``z_ik`` for the 2K features of class k in row i (``eta_ik = z_ik . theta``; the
baseline's are 0). The estimate fails to exist iff some ``v != 0`` has
``(z_{i,y_i} - z_{ik}) . v >= 0`` for all i and k, with some inequality strict: along v the
likelihood never falls (Albert and Anderson 1984). So maximise the sum of those products subject to
all of them being >= 0 and ``|v_j| <= 1``: the value is positive iff the rows are separated.

A solver satisfies constraints only to its tolerance, and nearly separated rows turn a violation of
e into a value of more than 1e7 e; an answer counts only when its value is 1e9 times its largest
violation.

Only the constraints that matter enter the program: it starts with the rows hardest to satisfy and
adds those its answer violates, until none is violated.

All such v form a cone, and the sum of two of them drives apart every pair of classes that either
does. So the pairs that some v drives apart are found by asking again, each time for the sum over
the pairs not found yet, until it is 0. Which parameters can go to infinity, and which way, is the
same program with one coordinate of v for its sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._utils.results import Codes, Floats
from .._utils.statements import warn
from .._validation.labels import Classes
from .._validation.predictions import Predictions
from ..exceptions import ConvergenceWarning, SeparationWarning
from .estimate import (
    MIN_DETERMINED_INFORMATION,
    SEPARATION_CHECK_INFORMATION,
    Estimate,
    relative_information,
)
from .objective import FreeLikelihood

if TYPE_CHECKING:
    from .fit import MCLLOFit


OPTIMUM_TOL = 1e-7
"""Value of the linear program that is more than a solver's tolerance."""
RELATIVE_MARGIN_TOL = 1e-9
"""Part of that value by which a margin may be negative."""
RELATIVE_COORDINATE_TOL = 1e-6
"""Part of a sum, or of the largest coordinate, that is more than a solver's tolerance."""
N_FIRST_ROWS = 4000


class RecessionCone:
    """The directions along which the likelihood never falls.

    Among log odds of shape (K, n), `codes` are the rows that came true, K for the baseline; the
    program starts with `first_rows`, and gets at most so many more at a time.
    """

    def __init__(self, log_odds: Floats, codes: Codes, first_rows: int = N_FIRST_ROWS) -> None:
        self.log_odds, self.codes, self.first_rows = log_odds, codes, first_rows
        self.scale = np.concatenate([np.ones(len(log_odds)), np.abs(log_odds).max(axis=1)])
        self.scale[self.scale == 0.0] = 1.0
        # how far the true class leads the others: rows of small slack are hard
        padded = np.vstack([log_odds, np.zeros(log_odds.shape[1])])
        own = (codes, np.arange(len(codes)))
        slack = padded[own]
        padded[own] = -np.inf
        slack -= padded.max(axis=0)
        self._hardest = np.argsort(slack, kind="stable")[:first_rows]

    def furthest(self, goal: Floats) -> Floats | None:
        """Return the v of largest ``goal . v``, ``|scale v| <= 1``; None where that is 0."""
        rows, goal = self._hardest, goal / self.scale
        while True:
            constraints = _constraints(self.log_odds[:, rows], self.codes[rows])
            direction, value = _solve(constraints / self.scale, goal)
            if value <= OPTIMUM_TOL:
                return None
            margins = _margins(self.log_odds, self.codes, direction / self.scale).min(axis=0)
            violated = np.flatnonzero(margins < -RELATIVE_MARGIN_TOL * value)
            fresh = np.setdiff1d(violated, rows)
            if len(fresh) == 0:
                return direction / self.scale if len(violated) == 0 else None
            worst = fresh[np.argsort(margins[fresh], kind="stable")[: self.first_rows]]
            rows = np.concatenate([rows, worst])

    def pairs(self) -> tuple[NDArray[np.bool_], Floats]:
        """Return which rows' classes (first axis) leave which classes, and the directions used."""
        c = len(self.log_odds) + 1
        apart, directions = np.zeros((c, c), dtype=bool), []
        while (found := self.furthest(_total(self.log_odds, self.codes, ~apart))) is not None:
            margins = _margins(self.log_odds, self.codes, found)
            sums = np.array([margins[:, self.codes == a].sum(axis=1) for a in range(c)])
            sums[apart] = 0.0
            fresh = sums > RELATIVE_COORDINATE_TOL * sums.sum()
            directions.append(found)
            apart |= fresh
            if not fresh.any():
                break
        return apart, np.array(directions).reshape(-1, 2 * (c - 1))


def separating_direction(
    log_odds: Floats, codes: Codes, first_rows: int = N_FIRST_ROWS
) -> Floats | None:
    """Return a direction along which the likelihood never falls, or None when there is none."""
    return RecessionCone(log_odds, codes, first_rows).furthest(_total(log_odds, codes))


def separated_classes(predictions: Predictions) -> Classes:
    """Return the classes that keep the estimate from existing; none when it exists.

    A class without rows is a cause, and where there are any, no others are looked for. Otherwise
    a class is one when it is driven apart from every other class along directions in which the
    likelihood never falls: rows of the one leave the other, or the reverse. Where none is driven
    apart from all the others, each class that is driven apart from some other is named.
    """
    if predictions.absent:
        return predictions.absent
    leaves, _ = RecessionCone(*_rows_that_count(predictions)).pairs()
    apart = leaves | leaves.T
    np.fill_diagonal(apart, True)
    others = apart.sum(axis=1) - 1
    least = others.max() if others.max() == len(apart) - 1 else 1
    ordered = (*predictions.compared, predictions.baseline)
    named = [label for label, left in zip(ordered, others, strict=True) if left >= least]
    return tuple(label for label in predictions.classes if label in named)


def unbounded_parameters(predictions: Predictions) -> NDArray[np.bool_]:
    """Return which parameters of theta can go to minus and to plus infinity, shape (2K, 2).

    Along such a way the likelihood, maximised over all others, never falls.
    """
    cone = RecessionCone(*_rows_that_count(predictions))
    _, found = cone.pairs()
    unbounded = np.zeros((len(cone.scale), 2), dtype=bool)
    known = list(found * cone.scale)
    # a class that none of these moves is moved by none
    moves = (np.abs(found * cone.scale) > RELATIVE_COORDINATE_TOL).reshape(
        -1, 2, len(cone.log_odds)
    )
    moved = np.tile(moves.any(axis=(0, 1)), 2)
    for j in np.flatnonzero(moved):
        for side, sign in enumerate((-1.0, 1.0)):
            if not any(sign * v[j] > RELATIVE_COORDINATE_TOL for v in known):
                goal = np.zeros(len(cone.scale))
                goal[j] = sign * cone.scale[j]
                direction = cone.furthest(goal)
                known += [] if direction is None else [direction * cone.scale]
            unbounded[j, side] = any(sign * v[j] > RELATIVE_COORDINATE_TOL for v in known)
    return unbounded


def _rows_that_count(predictions: Predictions) -> tuple[Floats, Codes]:
    """Return log odds and codes without the rows of weight 0."""
    odds, codes = predictions.log_odds, predictions.model_codes
    if predictions.sample_weight is None:
        return odds, codes
    used = predictions.sample_weight > 0.0
    return odds[:, used], codes[used]


def _constraints(log_odds: Floats, codes: Codes) -> Floats:
    """Return the rows ``z_{i,y_i} - z_{ik}``, k other than y_i, shape (m K, 2 K)."""
    k, m = log_odds.shape
    blocks = np.zeros((m, k + 1, 2 * k))
    own = np.flatnonzero(codes < k)
    blocks[own, :, codes[own]] += 1.0
    blocks[own, :, k + codes[own]] += log_odds[codes[own], own][:, None]
    for j in range(k):
        blocks[:, j, j] -= 1.0
        blocks[:, j, k + j] -= log_odds[j]
    return blocks[np.arange(k + 1) != codes[:, None]]


def _total(log_odds: Floats, codes: Codes, wanted: NDArray[np.bool_] | None = None) -> Floats:
    """Return the sum of the constraint rows of the `wanted` pairs (all) without building them."""
    c, n = len(log_odds) + 1, log_odds.shape[1]
    wanted = np.ones((c, c), dtype=bool) if wanted is None else wanted
    times = wanted & ~np.eye(c, dtype=bool)
    member = np.zeros((c, n))
    member[codes, np.arange(n)] = 1.0
    counts, sums = member.sum(axis=1), member @ log_odds.T
    # a row of class a leaves k: + z_a - z_k
    taken, left = times.sum(axis=1), times[:, :-1].T.astype(np.float64)
    tau = (taken * counts)[:-1] - left @ counts
    gamma = taken[:-1] * np.diagonal(sums) - np.einsum("ka,ak->k", left, sums)
    return np.concatenate([tau, gamma])


def _margins(log_odds: Floats, codes: Codes, direction: Floats) -> Floats:
    """Return ``eta_{i, y_i} - eta_{ik}`` along `direction`, shape (K + 1, n)."""
    k, n = log_odds.shape
    eta = np.zeros((k + 1, n))
    eta[:k] = direction[:k, None] + direction[k:, None] * log_odds
    return eta[codes, np.arange(n)] - eta


def _solve(constraints: Floats, total: Floats) -> tuple[Floats, float]:
    from scipy.optimize import linprog

    answer = linprog(
        -total,
        A_ub=-constraints,
        b_ub=np.zeros(len(constraints)),
        bounds=(-1.0, 1.0),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if answer.x is None:
        return np.zeros(len(total)), 0.0
    return np.asarray(answer.x), float(answer.x @ total)


MAX_CONSTRAINT_ELEMENTS = 1.2e8
"""Numbers in the linear program beyond which it is not solved: 4000 rows of 120 classes."""


@dataclass(frozen=True)
class Existence:
    """Which classes keep the maximum from existing, and whether it exists and rows determine it.

    It is undecided where neither is known.
    """

    causes: Classes = ()
    determined: bool = False
    undecided: bool = False


def check_separation(
    end: Estimate,
    likelihood: FreeLikelihood[Any],
    absent: Classes,
    rows: Callable[[], Predictions | None],
    *,
    most_constraints: float = MAX_CONSTRAINT_ELEMENTS,
) -> Existence:
    """Return what is known of the maximum, given where a solver stopped.

    `absent` are the classes without rows; `rows` returns the rows, for the linear program alone, or
    None where they are too many to be in memory.
    """
    plain = end.penalty == 0.0 and end.rule != "firth"
    if plain and (causes := absent or end.left_out):
        return Existence(causes)
    left = relative_information(end, likelihood)
    if left >= SEPARATION_CHECK_INFORMATION:
        return Existence(determined=True)
    k, found = len(likelihood.free) // 2, rows()
    if found is None or 2.0 * k * k * min(found.n_samples, N_FIRST_ROWS) > most_constraints:
        return Existence(undecided=True)
    causes = separated_classes(found)
    return Existence(causes, determined=not causes and left >= MIN_DETERMINED_INFORMATION)


def warn_of_separation(fit: MCLLOFit, absent: Classes, undecided: bool = False) -> None:
    """Say what an estimate that is not determined means for the result."""
    if fit.converged:
        return
    if fit.separated:
        classes = fit.separated_classes
        first = ", ".join(repr(label) for label in classes[:3])
        more = f" and {len(classes) - 3} more" if len(classes) > 3 else ""
        some = f"no row has class {first}{' and more' if more else ''}"
        cause = some if absent else "the log odds separate the labels"
        short = (
            "the maximum likelihood estimate does not exist ({cause}): estimates drift to "
            "infinity. To recalibrate, {use_a_penalty}."
        )
        whole = (
            "the maximum likelihood estimate does not exist ({causes}): estimates drift to "
            "infinity, standard errors are NaN, the statistic is the supremum's. To recalibrate, "
            "{use_a_penalty}."
        )
        causes = f"no row has class {first}{more}" if absent else f"{cause}: class {first}{more}"
        values = {"cause": cause, "causes": causes}
        warn(SeparationWarning(short, detail=whole, numbers={"classes": classes}, values=values))
    else:
        unknown = "Whether a maximum exists was not decided: the linear program is too large. "
        end = f"{unknown if undecided else ''}To recalibrate, {{use_a_penalty}}."
        short = f"the likelihood is all but flat: the estimates are not determined. {end}"
        whole = (
            f"the likelihood is all but flat after {fit.n_iter} steps (gradient "
            f"{fit.gradient_norm:.1e}): the statistic holds, the estimates are not determined. "
            f"{end}"
        )
        numbers = {"n_iter": fit.n_iter, "gradient_norm": fit.gradient_norm}
        warn(ConvergenceWarning(short, detail=whole, numbers=numbers, values={}))
