"""The members of `AutoCalibrator`, each fitted to all rows and then to parts of them.

====================  ==========================================================================
identity              the predictions themselves
temperature           a temperature with a lapse rate (`temperature_with_lapse`): ``g``
spline, venn_abers    curves of the log odds of two classes (`curves`); venn_abers of 200 rows and
                      more
mcllo                 MCLLO maps of g, one for each baseline, their geometric mean
                      (`baseline_maps`): 3 to 12 classes, ridge
                      ``d c / 2 (|tau|^2 + |gamma - 1|^2)``
similar               knows which classes look alike (`similarity`): ``s``; 3 to 100 classes
full_tight            full map of ``log s``, off-diagonals held back (m = 0.3): 3 to 20 classes
full_loose            the same, held back far less (m = 0.01)
full                  the same, all entries held back alike, ridge ``d c``: 21 to 100 classes
vector                a weight and an intercept for each ``log g_j``: more than 100 classes
====================  ==========================================================================

mcllo, vector and full maps are ``softmax(theta (x, 1))``, x = log g or log s: the mean of the
baselines' maps is such a map, too. A full map begins where look-alike classes leave off: what they
explain with five numbers it need not learn with c (c - 1).

Fits to parts of the rows (`MembersFit.fit_parts`) begin at the fit to all rows and use what it
learned of the Hessian, which is what makes cross-fitting cheap. They must not remember the labels
left out: `LEFT_OUT_TRACE_TOL`. Curves are fitted anew to each part, and 'full' begins at the
identity, of all rows and of parts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..._fit.linear_fit import build_block_preconditioner, identity_parameters
from ..._model.kernel import softmax_in_place
from ..._model.newton import Product
from ..._utils.linalg import TINY
from ..._utils.notebook import show_progress
from ..._utils.parallel import one_blas_thread
from ..._utils.results import Codes, Floats, Result
from .baseline_maps import BaselineMaps, baseline_to_full_theta, fit_baselines
from .curves import MIN_ROWS_FOR_VENN_ABERS, Curve, fit_spline, fit_venn_abers
from .similarity import (
    InverseByShare,
    SimilarClasses,
    fit_ridge,
    fit_similar,
    hessian_blocks,
    inverse_by_share,
    kronecker_inverse,
    structured_ridge,
)
from .temperature_with_lapse import (
    ScoredRows,
    TemperatureWithLapse,
    fit_temperature_with_lapse,
    values_of_labels,
)

# Classes up to which a member is fitted. The time that a fit may take sets them: c baselines have
# 2 c - 2 parameters each, and a full map c (c + 1), that is 420 of 20 classes, of which the whole
# Hessian is still inverted (`similarity`), and 10,100 of 100 classes.
MAX_CLASSES_FOR_BASELINE_AVERAGE = 12
MAX_CLASSES_FOR_STRUCTURED = 20  # two full maps; beyond, one
MAX_CLASSES_FOR_FULL = 100

SCALED = ("mcllo", "vector")  # linear in ``log g``, and not in ``log s``
CURVES = ("spline", "venn_abers")  # of two classes alone

# `docs/explanation/auto.md` has where the ridges come from, and what others gave.
DIAGONAL_RIDGE = 0.7  # d, for each class: ridge on what a class does to itself
OFF_DIAGONAL = {"full_tight": 0.3, "full_loose": 0.01}
"""m of the full maps: ridge on what classes do to each other. From strong to weak, because each fit
begins at the one before."""

# Newton decrements at which fits take their last step, in nats of all rows together. A decrement is
# the squared distance to the minimum, measured by the covariance of the estimate: with 2e-4 no
# linear combination of parameters is farther from it than .014 of its standard error.
TOL = 1e-6  # fits to all rows, where these are few
PARTS_TOL = 2e-4  # fits to parts of the rows, and to many of them
MIN_SCORES_FOR_PART_TOL = 2**13  # rows times classes that are many
FULL_MAP_TOL = 8.0
"""The same for 'full' and its thousands of parameters: what is left of them then is below what rows
can tell. Its fits to parts begin at the identity, which knows of no labels."""
SIMILAR_MAP_TOL = 0.1  # the same for 'similar' of as many classes, above 20
LEFT_OUT_TRACE_TOL = 0.1
"""A fit without a fold begins at the fit to all rows, which has seen the fold. So much of that may
be left, in nats of the fold's log likelihood. By estimate; measured it is 0.024 at most, 0.003 in
the median (`docs/explanation/auto.md`)."""


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

    Attributes
    ----------
    soft : TemperatureWithLapse
        'temperature', on which the others build.
    maps : dict of str to ndarray
        theta of 'mcllo', 'vector' and the full maps: (c, c + 1), but (c, 2) for 'vector'.
    similar : SimilarClasses or None
        'similar', on which the full maps build.
    curves : dict of str to Curve
        'spline' and 'venn_abers' of two classes.
    """

    soft: TemperatureWithLapse
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
        g, logs = self.soft.probs_and_logs(scores)
        answers = {"temperature": g}
        # In this order: what comes after 'similar' builds on its logarithms.
        for name in self.names[2:]:
            if name == "similar" and self.similar is not None:
                answers[name], logs = self.similar.probs_and_logs(g, logs)
            elif name in self.curves:
                answers[name] = self.curves[name].probabilities(logs)
            else:
                answers[name] = _apply_map(self.maps[name], logs)
        return answers

    def all_probabilities(self, scores: Floats) -> list[Floats]:
        """Return what each member makes of scores, the identity too."""
        unchanged = scores.copy()
        softmax_in_place(unchanged)
        return [unchanged, *self.probabilities(scores).values()]

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Members:
        """Return the members that `to_dict` described.

        Files of earlier versions have no look-alike map (their full maps are of ``log g``) and no
        curves.
        """
        soft = TemperatureWithLapse(**content["soft"])
        maps = {}
        for name, theta in content["maps"].items():
            maps[name] = np.array(theta, dtype=float)
        similar = None
        if content.get("similar") is not None:
            similar = SimilarClasses.from_dict(content["similar"])
        curves = {}
        for name, curve in content.get("curves", {}).items():
            curves[name] = Curve.from_dict(curve)
        return cls(soft, maps, similar, curves)


