"""Does the maximum exist, and is it determined? What is asked, in order, and what is said of it.

1. A penalty makes a maximum exist.
2. A class without rows keeps it from existing; of many classes, so does one that its own log odds
   drive apart (`_model/separable_classes`).
3. Where information is left at the estimate (`relative_information`), it exists.
4. Otherwise a linear program decides (`find_separated_classes`), unless it is too large or the
   rows are not in memory: then nothing is decided, and the estimate counts as not determined.

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
from .objective import FreeParameterObjective

if TYPE_CHECKING:
    from .fit import MCLLOFit


OPTIMUM_TOL = 1e-7
"""Value of the linear program that is more than a solver's tolerance."""
RELATIVE_MARGIN_TOL = 1e-9
"""Part of that value by which a margin may be negative."""
RELATIVE_COORDINATE_TOL = 1e-6
"""Part of a sum, or of the largest coordinate, that is more than a solver's tolerance."""
N_FIRST_ROWS = 4000
"""Rows that the linear program starts with, and gets at most at a time. A round number."""
MAX_CONSTRAINT_ELEMENTS = 1.2e8
"""Numbers in the linear program beyond which it is not solved: 4000 rows of 120 classes."""


class RecessionCone:
    """The directions along which the likelihood never falls.

    Among log odds of shape (K, n), `codes` are the rows that came true, K for the baseline; the
    program starts with `first_rows`, and gets at most so many more at a time.
    """

    def __init__(
        self, log_odds: Floats, codes: Codes, first_rows: int = N_FIRST_ROWS
    ) -> None:
        k, n = log_odds.shape
        self.log_odds = log_odds
        self.codes = codes
        self.first_rows = first_rows
        self.scale = np.concatenate([np.ones(k), np.abs(log_odds).max(axis=1)])
        self.scale[self.scale == 0.0] = 1.0
        # how far the true class leads the others: rows of small lead are hard
        padded = np.vstack([log_odds, np.zeros(n)])
        own = (codes, np.arange(n))
        own_log_odds = padded[own]
        padded[own] = -np.inf
        lead = own_log_odds - padded.max(axis=0)
        self._hardest = np.argsort(lead, kind="stable")[:first_rows]

    def furthest_direction(self, goal: Floats) -> Floats | None:
        """Return the v of largest ``goal . v``, ``|scale v| <= 1``; None where that is 0."""
        goal = goal / self.scale
        rows = self._hardest
        while True:
            constraints = _constraint_matrix(self.log_odds[:, rows], self.codes[rows])
            direction, value = _solve_linear_program(constraints / self.scale, goal)
            if value <= OPTIMUM_TOL:
                return None
            v = direction / self.scale
            margins = _label_margins(self.log_odds, self.codes, v).min(axis=0)
            violated = np.flatnonzero(margins < -RELATIVE_MARGIN_TOL * value)
            if len(violated) == 0:
                return v
            fresh = np.setdiff1d(violated, rows)
            if (
                len(fresh) == 0
            ):  # the solver knew them and violates them: its value is rounding
                return None
            worst_first = np.argsort(margins[fresh], kind="stable")
            rows = np.concatenate([rows, fresh[worst_first[: self.first_rows]]])

    def find_separated_pairs(self) -> tuple[NDArray[np.bool_], Floats]:
        """Return which rows' classes (first axis) leave which classes, and the directions used."""
        c = len(self.log_odds) + 1
        apart = np.zeros((c, c), dtype=bool)
        directions = []
        while True:
            v = self.furthest_direction(
                _sum_constraint_rows(self.log_odds, self.codes, ~apart)
            )
            if v is None:
                break
            directions.append(v)
            margins = _label_margins(self.log_odds, self.codes, v)
            sums = np.array([margins[:, self.codes == a].sum(axis=1) for a in range(c)])
            sums[apart] = 0.0
            fresh = sums > RELATIVE_COORDINATE_TOL * sums.sum()
            apart |= fresh
            if not fresh.any():
                break
        return apart, np.array(directions).reshape(-1, 2 * (c - 1))


def find_separating_direction(
    log_odds: Floats, codes: Codes, first_rows: int = N_FIRST_ROWS
) -> Floats | None:
    """Return a direction along which the likelihood never falls, or None when there is none."""
    cone = RecessionCone(log_odds, codes, first_rows)
    return cone.furthest_direction(_sum_constraint_rows(log_odds, codes))


