r"""The members of the stacked ladder, each fitted to the whole or to a part of the rows.

====================  ==========================================================================
identity              the predictions themselves
temperature           a temperature with a slip (`_soft_temperature`): ``g``
mcllo                 MCLLO maps of g, one for each baseline, their geometric mean: up to 20
                      classes; ridge ``d c / 2 (|tau|^2 + |gamma - 1|^2)``
vector                a weight and an intercept for each ``log g_j``: more than 20 classes
full_tight            full map of ``log g``, off-diagonals held back (m = 0.3): 3 to 100 classes
full_loose            the same, held back far less (m = 0.01)
====================  ==========================================================================

All but the first are ``softmax(theta (x, 1))`` with the same ``x = log g``: the mean of the
baselines' maps is such a map, too. Fits to parts of the rows start at the fit to all and share its
preconditioners.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._model import (
    Likelihood,
    LogPartition,
    identity_theta,
    log_odds_from_logs,
    sufficient_statistic,
)
from .._newton import minimize
from .._penalty import Ridge
from ._linear_fit import identity_map
from ._linear_map import softmax_columns
from ._ridge_map import (
    RidgeObjective,
    curvature,
    fit_ridge,
    inverse_curvature,
    structured_ridge,
)
from ._soft_temperature import SoftTemperature, fit_soft_temperature

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

OWN = 2.0
"""d: strength of the ridge on what a class does to itself, for each class."""
OFF_DIAGONAL = {"full_tight": 0.3, "full_loose": 0.01}
"""m of the full maps, from strong to weak: each starts at the one before."""
MOST_AVERAGED = 20
MOST_FULL = 100
TOL, TOL_OF_PARTS = 1e-8, 1e-6
"""Newton decrements at which fits stop: of the total log likelihood; of parts, for each row."""


def member_names(n_classes: int) -> tuple[str, ...]:
    """Return the members for so many classes, from simple to rich."""
    scaled = "mcllo" if n_classes <= MOST_AVERAGED else "vector"
    full = tuple(OFF_DIAGONAL) if 3 <= n_classes <= MOST_FULL else ()
    return ("identity", "temperature", scaled, *full)


@dataclass(frozen=True, eq=False)
class Ladder:
    """All members, fitted.

    Attributes
    ----------
    soft : SoftTemperature
        The member 'temperature', on which the others build.
    maps : dict of str to ndarray
        theta of the others but the identity: shape (c, 2) for 'vector', else (c, c + 1).
    baselines : ndarray of shape (c, 2 (c - 1)) or None
        theta of each baseline's MCLLO map; only needed to start other fits.
    """

    soft: SoftTemperature
    maps: dict[str, Floats]
    baselines: Floats | None = field(default=None, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """All members, from simple to rich."""
        return ("identity", "temperature", *self.maps)

    def probabilities(self, scores: Floats) -> dict[str, Floats]:
        """Return what each member but the identity makes of scores, all of shape (c, n)."""
        logs = self.soft.logs(scores)
        answers = {"temperature": np.exp(logs)}
        for name, theta in self.maps.items():
            eta = theta[:, :1] * logs if theta.shape[1] == 2 else theta[:, :-1] @ logs
            eta += theta[:, -1:]
            softmax_columns(eta)
            answers[name] = eta
        return answers

    def logs_of_labels(self, scores: Floats, codes: Codes) -> Floats:
        """Return the log probability that each member gives to the labels, shape (n, K)."""
        same = scores.copy()
        softmax_columns(same)
        rows = np.arange(len(codes))
        answers = [same, *self.probabilities(scores).values()]
        tiny = np.finfo(np.float64).tiny
        return np.log(np.maximum([p[codes, rows] for p in answers], tiny)).T

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values."""
        maps = {name: theta.tolist() for name, theta in self.maps.items()}
        return {"soft": self.soft.to_dict(), "maps": maps}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Ladder:
        """Return the members that `to_dict` described."""
        maps = {name: np.array(theta, dtype=float) for name, theta in content["maps"].items()}
        return cls(SoftTemperature(**content["soft"]), maps)