def _apply_map(theta: Floats, x: Floats) -> Floats:
    """Return ``softmax(theta (x, 1))``; theta of two columns is a vector map."""
    weights = theta[:, :-1]
    eta = weights * x if weights.shape[1] == 1 else weights @ x
    eta += theta[:, -1:]
    softmax_in_place(eta)
    return eta


def label_log_likelihoods(answers: list[Floats], codes: Codes) -> Floats:
    """Return the log probability that each answer, shape (c, n), gives to the labels: (n, K)."""
    probs = np.array([values_of_labels(answer, codes) for answer in answers])
    return np.log(np.maximum(probs, TINY)).T


class MembersFit:
    """Fits the members to all rows, and then to parts of them.

    Parameters
    ----------
    scores : ndarray of shape (c, n)
        Logits or log probabilities.
    codes : ndarray of shape (n,)
        Labels.
    weight : ndarray of shape (n,), optional
        How many rows each stands for.
    tol : float, optional
        Decrement at which fits to all rows end; by default as their number asks.

    Attributes
    ----------
    rows : ScoredRows
        All rows.
    whole : Members
        The members fitted to all rows.
    """

    def __init__(
        self,
        scores: Floats,
        codes: Codes,
        weight: Floats | None = None,
        *,
        tol: float | None = None,
    ) -> None:
        if tol is None:
            tol = PARTS_TOL if scores.size >= MIN_SCORES_FOR_PART_TOL else TOL
        self.rows = ScoredRows(scores, codes, weight)
        self.ridges = _member_ridges(len(scores))
        # What the fit to all rows learns, and fits to parts use: inverses of Hessians for a share
        # of the rows, and the maps of all baselines.
        self._inverses: dict[str, InverseByShare] = {}
        self._baselines: BaselineMaps | None = None
        self.whole = self._fit_members(self.rows, tol)

    def fit_parts(self, weights: list[Floats], tol: float = PARTS_TOL) -> list[Members]:
        """Return the members fitted with other weights; rows of weight 0 are left out."""
        fits = []
        for weight in weights:
            kept = self.rows.with_weight(weight)
            left_out = self.rows.with_weight(self.rows.weight_or_ones - weight)
            fits.append(self._fit_members(kept, tol, self.whole, left_out))
        return fits

    def _fit_members(
        self,
        rows: ScoredRows,
        tol: float,
        near: Members | None = None,
        left_out: ScoredRows | None = None,
    ) -> Members:
        """Return the members; `near` are those of all rows, where some are left out."""
        names = member_names(len(rows.scores))
        if near is None:
            soft = fit_temperature_with_lapse(rows)
        else:
            soft = fit_temperature_with_lapse(rows, near.soft, tol, LEFT_OUT_TRACE_TOL)
        g, log_g = soft.probs_and_logs(rows.scores)
        rows_g = replace(rows, scores=log_g)

        maps: dict[str, Floats] = {}
        if "mcllo" in names:
            maps["mcllo"] = self._fit_baseline_average(rows_g, soft, tol, left_out)

        similar = None
        # where no member knows look-alike classes, full maps are of log g
        rows_s = rows_g
        if "similar" in names:
            similar, log_s = self._fit_similar(g, rows_g, tol, near)
            rows_s = replace(rows, scores=log_s)

        if "full" in names:
            maps["full"] = self._fit_full(rows_s, tol)
        elif "vector" in names:
            maps |= self._fit_ridge_maps(rows_g, tol, near)
        else:
            maps |= self._fit_ridge_maps(rows_s, tol, near)
        return Members(soft, maps, similar, self._fit_curves(rows_g, soft, tol))

    def _fit_baseline_average(
        self,
        rows: ScoredRows,
        soft: TemperatureWithLapse,
        tol: float,
        left_out: ScoredRows | None,
    ) -> Floats:
        """Return theta of 'mcllo'."""
        start = None if left_out is None else self._baselines_without(left_out, soft)
        baselines = fit_baselines(rows, DIAGONAL_RIDGE * len(rows.scores), tol, start)
        if self._baselines is None:
            self._baselines = baselines
        mean: Floats = baseline_to_full_theta(baselines.theta).mean(axis=0)
        return mean

    def _baselines_without(
        self, left_out: ScoredRows, soft: TemperatureWithLapse
    ) -> BaselineMaps:
        """Return where baselines' maps begin without these rows, of log g by their own `soft`."""
        assert self._baselines is not None
        if len(left_out.codes) == 0 or self.rows.scores.size < MIN_SCORES_FOR_PART_TOL:
            return self._baselines  # a pass over few rows costs no more than this
        _, old = self.whole.soft.probs_and_logs(left_out.scores)
        start = self._baselines.without_rows(replace(left_out, scores=old))

        # As log g changes with the temperature and its lapse rate, gamma does: by the slope of the
        # old log g on the new one.
        g, new = soft.probs_and_logs(left_out.scores)
        new -= (g * new).sum(axis=0)
        variance = float((g * new * new).sum())
        if variance > 0.0:
            slope = float((g * new * old).sum()) / variance
            n_intercepts = len(g) - 1
            start.theta[:, n_intercepts:] *= slope
        return start

    def _fit_similar(
        self, g: Floats, rows: ScoredRows, tol: float, near: Members | None
    ) -> tuple[SimilarClasses, Floats]:
        """Return 'similar' and its log probabilities."""
        if len(g) > MAX_CLASSES_FOR_STRUCTURED and tol >= TOL:
            tol = SIMILAR_MAP_TOL
        if near is None:
            similar, log_s, inverse_of_share = fit_similar(g, rows, tol)
            assert inverse_of_share is not None
            self._inverses["similar"] = inverse_of_share
        else:
            inverse = self._inverse_hessian("similar", rows)
            similar, log_s, _ = fit_similar(
                g, rows, tol, near.similar, inverse, LEFT_OUT_TRACE_TOL
            )
        return similar, log_s

    def _fit_ridge_maps(
        self, rows: ScoredRows, tol: float, near: Members | None
    ) -> dict[str, Floats]:
        """Return theta of 'vector', or of 'full_tight' and then 'full_loose'."""
        maps: dict[str, Floats] = {}
        theta = identity_parameters(len(rows.scores), "vector" in self.ridges)
        moved = np.zeros_like(theta)
        blocks = None  # of the Hessian, about
        for name, ridge in self.ridges.items():
            if near is not None:
                # From the fit to all rows, moved as the map before did without the rows left out.
                inverse = self._inverse_hessian(name, rows)
                start = near.maps[name] + moved
                theta, _ = fit_ridge(
                    rows, ridge, start, inverse, tol, LEFT_OUT_TRACE_TOL
                )
                moved = theta - near.maps[name]
            else:
                if blocks is None:
                    blocks = hessian_blocks(rows, theta)
                theta, learned = fit_ridge(
                    rows, ridge, theta, build_block_preconditioner(blocks, ridge), tol
                )
                self._inverses[name] = inverse_divided_by_share(learned)
                if (
                    theta.size <= 200
                ):  # parameters: a new Hessian costs less than it saves
                    blocks = hessian_blocks(rows, theta)
                    self._inverses[name] = inverse_by_share(blocks, ridge)
            maps[name] = theta
        return maps

    def _fit_full(self, rows: ScoredRows, tol: float) -> Floats:
        """Return theta of 'full', which begins at the identity, also without some rows."""
        ridge = self.ridges["full"]
        start = identity_parameters(len(rows.scores), diagonal=False)
        if "full" not in self._inverses:
            by_all_rows = kronecker_inverse(rows, start, float(ridge[0, 0]))
            self._inverses["full"] = inverse_divided_by_share(by_all_rows)
        inverse = self._inverse_hessian("full", rows)
        theta, _ = fit_ridge(
            rows, ridge, start, inverse, FULL_MAP_TOL if tol >= TOL else tol
        )
        return theta

    def _fit_curves(
        self, rows: ScoredRows, soft: TemperatureWithLapse, tol: float
    ) -> dict[str, Curve]:
        """Return the curves of two classes; none of more."""
        if len(rows.scores) > 2:
            return {}
        max_log_odds = math.log(2.0 / soft.slip - 1.0)  # g is at least slip / 2
        curves = {"spline": fit_spline(rows, max_log_odds, tol)}
        if (
            self.rows.total >= MIN_ROWS_FOR_VENN_ABERS
        ):  # all rows: parts have the same members
            curves["venn_abers"] = fit_venn_abers(rows)
        return curves

    def _inverse_hessian(self, name: str, rows: ScoredRows) -> Product:
        """Return products with the inverse Hessian of so many rows, from what all rows taught."""
        share = round(
            rows.total / self.rows.total, 2
        )  # rounded: folds of a size share one
        return self._inverses[name](share)


def _member_ridges(n_classes: int) -> dict[str, Floats]:
    """Return the ridge on each entry of theta, for the members that are linear maps."""
    ridges = {}
    for name in member_names(n_classes):
        if name == "vector":
            ridges[name] = np.full((n_classes, 2), DIAGONAL_RIDGE * n_classes)
        elif name == "full":
            ridges[name] = np.full(
                (n_classes, n_classes + 1), DIAGONAL_RIDGE * n_classes
            )
        elif name in OFF_DIAGONAL:
            ridges[name] = structured_ridge(
                n_classes, OFF_DIAGONAL[name], DIAGONAL_RIDGE
            )
    return ridges


def inverse_divided_by_share(inverse: Product) -> InverseByShare:
    """Return inverses for shares of the rows, where the Hessian is not known apart from the ridge.

    The Hessian of a share of the rows is that share of it, its inverse is divided by it.
    """

    def of_share_of_rows(share: float) -> Product:
        return lambda gradient: inverse(gradient) / share

    return of_share_of_rows