def find_separated_classes(predictions: Predictions) -> Classes:
    """Return the classes that keep the estimate from existing; none when it exists.

    A class without rows is a cause, and where there are any, no others are looked for. Otherwise
    a class is one when it is driven apart from every other class along directions in which the
    likelihood never falls: rows of the one leave the other, or the reverse. Where none is driven
    apart from all the others, each class that is driven apart from some other is named.
    """
    if predictions.absent:
        return predictions.absent
    leaves, _ = RecessionCone(
        *_log_odds_and_codes_with_weight(predictions)
    ).find_separated_pairs()
    apart = leaves | leaves.T
    np.fill_diagonal(apart, False)
    n_others = apart.sum(axis=1)
    all_others = len(apart) - 1
    needed = all_others if n_others.max() == all_others else 1
    ordered = (*predictions.compared, predictions.baseline)
    named = {label for label, n in zip(ordered, n_others, strict=True) if n >= needed}
    return tuple(label for label in predictions.classes if label in named)


def find_unbounded_parameters(predictions: Predictions) -> NDArray[np.bool_]:
    """Return which parameters of theta can go to minus and to plus infinity, shape (2K, 2).

    Along such a way the likelihood, maximised over all others, never falls.
    """
    cone = RecessionCone(*_log_odds_and_codes_with_weight(predictions))
    _, directions = cone.find_separated_pairs()
    known = list(directions * cone.scale)
    # a class that none of these directions moves is moved by none
    moves = np.abs(directions * cone.scale) > RELATIVE_COORDINATE_TOL
    class_moves = moves.reshape(-1, 2, len(cone.log_odds)).any(axis=(0, 1))
    unbounded = np.zeros((len(cone.scale), 2), dtype=bool)
    for j in np.flatnonzero(np.tile(class_moves, 2)).tolist():
        for side, sign in enumerate((-1.0, 1.0)):
            if not _any_direction_moves(known, j, sign):
                goal = np.zeros(len(cone.scale))
                goal[j] = sign * cone.scale[j]
                v = cone.furthest_direction(goal)
                if v is not None:
                    known.append(v * cone.scale)
            unbounded[j, side] = _any_direction_moves(known, j, sign)
    return unbounded


def _any_direction_moves(
    directions: list[Floats], coordinate: int, sign: float
) -> bool:
    """Whether one of these scaled directions moves coordinate j that way."""
    return any(sign * v[coordinate] > RELATIVE_COORDINATE_TOL for v in directions)


def _log_odds_and_codes_with_weight(predictions: Predictions) -> tuple[Floats, Codes]:
    """Return log odds and codes without the rows of weight 0."""
    odds = predictions.log_odds
    codes = predictions.model_codes
    if predictions.sample_weight is None:
        return odds, codes
    used = predictions.sample_weight > 0.0
    return odds[:, used], codes[used]


def _constraint_matrix(log_odds: Floats, codes: Codes) -> Floats:
    """Return the rows ``z_{i,y_i} - z_{ik}``, k other than y_i, shape (m K, 2 K)."""
    k, m = log_odds.shape
    blocks = np.zeros((m, k + 1, 2 * k))
    rows = np.flatnonzero(codes < k)
    labels = codes[rows]
    blocks[rows, :, labels] += 1.0
    blocks[rows, :, k + labels] += log_odds[labels, rows][:, None]
    for j in range(k):
        blocks[:, j, j] -= 1.0
        blocks[:, j, k + j] -= log_odds[j]
    is_other = np.arange(k + 1) != codes[:, None]
    return blocks[is_other]


def _sum_constraint_rows(
    log_odds: Floats, codes: Codes, is_wanted_pair: NDArray[np.bool_] | None = None
) -> Floats:
    """Return the sum of the constraint rows of the wanted pairs (all) without building them."""
    k, n = log_odds.shape
    if is_wanted_pair is None:
        is_wanted_pair = np.ones((k + 1, k + 1), dtype=bool)
    pairs = is_wanted_pair & ~np.eye(k + 1, dtype=bool)
    is_label = np.zeros((k + 1, n))
    is_label[codes, np.arange(n)] = 1.0
    counts = is_label.sum(axis=1)
    sums = (
        is_label @ log_odds.T
    )  # of class k's log odds among rows of class a, at (a, k)
    # a row of class a leaves class k: + z_a - z_k
    times_taken = pairs.sum(axis=1)[:k]
    times_left = pairs[:, :k].T.astype(np.float64)
    tau = times_taken * counts[:k] - times_left @ counts
    gamma = times_taken * np.diagonal(sums) - np.einsum("ka,ak->k", times_left, sums)
    return np.concatenate([tau, gamma])


