"""The members of `AutoCalibrator`, each fitted to the whole or to a part of the rows.

====================  ==========================================================================
identity              the predictions themselves
temperature           a temperature with a slip (`calibrators/_auto/soft_temperature`): ``g``
mcllo                 MCLLO maps of g, one for each baseline, their geometric mean: up to 20
                      classes; ridge ``d c / 2 (|tau|^2 + |gamma - 1|^2)``
vector                a weight and an intercept for each ``log g_j``: more than 20 classes
full_tight            full map of ``log g``, off-diagonals held back (m = 0.3): 3 to 100 classes
full_loose            the same, held back far less (m = 0.01)
====================  ==========================================================================

All but the first are ``softmax(theta (x, 1))`` with the same ``x = log g``: the mean of the
baselines' maps is such a map, too. Fits to parts of the rows start at the fit to all; they are made
at the same time and share a preconditioner.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._ground.results import Codes, Floats, Result
from ..._ground.threads import one_blas_thread
from ..._math.kernel import softmax
from .._linear_fit import identity_map
from .baseline_maps import fit_baselines, map_of, refit_baselines
from .ridge_map import (
    MOST_WHOLE,
    RidgeProblems,
    curvature,
    fit_ridge,
    inverse_curvature,
    structured_ridge,
)
from .row_sets import RowSets, all_rows, some_rows
from .soft_temperature import SoftTemperature, features, fit_soft_temperatures

OWN = 0.7
"""d: strength of the ridge on what a class does to itself, for each class."""
OFF_DIAGONAL = {"full_tight": 0.3, "full_loose": 0.01}
"""m of the full maps, from strong to weak: each starts at the one before."""
MOST_AVERAGED = 20
MOST_FULL = 100
TOL, TOL_OF_PARTS = 1e-6, 3e-3
"""Newton decrements, in nats of all rows together, at which fits take their last step: fits to all
rows, and fits to parts of them or of so many that they are held in float32."""
TRACE = 0.1
"""What of the rows left out, at whose fit they begin, may be left in fits to parts: in nats of the
log likelihood of the rows left out. By estimate; measured it is a tenth of that or less."""


def member_names(n_classes: int) -> tuple[str, ...]:
    """Return the members for so many classes, from simple to rich."""
    scaled = "mcllo" if n_classes <= MOST_AVERAGED else "vector"
    full = tuple(OFF_DIAGONAL) if 3 <= n_classes <= MOST_FULL else ()
    return ("identity", "temperature", scaled, *full)


@dataclass(frozen=True, eq=False)
class Members(Result):
    """All members, fitted.

    Attributes
    ----------
    soft : SoftTemperature
        The member 'temperature', on which the others build.
    maps : dict of str to ndarray
        theta of the others but the identity: shape (c, 2) for 'vector', else (c, c + 1).
    """

    soft: SoftTemperature
    maps: dict[str, Floats]

    @property
    def names(self) -> tuple[str, ...]:
        """All members, from simple to rich."""
        return ("identity", "temperature", *self.maps)

    @one_blas_thread()
    def probabilities(self, scores: Floats) -> dict[str, Floats]:
        """Return what each member but the identity makes of scores, all of shape (c, n)."""
        logs = self.soft.logs(scores)
        answers = {"temperature": np.exp(logs)}
        for name, theta in self.maps.items():
            eta = theta[:, :1] * logs if theta.shape[1] == 2 else theta[:, :-1] @ logs
            eta += theta[:, -1:]
            softmax(eta)
            answers[name] = eta
        return answers

    def logs_of_labels(self, scores: Floats, codes: Codes) -> Floats:
        """Return the log probability that each member gives to the labels, shape (n, K)."""
        same = scores.copy()
        softmax(same)
        rows = np.arange(len(codes))
        answers = [same, *self.probabilities(scores).values()]
        tiny = np.finfo(np.float64).tiny
        return np.log(np.maximum([p[codes, rows] for p in answers], tiny)).T

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Members:
        """Return the members that `to_dict` described."""
        maps = {name: np.array(theta, dtype=float) for name, theta in content["maps"].items()}
        return cls(SoftTemperature(**content["soft"]), maps)


class MembersFit:
    """Fits the members to all rows, and then to parts of them.

    Scores are logits or log probabilities, shape (c, n). `kind` is the dtype in which rows are
    held, by default as their number asks; `tol` the decrement at which fits to all rows end, by
    default as `kind` asks.
    """

    def __init__(
        self,
        scores: Floats,
        codes: Codes,
        weight: Floats | None = None,
        *,
        kind: Any = None,
        tol: float | None = None,
    ) -> None:
        self.scores, self.codes, self.weight = scores, codes, weight
        c, names = len(scores), member_names(len(scores))
        self.ridges = {"vector": np.full((c, 2), OWN * c)} if "vector" in names else {}
        for name in names[3:]:
            self.ridges[name] = structured_ridge(c, OFF_DIAGONAL[name], OWN)
        rows = all_rows(scores, codes, weight, kind)
        softs = fit_soft_temperatures(rows)
        self.rows = features(rows, softs)
        if tol is None:
            tol = TOL if self.rows.scores.dtype == np.float64 else TOL_OF_PARTS
        maps: dict[str, Floats] = {}
        if "mcllo" in names:
            self.baselines, self.hessians = fit_baselines(self.rows, OWN * c, tol)
            maps["mcllo"] = map_of(self.baselines[None]).mean(axis=1)
        maps |= self._ridge_maps(self.rows, None, tol)
        self.whole = _each(softs, maps)[0]

    def parts(self, weights: list[Floats], tol: float = TOL_OF_PARTS) -> list[Members]:
        """Return the members fitted with other weights; rows of weight 0 are left out."""
        rows = some_rows(self.scores, self.codes, weights)
        softs = fit_soft_temperatures(rows, [self.whole.soft] * len(weights), tol, TRACE)
        rows = features(rows, softs)
        maps: dict[str, Floats] = {}
        if "mcllo" in self.whole.maps:
            ridge, share = OWN * len(self.scores), self._share(rows)
            hessians = share * self.hessians + (1.0 - share) * ridge * np.eye(2 * len(self.scores))
            fits = refit_baselines(rows, ridge, self.baselines, hessians, tol, TRACE)
            maps["mcllo"] = map_of(fits).mean(axis=1)
        maps |= self._ridge_maps(rows, self.whole, tol)
        return _each(softs, maps)

    def _share(self, rows: RowSets) -> float:
        """Return the mean weight of the sets as a part of all."""
        return float(rows.totals.mean() / self.rows.totals[0])

    def _ridge_maps(self, rows: RowSets, near: Members | None, tol: float) -> dict[str, Floats]:
        """Return theta of the vector and full maps for each set."""
        sums, share = rows.label_sums(), self._share(rows)
        maps: dict[str, Floats] = {}
        last: Floats | None = None
        blocks: Floats | None = None
        for name, ridge in self.ridges.items():
            start = last if near is None else near.maps[name]
            if start is None or start.shape != ridge.shape:
                start, blocks = identity_map(len(ridge), ridge.shape[1] == 2), None
            if blocks is None or start.size <= MOST_WHOLE or blocks.shape[1] != ridge.shape[1]:
                blocks = curvature(self.rows, start)  # where it is costly the full maps share one
            inverse = inverse_curvature(share * blocks, ridge)
            problems = RidgeProblems(rows, sums, ridge, inverse)
            whole = np.broadcast_to(start, (len(sums), *start.shape))
            maps[name] = fit_ridge(problems, whole, tol, np.inf if near is None else TRACE)
            last = maps[name][0]
        return maps


def _each(softs: list[SoftTemperature], maps: dict[str, Floats]) -> list[Members]:
    """Return one for each set of rows."""
    return [
        Members(soft, {name: theta[k] for name, theta in maps.items()})
        for k, soft in enumerate(softs)
    ]