class LadderFit:
    """Fits the members to all rows, and then to parts of them.

    Parameters
    ----------
    scores : ndarray of shape (c, n)
        Logits or log probabilities.
    codes : ndarray of shape (n,)
        The class that came true.
    weight : ndarray of shape (n,) or None
        Row weights.
    """

    def __init__(self, scores: Floats, codes: Codes, weight: Floats | None = None) -> None:
        self.scores, self.codes, self.weight = scores, codes, weight
        self.ridges = _ridges(len(scores))
        soft = fit_soft_temperature(scores, codes, weight)
        x = soft.logs(scores)
        self.blocks = {
            width: curvature(x, codes, weight, width == 2)
            for width in {ridge.shape[1] for ridge in self.ridges.values()}
        }
        self.whole = self._ladder(soft, x, codes, weight, 1.0, None)

    def part(self, weight: Floats) -> Ladder:
        """Return the members fitted with other weights; rows of weight 0 are left out."""
        kept = np.flatnonzero(weight > 0.0)
        scores, codes = self.scores[:, kept], self.codes[kept]
        total = float(len(self.codes) if self.weight is None else self.weight.sum())
        left = weight[kept]
        share = float(left.sum()) / total
        own = None if (left == 1.0).all() else left
        soft = fit_soft_temperature(scores, codes, own, self.whole.soft)
        x = soft.logs(scores)
        return self._ladder(soft, x, codes, own, share, self.whole)

    def _ladder(
        self,
        soft: SoftTemperature,
        x: Floats,
        codes: Codes,
        weight: Floats | None,
        share: float,
        near: Ladder | None,
    ) -> Ladder:
        tol = TOL if near is None else TOL_OF_PARTS * len(codes)
        maps: dict[str, Floats] = {}
        baselines = None
        if len(x) <= MOST_AVERAGED:
            starts = None if near is None else near.baselines
            baselines = _fit_baselines(x, codes, weight, starts, tol)
            maps["mcllo"] = _mean_map(baselines)
        last: Floats | None = None
        for name, ridge in self.ridges.items():
            inverse = inverse_curvature(share * self.blocks[ridge.shape[1]], ridge)
            start = near.maps[name] if near is not None else last
            if start is None or start.shape != ridge.shape:
                start = identity_map(len(ridge), ridge.shape[1] == 2)
            objective = RidgeObjective(x, codes, weight, ridge, inverse)
            maps[name] = last = fit_ridge(objective, start, tol)
        return Ladder(soft, maps, baselines)


def _ridges(n_classes: int) -> dict[str, Floats]:
    """Return the ridge of every vector or full map for so many classes."""
    names = member_names(n_classes)
    ridges = {
        name: structured_ridge(n_classes, m, OWN)
        for name, m in OFF_DIAGONAL.items()
        if name in names
    }
    if "vector" in names:
        ridges = {"vector": np.full((n_classes, 2), OWN * n_classes), **ridges}
    return ridges


def _fit_baselines(
    logs: Floats, codes: Codes, weight: Floats | None, starts: Floats | None, tol: float
) -> Floats:
    """Return the penalised MCLLO theta of each baseline, shape (c, 2 (c - 1))."""
    c = len(logs)
    identity = identity_theta(c - 1)
    fits = []
    for b in range(c):
        odds = log_odds_from_logs(logs.copy(), b)
        moved = np.where(codes == b, c - 1, codes - (codes > b))
        statistic = sufficient_statistic(odds, moved, weight)
        likelihood = Likelihood(LogPartition(odds, weight), statistic)
        start = identity if starts is None else starts[b]
        fits.append(minimize(Ridge(likelihood, OWN * c, identity), start, tol=tol).x)
    return np.array(fits)


def _mean_map(baselines: Floats) -> Floats:
    """Return theta of the geometric mean: ``eta_j = tau_j + gamma_j (x_j - x_b)``, over all b."""
    c = len(baselines)
    theta = np.zeros((c, c + 1))
    for b, fit in enumerate(baselines):
        others = np.delete(np.arange(c), b)
        tau, gamma = np.split(fit, 2)
        theta[others, others] += gamma / c
        theta[others, b] -= gamma / c
        theta[others, -1] += tau / c
    return theta