def _label_margins(log_odds: Floats, codes: Codes, direction: Floats) -> Floats:
    """Return ``eta_{i, y_i} - eta_{ik}`` along `direction`, shape (K + 1, n)."""
    k, n = log_odds.shape
    eta = np.zeros((k + 1, n))
    eta[:k] = direction[:k, None] + direction[k:, None] * log_odds
    return eta[codes, np.arange(n)] - eta


def _solve_linear_program(constraints: Floats, goal: Floats) -> tuple[Floats, float]:
    """Return the v of largest ``goal . v`` and that value, for ``constraints v >= 0, |v| <= 1``."""
    from scipy.optimize import linprog

    answer = linprog(
        -goal,
        A_ub=-constraints,
        b_ub=np.zeros(len(constraints)),
        bounds=(-1.0, 1.0),
        method="highs",
        options={
            "primal_feasibility_tolerance": 1e-10,
            "dual_feasibility_tolerance": 1e-10,
        },
    )
    if answer.x is None:
        return np.zeros(len(goal)), 0.0
    return np.asarray(answer.x), float(answer.x @ goal)


@dataclass(frozen=True)
class MaximumExistence:
    """Which classes keep the maximum from existing, and whether it exists and rows determine it.

    It is undecided where neither is known.
    """

    causes: Classes = ()
    determined: bool = False
    undecided: bool = False


def assess_existence(
    estimate: Estimate,
    likelihood: FreeParameterObjective[Any],
    absent_classes: Classes,
    load_rows: Callable[[], Predictions | None],
    *,
    max_constraint_elements: float = MAX_CONSTRAINT_ELEMENTS,
) -> MaximumExistence:
    """Return what is known of the maximum, given where a solver stopped.

    `absent_classes` are the classes without rows; `load_rows` returns the rows, for the linear
    program alone, or None where they are too many to be in memory. The steps are those of the
    module.
    """
    # 1. and 2.
    is_penalised = estimate.penalty != 0.0 or estimate.rule == "firth"
    if not is_penalised and (absent_classes or estimate.left_out):
        return MaximumExistence(absent_classes or estimate.left_out)
    # 3.
    information = relative_information(estimate, likelihood)
    if information >= SEPARATION_CHECK_INFORMATION:
        return MaximumExistence(determined=True)
    # 4.
    found = load_rows()
    if found is None:
        return MaximumExistence(undecided=True)
    k = len(likelihood.free) // 2
    n_constraint_elements = 2.0 * k * k * min(found.n_samples, N_FIRST_ROWS)
    if n_constraint_elements > max_constraint_elements:
        return MaximumExistence(undecided=True)
    causes = find_separated_classes(found)
    determined = not causes and information >= MIN_DETERMINED_INFORMATION
    return MaximumExistence(causes, determined=determined)


def warn_of_separation(
    fit: MCLLOFit, absent_classes: Classes, is_undecided: bool = False
) -> None:
    """Say what an estimate that is not determined means for the result."""
    if fit.converged:
        return
    if fit.separated:
        classes = fit.separated_classes
        first = ", ".join(repr(label) for label in classes[:3])
        more = f" and {len(classes) - 3} more" if len(classes) > 3 else ""
        some = f"no row has class {first}{' and more' if more else ''}"
        cause = some if absent_classes else "the log odds separate the labels"
        short = (
            "the maximum likelihood estimate does not exist ({cause}): estimates drift to "
            "infinity. To recalibrate, {use_a_penalty}."
        )
        whole = (
            "the maximum likelihood estimate does not exist ({causes}): estimates drift to "
            "infinity, standard errors are NaN, the statistic is the supremum's. To recalibrate, "
            "{use_a_penalty}."
        )
        causes = (
            f"no row has class {first}{more}"
            if absent_classes
            else f"{cause}: class {first}{more}"
        )
        values = {"cause": cause, "causes": causes}
        warn(
            SeparationWarning(
                short, detail=whole, numbers={"classes": classes}, values=values
            )
        )
    else:
        unknown = "Whether a maximum exists was not decided: the linear program is too large. "
        end = f"{unknown if is_undecided else ''}To recalibrate, {{use_a_penalty}}."
        short = (
            f"the likelihood is all but flat: the estimates are not determined. {end}"
        )
        whole = (
            f"the likelihood is all but flat after {fit.n_iter} steps (gradient "
            f"{fit.gradient_norm:.1e}): the statistic holds, the estimates are not determined. "
            f"{end}"
        )
        numbers = {"n_iter": fit.n_iter, "gradient_norm": fit.gradient_norm}
        warn(ConvergenceWarning(short, detail=whole, numbers=numbers, values={}))
